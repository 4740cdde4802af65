//! The stages of a machine of several parts, and the steps that all such machines share.

use super::parts::Parts;
use super::{Input, MultiGrant, Output, TimeoutReason, sooner};
use crate::error::AcquireError;
use crate::time::Instant;

/// The stage of a machine. `A` is its state while replies are due, `T` its next step after a pause.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::machine) enum Stage<A, T> {
    /// Replies are due.
    Asking(A),
    /// Pausing until then.
    Pausing { until: Instant, why: TimeoutReason, then: T },
    /// All parts are being released; the outcome is this error.
    Ending(AcquireError),
    /// It is over.
    Over(Result<MultiGrant, AcquireError>),
}

/// The receiver of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::machine) enum InputTarget {
    /// No receiver: the machine is done.
    Nothing,
    /// All parts are to be released.
    All,
    /// The parts, and then the machine.
    Parts,
}

/// The outcome of a cancelled wait, unless a hold may remain.
pub(in crate::machine) const CANCELLED: AcquireError =
    AcquireError::Cancelled { held_at_most: None };

impl<A, T> Stage<A, T> {
    pub(in crate::machine) fn hears(&mut self, input: &Input) -> InputTarget {
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

    /// Returns the next action. `tolerated` is the number of parts whose release may stay
    /// unconfirmed.
    pub(in crate::machine) fn poll(
        &mut self,
        parts: &mut Parts,
        tolerated: usize,
        now: Instant,
    ) -> Output<Result<MultiGrant, AcquireError>> {
        if let Self::Over(outcome) = self {
            return Output::Done(outcome.clone());
        }
        if let (Self::Pausing { .. }, Some(listen)) = (&*self, parts.listen()) {
            return listen;
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
            // With no part there is nothing to wait for.
            (Self::Asking(_) | Self::Over(_), None) => (now, TimeoutReason::BackOff),
        };
        Output::Timeout { until, why }
    }
}
