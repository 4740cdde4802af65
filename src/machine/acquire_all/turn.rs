//! Everything that is asked of a part under one owner field.

use super::super::OutstandingBound;
use super::terms::SharedState;
use crate::name::OwnerId;
use crate::protocol::reply::ServerClock;
use crate::protocol::script::Bound;
use crate::time::Instant;
use crate::timing::{HORIZON, LeaseTime, ROUND_MAX};

/// One owner is good for one grant, and everything asked under it carries one bound (rule C8).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Turn {
    pub(super) owner: OwnerId,
    /// The owner of the turn before and what was asked under it, until an answer has told that this
    /// one has taken over its seat in the queue.
    pub(super) previous: Option<(OwnerId, OutstandingBound)>,
    pub(super) bound: Bound,
    /// When a longer wait has to go on under a new owner.
    ends_at: Instant,
    /// How often was asked under it.
    pub(super) tries: u32,
    /// When that was last.
    pub(super) asked_at: Instant,
    /// Whether something may be held, or may still be granted.
    pub(super) open: bool,
    /// Whether nothing may be asked any more.
    pub(super) spent: bool,
}

impl Turn {
    /// The next owner. `clock` is what is known of the clock of the part's Redis; without it
    /// nothing is bounded (rule C3).
    pub(super) fn new(shared: &mut SharedState, clock: Option<ServerClock>, now: Instant) -> Self {
        shared.owners += 1;
        let round_over = now + ROUND_MAX;
        let ends_at = shared.wait_over.map_or(round_over, |over| over.sooner(round_over));
        let bound = Bound::after(now.until(ends_at) + HORIZON, clock, now);
        Self {
            owner: shared.ids.owner(shared.owners),
            previous: None,
            bound,
            ends_at,
            tries: 0,
            asked_at: now,
            open: false,
            spent: false,
        }
    }

    /// What may still be done of what was asked.
    pub(super) fn outstanding(&self, lease: LeaseTime) -> OutstandingBound {
        let own = OutstandingBound::of(self.bound, lease);
        self.previous.map_or(own, |(_, before)| own.and(before))
    }

    /// Whether a wait that lasts longer has to go on under a new owner.
    pub(super) fn is_over(&self, shared: &SharedState, now: Instant) -> bool {
        self.open && !self.spent && now.has_reached(self.ends_at) && !shared.is_wait_over(now)
    }
}
