//! The end of a round that has no lease, and of the acquisition.

use super::{Acquire, State, Then};
use crate::error::{AcquireError, FailureKind};
use crate::machine::call::RetriedCall;
use crate::machine::owner_round::OwnerRound;
use crate::time::Instant;

impl Acquire {
    /// Ends this round. A new one follows if wait and budget allow it; otherwise the acquisition
    /// ends with `error`.
    pub(super) fn end_round(&mut self, error: AcquireError, now: Instant) {
        let goes_on = !self.is_wait_over(now) && self.affords_another();
        self.abandon(if goes_on { Then::NewRound } else { Then::End(error) }, now);
    }

    /// Ends this round and the acquisition.
    pub(super) fn end(&mut self, error: AcquireError, now: Instant) {
        self.abandon(Then::End(error), now);
    }

    /// Abandons this round if it is open, and then continues with `then`.
    pub(super) fn abandon(&mut self, then: Then, now: Instant) {
        if !self.current.open {
            return self.continue_with(then, now);
        }
        let OwnerRound { bound, owner, .. } = self.current;
        let previous = self.current.previous_owner();
        let script = self.target.abandon(self.ids.request(), bound, owner, previous);
        // The end may also spend the reserved call; a new round needs one more, for its try.
        let left = self.budget_left().map(|left| match then {
            Then::End(_) => left + 1,
            Then::NewRound => left.saturating_sub(1),
        });
        let request = RetriedCall::for_undoing(
            script,
            Self::attempts(left),
            self.params.attempt_time.within(self.params.lease),
        );
        self.state = State::Abandoning { request, then };
    }

    /// Continues after an abandon that Redis has confirmed, or that is not needed.
    pub(super) fn continue_with(&mut self, then: Then, now: Instant) {
        match then {
            Then::End(error) => self.state = State::Over(Err(error)),
            Then::NewRound => {
                self.current = self.next_round(now);
                self.send_try(now);
            }
        }
    }

    /// Ends the acquisition when the abandon failed or was refused, even if a new round was
    /// planned: neither the abandon nor `held_at_most` of a new round would cover this owner.
    pub(super) fn abandon_failed(&mut self, then: Then, cause: FailureKind, now: Instant) {
        let outstanding = self.current.outstanding(self.params.lease);
        let held_at_most = outstanding.held_at_most(self.target.clock_allowance(), self.clock, now);
        let error = match then {
            Then::End(AcquireError::Cancelled { .. }) => {
                AcquireError::Cancelled { held_at_most: Some(held_at_most) }
            }
            Then::End(_) | Then::NewRound => AcquireError::Unknown { held_at_most, cause },
        };
        self.state = State::Over(Err(error));
    }

    pub(super) fn on_cancelled(&mut self, now: Instant) {
        let error = AcquireError::Cancelled { held_at_most: None };
        match &mut self.state {
            State::Requesting { request, .. } => {
                self.current.open |= request.was_sent();
                self.end(error, now);
            }
            State::Pausing { .. } => self.end(error, now),
            State::Abandoning { then, .. } => *then = Then::End(error),
            State::Over(_) => {}
        }
    }
}
