//! Acquires a lock or permits: in one try, within a time, or until cancelled.
//!
//! ```text
//!   Asking ──granted──────────────────────────────► Over(Ok)
//!     │ ▲ └─busy──► Pausing ──┐
//!     │ └─────────────────────┘
//!     └─unsure, too late, cancelled─► Abandoning ──► Over(Err), or Asking under a new owner
//! ```
//!
//! One owner field serves one *round*: it can be granted once, and every request with it carries
//! the same bound. A round that ends without a lease is abandoned, unless Redis is known to have
//! written the tombstone already.

mod pause;
mod round;
mod spec;

pub use spec::AcquireSpec;

use core::time::Duration;

use round::Round;

use super::backoff::Backoff;
use super::call::{CallOutcome, RetriedCall, may_pass};
use super::ids::Ids;
use super::notification_state::NotificationState;
use super::replicas;
use super::{Entropy, Grant, Input, Lease, Machine, Output, TimeoutReason, wait_over};
use crate::error::{AcquireError, FailureKind, Refusal, RefusalKind};
use crate::name::FencingToken;
use crate::protocol::calls::Try;
use crate::protocol::reply::{Code, Reply, ServerClock};
use crate::time::Instant;

/// Attempts for a request that decides the whole acquisition: the only try, the last one, the
/// abandon.
const ATTEMPTS: u8 = 3;
/// How far a try that is under way may reach beyond the end of the wait.
const OVERHANG: Duration = Duration::from_secs(1);

/// The machine that acquires a lock or permits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Acquire {
    spec: AcquireSpec,
    ids: Ids,
    clock: Option<ServerClock>,
    /// When the wait is over; `None` for a wait that only ends by cancelling.
    wait_over: Option<Instant>,
    backoff: Backoff,
    notifications: NotificationState,
    /// When the holder's lease ends, as far as that is known and matters.
    holder_ends: Option<Instant>,
    round: Round,
    state: State,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum State {
    Asking { request: RetriedCall, last: bool },
    Pausing { until: Instant, why: TimeoutReason },
    Abandoning { request: RetriedCall, then: Then },
    Over(Result<Grant, AcquireError>),
}

/// The step after an abandon.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Then {
    AskAnew,
    End(AcquireError),
}

impl Acquire {
    /// Starts at `now`. `clock` is Redis' clock, as last known; without it the first round is
    /// unbounded (rule C3).
    pub fn new(
        spec: AcquireSpec,
        entropy: Entropy,
        clock: Option<ServerClock>,
        now: Instant,
    ) -> Self {
        let wait_over = wait_over(spec.patience, now);
        let ids = Ids::new(entropy);
        let round = Round::new(1, &ids, clock, wait_over, now);
        let backoff = Backoff::new(spec.pacing);
        let mut machine = Self {
            spec,
            ids,
            clock,
            wait_over,
            backoff,
            notifications: NotificationState::default(),
            holder_ends: None,
            round,
            state: State::Pausing { until: now, why: TimeoutReason::BackOff },
        };
        machine.ask(now);
        machine
    }

    fn ask(&mut self, now: Instant) {
        let last = self.is_wait_over(now) || !self.affords_another();
        self.round.tries += 1;
        self.notifications.asks(now);
        let lease = self.spec.lease;
        let script = self.spec.target.acquire(&Try {
            request: self.ids.request(),
            bound: self.round.bound,
            owner: self.round.owner,
            lease,
            last,
            number: self.round.tries,
            previous: self.round.previous.map(|(owner, _)| owner),
            announces: self.spec.is_contended || self.notifications.listens(),
        });
        // A try that is not the last one is itself repeated by the wait.
        let attempts = if last { Self::attempts(self.budget_left()) } else { 1 };
        let mut attempt_time = self.spec.attempt.within(lease);
        if let Some(over) = self.wait_over.filter(|_| !last) {
            // Not much beyond the end of the wait, which the last try follows.
            attempt_time = attempt_time.min(now.until(over).max(OVERHANG));
        }
        let script = replicas::awaiting(script, self.spec.replicas, attempt_time);
        self.state =
            State::Asking { request: RetriedCall::leasing(script, attempts, attempt_time), last };
    }

    /// The number of calls left in the budget, less the one reserved for an abandon.
    fn budget_left(&self) -> Option<u32> {
        self.spec.budget.map(|budget| budget.get().saturating_sub(self.ids.calls() + 1))
    }

    /// Attempts for a request that decides the acquisition: at least one.
    fn attempts(left: Option<u32>) -> u8 {
        left.and_then(|left| u8::try_from(left).ok())
            .map_or(ATTEMPTS, |left| left.clamp(1, ATTEMPTS))
    }

    fn asked(&mut self, outcome: CallOutcome, unsure: bool, last: bool, now: Instant) {
        self.round.open |= unsure;
        if let CallOutcome::Refused(refusal) = &outcome {
            self.round.open |= may_pass(refusal.kind());
        }
        match outcome {
            CallOutcome::Answered(reply, sent_at) => self.answered(&reply, sent_at, last, now),
            CallOutcome::Refused(refusal) if refusal.kind().is_transient() && !last => {
                self.pause_unheard(None, now);
            }
            CallOutcome::Refused(refusal) => {
                // A script that stops half-way (a command that the user may not run) is refused
                // too.
                self.round.open |=
                    matches!(refusal.kind(), RefusalKind::Other | RefusalKind::Unsupported);
                self.end(AcquireError::Refused(refusal), now);
            }
            CallOutcome::GaveUp(kind) if !last && !self.is_wait_over(now) => {
                self.pause_unheard(kind.retry_after(), now);
            }
            CallOutcome::GaveUp(kind) => self.end(AcquireError::Unreachable(kind), now),
        }
    }

    fn answered(&mut self, reply: &Reply, sent_at: Instant, last: bool, now: Instant) {
        self.clock = Some(ServerClock::new(reply.server_ms, now));
        if reply.code != Code::Late {
            self.round.previous = None;
        }
        match reply.code {
            Code::Done | Code::AlreadyYours => self.granted(reply, sent_at, now),
            // The tombstone is written: by this execution, or by an earlier one of the same last
            // try.
            Code::No if self.spec.target.is_absent(reply) => {
                // A last try has left a tombstone; a copy of another would be granted once there
                // are permits.
                self.round.open = !last;
                self.end(AcquireError::NotSetUp, now);
            }
            Code::No | Code::Gone if last => {
                let remaining = if reply.code == Code::No { reply.remaining() } else { None };
                self.state = State::Over(Err(AcquireError::Busy { remaining }));
            }
            Code::No => {
                self.round.open = true;
                self.spec.target.learn(reply);
                self.pause(reply, now);
            }
            Code::Gone => {
                self.round.open = false;
                self.anew(AcquireError::TooSlow, now);
            }
            // The bound was computed from a reading of Redis' clock that is no longer right; the
            // reply brought a new one.
            Code::Late if self.keeps_seat(now) => self.go_on(now),
            Code::Late if self.round.number == 1 && self.affords_another() => {
                self.round.open = true;
                self.abandon(Then::AskAnew, now);
            }
            Code::Late | Code::Lost => {
                self.round.open = true;
                self.anew(AcquireError::TooSlow, now);
            }
            Code::TokenRange => {
                // No tombstone was written: a copy would be granted once the token is in its range
                // again.
                self.round.open = true;
                self.end(AcquireError::Refused(Refusal::new(RefusalKind::TokenRange, "")), now)
            }
            // Nothing was done, and the clock is known now.
            Code::BoundRequired if self.round.bound.not_after.is_none() => {
                let affords_try = self.budget_left().is_none_or(|left| left > 0);
                let error = AcquireError::Unreachable(FailureKind::NO_ANSWER);
                self.abandoned(if affords_try { Then::AskAnew } else { Then::End(error) }, now);
            }
            // A reply that this script cannot give: the request may have had any effect.
            _ => {
                self.round.open = true;
                self.end(AcquireError::Unreachable(FailureKind::NO_ANSWER), now);
            }
        }
    }

    fn granted(&mut self, reply: &Reply, sent_at: Instant, now: Instant) {
        self.round.open = true;
        let lease = Lease::confirmed(self.spec.lease, sent_at);
        let Some(token) = FencingToken::parse(&reply.value) else {
            return self.end(AcquireError::Unreachable(FailureKind::NO_ANSWER), now);
        };
        if let Some(error) = replicas::missing(reply, self.spec.replicas) {
            return self.end(error, now);
        }
        if let Some(newest) = self.spec.newest.filter(|newest| token < *newest) {
            return self.end(AcquireError::TokenRegressed { newest: newest.as_u64() }, now);
        }
        if lease.remaining(now) < self.spec.lease.validity_min() {
            return self.anew(AcquireError::TooSlow, now);
        }
        let (owner, bound) = (self.round.owner, self.round.bound);
        self.state = State::Over(Ok(Grant { owner, token, lease, bound }));
    }

    /// Abandons this round. Continues under a new owner if wait and budget allow it, else ends with
    /// `error`.
    fn anew(&mut self, error: AcquireError, now: Instant) {
        let goes_on = !self.is_wait_over(now) && self.affords_another();
        self.abandon(if goes_on { Then::AskAnew } else { Then::End(error) }, now);
    }

    fn is_wait_over(&self, now: Instant) -> bool {
        self.wait_over.is_some_and(|over| now.has_reached(over))
    }

    /// Whether there is budget for an abandon and another try.
    fn affords_another(&self) -> bool {
        self.budget_left().is_none_or(|left| left > 1)
    }

    fn end(&mut self, error: AcquireError, now: Instant) {
        self.abandon(Then::End(error), now);
    }

    fn abandon(&mut self, then: Then, now: Instant) {
        if !self.round.open {
            return self.abandoned(then, now);
        }
        let Round { bound, owner, previous, .. } = self.round;
        let previous = previous.map(|(owner, _)| owner);
        let script = self.spec.target.abandon(self.ids.request(), bound, owner, previous);
        let left = self.budget_left().map(|left| match then {
            Then::End(_) => left + 1,
            Then::AskAnew => left.saturating_sub(1),
        });
        let request = RetriedCall::undoing(
            script,
            Self::attempts(left),
            self.spec.attempt.within(self.spec.lease),
        );
        self.state = State::Abandoning { request, then };
    }

    fn abandoned(&mut self, then: Then, now: Instant) {
        match then {
            Then::End(error) => self.state = State::Over(Err(error)),
            Then::AskAnew => {
                self.round =
                    Round::new(self.round.number + 1, &self.ids, self.clock, self.wait_over, now);
                self.ask(now);
            }
        }
    }

    fn abandon_failed(&mut self, then: Then, cause: FailureKind, now: Instant) {
        let outstanding = self.round.outstanding(self.spec.lease);
        let held_at_most =
            outstanding.held_at_most(self.spec.target.clock_allowance(), self.clock, now);
        let error = match then {
            Then::End(AcquireError::Cancelled { .. }) => {
                AcquireError::Cancelled { held_at_most: Some(held_at_most) }
            }
            Then::End(_) | Then::AskAnew => AcquireError::Unknown { held_at_most, cause },
        };
        self.state = State::Over(Err(error));
    }

    fn woken(&mut self, now: Instant) {
        if !now.has_reached(self.round.ends_at) || self.is_wait_over(now) {
            self.ask(now);
        } else if self.keeps_seat(now) {
            self.go_on(now);
        } else {
            self.anew(AcquireError::TooSlow, now);
        }
    }

    /// Whether a new round takes over the seat of this one.
    fn keeps_seat(&self, now: Instant) -> bool {
        // While it is not known which of two owners has the seat, a third cannot take it over.
        self.round.previous.is_none()
            && self.spec.target.has_queue()
            && !self.is_wait_over(now)
            && self.affords_another()
    }

    /// Retries under a new owner, which takes over the seat of the previous one in the queue, so
    /// that nothing has to be abandoned.
    fn go_on(&mut self, now: Instant) {
        let seated = (self.round.owner, self.round.outstanding(self.spec.lease));
        self.round = Round::new(self.round.number + 1, &self.ids, self.clock, self.wait_over, now);
        (self.round.previous, self.round.open) = (Some(seated), true);
        self.ask(now);
    }

    fn cancelled(&mut self, now: Instant) {
        let error = AcquireError::Cancelled { held_at_most: None };
        match &mut self.state {
            State::Asking { request, .. } => {
                self.round.open |= request.was_sent();
                self.end(error, now);
            }
            State::Pausing { .. } => self.end(error, now),
            State::Abandoning { then, .. } => *then = Then::End(error),
            State::Over(_) => {}
        }
    }
}

impl Machine for Acquire {
    type Outcome = Result<Grant, AcquireError>;

    fn handle(&mut self, input: Input, now: Instant) {
        if matches!(input, Input::Cancelled) {
            return self.cancelled(now);
        }
        self.notifications.takes(&input);
        match &mut self.state {
            State::Asking { request, last } => {
                let last = *last;
                if let Some(outcome) = request.handle(input, now, &mut self.ids) {
                    let unsure = request.is_unsure();
                    self.asked(outcome, unsure, last, now);
                }
            }
            State::Pausing { until, .. } if now.has_reached(*until) => self.woken(now),
            State::Pausing { why, .. } => {
                let why = *why;
                self.hears(&input, why, now);
            }
            State::Over(_) => {}
            State::Abandoning { request, .. } => {
                let Some(outcome) = request.handle(input, now, &mut self.ids) else { return };
                let State::Abandoning { then, .. } = core::mem::replace(
                    &mut self.state,
                    State::Pausing { until: now, why: TimeoutReason::BackOff },
                ) else {
                    return;
                };
                match outcome {
                    CallOutcome::Answered(..) => self.abandoned(then, now),
                    CallOutcome::Refused(refusal) => {
                        self.abandon_failed(then, FailureKind::RefusedLater(refusal.kind()), now)
                    }
                    CallOutcome::GaveUp(kind) => self.abandon_failed(then, kind, now),
                }
            }
        }
    }

    fn poll(&mut self, now: Instant) -> Output<Self::Outcome> {
        if let (State::Pausing { .. }, Some(listen)) = (&self.state, self.notifications.poll()) {
            return listen;
        }
        match &mut self.state {
            State::Asking { request, .. } | State::Abandoning { request, .. } => {
                request.poll(now, &mut self.ids)
            }
            State::Pausing { until, why } => Output::Timeout { until: *until, why: *why },
            State::Over(outcome) => Output::Done(outcome.clone()),
        }
    }
}
