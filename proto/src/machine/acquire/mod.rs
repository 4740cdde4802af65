//! Acquires a lock or permits: in one try, within a time, or until cancelled.
//!
//! ```text
//!   Requesting ──granted──────────────────────────► Over(Ok)
//!     │ ▲ └─busy──► Pausing ──┐
//!     │ └─────────────────────┘
//!     └─unsure, too late, cancelled─► Abandoning ──► Over(Err), or Requesting under a new owner
//! ```
//!
//! A *try* is one acquire request, an *attempt* one sending of it. A *round* is the tries with one
//! owner field: Redis grants it at most once, and executes no try after the round's *bound*. A
//! *tombstone* in Redis marks an owner as ended, so that no delayed copy of a try is granted.
//!
//! A round that ends without a lease is *abandoned*: the machine releases its owner, which writes
//! the tombstone. The abandon is not needed if a refused last try has written the tombstone, or if
//! no copy of a try can be granted. The rules (C3, C4) are in `protocol/README.md`.

mod pause;
mod rounds;

use core::time::Duration;

use super::backoff::Backoff;
use super::call::{CallOutcome, RetriedCall, may_be_granted};
use super::ids::Ids;
use super::notification_state::NotificationState;
use super::owner_attempt::OwnerAttempt;
use super::{
    AcquireParams, AcquireSpec, Entropy, Grant, Input, Lease, Machine, OneTarget, Output,
    TimeoutReason, replicas, wait_over,
};
use crate::error::{AcquireError, FailureKind, Refusal, RefusalKind};
use crate::name::FencingToken;
use crate::protocol::calls::Try;
use crate::protocol::reply::{Code, Reply, ServerClock};
use crate::time::Instant;

/// Attempts of a request whose failure ends the acquisition: the last try, which may be the only
/// one, and an abandon.
const ATTEMPTS: u8 = 3;
/// The end of the wait cuts the time of a try to no less than this, so the try may outlast the wait
/// by as much. With less time more tries would end without a reply, and need an abandon.
const OVERHANG: Duration = Duration::from_secs(1);

/// The machine that acquires a lock or permits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Acquire {
    target: OneTarget,
    /// The parameters without the target, which `target` has.
    params: AcquireParams<()>,
    ids: Ids,
    clock: Option<ServerClock>,
    /// When the wait is over; `None` for a wait that only ends by cancelling.
    wait_over: Option<Instant>,
    backoff: Backoff,
    notifications: NotificationState,
    /// When the holder's lease ends: the next try is due then. Refusals set it for jittered pacing
    /// only, since spin locks and queues have times of their own; messages set it as well.
    holder_ends: Option<Instant>,
    /// The number of owners used, which is the number of the current one.
    owners: u32,
    current: OwnerAttempt,
    state: State,
}

/// `last` is an argument of the try: if Redis refuses it, the script writes the tombstone (C4).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum State {
    Requesting { request: RetriedCall, last: bool },
    Pausing { until: Instant, why: TimeoutReason },
    Abandoning { request: RetriedCall, then: Then },
    Over(Result<Grant, AcquireError>),
}

/// The step after a confirmed abandon: a new round, or the end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Then {
    Retry,
    End(AcquireError),
}

impl Acquire {
    /// Starts at `now`. `clock` is Redis' clock, as last known; without it the first round has no
    /// bound (C3).
    pub fn new(
        spec: AcquireSpec,
        entropy: Entropy,
        clock: Option<ServerClock>,
        now: Instant,
    ) -> Self {
        let (target, params) = spec.split();
        let wait_over = wait_over(params.wait, now);
        let ids = Ids::new(entropy);
        let current = OwnerAttempt::new(ids.owner(1), clock, wait_over, now);
        let backoff = Backoff::new(target.pacing);
        let mut machine = Self {
            target,
            params,
            ids,
            clock,
            wait_over,
            backoff,
            notifications: NotificationState::default(),
            holder_ends: None,
            owners: 1,
            current,
            state: State::Pausing { until: now, why: TimeoutReason::BackOff },
        };
        machine.send_try(now);
        machine
    }

    fn send_try(&mut self, now: Instant) {
        self.send_try_within(Self::attempts(self.budget_left()), now);
    }

    /// Sends a try. A last try has up to `attempts` attempts; the wait itself repeats any other.
    fn send_try_within(&mut self, attempts: u8, now: Instant) {
        let last = self.is_wait_over(now) || !self.affords_another();
        self.current.tries += 1;
        self.notifications.on_try(now);
        let lease = self.params.lease;
        let script = self.target.target.acquire(&Try {
            request: self.ids.request(),
            bound: self.current.bound,
            owner: self.current.owner,
            lease,
            last,
            number: self.current.tries,
            previous: self.current.previous_owner(),
            // Publishing a grant helps only if other clients wait: known competitors, or after a
            // refusal those that were refused too.
            announces: self.params.is_contended || self.notifications.has_topic(),
        });
        let attempts = if last { attempts } else { 1 };
        let mut attempt_time = self.params.attempt.within(lease);
        if let Some(over) = self.wait_over.filter(|_| !last) {
            // If this try is refused or fails after the end of the wait, the last try follows.
            attempt_time = attempt_time.min(now.until(over).max(OVERHANG));
        }
        let script = replicas::awaiting(script, self.params.replicas, attempt_time);
        self.state = State::Requesting {
            request: RetriedCall::leasing(script, attempts, attempt_time),
            last,
        };
    }

    /// The number of calls left in the budget besides the one reserved for an abandon; `None`
    /// without a budget.
    fn budget_left(&self) -> Option<u32> {
        self.params.budget.map(|budget| budget.get().saturating_sub(self.ids.calls() + 1))
    }

    /// Attempts of a request whose failure ends the acquisition, with `left` calls: at least one.
    fn attempts(left: Option<u32>) -> u8 {
        left.and_then(|left| u8::try_from(left).ok())
            .map_or(ATTEMPTS, |left| left.clamp(1, ATTEMPTS))
    }

    fn on_outcome(&mut self, outcome: CallOutcome, last: bool, now: Instant) {
        if let CallOutcome::Refused(refusal) = &outcome {
            self.current.open |= may_be_granted(refusal);
        }
        match outcome {
            CallOutcome::Replied(reply, sent_at) => self.on_reply(&reply, sent_at, last, now),
            CallOutcome::Refused(refusal) if refusal.kind().is_transient() && !last => {
                self.pause_after_failure(None, now);
            }
            CallOutcome::Refused(refusal) => self.end(AcquireError::Refused(refusal), now),
            // The last try follows at once, in one attempt, since the gateway may be hanging.
            CallOutcome::GaveUp(_) if !last && self.is_wait_over(now) => {
                self.send_try_within(1, now);
            }
            CallOutcome::GaveUp(kind) if !last => {
                self.pause_after_failure(kind.retry_after(), now);
            }
            CallOutcome::GaveUp(kind) => self.end(AcquireError::Unreachable(kind), now),
        }
    }

    fn on_reply(&mut self, reply: &Reply, sent_at: Instant, last: bool, now: Instant) {
        self.clock = Some(ServerClock::new(reply.server_ms, now));
        if reply.code != Code::Late {
            self.current.previous = None;
        }
        match reply.code {
            Code::Done | Code::AlreadyYours => self.granted(reply, sent_at, now),
            Code::No if self.target.target.is_absent(reply) => {
                // Only a last try has written a tombstone. Without it, a delayed copy is granted
                // once the semaphore has permits.
                self.current.open = !last;
                self.end(AcquireError::NotSetUp, now);
            }
            // The tombstone is written: by this execution, or by an earlier one of this last try.
            Code::No | Code::Gone if last => {
                let remaining = if reply.code == Code::No { reply.remaining() } else { None };
                self.state = State::Over(Err(AcquireError::Busy { remaining }));
            }
            Code::No => {
                // Without a tombstone, Redis may grant a delayed copy of this try.
                self.current.open = true;
                self.target.target.learn(reply);
                self.pause(reply, now);
            }
            // The owner has a tombstone, so it needs no abandon. The budget has room for the last
            // try at least: it is reserved before any other try.
            Code::Gone => self.abandoned(Then::Retry, now),
            // The bound came from an outdated reading of Redis' clock, and the reply brought a new
            // one: the first owner is replaced even if the wait is over. The round is open, since
            // an earlier try may have been granted before the bound.
            Code::Late if self.keeps_place(now) => self.continue_with_new_owner(now),
            Code::Late if self.owners == 1 && self.affords_another() => {
                self.current.open = true;
                self.abandon(Then::Retry, now);
            }
            Code::Late | Code::Lost => {
                self.current.open = true;
                self.start_over(AcquireError::TooSlow, now);
            }
            Code::TokenRange => {
                // No tombstone was written: Redis grants a delayed copy once the token is in its
                // range again.
                self.current.open = true;
                self.end(AcquireError::Refused(Refusal::new(RefusalKind::TokenRange, "")), now)
            }
            // Redis executes no such request without a bound, so nothing has to be abandoned. The
            // reply brought the clock for a bound.
            Code::BoundRequired if self.current.bound.not_after.is_none() => {
                let affords_try = self.budget_left().is_none_or(|left| left > 0);
                let error = AcquireError::Unreachable(FailureKind::NO_ANSWER);
                self.abandoned(if affords_try { Then::Retry } else { Then::End(error) }, now);
            }
            // A reply that this script cannot give: the request may have had any effect.
            _ => {
                self.current.open = true;
                self.end(AcquireError::Unreachable(FailureKind::NO_ANSWER), now);
            }
        }
    }

    /// Ends with the grant if the holder can rely on it; else abandons it.
    fn granted(&mut self, reply: &Reply, sent_at: Instant, now: Instant) {
        self.current.open = true;
        let lease = Lease::confirmed(self.params.lease, sent_at);
        let Some(token) = FencingToken::parse(&reply.value) else {
            return self.end(AcquireError::Unreachable(FailureKind::NO_ANSWER), now);
        };
        if let Some(error) = replicas::missing(reply, self.params.replicas) {
            return self.end(error, now);
        }
        if let Some(newest) = self.target.newest.filter(|newest| token < *newest) {
            return self.end(AcquireError::TokenRegressed { newest: newest.as_u64() }, now);
        }
        if lease.remaining(now) < self.params.lease.validity_min() {
            return self.start_over(AcquireError::TooSlow, now);
        }
        let (owner, bound) = (self.current.owner, self.current.bound);
        self.state = State::Over(Ok(Grant { owner, token, lease, bound }));
    }

    /// Abandons this round. Continues under a new owner if wait and budget allow it, else ends with
    /// `error`.
    fn start_over(&mut self, error: AcquireError, now: Instant) {
        let goes_on = !self.is_wait_over(now) && self.affords_another();
        self.abandon(if goes_on { Then::Retry } else { Then::End(error) }, now);
    }

    fn is_wait_over(&self, now: Instant) -> bool {
        self.wait_over.is_some_and(|over| now.has_reached(over))
    }

    /// Whether the budget has two calls besides the reserved one: an abandon and another try.
    fn affords_another(&self) -> bool {
        self.budget_left().is_none_or(|left| left > 1)
    }

    fn end(&mut self, error: AcquireError, now: Instant) {
        self.abandon(Then::End(error), now);
    }

    fn abandon(&mut self, then: Then, now: Instant) {
        if !self.current.open {
            return self.abandoned(then, now);
        }
        let OwnerAttempt { bound, owner, .. } = self.current;
        let previous = self.current.previous_owner();
        let script = self.target.target.abandon(self.ids.request(), bound, owner, previous);
        // The end may also spend the reserved call; a retry spares one more, for its try.
        let left = self.budget_left().map(|left| match then {
            Then::End(_) => left + 1,
            Then::Retry => left.saturating_sub(1),
        });
        let request = RetriedCall::undoing(
            script,
            Self::attempts(left),
            self.params.attempt.within(self.params.lease),
        );
        self.state = State::Abandoning { request, then };
    }

    /// Continues after an abandon that Redis has confirmed, or that is not needed.
    fn abandoned(&mut self, then: Then, now: Instant) {
        match then {
            Then::End(error) => self.state = State::Over(Err(error)),
            Then::Retry => {
                self.current = self.next_attempt(now);
                self.send_try(now);
            }
        }
    }

    /// Ends after an abandon without a reply, even if a retry was planned: the abandon and the
    /// upper bound of a new round would not cover the owner of this one, which stays open.
    fn abandon_failed(&mut self, then: Then, cause: FailureKind, now: Instant) {
        let outstanding = self.current.outstanding(self.params.lease);
        let held_at_most =
            outstanding.held_at_most(self.target.target.clock_allowance(), self.clock, now);
        let error = match then {
            Then::End(AcquireError::Cancelled { .. }) => {
                AcquireError::Cancelled { held_at_most: Some(held_at_most) }
            }
            Then::End(_) | Then::Retry => AcquireError::Unknown { held_at_most, cause },
        };
        self.state = State::Over(Err(error));
    }

    fn cancelled(&mut self, now: Instant) {
        let error = AcquireError::Cancelled { held_at_most: None };
        match &mut self.state {
            State::Requesting { request, .. } => {
                self.current.open |= request.was_sent();
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
        self.notifications.record(&input);
        match &mut self.state {
            State::Requesting { request, last } => {
                let last = *last;
                if let Some(outcome) = request.handle(input, now, &mut self.ids) {
                    self.current.open |= request.may_be_executed();
                    self.on_outcome(outcome, last, now);
                }
            }
            State::Pausing { until, .. } if now.has_reached(*until) => self.on_timeout(now),
            State::Pausing { why, .. } => {
                let why = *why;
                self.on_input(&input, why, now);
            }
            State::Over(_) => {}
            State::Abandoning { request, .. } => {
                let Some(outcome) = request.handle(input, now, &mut self.ids) else { return };
                // Takes `then` out of the state; each branch below replaces the placeholder.
                let State::Abandoning { then, .. } = core::mem::replace(
                    &mut self.state,
                    State::Pausing { until: now, why: TimeoutReason::BackOff },
                ) else {
                    return;
                };
                match outcome {
                    CallOutcome::Replied(..) => self.abandoned(then, now),
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
            State::Requesting { request, .. } | State::Abandoning { request, .. } => {
                request.poll(now, &mut self.ids)
            }
            State::Pausing { until, why } => Output::Timeout { until: *until, why: *why },
            State::Over(outcome) => Output::Done(outcome.clone()),
        }
    }
}
