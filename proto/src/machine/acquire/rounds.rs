//! A wait that outlasts the time of its owner.

use super::Acquire;
use crate::error::AcquireError;
use crate::machine::owner_round::OwnerRound;
use crate::time::Instant;

impl Acquire {
    pub(super) fn on_timeout(&mut self, now: Instant) {
        if !now.has_reached(self.current.ends_at) || self.is_wait_over(now) {
            self.send_try(now);
        } else if self.keeps_place(now) {
            self.continue_with_new_owner(now);
        } else {
            self.end_round(AcquireError::TooSlow, now);
        }
    }

    /// Whether a new round takes over this one's place in the queue.
    pub(super) fn keeps_place(&self, now: Instant) -> bool {
        // While it is not known which of two owners has the place, a third cannot take it over.
        self.current.previous.is_none()
            && self.target.has_queue()
            && !self.is_wait_over(now)
            && self.affords_another()
    }

    /// Retries under a new owner, which takes over the place of the previous one in the queue, so
    /// that nothing has to be abandoned.
    pub(super) fn continue_with_new_owner(&mut self, now: Instant) {
        let next = self.next_round(now);
        self.current.continue_as(next, self.params.lease);
        self.send_try(now);
    }

    /// Returns a round under a new owner.
    pub(super) fn next_round(&mut self, now: Instant) -> OwnerRound {
        self.owners += 1;
        OwnerRound::new(self.ids.owner(self.owners), self.clock, self.wait_deadline, now)
    }
}
