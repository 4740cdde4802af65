//! Random steps for a read-write lock.

use proptest::prelude::*;

use super::Limit;

pub(crate) const WANT_KEYS: [&str; 2] = ["el:{job}:want", "el:x{a}b:want"];
pub(crate) const HOLDERS: [&str; 2] =
    ["8743c9c0-0795-4907-87fd-6c719a6b4586:1", "1f1d3b8e-5a0a-4d2f-9f0e-0a6b7c8d9e0f:7"];
/// Requests have few ids, so that many are repetitions.
const REQUESTS: u64 = 6;

/// One step.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Ours {
        lock: usize,
        call: Call,
        limit: Limit,
        keep: u64,
        request: u64,
    },
    Java {
        lock: usize,
        holder: usize,
        act: Java,
    },
    /// One of the keys is removed: expired, evicted, or deleted.
    Loss {
        of: usize,
    },
    /// Another program writes a token.
    Token {
        lock: usize,
        value: u64,
        ends_in: Option<u64>,
    },
    /// The expiry of one of the keys is removed.
    Persist {
        of: usize,
    },
}

/// An edgelatch call. Readers are the owners 1 to 3, writers 4 and 5.
#[derive(Clone, Debug)]
pub(crate) enum Call {
    Read { owner: u8, parent: Option<u8>, lease: u64, last: bool },
    RenewRead { owner: u8, lease: u64 },
    EndRead { owner: u8 },
    Write { owner: u8, wants: bool, lease: u64, last: bool },
    RenewWrite { owner: u8, lease: u64 },
    EndWrite { owner: u8, inner: Option<u8> },
    Force { side: Side },
    Cancel { side: Side },
    Inspect { side: Side, owner: u8 },
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Side {
    Read,
    Write,
}

/// A call of Redisson's. An unlock may be executed twice, by its id.
#[derive(Clone, Debug)]
pub(crate) enum Java {
    Read { lease: u64 },
    EndRead { id: u64 },
    RenewRead,
    Write { lease: u64 },
    EndWrite { id: u64 },
    RenewWrite,
    Force { side: Side },
}

/// Any step, weighted by its usefulness.
pub(crate) fn step() -> impl Strategy<Value = Step> {
    let limit = Limit::any(3, 1, 5);
    let keep = proptest::sample::select(vec![60_000, 90_000, 600_000_u64]);
    let ours = (0..2_usize, call(), limit, keep, 1..=REQUESTS).prop_map(
        |(lock, call, limit, keep, request)| Step::Ours { lock, call, limit, keep, request },
    );
    let peer = (0..2_usize, 0..2_usize, java()).prop_map(|(lock, holder, act)| Step::Java {
        lock,
        holder,
        act,
    });
    let ends = proptest::option::of(60_000..600_000_u64);
    let value =
        proptest::sample::select(vec![1, 5_000_000_000_000_000, (1 << 53) - 2, (1 << 53) - 1]);
    prop_oneof![
        30 => ours,
        12 => peer,
        2 => any::<usize>().prop_map(|of| Step::Loss { of }),
        1 => (0..2_usize, value, ends)
            .prop_map(|(lock, value, ends_in)| Step::Token { lock, value, ends_in }),
        1 => any::<usize>().prop_map(|of| Step::Persist { of }),
    ]
}

fn lease() -> impl Strategy<Value = u64> {
    proptest::sample::select(vec![60_000, 200_000, 3_600_000_u64])
}

fn side() -> impl Strategy<Value = Side> {
    proptest::sample::select(vec![Side::Read, Side::Write])
}

fn call() -> impl Strategy<Value = Call> {
    let (reader, writer) = (|| 1..4_u8, || 4..6_u8);
    let parent = proptest::option::of(writer());
    let inner = proptest::option::of(reader());
    prop_oneof![
        6 => (reader(), parent, lease(), any::<bool>())
            .prop_map(|(owner, parent, lease, last)| Call::Read { owner, parent, lease, last }),
        2 => (reader(), lease()).prop_map(|(owner, lease)| Call::RenewRead { owner, lease }),
        3 => reader().prop_map(|owner| Call::EndRead { owner }),
        4 => (writer(), any::<bool>(), lease(), any::<bool>())
            .prop_map(|(owner, wants, lease, last)| Call::Write { owner, wants, lease, last }),
        2 => (writer(), lease()).prop_map(|(owner, lease)| Call::RenewWrite { owner, lease }),
        3 => (writer(), inner).prop_map(|(owner, inner)| Call::EndWrite { owner, inner }),
        1 => side().prop_map(|side| Call::Force { side }),
        1 => side().prop_map(|side| Call::Cancel { side }),
        1 => (side(), 1..6_u8).prop_map(|(side, owner)| Call::Inspect { side, owner }),
    ]
}

fn java() -> impl Strategy<Value = Java> {
    prop_oneof![
        4 => lease().prop_map(|lease| Java::Read { lease }),
        4 => (1..6_u64).prop_map(|id| Java::EndRead { id }),
        1 => Just(Java::RenewRead),
        3 => lease().prop_map(|lease| Java::Write { lease }),
        4 => (1..6_u64).prop_map(|id| Java::EndWrite { id }),
        1 => Just(Java::RenewWrite),
        1 => side().prop_map(|side| Java::Force { side }),
    ]
}
