//! Operations of one request: a query, and a renewal on demand.

use super::call::{CallOutcome, RetriedCall};
use super::ids::Ids;
use super::{Entropy, Grant, Input, Lease, Machine, Output, OutstandingBound, renewal};
use crate::error::{FailureKind, LossReason, RequestError};
use crate::name::{FencingToken, RequestId};
use crate::protocol::calls::Target;
use crate::protocol::reply::{Code, Reply, ServerClock};
use crate::protocol::script::ScriptCall;
use crate::time::Instant;
use crate::timing::{AttemptTime, LeaseTime};

/// Attempts for a query.
const ATTEMPTS: u8 = 3;

/// The machine that sends one query. Ends with the script's reply.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Query {
    ids: Ids,
    request: RetriedCall,
    outcome: Option<Result<Reply, RequestError>>,
}

impl Query {
    /// Queries with the call that `call` creates for a request id; it must change nothing or
    /// recognize its copies.
    pub fn new(
        call: impl FnOnce(RequestId) -> ScriptCall,
        attempt: AttemptTime,
        entropy: Entropy,
    ) -> Self {
        let mut ids = Ids::new(entropy);
        let script = call(ids.request());
        Self::of(script, attempt, ids)
    }

    // Once in the npm package, for all kinds of `call`.
    #[inline(never)]
    fn of(script: ScriptCall, attempt: AttemptTime, ids: Ids) -> Self {
        let request = RetriedCall::new(script, ATTEMPTS, attempt.get());
        Self { ids, request, outcome: None }
    }

    /// Whether an attempt without a reply may have been executed.
    pub const fn is_unsure(&self) -> bool {
        self.request.is_unsure()
    }
}

impl Machine for Query {
    type Outcome = Result<Reply, RequestError>;

    fn handle(&mut self, input: Input, now: Instant) {
        let Some(outcome) = self.request.handle(input, now, &mut self.ids) else { return };
        self.outcome = Some(match outcome {
            CallOutcome::Replied(reply, _) => Ok(reply),
            other => Err(no_answer(other, self.request.is_unsure())),
        });
    }

    fn poll(&mut self, now: Instant) -> Output<Self::Outcome> {
        match &self.outcome {
            Some(outcome) => Output::Done(outcome.clone()),
            None => self.request.poll(now, &mut self.ids),
        }
    }
}

/// The machine that renews a hold once, at the holder's request. [`Renewal`](super::Renewal) renews
/// whenever a renewal is due.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RenewalOnDemand {
    lease: LeaseTime,
    /// Whether a steal can end the hold.
    can_be_stolen: bool,
    outstanding: OutstandingBound,
    ids: Ids,
    request: RetriedCall,
    outcome: Option<Result<Renewed, RequestError>>,
}

/// The result of a renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Renewed {
    /// The lease, which counts from the sending of the renewal.
    pub lease: Lease,
    /// The fencing token that the hold has now.
    pub token: FencingToken,
}

impl RenewalOnDemand {
    /// Extends the hold to at least `lease` from now.
    pub fn new(
        target: &Target,
        grant: &Grant,
        lease: LeaseTime,
        attempt: AttemptTime,
        entropy: Entropy,
        clock: Option<ServerClock>,
        now: Instant,
    ) -> Self {
        let mut ids = Ids::new(entropy);
        let (script, outstanding) =
            renewal::renewal_call(target, grant, lease, attempt, clock, now, &mut ids);
        // One attempt: the bound is made for it, and the caller may retry.
        let request = RetriedCall::new(script, 1, attempt.within(lease));
        let can_be_stolen = target.can_be_stolen();
        Self { lease, can_be_stolen, outstanding, ids, request, outcome: None }
    }

    /// The bound on outstanding copies of the renewal.
    pub const fn outstanding(&self) -> OutstandingBound {
        self.outstanding
    }
}

impl Machine for RenewalOnDemand {
    type Outcome = Result<Renewed, RequestError>;

    fn handle(&mut self, input: Input, now: Instant) {
        let Some(outcome) = self.request.handle(input, now, &mut self.ids) else { return };
        self.outcome = Some(match outcome {
            CallOutcome::Replied(reply, sent_at) => match reply.code {
                Code::Done => FencingToken::parse(&reply.value)
                    .map(|token| Renewed { lease: Lease::confirmed(self.lease, sent_at), token })
                    .ok_or_else(garbled),
                Code::Lost => Err(RequestError::Lost(loss(self.can_be_stolen, &reply))),
                // It came to Redis too late. A copy of it may have been in time.
                Code::Late => Err(RequestError::Unreachable(FailureKind::TimedOut)),
                _ => Err(garbled()),
            },
            other => Err(no_answer(other, self.request.is_unsure())),
        });
    }

    fn poll(&mut self, now: Instant) -> Output<Self::Outcome> {
        match &self.outcome {
            Some(outcome) => Output::Done(outcome.clone()),
            None => self.request.poll(now, &mut self.ids),
        }
    }
}

/// The reason of a loss that the reply to a renewal reports: its value says whether a steal came
/// after the grant, if the hold can be stolen.
pub(super) fn loss(can_be_stolen: bool, lost: &Reply) -> LossReason {
    if can_be_stolen && lost.value == "1" { LossReason::Stolen } else { LossReason::Gone }
}

/// Converts an outcome without a reply to the error of a query. `unsure`: an earlier attempt may
/// have been executed.
pub(super) fn no_answer(outcome: CallOutcome, unsure: bool) -> RequestError {
    match outcome {
        CallOutcome::Replied(..) => garbled(),
        CallOutcome::Refused(refusal) if unsure => {
            RequestError::Unreachable(FailureKind::RefusedLater(refusal.kind()))
        }
        CallOutcome::Refused(refusal) => RequestError::Refused(refusal),
        CallOutcome::GaveUp(kind) => RequestError::Unreachable(kind),
    }
}

/// A reply that its script cannot give.
pub(super) const fn garbled() -> RequestError {
    RequestError::Unreachable(FailureKind::NO_ANSWER)
}
