//! Releases a hold.

use alloc::vec::Vec;
use core::time::Duration;

use super::call::{CallOutcome, RetriedCall};
use super::ids::Ids;
use super::join_all::JoinAll;
use super::{Grant, Input, Machine, Output, OutstandingBound, TimeoutReason, sooner};
use crate::error::{FailureKind, ReleaseError};
use crate::name::FencingToken;
use crate::protocol::calls::Target;
use crate::protocol::reply::{Code, ServerClock};
use crate::time::Instant;
use crate::timing::AttemptTime;

/// The number of attempts: more than for any other request, since a failed release blocks other
/// clients for the rest of the lease.
const ATTEMPTS: u8 = 5;

/// The result of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Released {
    /// The hold existed, and this release has ended it.
    Released,
    /// The hold had ended before: expired, or ended by another client.
    WasLost,
}

/// The machine that releases a hold. The script records its result, so a repeated request returns
/// the same one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Release {
    ids: Ids,
    request: RetriedCall,
    clock_allowance: Duration,
    /// Until when copies of acquisitions and renewals that were sent may still extend the hold.
    outstanding: OutstandingBound,
    clock: Option<ServerClock>,
    /// Whether its reply may contain a token for a read hold inside this write hold.
    may_have_downgrade_token: bool,
    downgrade_token: Option<FencingToken>,
    outcome: Option<Result<Released, ReleaseError>>,
}

impl Release {
    /// Releases the hold of `grant`. `outstanding` is the bound on the renewals of the hold; that
    /// of its acquisition is part of the grant. `clock` is Redis' clock, as last known.
    pub fn new(
        target: &Target,
        grant: &Grant,
        outstanding: OutstandingBound,
        attempt: AttemptTime,
        clock: Option<ServerClock>,
    ) -> Self {
        let mut ids = Ids::of(grant.owner);
        let script = target.release(ids.request(), grant.bound, grant.owner);
        let request =
            RetriedCall::for_undoing(script, ATTEMPTS, attempt.within(grant.lease.time()));
        let outstanding = outstanding.and(grant.outstanding());
        Self {
            ids,
            request,
            clock_allowance: target.clock_allowance(),
            outstanding,
            clock,
            may_have_downgrade_token: matches!(target, Target::Write(_)),
            downgrade_token: None,
            outcome: None,
        }
    }

    /// Returns the new token for reads that the owner continues after this write hold: their own
    /// token is that of the write, which has ended (R6 in `proto/src/protocol/README.md`). `None`
    /// before the reply, and if no reader continues.
    pub const fn downgrade_token(&self) -> Option<FencingToken> {
        self.downgrade_token
    }

    const fn has_released(&self) -> bool {
        matches!(self.outcome, Some(Ok(Released::Released)))
    }
}

impl Machine for Release {
    type Outcome = Result<Released, ReleaseError>;

    /// `Cancelled` has no effect: to finish costs a few requests and frees the lock.
    fn handle(&mut self, input: Input, now: Instant) {
        let Some(outcome) = self.request.handle(input, now, &mut self.ids) else { return };
        let held_at_most = self.outstanding.held_at_most(self.clock_allowance, self.clock, now);
        let unknown = |cause| ReleaseError::Unknown { held_at_most, cause };
        if let CallOutcome::Replied(reply, _) = &outcome
            && self.may_have_downgrade_token
        {
            self.downgrade_token = FencingToken::parse(&reply.value);
        }
        self.outcome = Some(match outcome {
            CallOutcome::Replied(reply, _) => match reply.code {
                Code::Done => Ok(Released::Released),
                Code::No => Ok(Released::WasLost),
                // No other code says whether the hold has ended.
                _ => Err(unknown(FailureKind::NO_ANSWER)),
            },
            CallOutcome::Refused(refusal) if self.request.is_unsure() => {
                Err(unknown(FailureKind::RefusedLater(refusal.kind())))
            }
            CallOutcome::Refused(refusal) => Err(ReleaseError::Refused(refusal)),
            CallOutcome::GaveUp(kind) => Err(unknown(kind)),
        });
    }

    fn poll(&mut self, now: Instant) -> Output<Self::Outcome> {
        match &self.outcome {
            Some(outcome) => Output::Done(outcome.clone()),
            None => self.request.poll(now, &mut self.ids),
        }
    }
}

/// How long the machine waits for the other parts once a quorum of counting parts has replied
/// `Released`.
const GRACE: Duration = Duration::from_millis(500);

/// The machine that releases a hold of one or several parts: one [`Release`] for each.
///
/// Parts that were tried but do not count for the hold are released as well. Their `Released` does
/// not count towards the quorum, since it may be the recorded reply to the undoing of an earlier
/// try.
///
/// Once the outcome is `Released`, it waits only a short time for the other parts, such as
/// unresponsive nodes of a redLock: a hold on a minority blocks no client, and expires.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReleaseAll {
    releases: JoinAll<Release>,
    /// Whether each part counts for the hold.
    counts: Vec<bool>,
    quorum: usize,
    /// When the machine stops waiting for the other parts; `Some` once the outcome is `Released`.
    grace_until: Option<Instant>,
}

impl ReleaseAll {
    /// Runs the releases concurrently. The flag of each says whether its part counts for the hold.
    /// The outcome is `Released` if `quorum` counting parts were still held.
    pub fn new(releases: impl IntoIterator<Item = (Release, bool)>, quorum: usize) -> Self {
        let (releases, counts): (Vec<_>, Vec<_>) = releases.into_iter().unzip();
        Self { releases: JoinAll::new(releases), counts, quorum, grace_until: None }
    }

    /// Returns the token of the reads that continue after this hold, from the part that is a write
    /// hold: see [`Release::downgrade_token`].
    pub fn downgrade_token(&self) -> Option<FencingToken> {
        self.releases.iter().find_map(Release::downgrade_token)
    }

    fn outcome(
        &self,
        outcomes: Vec<Result<Released, ReleaseError>>,
    ) -> Result<Released, ReleaseError> {
        if self.grace_until.is_some() {
            return Ok(Released::Released);
        }
        // A refusal, which the caller can act on, comes before an unknown outcome, and among those
        // the hold that may last longest. Without an error too few parts existed.
        let mut worst = Ok(Released::WasLost);
        for error in outcomes.into_iter().filter_map(Result::err) {
            let is_worse = match (&worst, &error) {
                (
                    Err(ReleaseError::Unknown { held_at_most: first, .. }),
                    ReleaseError::Unknown { held_at_most: second, .. },
                ) => second > first,
                (Err(ReleaseError::Unknown { .. }), ReleaseError::Refused(_)) | (Ok(_), _) => true,
                _ => false,
            };
            if is_worse {
                worst = Err(error);
            }
        }
        worst
    }
}

impl Machine for ReleaseAll {
    type Outcome = Result<Released, ReleaseError>;

    fn handle(&mut self, input: Input, now: Instant) {
        self.releases.handle(input, now);
        let counting = self.releases.iter().zip(&self.counts).filter(|(_, counts)| **counts);
        if counting.filter(|(part, _)| part.has_released()).count() >= self.quorum {
            self.grace_until.get_or_insert(now + GRACE);
        }
    }

    fn poll(&mut self, now: Instant) -> Output<Self::Outcome> {
        if self.grace_until.is_some_and(|until| now.has_reached(until)) {
            return Output::Done(Ok(Released::Released));
        }
        match (self.releases.poll(now), self.grace_until) {
            (Output::Timeout { until, why }, Some(grace)) => {
                let (until, why) =
                    sooner(Some((until, why)), (grace, TimeoutReason::ReplyDue), now);
                Output::Timeout { until, why }
            }
            (output, _) => output.map(|outcomes| self.outcome(outcomes)),
        }
    }
}
