//! The requests for a part that use one owner field.

use super::super::OutstandingBound;
use super::terms::SharedState;
use crate::name::OwnerId;
use crate::protocol::reply::ServerClock;
use crate::protocol::script::Bound;
use crate::time::Instant;
use crate::timing::{HORIZON, LeaseTime, ROUND_MAX};

/// One owner field serves one grant, and every request with it carries the same bound (rule C8).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Turn {
    pub(super) owner: OwnerId,
    /// The owner and the outstanding requests of the previous turn, until a reply confirms that
    /// this turn has taken over its seat in the queue.
    pub(super) previous: Option<(OwnerId, OutstandingBound)>,
    pub(super) bound: Bound,
    /// When a wait that lasts longer needs a new owner.
    ends_at: Instant,
    /// The number of tries of this turn.
    pub(super) tries: u32,
    /// When the last try was sent.
    pub(super) asked_at: Instant,
    /// Whether something may be held, or may still be granted.
    pub(super) open: bool,
    /// Whether no more tries may be sent with this owner.
    pub(super) spent: bool,
}

impl Turn {
    /// Starts a turn with a new owner. `clock` is the clock of the part's Redis, as last known;
    /// without it the requests are unbounded (rule C3).
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

    /// The bound on the outstanding requests of this turn, and of the previous one if it may still
    /// have the seat.
    pub(super) fn outstanding(&self, lease: LeaseTime) -> OutstandingBound {
        let own = OutstandingBound::of(self.bound, lease);
        self.previous.map_or(own, |(_, before)| own.and(before))
    }

    /// Whether the wait has to continue under a new owner.
    pub(super) fn is_over(&self, shared: &SharedState, now: Instant) -> bool {
        self.open && !self.spent && now.has_reached(self.ends_at) && !shared.is_wait_over(now)
    }
}
