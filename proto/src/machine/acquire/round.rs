//! The requests of one round, all of which use one owner field.

use crate::machine::OutstandingBound;
use crate::machine::ids::Ids;
use crate::name::OwnerId;
use crate::protocol::reply::ServerClock;
use crate::protocol::script::Bound;
use crate::time::Instant;
use crate::timing::{HORIZON, LeaseTime, ROUND_MAX};

/// The state of one round: its owner field, and the requests sent with it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Round {
    pub(super) number: u32,
    pub(super) owner: OwnerId,
    /// The owner and the outstanding requests of the previous round, until a reply confirms that
    /// this round has taken over its seat in the queue.
    pub(super) previous: Option<(OwnerId, OutstandingBound)>,
    /// The number of tries of this round.
    pub(super) tries: u32,
    pub(super) bound: Bound,
    /// When a wait that lasts longer needs a new owner.
    pub(super) ends_at: Instant,
    /// Whether a copy of a request of this round might still be granted.
    pub(super) open: bool,
}

impl Round {
    pub(super) fn new(
        number: u32,
        ids: &Ids,
        clock: Option<ServerClock>,
        wait_over: Option<Instant>,
        now: Instant,
    ) -> Self {
        let round_over = now + ROUND_MAX;
        let ends_at = wait_over.map_or(round_over, |over| over.sooner(round_over));
        let bound = Bound::after(now.until(ends_at) + HORIZON, clock, now);
        Self {
            number,
            owner: ids.owner(number),
            previous: None,
            tries: 0,
            bound,
            ends_at,
            open: false,
        }
    }

    /// The bound on the outstanding requests of this round, and of the previous one if it may still
    /// have the seat.
    pub(super) fn outstanding(&self, lease: LeaseTime) -> OutstandingBound {
        let own = OutstandingBound::of(self.bound, lease);
        self.previous.map_or(own, |(_, before)| own.and(before))
    }
}
