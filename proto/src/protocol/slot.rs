//! The slot of a key in a Redis Cluster. All keys of one script must be in one slot.

/// Computes the slot of a key, 0 to 16383: CRC16 (XMODEM) of its hash tag, or of the whole key if
/// it has none.
pub fn slot(key: &str) -> u16 {
    tag(key).unwrap_or(key).bytes().fold(0, crc16) % 16_384
}

/// The hash tag: the text between the first `{` and the next `}`; `None` if it is empty or absent.
pub(crate) fn tag(key: &str) -> Option<&str> {
    let (_, rest) = key.split_once('{')?;
    rest.split_once('}').map(|(tag, _)| tag).filter(|tag| !tag.is_empty())
}

fn crc16(crc: u16, byte: u8) -> u16 {
    let shift = |crc: u16, _| if crc & 0x8000 == 0 { crc << 1 } else { crc << 1 ^ 0x1021 };
    (0..8).fold(crc ^ u16::from(byte) << 8, shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_the_redis_cluster_specification() {
        assert_eq!("123456789".bytes().fold(0, crc16), 0x31c3);
        for (key, number) in [("foo", 12_182), ("bar", 5_061), ("hello", 866), ("", 0)] {
            assert_eq!(slot(key), number, "{key}");
        }
    }

    #[test]
    fn a_key_s_tag_is_what_the_first_braces_hold() {
        assert_eq!(slot("{user1000}.following"), slot("{user1000}.followers"));
        assert_eq!(tag("{user1000}.following"), Some("user1000"));
        assert_eq!(tag("foo{}{bar}"), None);
        assert_eq!(tag("foo{{bar}}zap"), Some("{bar"));
        assert_eq!(tag("foo{bar}{zap}"), Some("bar"));
        for key in ["", "foo", "a{b", "a}b", "}{"] {
            assert_eq!(tag(key), None, "{key}");
        }
    }
}
