//! What parts are asked with, and how they stand.

use core::time::Duration;

use super::super::Lease;
use super::super::ids::Ids;
use crate::error::{AcquireError, FailureKind, Refusal};
use crate::name::FencingToken;
use crate::protocol::calls::Topic;
use crate::time::Instant;
use crate::timing::{LeaseTime, Replicas};

/// What all parts of one machine share.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::machine) struct SharedState {
    pub(in crate::machine) ids: Ids,
    /// How many owners were made. Each has a number of its own, so that a Redis behind two gateways
    /// refuses the second part.
    pub(in crate::machine) owners: u32,
    pub(in crate::machine) lease: LeaseTime,
    /// The longest time for an attempt.
    pub(in crate::machine) attempt_time: Duration,
    /// When the wait is over; `None` for a wait that only ends by cancelling.
    pub(in crate::machine) wait_over: Option<Instant>,
    /// How many replicas must have a grant.
    pub(in crate::machine) replicas: Option<Replicas>,
}

/// How a part is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::machine) struct Ask {
    /// Whether the script ends its owner when it refuses.
    pub(in crate::machine) last: bool,
    pub(in crate::machine) attempts: u8,
    pub(in crate::machine) attempt_time: Duration,
    /// Whether it may be asked once more at once when all that was wrong is the bound.
    pub(in crate::machine) again: bool,
    /// Whether its grant is told to others who wait.
    pub(in crate::machine) announces: bool,
}

/// How a part stands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::machine) enum PartStatus {
    /// Not asked since it was let go.
    Idle,
    Held {
        lease: Lease,
        token: FencingToken,
    },
    /// Refused by Redis, which told how long the hold lasts, or the place in its queue and when it
    /// wants to be asked again.
    Busy {
        remaining: Option<Duration>,
        told: Option<(u64, Duration)>,
        /// On what is told when it is free.
        topic: Option<Topic>,
    },
    /// Refused by a Redis that does not vote yet, and told for how long.
    Young {
        remaining: Option<Duration>,
    },
    /// A clear no, which passes only if Redis is not ready.
    Refused(Refusal),
    /// Granted, but not with the replicas that it must be with.
    NotReplicated(AcquireError),
    /// Nothing tells what became of the request.
    Unheard(FailureKind),
    /// Granted, and over or lost already; or later than its bound.
    TooSlow,
}

impl SharedState {
    /// Whether the caller has waited long enough.
    pub(in crate::machine) fn is_wait_over(&self, now: Instant) -> bool {
        self.wait_over.is_some_and(|over| now.has_reached(over))
    }
}
