//! Random steps for a lock.

use proptest::prelude::*;

use super::Limit;

/// Requests have few ids, so that many are repetitions.
const REQUESTS: u64 = 6;

/// One step.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Call {
        script: u8,
        lock: usize,
        owner: u8,
        request: u64,
        lease: u64,
        last: bool,
        bound: Limit,
        keep: u64,
    },
    /// Java acquires the lock, with an expiry or without.
    Java { lock: usize, ends_in: Option<u64> },
    /// The key of the lock's name is a group with a value.
    Group { lock: usize, ends_in: u64 },
    /// One of the keys is removed: expired, evicted, or deleted.
    Loss { of: usize },
    /// Another program writes a token.
    Token { lock: usize, value: u64, ends_in: Option<u64> },
    /// The expiry of one of the keys is removed.
    Persist { of: usize },
}

/// Any step, weighted by its usefulness.
pub(crate) fn step() -> impl Strategy<Value = Step> {
    let limit = Limit::any(3, 1, 4);
    // Acquisitions and releases are more frequent than the rest.
    let script = proptest::sample::select(vec![0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 5]);
    let lease = proptest::sample::select(vec![60_000, 200_000, 3_600_000_u64]);
    let keep = proptest::sample::select(vec![30_000, 90_000, 600_000_u64]);
    let call = (script, 0..2_usize, 1..4_u8, 1..=REQUESTS, lease, any::<bool>(), limit, keep)
        .prop_map(|(script, lock, owner, request, lease, last, bound, keep)| Step::Call {
            script,
            lock,
            owner,
            request,
            lease,
            last,
            bound,
            keep,
        });
    let ends = proptest::option::of(60_000..600_000_u64);
    let value =
        proptest::sample::select(vec![1, 5_000_000_000_000_000, (1 << 53) - 2, (1 << 53) - 1]);
    prop_oneof![
        20 => call,
        1 => (0..2_usize, ends.clone()).prop_map(|(lock, ends_in)| Step::Java { lock, ends_in }),
        1 => (0..2_usize, 60_000..600_000_u64)
            .prop_map(|(lock, ends_in)| Step::Group { lock, ends_in }),
        2 => any::<usize>().prop_map(|of| Step::Loss { of }),
        1 => (0..2_usize, value, ends)
            .prop_map(|(lock, value, ends_in)| Step::Token { lock, value, ends_in }),
        1 => any::<usize>().prop_map(|of| Step::Persist { of }),
    ]
}
