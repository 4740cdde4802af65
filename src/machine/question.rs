//! Requests that need no more than one errand: what a lock's state is, and a renewal on demand.

use core::time::Duration;

use super::call::{Errand, Verdict};
use super::ids::Ids;
use super::{Entropy, Grant, Input, Lease, Machine, Output, renewal};
use crate::error::{FailureKind, LossReason, RequestError};
use crate::name::OwnerId;
use crate::protocol::reply::{Code, Reply, ServerClock};
use crate::protocol::script::LockCalls;
use crate::time::Instant;
use crate::timing::{AttemptTime, LeaseTime};

/// Attempts at a question.
const ATTEMPTS: u8 = 3;

/// What Redis says of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LockState {
    /// Whether anybody holds it.
    pub is_locked: bool,
    /// The hold count in Redis: 1 for ours, more for a Java thread that re-entered, 0 when free.
    pub hold_count: u64,
    /// Until the hold runs out; `None` when the lock is free or its hold has no end.
    pub remaining: Option<Duration>,
    /// The newest fencing token of the name, 0 when there is none.
    pub last_token: u64,
    /// Whether the owner that was asked for holds it.
    pub is_held: bool,
}

/// The machine that asks for a lock's state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Inspect(Question<LockState>);

impl Inspect {
    /// Asks for the state, and whether `owner` holds the lock.
    pub fn new(
        calls: &LockCalls,
        owner: Option<&OwnerId>,
        attempt: AttemptTime,
        entropy: Entropy,
    ) -> Self {
        let mut ids = Ids::new(entropy);
        let script = calls.inspect(ids.request(), owner);
        Self(Question { ids, errand: Errand::new(script, ATTEMPTS, attempt.get()), outcome: None })
    }
}

impl Machine for Inspect {
    type Outcome = Result<LockState, RequestError>;

    fn handle(&mut self, input: Input, now: Instant) {
        self.0.handle(input, now, |reply, _| state(reply).ok_or_else(garbled));
    }

    fn poll(&mut self, now: Instant) -> Output<Self::Outcome> {
        self.0.poll(now)
    }
}

fn state(reply: &Reply) -> Option<LockState> {
    let numbers = reply.numbers()?;
    let [last_token, hold_count, held] = numbers.as_slice() else { return None };
    Some(LockState {
        is_locked: reply.code == Code::Done,
        hold_count: *hold_count,
        remaining: reply.remaining(),
        last_token: *last_token,
        is_held: *held == 1,
    })
}

/// The machine that renews a hold because the holder asks for it, not because it is due.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Renew {
    lease: LeaseTime,
    question: Question<Lease>,
}

impl Renew {
    /// Prolongs the hold to at least `lease` from now.
    pub fn new(
        calls: &LockCalls,
        grant: &Grant,
        lease: LeaseTime,
        attempt: AttemptTime,
        entropy: Entropy,
        clock: Option<ServerClock>,
        now: Instant,
    ) -> Self {
        let mut ids = Ids::new(entropy);
        let script = renewal::call(calls, grant, lease, attempt, clock, now, &mut ids);
        // One attempt: the bound is made for it, and the caller may simply ask again.
        let errand = Errand::new(script, 1, attempt.within(lease));
        Self { lease, question: Question { ids, errand, outcome: None } }
    }
}

impl Machine for Renew {
    type Outcome = Result<Lease, RequestError>;

    fn handle(&mut self, input: Input, now: Instant) {
        let lease = self.lease;
        self.question.handle(input, now, |reply, sent_at| match reply.code {
            Code::Done => Ok(Lease::confirmed(lease, sent_at)),
            Code::Lost => Err(RequestError::Lost(LossReason::Gone)),
            _ => Err(garbled()),
        });
    }

    fn poll(&mut self, now: Instant) -> Output<Self::Outcome> {
        self.question.poll(now)
    }
}

/// An errand and what its answer means.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Question<T> {
    ids: Ids,
    errand: Errand,
    outcome: Option<Result<T, RequestError>>,
}

impl<T: Clone> Question<T> {
    fn handle(
        &mut self,
        input: Input,
        now: Instant,
        read: impl FnOnce(&Reply, Instant) -> Result<T, RequestError>,
    ) {
        let Some(verdict) = self.errand.handle(input, now, &mut self.ids) else { return };
        self.outcome = Some(match verdict {
            Verdict::Answered(reply, sent_at) => read(&reply, sent_at),
            other => Err(no_answer(other, self.errand.is_unsure())),
        });
    }

    fn poll(&mut self, now: Instant) -> Output<Result<T, RequestError>> {
        match &self.outcome {
            Some(outcome) => Output::Done(outcome.clone()),
            None => self.errand.poll(now, &mut self.ids),
        }
    }
}

/// What a verdict without a reply means to the caller of a question. `unsure`: an earlier attempt may have been done.
pub(super) fn no_answer(verdict: Verdict, unsure: bool) -> RequestError {
    match verdict {
        Verdict::Answered(..) => garbled(),
        Verdict::Refused(refusal) if unsure => {
            RequestError::Unreachable(FailureKind::RefusedLater(refusal.kind()))
        }
        Verdict::Refused(refusal) => RequestError::Refused(refusal),
        Verdict::GaveUp(kind) => RequestError::Unreachable(kind),
    }
}

/// A reply that its script cannot give.
pub(super) const fn garbled() -> RequestError {
    RequestError::Unreachable(FailureKind::Garbled { status: 200 })
}
