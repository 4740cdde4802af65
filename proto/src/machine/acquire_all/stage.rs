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

/// How a machine handles an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::machine) enum InputTarget {
    /// It ignores the input: it is done.
    Nothing,
    /// It does not pass the input on: its caller has cancelled, and it releases all parts.
    All,
    /// It passes the input to the parts, and then decides its next step.
    Parts,
}

/// The outcome of a cancelled wait. [`Parts::ended`] sets `held_at_most` if a hold may remain.
pub(in crate::machine) const CANCELLED: AcquireError =
    AcquireError::Cancelled { held_at_most: None };

impl<A, T> Stage<A, T> {
    /// Returns how to handle the input. A cancellation replaces the error of a machine that is
    /// ending.
    pub(in crate::machine) fn on_input(&mut self, input: &Input) -> InputTarget {
        match (self, input) {
            (Self::Over(_), _) => InputTarget::Nothing,
            (Self::Ending(error), Input::Cancelled) => {
                *error = CANCELLED;
                InputTarget::Parts
            }
            (_, Input::Cancelled) => InputTarget::All,
            _ => InputTarget::Parts,
        }
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
                let outcome = Err(parts.ended(error.clone(), tolerated, now));
                *self = Self::Over(outcome.clone());
                return Output::Done(outcome);
            }
            // Without parts no reply is due: an immediate timeout lets the machine decide.
            (Self::Requesting(_) | Self::Over(_), None) => (now, TimeoutReason::BackOff),
        };
        Output::Timeout { until, why }
    }
}
