//! The parameters of requests for parts, and the status of a part.

use core::time::Duration;

use super::super::Lease;
use super::super::ids::Ids;
use crate::error::{AcquireError, FailureKind, Refusal};
use crate::name::FencingToken;
use crate::protocol::calls::Topic;
use crate::time::Instant;
use crate::timing::{LeaseTime, Replicas};

/// The state that all parts of one machine share.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::machine) struct SharedState {
    pub(in crate::machine) ids: Ids,
    /// The number of owners created. Each has its own number, so that a Redis behind two gateways
    /// refuses the second part.
    pub(in crate::machine) owners: u32,
    pub(in crate::machine) lease: LeaseTime,
    /// The longest time for an attempt.
    pub(in crate::machine) attempt_time: Duration,
    /// When the wait is over; `None` for a wait that only ends by cancelling.
    pub(in crate::machine) wait_over: Option<Instant>,
    /// The number of replicas that must have a grant.
    pub(in crate::machine) replicas: Option<Replicas>,
}

/// The parameters of a try for a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::machine) struct Ask {
    /// Whether the script ends its owner when it refuses.
    pub(in crate::machine) last: bool,
    pub(in crate::machine) attempts: u8,
    pub(in crate::machine) attempt_time: Duration,
    /// Whether a try that failed only because of its bound may be repeated at once.
    pub(in crate::machine) again: bool,
    /// Whether its grant is published to other waiters.
    pub(in crate::machine) announces: bool,
}

/// The status of a part.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::machine) enum PartStatus {
    /// Not tried since it was released.
    Idle,
    Held {
        lease: Lease,
        token: FencingToken,
    },
    /// Refused by Redis, with the remaining time of the hold, or with the place in the queue and
    /// the time after which the queue expects a retry.
    Busy {
        remaining: Option<Duration>,
        told: Option<(u64, Duration)>,
        /// The topic on which a release is published.
        topic: Option<Topic>,
    },
    /// Refused by a Redis that does not vote yet, with the time until it does.
    Young {
        remaining: Option<Duration>,
    },
    /// A refusal. It is transient only if Redis is not ready.
    Refused(Refusal),
    /// Granted, but with too few replicas.
    NotReplicated(AcquireError),
    /// No usable reply: the outcome of the request is unknown.
    Unheard(FailureKind),
    /// Granted, but expired or lost already; or executed later than its bound.
    TooSlow,
}

impl SharedState {
    /// Whether the caller's wait is over.
    pub(in crate::machine) fn is_wait_over(&self, now: Instant) -> bool {
        self.wait_over.is_some_and(|over| now.has_reached(over))
    }
}
