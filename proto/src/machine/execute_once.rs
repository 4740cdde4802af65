//! Executes an operation once, however often its request is resent: a forced release, a count down,
//! an addition of permits.
//!
//! ```text
//!   Executing ──reply, or refused───────────────────────► Over
//!     │ ▲ └─too late, bound missing─┐
//!     │ └───────────(new id)────────┘
//!     └─no reply, or refused for now─► Cancelling ──► Over: the recorded reply, not executed
//!                                                     (and it never will be), or unknown
//! ```
//!
//! No lease corrects an operation that is executed late or twice, so every request has a bound, and
//! Redis records its result.

use core::time::Duration;

use super::call::{CallOutcome, RetriedCall, may_be_executed_later};
use super::ids::Ids;
use super::query::{garbled, no_answer};
use super::{Entropy, Input, Machine, Output};
use crate::error::{FailureKind, RequestError};
use crate::name::RequestId;
use crate::protocol::calls::IdempotentCall;
use crate::protocol::reply::{Code, Reply, ServerClock};
use crate::protocol::script::Bound;
use crate::time::Instant;
use crate::timing::AttemptTime;

/// Attempts for each request.
const ATTEMPTS: u8 = 3;
/// The largest number of request ids: one to learn Redis' clock if need be, one for the operation,
/// and one more in case that request is late.
const MAX_IDS: u8 = 3;
/// The allowance in the bound for pauses between attempts, and for a clock that was read too early.
const BOUND_ALLOWANCE: Duration = Duration::from_secs(5);

/// The machine that executes an operation once. Ends with the script's reply.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ExecuteOnce {
    call: IdempotentCall,
    attempt: AttemptTime,
    ids: Ids,
    ids_left: u8,
    /// The request id in use.
    request: RequestId,
    bound: Bound,
    state: State,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum State {
    Executing(RetriedCall),
    /// The operation may have been executed, or may still be. The fields are the request that
    /// cancels it, the reason, and the error once Redis confirms that it never will be executed.
    Cancelling(RetriedCall, FailureKind, RequestError),
    Over(Result<Reply, RequestError>),
}

impl ExecuteOnce {
    /// Starts at `now`; without a `clock` the first request only learns it.
    pub fn new(
        call: IdempotentCall,
        attempt: AttemptTime,
        entropy: Entropy,
        clock: Option<ServerClock>,
        now: Instant,
    ) -> Self {
        let mut ids = Ids::new(entropy);
        let (request, bound) = (ids.request(), bound(attempt, clock, now));
        let state =
            State::Executing(RetriedCall::new(call.call(request, bound), ATTEMPTS, attempt.get()));
        Self { call, attempt, ids, ids_left: MAX_IDS - 1, request, bound, state }
    }

    /// Retries with a new id: Redis has confirmed that the operation was not executed with the last
    /// one, and never will be.
    fn start_over(&mut self, clock: ServerClock, now: Instant) {
        self.ids_left -= 1;
        self.request = self.ids.request();
        self.bound = bound(self.attempt, Some(clock), now);
        let script = self.call.call(self.request, self.bound);
        self.state = State::Executing(RetriedCall::new(script, ATTEMPTS, self.attempt.get()));
    }

    /// Handles the outcome of the operation's request. `unsure`: an attempt without a reply may
    /// have been executed; `outstanding`: that, or a copy of a refused attempt may be executed
    /// later.
    fn on_outcome(&mut self, outcome: CallOutcome, unsure: bool, outstanding: bool, now: Instant) {
        let reply = match outcome {
            CallOutcome::Replied(reply, _) => reply,
            CallOutcome::GaveUp(kind) if outstanding => {
                return self.cancel(kind, RequestError::NotExecuted(kind));
            }
            // The reason of the refusal may pass, and a copy under way would be executed then.
            CallOutcome::Refused(refusal)
                if outstanding || may_be_executed_later(refusal.kind()) || refusal.is_limit() =>
            {
                let kind = FailureKind::RefusedLater(refusal.kind());
                let never_executed = if unsure {
                    RequestError::NotExecuted(kind)
                } else {
                    RequestError::Refused(refusal)
                };
                return self.cancel(kind, never_executed);
            }
            other => return self.end(Err(no_answer(other, unsure))),
        };
        match reply.code {
            Code::BoundRequired | Code::Late if self.ids_left > 0 => {
                self.start_over(ServerClock::new(reply.server_ms, now), now);
            }
            Code::Late => self.end(Err(RequestError::NotExecuted(FailureKind::TimedOut))),
            Code::BoundRequired | Code::Gone | Code::Unknown => self.end(Err(garbled())),
            _ => self.end(Ok(reply)),
        }
    }

    /// Cancels the operation, which may have been executed. `never_executed` is the error once
    /// Redis has confirmed that it was not, and never will be.
    fn cancel(&mut self, cause: FailureKind, never_executed: RequestError) {
        // A request without a bound is never executed, so there is nothing to find out.
        if self.bound.not_after.is_none() {
            return self.end(Err(never_executed));
        }
        let script = self.call.cancel(self.request, self.bound);
        let request = RetriedCall::for_undoing(script, ATTEMPTS, self.attempt.get());
        self.state = State::Cancelling(request, cause, never_executed);
    }

    fn on_cancel_outcome(
        &mut self,
        outcome: CallOutcome,
        cause: FailureKind,
        never_executed: RequestError,
    ) {
        self.end(match outcome {
            CallOutcome::Replied(reply, _) => match reply.code {
                Code::Gone => Err(never_executed),
                // `BoundRequired` and `Late` are no replies to a cancellation with a bound.
                Code::Unknown | Code::BoundRequired | Code::Late => {
                    Err(RequestError::Unreachable(cause))
                }
                _ => Ok(reply),
            },
            CallOutcome::Refused(_) | CallOutcome::GaveUp(_) => {
                Err(RequestError::Unreachable(cause))
            }
        });
    }

    fn end(&mut self, outcome: Result<Reply, RequestError>) {
        self.state = State::Over(outcome);
    }
}

impl Machine for ExecuteOnce {
    type Outcome = Result<Reply, RequestError>;

    /// `Cancelled` is ignored: a request that was begun is brought to a known outcome if possible.
    fn handle(&mut self, input: Input, now: Instant) {
        match &mut self.state {
            State::Executing(request) => {
                if let Some(outcome) = request.handle(input, now, &mut self.ids) {
                    let (unsure, outstanding) = (request.is_unsure(), request.may_be_executed());
                    self.on_outcome(outcome, unsure, outstanding, now);
                }
            }
            State::Cancelling(request, cause, never_executed) => {
                if let Some(outcome) = request.handle(input, now, &mut self.ids) {
                    let (cause, never_executed) = (*cause, never_executed.clone());
                    self.on_cancel_outcome(outcome, cause, never_executed);
                }
            }
            State::Over(_) => {}
        }
    }

    fn poll(&mut self, now: Instant) -> Output<Self::Outcome> {
        match &mut self.state {
            State::Executing(request) | State::Cancelling(request, ..) => {
                request.poll(now, &mut self.ids)
            }
            State::Over(outcome) => Output::Done(outcome.clone()),
        }
    }
}

fn bound(attempt: AttemptTime, clock: Option<ServerClock>, now: Instant) -> Bound {
    // All attempts end before the bound. It is not longer, since a late operation would change
    // whatever object exists by then.
    let wait = attempt.get() * u32::from(ATTEMPTS) + BOUND_ALLOWANCE;
    Bound { not_after: clock.map(|clock| clock.after(wait, now)), keep: wait }
}
