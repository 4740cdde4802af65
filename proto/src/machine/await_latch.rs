//! Waiting for a count-down latch to open. Nothing is held, so nothing has to be undone.

use core::time::Duration;

use super::backoff::{Backoff, Pacing, RetryHints, min_step, next_try};
use super::call::{CallOutcome, RetriedCall};
use super::ids::Ids;
use super::notification_state::{NotificationState, RetryDecision};
use super::{Endpoint, Entropy, Input, Machine, Output, TimeoutReason, wait_deadline};
use crate::error::{AcquireError, FailureKind};
use crate::protocol::calls::CountDownLatchCalls;
use crate::protocol::reply::Code;
use crate::time::Instant;
use crate::timing::{AttemptTime, RequestBudget, WaitPolicy};

/// Attempts for the last query.
const ATTEMPTS: u8 = 3;

/// The machine that waits until a latch is open. Only a reply of Redis opens it, never a missing
/// one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AwaitLatch {
    calls: CountDownLatchCalls,
    attempt: AttemptTime,
    budget: Option<RequestBudget>,
    /// When the wait is over; `None` for a wait that only ends by cancelling.
    wait_deadline: Option<Instant>,
    ids: Ids,
    backoff: Backoff,
    notifications: NotificationState,
    state: State,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum State {
    Requesting { request: RetriedCall, last: bool },
    Pausing { until: Instant, why: TimeoutReason },
    Over(Result<(), AcquireError>),
}

impl AwaitLatch {
    /// Starts at `now`.
    pub fn new(
        calls: CountDownLatchCalls,
        wait: WaitPolicy,
        budget: Option<RequestBudget>,
        attempt: AttemptTime,
        entropy: Entropy,
        now: Instant,
    ) -> Self {
        let wait_deadline = wait_deadline(wait, now);
        let (ids, backoff) = (Ids::new(entropy), Backoff::new(Pacing::Jittered));
        let state = State::Pausing { until: now, why: TimeoutReason::BackOff };
        let notifications = NotificationState::default();
        let mut machine =
            Self { calls, attempt, budget, wait_deadline, ids, backoff, notifications, state };
        machine.send_query(now);
        machine
    }

    fn send_query(&mut self, now: Instant) {
        let last = self.is_wait_over(now) || self.left() == Some(0);
        self.notifications.on_try(now);
        let request = RetriedCall::new(
            self.calls.inspect(self.ids.request()),
            if last { ATTEMPTS } else { 1 },
            self.attempt.get(),
        );
        self.state = State::Requesting { request, last };
    }

    /// Sends a query, or delays it if messages have caused too many already.
    fn send_query_when_allowed(&mut self, now: Instant) {
        match self.notifications.next_allowed(now) {
            None => self.send_query(now),
            Some(until) => {
                let until = self.wait_deadline.map_or(until, |deadline| until.sooner(deadline));
                self.state = State::Pausing { until, why: TimeoutReason::Notification };
            }
        }
    }

    fn is_wait_over(&self, now: Instant) -> bool {
        self.wait_deadline.is_some_and(|deadline| now.has_reached(deadline))
    }

    /// The number of queries that the budget has room for after the next one.
    fn left(&self) -> Option<u32> {
        self.budget.map(|budget| budget.get().saturating_sub(self.ids.calls() + 1))
    }

    fn on_reply(&mut self, outcome: CallOutcome, last: bool, now: Instant) {
        let error = match outcome {
            CallOutcome::Replied(reply, _) => match reply.code {
                Code::No => return self.state = State::Over(Ok(())),
                Code::Done => AcquireError::Busy { remaining: None },
                _ => AcquireError::Unreachable(FailureKind::NO_ANSWER),
            },
            CallOutcome::Refused(refusal) if !refusal.kind().is_transient() => {
                return self.state = State::Over(Err(AcquireError::Refused(refusal)));
            }
            CallOutcome::Refused(refusal) => AcquireError::Refused(refusal),
            CallOutcome::GaveUp(kind) => AcquireError::Unreachable(kind),
        };
        if last {
            return self.state = State::Over(Err(error));
        }
        match error {
            AcquireError::Unreachable(kind) => self.pause(false, kind.retry_after(), now),
            error => self.pause(matches!(error, AcquireError::Busy { .. }), None, now),
        }
    }

    /// Pauses until the next query. `retry_after` is the gateway's `Retry-After`.
    fn pause(&mut self, is_closed: bool, retry_after: Option<Duration>, now: Instant) {
        if is_closed {
            self.notifications.set_topic(Endpoint::ONLY, self.calls.topic());
        }
        // The budget has room only for the last query, which is sent at the end of the wait.
        if let Some(over) = self.wait_deadline.filter(|_| self.left() == Some(0)) {
            return self.state = State::Pausing { until: over, why: TimeoutReason::LastTry };
        }
        let silence = self.notifications.silence_timeout(&mut self.ids).filter(|_| is_closed);
        if let Some((until, why)) =
            silence.and_then(|_| self.notifications.next_retry(&mut self.ids, now))
        {
            return self.state = State::Pausing { until, why };
        }
        let min_step = min_step(self.wait_deadline, self.left(), now);
        let hints = RetryHints { silence, retry_after, ..RetryHints::default() };
        let (backoff, ids) = (&mut self.backoff, &mut self.ids);
        let (until, why) = next_try(hints, backoff, min_step, ids, self.wait_deadline, now);
        self.state = State::Pausing { until, why };
    }
}

impl Machine for AwaitLatch {
    type Outcome = Result<(), AcquireError>;

    fn handle(&mut self, input: Input, now: Instant) {
        self.notifications.record(&input);
        match &mut self.state {
            State::Over(_) => {}
            _ if matches!(input, Input::Cancelled) => {
                self.state = State::Over(Err(AcquireError::Cancelled { held_at_most: None }));
            }
            State::Requesting { request, last } => {
                let last = *last;
                if let Some(outcome) = request.handle(input, now, &mut self.ids) {
                    self.on_reply(outcome, last, now);
                }
            }
            State::Pausing { until, .. } if now.has_reached(*until) => self.send_query(now),
            State::Pausing { why, .. } => {
                match self.notifications.on_input(&input, *why, &mut self.ids, now) {
                    // An open latch serves all waiters, so they need not spread their queries.
                    RetryDecision::Now | RetryDecision::At(_) | RetryDecision::Poll => {
                        self.send_query_when_allowed(now)
                    }
                    RetryDecision::Defer(_) | RetryDecision::Keep => {}
                }
            }
        }
    }

    fn poll(&mut self, now: Instant) -> Output<Self::Outcome> {
        if let (State::Pausing { .. }, Some(listen)) = (&self.state, self.notifications.poll()) {
            return listen;
        }
        match &mut self.state {
            State::Requesting { request, .. } => request.poll(now, &mut self.ids),
            State::Pausing { until, why } => Output::Timeout { until: *until, why: *why },
            State::Over(outcome) => Output::Done(outcome.clone()),
        }
    }
}
