//! What may happen to a Redis.

use std::time::Duration;

use edgelatch::protocol::script::{Bound, Publish};
use proptest::prelude::*;

pub(crate) const LOCKS: [&str; 2] = ["job", "x{a}b"];
pub(crate) const TOKEN_KEYS: [&str; 2] = ["redisson_lock_token:{job}", "redisson_lock_token:x{a}b"];
/// Requests come from a few ids, so that many are repetitions.
const REQUESTS: u64 = 6;

/// One thing that happens.
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
    /// Java takes the lock, with an end or without.
    Java { lock: usize, ends_in: Option<u64> },
    /// One of the keys is gone: expired, evicted, or deleted.
    Loss { of: usize },
    /// Somebody has written a token.
    Token { lock: usize, value: u64, ends_in: Option<u64> },
    /// The end of one of the keys is taken away.
    Persist { of: usize },
}

/// What others are told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Aloud {
    pub(crate) publish: Publish,
    /// Whether of grants too.
    pub(crate) grants: bool,
}

impl Aloud {
    pub(crate) fn any() -> impl Strategy<Value = Self> {
        let publish =
            proptest::sample::select(vec![Publish::Plain, Publish::Sharded, Publish::Both]);
        (publish, any::<bool>()).prop_map(|(publish, grants)| Self { publish, grants })
    }
}

/// How long a request may be done, seen from now.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Limit {
    Unknown,
    Passed,
    /// By more than the window in which can be told what became of a request.
    LongPassed,
    In(u64),
}

impl Limit {
    /// Any of them, each so often; one that has passed has done so just now as often as long ago.
    pub(crate) fn any(unknown: u32, passed: u32, to_come: u32) -> impl Strategy<Value = Self> {
        prop_oneof![
            unknown => Just(Self::Unknown),
            passed => Just(Self::Passed),
            passed => Just(Self::LongPassed),
            to_come => (60_000..900_000_u64).prop_map(Self::In),
        ]
    }

    /// The bound at this time of Redis, with a memory of so many milliseconds.
    pub(crate) fn bound(self, now: u64, keep: u64) -> Bound {
        let not_after = match self {
            Self::Unknown => None,
            Self::Passed => Some(now - 1),
            Self::LongPassed => Some(now - 70_000),
            Self::In(ms) => Some(now + ms),
        };
        Bound { not_after, keep: Duration::from_millis(keep) }
    }
}

/// Any of them, each as often as it is of use.
pub(crate) fn step() -> impl Strategy<Value = Step> {
    let limit = Limit::any(3, 1, 4);
    // Acquire and release more often than the others.
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
        2 => any::<usize>().prop_map(|of| Step::Loss { of }),
        1 => (0..2_usize, value, ends)
            .prop_map(|(lock, value, ends_in)| Step::Token { lock, value, ends_in }),
        1 => any::<usize>().prop_map(|of| Step::Persist { of }),
    ]
}
