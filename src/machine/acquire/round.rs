//! Everything that is asked under one owner.

use crate::machine::OutstandingBound;
use crate::machine::ids::Ids;
use crate::name::OwnerId;
use crate::protocol::reply::ServerClock;
use crate::protocol::script::Bound;
use crate::time::Instant;
use crate::timing::{HORIZON, LeaseTime, ROUND_MAX};

/// Everything that is asked under one owner field.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Round {
    pub(super) number: u32,
    pub(super) owner: OwnerId,
    /// The owner of the round before and what was asked under it, until an answer has told that
    /// this one has taken over its seat in the queue.
    pub(super) previous: Option<(OwnerId, OutstandingBound)>,
    /// How often was asked under it.
    pub(super) tries: u32,
    pub(super) bound: Bound,
    /// When a longer wait has to go on under a new owner.
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

    /// What may still be done of what was asked.
    pub(super) fn outstanding(&self, lease: LeaseTime) -> OutstandingBound {
        let own = OutstandingBound::of(self.bound, lease);
        self.previous.map_or(own, |(_, before)| own.and(before))
    }
}
