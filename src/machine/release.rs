//! Ending a hold.

use core::time::Duration;

use super::call::{Errand, Verdict};
use super::ids::Ids;
use super::{Entropy, Grant, Input, Machine, Output, renewal};
use crate::error::{FailureKind, ReleaseError};
use crate::protocol::reply::Code;
use crate::protocol::script::LockCalls;
use crate::time::Instant;
use crate::timing::{AttemptTime, LeaseTime};

/// Attempts: more than for anything else, since every failure costs the others the rest of the lease.
const ATTEMPTS: u8 = 5;

/// What became of the hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Released {
    /// It was there and is not any more.
    Released,
    /// It had ended before: expired, or ended by somebody else.
    WasLost,
}

/// The machine that ends a hold. It asks for the verdict, so that asking twice answers the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Release {
    ids: Ids,
    errand: Errand,
    /// The longest lease that a copy of another request can still give the hold.
    longest: Duration,
    /// For how long a renewal can still be done, from when the release is given up.
    renewable: Duration,
    /// Until when a copy of the acquisition can still be done, which would extend the hold.
    copies_until: Instant,
    outcome: Option<Result<Released, ReleaseError>>,
}

impl Release {
    /// Ends the hold that was granted with `grant`, for which no longer lease was ever asked than `longest`.
    pub fn new(
        calls: &LockCalls,
        grant: &Grant,
        longest: LeaseTime,
        attempt: AttemptTime,
        entropy: Entropy,
    ) -> Self {
        let mut ids = Ids::new(entropy);
        let script = calls.release(ids.request(), grant.bound, &grant.owner);
        let errand = Errand::undoing(script, ATTEMPTS, attempt.within(grant.lease.time()));
        Self {
            ids,
            errand,
            longest: longest.get(),
            renewable: attempt.within(longest) + renewal::SLACK,
            copies_until: grant.lease.sent_at() + grant.bound.keep,
            outcome: None,
        }
    }
}

impl Machine for Release {
    type Outcome = Result<Released, ReleaseError>;

    /// `Cancelled` changes nothing: a release that has begun is worth its few requests.
    fn handle(&mut self, input: Input, now: Instant) {
        let Some(verdict) = self.errand.handle(input, now, &mut self.ids) else { return };
        let held_at_most = self.longest + self.renewable.max(now.until(self.copies_until));
        let unknown = |cause| ReleaseError::Unknown { held_at_most, cause };
        self.outcome = Some(match verdict {
            Verdict::Answered(reply, _) => match reply.code {
                Code::Done => Ok(Released::Released),
                Code::No => Ok(Released::WasLost),
                _ => Err(unknown(FailureKind::Garbled { status: 200 })),
            },
            Verdict::Refused(refusal) if self.errand.is_unsure() => {
                Err(unknown(FailureKind::RefusedLater(refusal.kind())))
            }
            Verdict::Refused(refusal) => Err(ReleaseError::Refused(refusal)),
            Verdict::GaveUp(kind) => Err(unknown(kind)),
        });
    }

    fn poll(&mut self, now: Instant) -> Output<Self::Outcome> {
        match &self.outcome {
            Some(outcome) => Output::Done(outcome.clone()),
            None => self.errand.poll(now, &mut self.ids),
        }
    }
}
