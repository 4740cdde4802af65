//! The state that all parts of a machine share, the options of a try, and the status of a part.

use core::time::Duration;

use super::super::Lease;
use super::super::ids::Ids;
use super::super::owner_round::OwnerRound;
use crate::error::{AcquireError, FailureKind, Refusal};
use crate::name::FencingToken;
use crate::protocol::calls::Topic;
use crate::protocol::reply::ServerClock;
use crate::time::Instant;
use crate::timing::{LeaseTime, Replicas};

/// The state that all parts of one machine share.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::machine) struct SharedState {
    pub(in crate::machine) ids: Ids,
    /// The number of owners created so far; the next owner's number. No two parts share an owner:
    /// two gateways of a quorum may lead to one Redis by mistake, which would confirm the second
    /// part as already held, and so vote twice.
    pub(in crate::machine) owners: u32,
    pub(in crate::machine) lease: LeaseTime,
    /// The longest time for an attempt.
    pub(in crate::machine) attempt_time: Duration,
    /// When the wait is over; `None` for a wait without a time limit.
    pub(in crate::machine) wait_deadline: Option<Instant>,
    /// The number of replicas that must confirm each grant; `None` to wait for none.
    pub(in crate::machine) replicas: Option<Replicas>,
}

/// The options of a try for a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::machine) struct TryOptions {
    /// Whether a refusal ends the owner: the script then writes its tombstone, so no undoing is
    /// needed. Set for all parts but the one that the machine would wait for.
    pub(in crate::machine) last: bool,
    /// The largest number of calls for the try.
    pub(in crate::machine) attempts: u8,
    /// How long to wait for the reply to each of them.
    pub(in crate::machine) attempt_time: Duration,
    /// Whether the budget allows an immediate second try if only the bound made this one fail.
    pub(in crate::machine) again: bool,
    /// Whether a grant is published, so that other waiters do not retry in vain.
    pub(in crate::machine) announces: bool,
}

/// The status of a part.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::machine) enum PartStatus {
    /// Not tried since the start, or since its last release.
    Idle,
    Held {
        lease: Lease,
        token: FencingToken,
    },
    /// Refused, since another owner holds it or is before this one in its queue.
    Busy {
        /// The remaining time of that hold; `None` if it has no end, or is unknown.
        remaining: Option<Duration>,
        /// The place in the queue, where 0 is the head, and the time within which the queue
        /// expects a retry; `None` for a part without a queue.
        queue_hint: Option<(u64, Duration)>,
        /// The topic on which a release is published; `None` if the reply was `Gone`.
        topic: Option<Topic>,
    },
    /// Refused by a node of a quorum that has restarted too recently to vote, with the time until
    /// it votes: it may have lost a hold whose lease has not expired.
    Young {
        remaining: Option<Duration>,
    },
    /// Refused with an error by the gateway or Redis. A wait retries after a transient one.
    Refused(Refusal),
    /// Granted, but with too few replicas.
    NotReplicated(AcquireError),
    /// No usable reply: the outcome of the request is unknown.
    NoReply(FailureKind),
    /// Too late: the grant has expired or was lost before its reply came, or the try reached Redis
    /// after its bound.
    TooSlow,
}

impl PartStatus {
    /// The error of an acquisition that ends because of a part with this status.
    pub(in crate::machine) fn error(&self) -> AcquireError {
        match self {
            Self::Busy { remaining, .. } | Self::Young { remaining } => {
                AcquireError::Busy { remaining: *remaining }
            }
            Self::Refused(refusal) => AcquireError::Refused(refusal.clone()),
            Self::NotReplicated(error) => error.clone(),
            Self::NoReply(kind) => AcquireError::Unreachable(*kind),
            Self::Idle | Self::Held { .. } | Self::TooSlow => AcquireError::TooSlow,
        }
    }

    /// Whether it is a refusal that a retry cannot change.
    pub(in crate::machine) fn is_final(&self) -> bool {
        match self {
            Self::Refused(refusal) => !refusal.kind().is_transient(),
            other => matches!(other, Self::NotReplicated(_)),
        }
    }

    /// The failure that replaced a usable reply; `None` for all other statuses.
    pub(in crate::machine) const fn failure(&self) -> Option<FailureKind> {
        if let Self::NoReply(kind) = self { Some(*kind) } else { None }
    }
}

impl SharedState {
    /// Returns a round under a new owner. Its bound counts from `clock`, the clock of the part's
    /// Redis.
    pub(super) fn next_round(&mut self, clock: Option<ServerClock>, now: Instant) -> OwnerRound {
        self.owners += 1;
        OwnerRound::new(self.ids.owner(self.owners), clock, self.wait_deadline, now)
    }

    /// Whether the caller's wait is over.
    pub(in crate::machine) fn is_wait_over(&self, now: Instant) -> bool {
        self.wait_deadline.is_some_and(|deadline| now.has_reached(deadline))
    }
}
