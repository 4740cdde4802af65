//! Taking a lock: once, for a time, or until cancelled.
//!
//! ```text
//!   Asking ──granted──────────────────────────────► Over(Ok)
//!     │ ▲ └─busy──► Pausing ──┐
//!     │ └─────────────────────┘
//!     └─unsure, too late, cancelled─► Abandoning ──► Over(Err), or Asking under a new owner
//! ```
//!
//! One owner field is good for one *round*: it can be granted once, and everything asked under it carries one bound. Whatever
//! ends a round without a lease abandons it, unless Redis is known to have written the tombstone already.

use core::time::Duration;

use super::backoff::Backoff;
use super::call::{Errand, Verdict};
use super::ids::Ids;
use super::{Entropy, Grant, Input, Lease, Machine, Output, Wake};
use crate::error::{AcquireError, FailureKind, Refusal, RefusalKind};
use crate::name::{FencingToken, OwnerId};
use crate::protocol::reply::{Code, Reply, ServerClock};
use crate::protocol::script::{Bound, LockCalls};
use crate::time::Instant;
use crate::timing::{
    AttemptTime, FIRST_HORIZON, HORIZON, LeaseTime, Patience, ROUND_MAX, RequestBudget,
};

/// Attempts at a request on which the whole acquisition hangs: the only try, the last one, the abandon.
const ATTEMPTS: u8 = 3;
/// How far a try that is under way may reach beyond the end of the wait.
const OVERHANG: Duration = Duration::from_secs(1);

/// What to acquire, and how.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AcquireSpec {
    /// The lock.
    pub calls: LockCalls,
    /// How long the hold is to last.
    pub lease: LeaseTime,
    /// How long to wait for it.
    pub patience: Patience,
    /// How many requests may be spent; `None` for no limit.
    pub budget: Option<RequestBudget>,
    /// How long one attempt may take.
    pub attempt: AttemptTime,
}

/// The machine that takes a lock.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Acquire {
    spec: AcquireSpec,
    ids: Ids,
    clock: Option<ServerClock>,
    /// When the wait is over; `None` for a wait that only ends by cancelling.
    wait_over: Option<Instant>,
    backoff: Backoff,
    round: Round,
    state: State,
}

/// Everything that is asked under one owner field.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Round {
    number: u32,
    owner: OwnerId,
    bound: Bound,
    /// When a longer wait has to go on under a new owner.
    ends_at: Instant,
    /// Whether a copy of a request of this round might still be granted.
    open: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum State {
    Asking { errand: Errand, last: bool },
    Pausing { until: Instant, why: Wake },
    Abandoning { errand: Errand, then: Then },
    Over(Result<Grant, AcquireError>),
}

/// What comes after an abandon.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Then {
    AskAnew,
    End(AcquireError),
}

impl Acquire {
    /// Begins at `now`. `clock` is what is known of Redis' clock; without it the first round is unbounded (rule C3).
    pub fn new(
        spec: AcquireSpec,
        entropy: Entropy,
        clock: Option<ServerClock>,
        now: Instant,
    ) -> Self {
        let wait_over = match spec.patience {
            Patience::Once => Some(now),
            Patience::UpTo(wait) => Some(now + wait.get()),
            Patience::UntilCancelled => None,
        };
        let ids = Ids::new(entropy);
        let round = Round::new(1, &ids, clock, wait_over, now);
        let backoff = Backoff::new();
        let mut machine = Self {
            spec,
            ids,
            clock,
            wait_over,
            backoff,
            round,
            state: State::Pausing { until: now, why: Wake::BackOff },
        };
        machine.ask(now);
        machine
    }

    fn ask(&mut self, now: Instant) {
        let last = self.is_wait_over(now) || !self.affords_another();
        let request = self.ids.request();
        let (owner, lease) = (&self.round.owner, self.spec.lease);
        let script = self.spec.calls.acquire(request, self.round.bound, owner, lease, last);
        // A try that is not the last one is itself repeated by the wait.
        let attempts = if last { Self::attempts(self.budget_left()) } else { 1 };
        let mut attempt_time = self.spec.attempt.within(lease);
        if let Some(over) = self.wait_over.filter(|_| !last) {
            // Not much beyond the end of the wait, which the last try follows.
            attempt_time = attempt_time.min(now.until(over).max(OVERHANG));
        }
        self.state = State::Asking { errand: Errand::new(script, attempts, attempt_time), last };
    }

    /// What may still be asked, after keeping back what an abandon needs.
    fn budget_left(&self) -> Option<u32> {
        self.spec.budget.map(|budget| budget.get().saturating_sub(self.ids.calls() + 1))
    }

    /// How often a request may be sent on which everything hangs: at least once.
    fn attempts(left: Option<u32>) -> u8 {
        left.and_then(|left| u8::try_from(left).ok())
            .map_or(ATTEMPTS, |left| left.clamp(1, ATTEMPTS))
    }

    fn asked(&mut self, verdict: Verdict, unsure: bool, last: bool, now: Instant) {
        self.round.open |= unsure;
        match verdict {
            Verdict::Answered(reply, sent_at) => self.answered(&reply, sent_at, last, now),
            Verdict::Refused(refusal) if refusal.kind() == RefusalKind::Unavailable && !last => {
                self.pause(None, now);
            }
            Verdict::Refused(refusal) => {
                // A script that stops half-way (a command that the user may not run) is refused too.
                self.round.open |= refusal.kind() == RefusalKind::Other;
                self.end(AcquireError::Refused(refusal), now);
            }
            Verdict::GaveUp(_) if !last && !self.is_wait_over(now) => self.pause(None, now),
            Verdict::GaveUp(kind) => self.end(AcquireError::Unreachable(kind), now),
        }
    }

    fn answered(&mut self, reply: &Reply, sent_at: Instant, last: bool, now: Instant) {
        self.clock = Some(ServerClock::new(reply.server_ms, now));
        match reply.code {
            Code::Done | Code::AlreadyYours => self.granted(reply, sent_at, now),
            // The tombstone is written: by this execution, or by an earlier one of the same last try.
            Code::No | Code::Gone if last => {
                let remaining = if reply.code == Code::No { reply.remaining() } else { None };
                self.state = State::Over(Err(AcquireError::Busy { remaining }));
            }
            Code::No => {
                self.round.open = true;
                self.pause(reply.remaining(), now);
            }
            Code::Gone => {
                self.round.open = false;
                self.anew(AcquireError::TooSlow, now);
            }
            // The bound rests on a reading of the server's clock that does not hold any more: the reply brought a new one.
            Code::Late if self.round.number == 1 && self.affords_another() => {
                self.round.open = true;
                self.abandon(Then::AskAnew, now);
            }
            Code::Late | Code::Lost => {
                self.round.open = true;
                self.anew(AcquireError::TooSlow, now);
            }
            Code::TokenRange => {
                self.end(AcquireError::Refused(Refusal::new(RefusalKind::TokenRange, "")), now)
            }
            Code::BoundRequired => {
                self.end(AcquireError::Unreachable(FailureKind::Garbled { status: 200 }), now)
            }
        }
    }

    fn granted(&mut self, reply: &Reply, sent_at: Instant, now: Instant) {
        self.round.open = true;
        let lease = Lease::confirmed(self.spec.lease, sent_at);
        let Some(token) = FencingToken::parse(&reply.value) else {
            return self.end(AcquireError::Unreachable(FailureKind::Garbled { status: 200 }), now);
        };
        if lease.remaining(now) < self.spec.lease.validity_min() {
            return self.anew(AcquireError::TooSlow, now);
        }
        let (owner, bound) = (self.round.owner.clone(), self.round.bound);
        self.state = State::Over(Ok(Grant { owner, token, lease, bound }));
    }

    /// Gives this round up; goes on under a new owner if the wait allows it, and else ends.
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
        let script =
            self.spec.calls.release(self.ids.request(), self.round.bound, &self.round.owner);
        let left = self.budget_left().map(|left| match then {
            Then::End(_) => left + 1,
            Then::AskAnew => left.saturating_sub(1),
        });
        let errand = Errand::undoing(
            script,
            Self::attempts(left),
            self.spec.attempt.within(self.spec.lease),
        );
        self.state = State::Abandoning { errand, then };
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

    fn abandon_failed(&mut self, then: Then, cause: FailureKind) {
        let held_at_most = self.round.bound.keep + self.spec.lease.get();
        let error = match then {
            Then::End(AcquireError::Cancelled { .. }) => {
                AcquireError::Cancelled { held_at_most: Some(held_at_most) }
            }
            Then::End(_) | Then::AskAnew => AcquireError::Unknown { held_at_most, cause },
        };
        self.state = State::Over(Err(error));
    }

    fn pause(&mut self, holder_remaining: Option<Duration>, now: Instant) {
        // Only the last try is left: it belongs to the end of the wait.
        if let Some(over) = self.wait_over.filter(|_| !self.affords_another()) {
            self.state = State::Pausing { until: over, why: Wake::WaitOver };
            return;
        }
        let pause = self.backoff.next(self.stretch(now), &mut self.ids);
        let (mut until, mut why) = (now + pause, Wake::BackOff);
        // One more, since Redis counts in whole milliseconds too.
        if let Some(expires) =
            holder_remaining.map(|remaining| remaining + Duration::from_millis(1))
            && expires < pause
        {
            (until, why) = (now + expires, Wake::HolderExpires);
        }
        if let Some(over) = self.wait_over
            && until.has_reached(over)
        {
            (until, why) = (over, Wake::WaitOver);
        }
        self.state = State::Pausing { until, why };
    }

    /// The step whose mean makes the budget last as long as the wait.
    fn stretch(&self, now: Instant) -> Duration {
        let (Some(over), Some(left)) = (self.wait_over, self.budget_left()) else {
            return Duration::ZERO;
        };
        now.until(over) * 2 / left.max(1)
    }

    fn woken(&mut self, now: Instant) {
        if now.has_reached(self.round.ends_at) && !self.is_wait_over(now) {
            self.anew(AcquireError::TooSlow, now);
        } else {
            self.ask(now);
        }
    }

    fn cancelled(&mut self, now: Instant) {
        let error = AcquireError::Cancelled { held_at_most: None };
        match &mut self.state {
            State::Asking { errand, .. } => {
                self.round.open |= errand.was_sent();
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
        match &mut self.state {
            State::Asking { errand, last } => {
                let last = *last;
                if let Some(verdict) = errand.handle(input, now, &mut self.ids) {
                    let unsure = errand.is_unsure();
                    self.asked(verdict, unsure, last, now);
                }
            }
            State::Pausing { until, .. } if now.has_reached(*until) => self.woken(now),
            State::Pausing { .. } | State::Over(_) => {}
            State::Abandoning { errand, .. } => {
                let Some(verdict) = errand.handle(input, now, &mut self.ids) else { return };
                let State::Abandoning { then, .. } = core::mem::replace(
                    &mut self.state,
                    State::Pausing { until: now, why: Wake::BackOff },
                ) else {
                    return;
                };
                match verdict {
                    Verdict::Answered(..) => self.abandoned(then, now),
                    Verdict::Refused(refusal) => {
                        self.abandon_failed(then, FailureKind::RefusedLater(refusal.kind()))
                    }
                    Verdict::GaveUp(kind) => self.abandon_failed(then, kind),
                }
            }
        }
    }

    fn poll(&mut self, now: Instant) -> Output<Self::Outcome> {
        match &mut self.state {
            State::Asking { errand, .. } | State::Abandoning { errand, .. } => {
                errand.poll(now, &mut self.ids)
            }
            State::Pausing { until, why } => Output::Wait { until: *until, why: *why },
            State::Over(outcome) => Output::Done(outcome.clone()),
        }
    }
}

impl Round {
    fn new(
        number: u32,
        ids: &Ids,
        clock: Option<ServerClock>,
        wait_over: Option<Instant>,
        now: Instant,
    ) -> Self {
        let round_over = now + ROUND_MAX;
        let ends_at = wait_over.map_or(round_over, |over| over.sooner(round_over));
        let bound = clock.map_or(Bound { not_after: None, keep: FIRST_HORIZON }, |clock| Bound {
            not_after: Some(clock.after(now.until(ends_at) + HORIZON, now)),
            keep: HORIZON,
        });
        Self { number, owner: ids.owner(number), bound, ends_at, open: false }
    }
}
