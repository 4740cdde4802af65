//! Random steps for each object, and the parts that several objects share.

pub(crate) mod fair_lock;
pub(crate) mod fair_read_write_lock;
pub(crate) mod lock;
pub(crate) mod read_write_lock;
pub(crate) mod semaphores_and_latch;

use std::time::Duration;

use edgelatch_proto::protocol::script::{Bound, Publish};
use proptest::prelude::*;

pub(crate) const LOCKS: [&str; 2] = ["job", "x{a}b"];
pub(crate) const TOKEN_KEYS: [&str; 2] = ["redisson_lock_token:{job}", "redisson_lock_token:x{a}b"];

/// The messages that the scripts publish.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Aloud {
    pub(crate) publish: Publish,
    /// Whether grants are published too.
    pub(crate) grants: bool,
}

impl Aloud {
    pub(crate) fn any() -> impl Strategy<Value = Self> {
        let publish =
            proptest::sample::select(vec![Publish::Plain, Publish::Sharded, Publish::Both]);
        (publish, any::<bool>()).prop_map(|(publish, grants)| Self { publish, grants })
    }
}

/// The bound of a request, relative to now.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Limit {
    Unknown,
    Passed,
    /// By more than the time for which results are kept after the bound.
    LongPassed,
    In(u64),
}

impl Limit {
    /// Any bound with these weights; one that has passed did so just now or long ago, with equal
    /// probability.
    pub(crate) fn any(unknown: u32, passed: u32, to_come: u32) -> impl Strategy<Value = Self> {
        prop_oneof![
            unknown => Just(Self::Unknown),
            passed => Just(Self::Passed),
            passed => Just(Self::LongPassed),
            to_come => (60_000..900_000_u64).prop_map(Self::In),
        ]
    }

    /// The bound at this time of Redis; its results are kept for `keep` milliseconds.
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
