//! Where a machine of several parts stands, and what all such machines do whatever they decide.

use super::parts::Parts;
use super::{Input, MultiGrant, Output, TimeoutReason, sooner};
use crate::error::AcquireError;
use crate::time::Instant;

/// Where it stands. `A` is what it knows while it asks, `T` what comes after a pause.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::machine) enum Stage<A, T> {
    /// Answers are awaited.
    Asking(A),
    /// Nothing is awaited until then.
    Pausing { until: Instant, why: TimeoutReason, then: T },
    /// Everything is let go, and then this is said.
    Ending(AcquireError),
    /// It is over.
    Over(Result<MultiGrant, AcquireError>),
}

/// What an input is to the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::machine) enum InputTarget {
    /// Nothing any more.
    Nothing,
    /// Everything is to be let go.
    All,
    /// The parts, and then the machine.
    Parts,
}

/// What a cancelled wait ends with, unless something may be left.
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

    /// The next thing to do. `tolerated`: how many parts may be left whose undoing was not
    /// confirmed.
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
