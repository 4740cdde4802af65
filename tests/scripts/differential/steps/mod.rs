//! Random steps, for each object, and what the steps of several objects have in common.

pub(crate) mod fair_lock;
pub(crate) mod lock;
pub(crate) mod read_write_lock;
pub(crate) mod semaphores_and_latch;

use std::time::Duration;

use edgelatch::protocol::script::{Bound, Publish};
use proptest::prelude::*;

pub(crate) const LOCKS: [&str; 2] = ["job", "x{a}b"];
pub(crate) const TOKEN_KEYS: [&str; 2] = ["redisson_lock_token:{job}", "redisson_lock_token:x{a}b"];

/// What the scripts publish.
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
