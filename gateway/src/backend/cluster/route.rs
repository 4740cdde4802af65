//! Finds the slot of a command.

use redis::cluster_routing::Slot;
use redis::{Arg, Cmd};

/// Returns the slot of a command's first key, or `None` if it has no key. Redis itself checks that
/// the other keys are in the same slot: it replies `CROSSSLOT` before it runs anything.
pub(super) fn slot(command: &Cmd) -> Option<Slot> {
    let words: Vec<&[u8]> = command
        .args_iter()
        .filter_map(|word| match word {
            Arg::Simple(word) => Some(word),
            _ => None,
        })
        .collect();
    first_key(&words).map(Slot::for_key)
}

/// The position of a command's first key.
enum KeyPosition {
    /// After the name.
    First,
    /// After the name and a subcommand.
    Second,
    /// After the number of keys, which is this argument, counted from 1.
    Counted(usize),
    /// After the word `STREAMS`.
    Streams,
}

/// Commands whose first key is not their first argument.
const KEY_POSITIONS: &[(&[u8], KeyPosition)] = &[
    (b"BITOP", KeyPosition::Second),
    (b"EVAL", KeyPosition::Counted(2)),
    (b"EVALSHA", KeyPosition::Counted(2)),
    (b"EVALSHA_RO", KeyPosition::Counted(2)),
    (b"EVAL_RO", KeyPosition::Counted(2)),
    (b"FCALL", KeyPosition::Counted(2)),
    (b"FCALL_RO", KeyPosition::Counted(2)),
    (b"LMPOP", KeyPosition::Counted(1)),
    (b"MEMORY", KeyPosition::Second),
    (b"OBJECT", KeyPosition::Second),
    (b"SINTERCARD", KeyPosition::Counted(1)),
    (b"XGROUP", KeyPosition::Second),
    (b"XINFO", KeyPosition::Second),
    (b"XREAD", KeyPosition::Streams),
    (b"XREADGROUP", KeyPosition::Streams),
    (b"ZDIFF", KeyPosition::Counted(1)),
    (b"ZINTER", KeyPosition::Counted(1)),
    (b"ZINTERCARD", KeyPosition::Counted(1)),
    (b"ZMPOP", KeyPosition::Counted(1)),
    (b"ZUNION", KeyPosition::Counted(1)),
];

/// Commands without a key, whatever their arguments. Commands that the gateway refuses are not
/// listed.
const KEYLESS: &[&[u8]] = &[
    b"COMMAND",
    b"DBSIZE",
    b"ECHO",
    b"FLUSHALL",
    b"FLUSHDB",
    b"FUNCTION",
    b"INFO",
    b"KEYS",
    b"LASTSAVE",
    b"LOLWUT",
    b"PING",
    b"PUBLISH",
    b"PUBSUB",
    b"RANDOMKEY",
    b"SCAN",
    b"SCRIPT",
    b"TIME",
    b"WAIT",
    b"WAITAOF",
];

fn first_key<'a>(words: &[&'a [u8]]) -> Option<&'a [u8]> {
    let (name, rest) = words.split_first()?;
    if KEYLESS.iter().any(|keyless| name.eq_ignore_ascii_case(keyless)) {
        return None;
    }
    let position = KEY_POSITIONS.iter().find(|(other, _)| name.eq_ignore_ascii_case(other));
    match position.map_or(&KeyPosition::First, |(_, position)| position) {
        KeyPosition::First => rest.first().copied(),
        KeyPosition::Second => rest.get(1).copied(),
        KeyPosition::Counted(at) => {
            let number: u64 = str::from_utf8(rest.get(at - 1)?).ok()?.parse().ok()?;
            // Redis refuses a number that is larger than the number of keys.
            if number == 0 { None } else { rest.get(*at).copied() }
        }
        KeyPosition::Streams => {
            let at = rest.iter().position(|word| word.eq_ignore_ascii_case(b"STREAMS"))?;
            rest.get(at + 1).copied()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key<'a>(words: &[&'a str]) -> Option<&'a str> {
        let words: Vec<_> = words.iter().map(|word| word.as_bytes()).collect();
        first_key(&words).map(|key| str::from_utf8(key).unwrap())
    }

    #[test]
    fn the_first_key_is_found_at_any_position() {
        for words in [
            &["GET", "key"][..],
            &["hset", "key", "f", "v"],
            &["EVAL", "return 1", "2", "key", "other", "argument"],
            &["evalsha", "abc", "1", "key"],
            &["FCALL", "f", "1", "key"],
            &["BITOP", "AND", "key", "other"],
            &["OBJECT", "ENCODING", "key"],
            &["XREAD", "COUNT", "1", "STREAMS", "key", "0"],
            &["XREADGROUP", "GROUP", "g", "c", "streams", "key", ">"],
            &["ZUNION", "2", "key", "other"],
            &["ZUNIONSTORE", "key", "2", "a", "b"],
            &["SPUBLISH", "key", "message"],
            &["MSET", "key", "1", "other", "2"],
            &["JSON.GET", "key", "$"],
        ] {
            assert_eq!(key(words), Some("key"), "{words:?}");
        }
    }

    #[test]
    fn a_command_without_a_key_has_no_slot() {
        for words in [
            &["PING"][..],
            &["publish", "channel", "message"],
            &["SCRIPT", "LOAD", "return 1"],
            &["EVAL", "return 1", "0", "argument"],
            &["EVAL", "return 1", "none", "argument"],
            &["EVAL", "return 1", "-1", "argument"],
            &["EVAL", "return 1"],
            &["WAIT", "1", "100"],
            &["SCAN", "0"],
            &["MEMORY", "DOCTOR"],
            &["GET"],
            &["XREAD", "COUNT", "1"],
        ] {
            assert_eq!(key(words), None, "{words:?}");
        }
    }
}
