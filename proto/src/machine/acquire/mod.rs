//! Acquires a lock or permits: in one try, within a time, or until cancelled.
//!
//! ```text
//!   Requesting ──► Over(Ok)     granted
//!              ──► Over(Busy)   the last try is refused: the lock is held, or permits are too few
//!              ──► Pausing      another try is refused, or has no reply
//!              ──► Requesting   the last try follows, or a new round that needs no abandon
//!              ──► Abandoning   cancelled, late, lost, a permanent error, a grant that the holder
//!                               cannot rely on, or no reply to the last try
//!   Pausing    ──► Requesting   timeout, or message
//!              ──► Abandoning   cancelled, or the round is over
//!   Abandoning ──► Requesting   confirmed, and a new round follows
//!              ──► Over(Err)    confirmed, and no round follows; or not confirmed
//! ```
//!
//! A *try* is one acquire request, an *attempt* one sending of it. A *round* is the tries with one
//! owner field: Redis grants it at most once, and executes no try after the round's *bound*. A
//! *tombstone* in Redis marks an owner as ended, so that no delayed copy of a try is granted.
//!
//! A round is *open* while Redis may store a hold of its owner, or may still grant one. An open
//! round that ends without a lease is *abandoned*: the machine releases its owner, which writes the
//! tombstone. A round that is not open skips `Abandoning`: no copy of a try can be granted, or a
//! refused last try has written the tombstone. An open round of a fair lock skips it too if the
//! next owner takes over its place in the queue. The rules (C3, C4, F11) are in
//! `protocol/README.md`.

mod abandon;
mod pause;
mod rounds;

use core::time::Duration;

use super::backoff::{Backoff, Pacing};
use super::call::{CallOutcome, RetriedCall, may_be_granted};
use super::ids::Ids;
use super::notification_state::NotificationState;
use super::owner_round::OwnerRound;
use super::{
    AcquireParams, AcquireSpec, Entropy, Grant, Input, Lease, Machine, OneTarget, Output,
    TimeoutReason, replicas, wait_deadline,
};
use crate::error::{AcquireError, FailureKind, Refusal, RefusalKind};
use crate::name::FencingToken;
use crate::protocol::calls::{Target, Try};
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
    target: Target,
    pacing: Pacing,
    /// The newest fencing token known to have been granted for the target.
    newest_token: Option<FencingToken>,
    /// The parameters without those of the target.
    params: AcquireParams<()>,
    ids: Ids,
    clock: Option<ServerClock>,
    /// When the wait is over; `None` for a wait without a time limit.
    wait_deadline: Option<Instant>,
    backoff: Backoff,
    notifications: NotificationState,
    /// When the holder's lease ends: the next try is due then. Refusals set it for jittered pacing
    /// only, since spin locks and queues have times of their own; messages set it as well.
    holder_ends: Option<Instant>,
    /// The number of owners used, which is the number of the current one.
    owners: u32,
    current: OwnerRound,
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

/// The step after the end of a round.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Then {
    /// A new round, under a new owner.
    NewRound,
    /// The end of the acquisition.
    End(AcquireError),
}

impl Acquire {
    /// Starts at `now`. `clock` is Redis' clock, as last known. Without it, a round that starts
    /// before the first reply to a try has no bound (C3).
    pub fn new(
        spec: AcquireSpec,
        entropy: Entropy,
        clock: Option<ServerClock>,
        now: Instant,
    ) -> Self {
        let (OneTarget { target, pacing, newest_token }, params) = spec.split();
        let wait_deadline = wait_deadline(params.wait, now);
        let ids = Ids::new(entropy);
        let current = OwnerRound::new(ids.owner(1), clock, wait_deadline, now);
        let backoff = Backoff::new(pacing);
        let mut machine = Self {
            target,
            pacing,
            newest_token,
            params,
            ids,
            clock,
            wait_deadline,
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
        self.send_try_with_attempts(Self::attempts(self.budget_left()), now);
    }

    /// Sends a try. A last try has up to `attempts` attempts. Any other try has one attempt; after
    /// a failure the machine pauses and sends a new try.
    fn send_try_with_attempts(&mut self, attempts: u8, now: Instant) {
        let last = self.is_wait_over(now) || !self.affords_another();
        self.current.tries += 1;
        self.notifications.on_try(now);
        let lease = self.params.lease;
        let script = self.target.acquire(&Try {
            request: self.ids.request(),
            bound: self.current.bound,
            owner: self.current.owner,
            lease,
            last,
            number: self.current.tries,
            previous: self.current.previous_owner(),
            // A published grant is useful only if other clients wait. They do if competitors are
            // known, or if this machine was refused.
            announces: self.params.is_contended || self.notifications.has_topic(),
        });
        let attempts = if last { attempts } else { 1 };
        let mut attempt_time = self.params.attempt_time.within(lease);
        if let Some(over) = self.wait_deadline.filter(|_| !last) {
            // If this try is refused or fails after the end of the wait, the last try follows.
            attempt_time = attempt_time.min(now.until(over).max(OVERHANG));
        }
        let script = replicas::await_replicas(script, self.params.replicas, attempt_time);
        self.state = State::Requesting {
            request: RetriedCall::for_lease(script, attempts, attempt_time),
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
            CallOutcome::Refused(refusal) if self.target.is_queue_full(&refusal) => {
                self.end(AcquireError::QueueFull, now);
            }
            CallOutcome::Refused(refusal) => self.end(AcquireError::Refused(refusal), now),
            // The last try follows at once, in one attempt, since the gateway may be hanging.
            CallOutcome::GaveUp(_) if !last && self.is_wait_over(now) => {
                self.send_try_with_attempts(1, now);
            }
            CallOutcome::GaveUp(kind) if !last => {
                self.pause_after_failure(kind.retry_after(), now);
            }
            CallOutcome::GaveUp(kind) => self.end(AcquireError::Unreachable(kind), now),
        }
    }

    fn on_reply(&mut self, reply: &Reply, sent_at: Instant, last: bool, now: Instant) {
        self.clock = Some(ServerClock::new(reply.server_ms, now));
        self.current.on_code(reply.code);
        match reply.code {
            Code::Done | Code::AlreadyYours => self.on_granted(reply, sent_at, now),
            Code::No if self.target.is_absent(reply) => {
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
                self.target.learn(reply);
                self.pause(reply, now);
            }
            // The owner has a tombstone, so it needs no abandon. The budget has room for the last
            // try at least: it is reserved before any other try.
            Code::Gone => self.continue_with(Then::NewRound, now),
            // The next owner takes over the place, with a bound from the new reading of the clock.
            Code::Late if self.keeps_place(now) => self.continue_with_new_owner(now),
            // The bound came from an outdated reading of Redis' clock, and the reply brought a new
            // one: the first owner is replaced even if the wait is over. The round is open, since
            // an earlier try may have been granted before the bound.
            Code::Late if self.owners == 1 && self.affords_another() => {
                self.current.open = true;
                self.abandon(Then::NewRound, now);
            }
            Code::Late | Code::Lost => {
                self.current.open = true;
                self.end_round(AcquireError::TooSlow, now);
            }
            Code::TokenRange => {
                // No tombstone was written: Redis grants a delayed copy once the token is in its
                // range again.
                self.current.open = true;
                self.end(AcquireError::Refused(Refusal::new(RefusalKind::TokenRange, "")), now)
            }
            // Permits without a lease require a bound: without one, Redis does not execute the
            // request. So no abandon is needed. The reply brought the clock for a bound.
            Code::BoundRequired if self.current.bound.not_after.is_none() => {
                let affords_try = self.budget_left().is_none_or(|left| left > 0);
                let error = AcquireError::Unreachable(FailureKind::NO_ANSWER);
                let then = if affords_try { Then::NewRound } else { Then::End(error) };
                self.continue_with(then, now);
            }
            // A reply that this script cannot give: the request may have had any effect.
            _ => {
                self.current.open = true;
                self.end(AcquireError::Unreachable(FailureKind::NO_ANSWER), now);
            }
        }
    }

    /// Ends with the grant if the holder can rely on it; else abandons it.
    fn on_granted(&mut self, reply: &Reply, sent_at: Instant, now: Instant) {
        self.current.open = true;
        let lease = Lease::confirmed(self.params.lease, sent_at);
        let Some(token) = FencingToken::parse(&reply.value) else {
            return self.end(AcquireError::Unreachable(FailureKind::NO_ANSWER), now);
        };
        if let Some(error) = replicas::check(reply, self.params.replicas) {
            return self.end(error, now);
        }
        if let Some(newest) = self.newest_token.filter(|newest| token < *newest) {
            return self.end(AcquireError::TokenRegressed { newest: newest.as_u64() }, now);
        }
        if lease.remaining(now) < self.params.lease.validity_min() {
            return self.end_round(AcquireError::TooSlow, now);
        }
        let (owner, bound) = (self.current.owner, self.current.bound);
        self.state = State::Over(Ok(Grant { owner, token, lease, bound }));
    }

    fn is_wait_over(&self, now: Instant) -> bool {
        self.wait_deadline.is_some_and(|deadline| now.has_reached(deadline))
    }

    /// Whether two calls are left besides the reserved one: this try and a last one, or an abandon
    /// and a try of a new round.
    fn affords_another(&self) -> bool {
        self.budget_left().is_none_or(|left| left > 1)
    }
}

impl Machine for Acquire {
    type Outcome = Result<Grant, AcquireError>;

    fn handle(&mut self, input: Input, now: Instant) {
        if matches!(input, Input::Cancelled) {
            return self.on_cancelled(now);
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
                    CallOutcome::Replied(..) => self.continue_with(then, now),
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
