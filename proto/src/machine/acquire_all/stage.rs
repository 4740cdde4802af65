//! The stages that [`AcquireAll`](super::AcquireAll) and `AcquireQuorum` share.

use super::parts::Parts;
use super::{Input, MultiGrant, Output, TimeoutReason, sooner};
use crate::error::AcquireError;
use crate::time::Instant;

/// The stage of a machine. `A` is the machine's own state while replies are due, and `T` its own
/// state during a pause: what to try after it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::machine) enum Stage<A, T> {
    /// Replies are due.
    Requesting(A),
    /// Pausing until then.
    Pausing { until: Instant, why: TimeoutReason, then: T },
    /// All parts are being released. The outcome is this error, unless a release stays unconfirmed.
    Ending(AcquireError),
    /// It is over.
    Over(Result<MultiGrant, AcquireError>),
}

/// The outcome of a cancelled wait. [`Parts::ended`] sets `held_at_most` if a hold may remain.
const CANCELLED: AcquireError = AcquireError::Cancelled { held_at_most: None };

impl<A, T> Stage<A, T> {
    /// Releases all parts, then ends with `error`.
    pub(in crate::machine) fn end(&mut self, parts: &mut Parts, error: AcquireError) {
        parts.undo_all();
        *self = Self::Ending(error);
    }

    /// Passes an input to the parts, and returns whether the machine has to decide its next step. A
    /// cancellation ends the wait, and replaces the error of a machine that is ending.
    pub(in crate::machine) fn handle(
        &mut self,
        parts: &mut Parts,
        input: &Input,
        now: Instant,
    ) -> bool {
        match (&mut *self, input) {
            (Self::Over(_), _) => return false,
            (Self::Ending(error), Input::Cancelled) => *error = CANCELLED,
            (_, Input::Cancelled) => {
                self.end(parts, CANCELLED);
                return false;
            }
            _ => {}
        }
        parts.handle(input, now);
        true
    }

    /// Returns the next output, and ends when all releases have an outcome. With more than
    /// `tolerated` unconfirmed releases the outcome says that a hold may remain.
    pub(in crate::machine) fn poll(
        &mut self,
        parts: &mut Parts,
        tolerated: usize,
        now: Instant,
    ) -> Output<Result<MultiGrant, AcquireError>> {
        if let Self::Over(outcome) = self {
            return Output::Done(outcome.clone());
        }
        if let (Self::Pausing { .. }, Some(subscribe)) = (&*self, parts.poll_subscription()) {
            return subscribe;
        }
        let under_way = match parts.poll(now) {
            Some(Output::Timeout { until, why }) => Some((until, why)),
            Some(call) => return call,
            None => None,
        };
        let (until, why) = match (&*self, under_way) {
            (Self::Pausing { until, why, .. }, first) => sooner(first, (*until, *why), now),
            (_, Some(first)) => first,
            (Self::Ending(error), None) => {
                let outcome = Err(parts.end_error(error.clone(), tolerated, now));
                *self = Self::Over(outcome.clone());
                return Output::Done(outcome);
            }
            // Without parts no reply is due: an immediate timeout lets the machine decide.
            (Self::Requesting(_) | Self::Over(_), None) => (now, TimeoutReason::BackOff),
        };
        Output::Timeout { until, why }
    }
}
