//! The requests that use one owner field.

use super::OutstandingBound;
use crate::name::OwnerId;
use crate::protocol::reply::{Code, ServerClock};
use crate::protocol::script::Bound;
use crate::time::Instant;
use crate::timing::{HORIZON, LeaseTime, ROUND_MAX};

/// One round of an acquisition: one owner field serves one grant, and every request with it carries
/// the same bound (rule C8).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct OwnerRound {
    pub(super) owner: OwnerId,
    /// The owner and the outstanding requests of the previous round, until a reply confirms that
    /// this one has taken over its place in the queue.
    pub(super) previous: Option<(OwnerId, OutstandingBound)>,
    pub(super) bound: Bound,
    /// When a wait that lasts longer needs a new owner.
    pub(super) ends_at: Instant,
    /// The number of tries with this owner.
    pub(super) tries: u32,
    /// Whether Redis may store a hold of this owner, or may still grant one.
    pub(super) open: bool,
}

impl OwnerRound {
    /// Starts a round under `owner`. `clock` is Redis' clock, as last known; without it the
    /// requests are unbounded (rule C3).
    pub(super) fn new(
        owner: OwnerId,
        clock: Option<ServerClock>,
        wait_deadline: Option<Instant>,
        now: Instant,
    ) -> Self {
        let round_over = now + ROUND_MAX;
        let ends_at = wait_deadline.map_or(round_over, |over| over.sooner(round_over));
        let bound = Bound::after(now.until(ends_at) + HORIZON, clock, now);
        Self { owner, previous: None, bound, ends_at, tries: 0, open: false }
    }

    /// Continues as `next`, which takes over the place of this round in the queue.
    pub(super) fn continue_as(&mut self, next: Self, lease: LeaseTime) {
        let previous = Some((self.owner, self.outstanding(lease)));
        *self = Self { previous, open: true, ..next };
    }

    /// Handles the code of the reply to a try, which may confirm that this owner has taken over the
    /// place of the previous one, with this try or an earlier one: `AlreadyYours` and `Lost` follow
    /// a grant, `Gone` follows a refused last try. The script rejects a late try before the
    /// takeover, and codes of other scripts say nothing about it.
    pub(super) const fn on_code(&mut self, code: Code) {
        if let Code::Done
        | Code::AlreadyYours
        | Code::No
        | Code::Gone
        | Code::Lost
        | Code::TokenRange = code
        {
            self.previous = None;
        }
    }

    /// The owner whose place this one takes over, while a reply has not confirmed it.
    pub(super) fn previous_owner(&self) -> Option<OwnerId> {
        self.previous.map(|(owner, _)| owner)
    }

    /// The bound on the outstanding requests of this round, and of the previous one if it may still
    /// have the place.
    pub(super) fn outstanding(&self, lease: LeaseTime) -> OutstandingBound {
        let own = OutstandingBound::of(self.bound, lease);
        self.previous.map_or(own, |(_, before)| own.and(before))
    }
}
