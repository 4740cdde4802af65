//! Redisson's name of a value of a group: the HighwayHash of its bytes, in base64.
//!
//! Implemented here, since the crate costs the npm package twice as much. The key is Redisson's.

use alloc::string::String;
use core::array;

/// Returns the field of a value: 22 letters of standard base64 for 128 bits.
pub(crate) fn field(value: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let hash = hash128(value);
    let places = (2..128).step_by(6).rev().map(|place| (hash >> place) & 63);
    // The last letter encodes the two remaining bits, and four zeros.
    let letters = places.chain([(hash & 3) << 4]);
    letters
        .filter_map(|place| LETTERS.get(place as usize))
        .map(|letter| char::from(*letter))
        .collect()
}

/// Four lanes of 64 bits.
type Lanes = [u64; 4];

const KEY: Lanes =
    [0x9e37_79b9_7f4a_7c15, 0xf39c_c060_5ced_c834, 0x1082_276b_f3a2_7251, 0xf86c_6a11_d0c1_8e95];
const MUL0: Lanes =
    [0xdbe6_d5d5_fe4c_ce2f, 0xa409_3822_299f_31d0, 0x1319_8a2e_0370_7344, 0x243f_6a88_85a3_08d3];
const MUL1: Lanes =
    [0x3bd3_9e10_cb0e_f593, 0xc0ac_f169_b5f1_8a8c, 0xbe54_66cf_34e9_0c6c, 0x4528_21e6_38d0_1377];
const PACKET: usize = 32;

struct State {
    v0: Lanes,
    v1: Lanes,
    mul0: Lanes,
    mul1: Lanes,
}

fn hash128(bytes: &[u8]) -> u128 {
    let mut state = State {
        v0: each(MUL0, KEY, |mul, key| mul ^ key),
        v1: each(MUL1, KEY, |mul, key| mul ^ key.rotate_left(32)),
        mul0: MUL0,
        mul1: MUL1,
    };
    let (packets, rest) = bytes.as_chunks::<PACKET>();
    packets.iter().for_each(|packet| state.packet(packet));
    if !rest.is_empty() {
        state.rest(rest);
    }
    for _ in 0..6 {
        let [a, b, c, d] = state.v0.map(|lane| lane.rotate_left(32));
        state.update([c, d, a, b]);
    }
    let ([a, b, ..], [.., c, d]) = (
        each(state.v0, state.mul0, u64::wrapping_add),
        each(state.v1, state.mul1, u64::wrapping_add),
    );
    u128::from(a.wrapping_add(c)) << 64 | u128::from(b.wrapping_add(d))
}

impl State {
    fn packet(&mut self, packet: &[u8; PACKET]) {
        let (words, _) = packet.as_chunks::<8>();
        let mut words = words.iter();
        self.update(array::from_fn(|_| words.next().map_or(0, |word| u64::from_le_bytes(*word))));
    }

    fn update(&mut self, lanes: Lanes) {
        let cross = |low: u64, high: u64| (low & 0xffff_ffff).wrapping_mul(high >> 32);
        let added = each(self.mul0, lanes, u64::wrapping_add);
        self.v1 = each(self.v1, added, u64::wrapping_add);
        self.mul0 = each(self.mul0, each(self.v1, self.v0, cross), |mul, mixed| mul ^ mixed);
        self.v0 = each(self.v0, self.mul1, u64::wrapping_add);
        self.mul1 = each(self.mul1, each(self.v0, self.v1, cross), |mul, mixed| mul ^ mixed);
        self.v0 = each(self.v0, zipped(self.v1), u64::wrapping_add);
        self.v1 = each(self.v1, zipped(self.v0), u64::wrapping_add);
    }

    /// Hashes the last 1 to 31 bytes.
    fn rest(&mut self, rest: &[u8]) {
        let length = rest.len() as u32;
        self.v0 =
            self.v0.map(|lane| lane.wrapping_add(u64::from(length) << 32 | u64::from(length)));
        let turned = |half: u64| u64::from((half as u32).rotate_left(length));
        self.v1 = self.v1.map(|lane| turned(lane >> 32) << 32 | turned(lane));
        let (words, odd) = rest.split_at(rest.len() & !3);
        let tail: [u8; 4] = if length & 16 != 0 {
            rest.last_chunk().copied().unwrap_or_default()
        } else if let (Some(first), Some(last)) = (odd.first(), odd.last()) {
            let middle = odd.get(odd.len() / 2).copied().unwrap_or_default();
            [*first, middle, *last, 0]
        } else {
            [0; 4]
        };
        let mut packet = [0; PACKET];
        packet.iter_mut().zip(words).for_each(|(to, byte)| *to = *byte);
        let at = if length & 16 == 0 { 16 } else { 28 };
        packet.iter_mut().skip(at).zip(tail).for_each(|(to, byte)| *to = byte);
        self.packet(&packet);
    }
}

/// Permutes the bytes of each pair of lanes: `ZipperMerge` in the reference implementation.
fn zipped([a, b, c, d]: Lanes) -> Lanes {
    let pair = |low: u64, high: u64| {
        let [l0, l1, l2, l3, l4, l5, l6, l7] = low.to_le_bytes();
        let [h0, h1, h2, h3, h4, h5, h6, h7] = high.to_le_bytes();
        [
            u64::from_le_bytes([l3, h4, l2, l5, h6, l1, h7, l0]),
            u64::from_le_bytes([h3, l4, h2, h5, h1, l6, h0, l7]),
        ]
    };
    let ([a, b], [c, d]) = (pair(a, b), pair(c, d));
    [a, b, c, d]
}

fn each(a: Lanes, b: Lanes, of: impl Fn(u64, u64) -> u64) -> Lanes {
    let ([a0, a1, a2, a3], [b0, b1, b2, b3]) = (a, b);
    [of(a0, b0), of(a1, b1), of(a2, b2), of(a3, b3)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn counting(length: u8) -> Vec<u8> {
        (0..length).collect()
    }

    #[test]
    fn a_value_s_field_is_the_one_that_redisson_computes() {
        for (value, name) in [
            ("A", "7lfauXx93omNKgwMm0g5eQ"),
            ("student:001", "DqvoYruF5eyLDrILcprmBw"),
            ("student:002", "Lcoy0ji/MncMvbqDj+KCvA"),
            ("Jack_001", "7pNoDdizVy2xY792MaFv+w"),
            ("", "t6rZwibGo2uy1OSmNVe8pg"),
        ] {
            assert_eq!(field(value.as_bytes()), name, "{value}");
        }
        assert_eq!(field(&counting(32)), "Uj5yBxCrdmS0UOYKjEgNDg");
        assert_eq!(field(&counting(33)), "JOHEc24cnBwpegsX2HPXTw");
    }

    #[test]
    fn every_length_is_hashed_as_the_crate_of_that_name_does() {
        // Computed once with `highway` 1.3.0: the field of all these fields in a row.
        let fields: String = (0..=64).map(|length| field(&counting(length))).collect();
        assert_eq!(field(fields.as_bytes()), "HPXl7BxNjqJPvr5Mnq+Kmw");
    }
}
