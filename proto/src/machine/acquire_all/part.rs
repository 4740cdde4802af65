//! One part of a hold: tried, held and undone on its own, on its own gateway.
//!
//! ```text
//!   Resting ──ask──► Asking ──────────────► Resting (held, or refused)
//!      │ ▲             │ ▲
//!      │ └──Undoing◄───┘ │ a spent owner is undone before the next try
//!      └──undo──►└───────┘
//! ```
//!
//! At most one owner of a part is open at any time: a new one is created only when the end of the
//! last is confirmed. So one request undoes every earlier one.

use core::time::Duration;

use super::super::call::{CallOutcome, RetriedCall};
use super::super::{Grant, Input, Lease, Output, replicas};
use super::terms::{Ask, PartStatus, SharedState};
use super::turn::Turn;
use crate::error::FailureKind;
use crate::name::FencingToken;
use crate::protocol::calls::{Target, Try};
use crate::protocol::reply::ServerClock;
use crate::time::Instant;
use crate::timing::LeaseTime;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::machine) struct Part {
    pub(super) target: Target,
    clock: Option<ServerClock>,
    pub(super) turn: Turn,
    pub(super) status: PartStatus,
    state: State,
    /// The number of attempts left for the request under way.
    unsent: u8,
    /// Why the last undoing was not confirmed.
    trouble: Option<FailureKind>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum State {
    Resting,
    Asking {
        request: RetriedCall,
        ask: Ask,
    },
    /// Storing a larger token in a node that is held.
    Raising {
        request: RetriedCall,
        lease: Lease,
    },
    Undoing {
        request: RetriedCall,
        then: Option<Ask>,
    },
}

impl Part {
    pub(in crate::machine) fn new(
        target: Target,
        clock: Option<ServerClock>,
        shared: &mut SharedState,
        now: Instant,
    ) -> Self {
        Self {
            target,
            clock,
            turn: Turn::new(shared, clock, now),
            status: PartStatus::Idle,
            state: State::Resting,
            unsent: 0,
            trouble: None,
        }
    }

    pub(in crate::machine) const fn status(&self) -> &PartStatus {
        &self.status
    }

    pub(in crate::machine) const fn clock(&self) -> Option<ServerClock> {
        self.clock
    }

    pub(in crate::machine) const fn has_queue(&self) -> bool {
        self.target.has_queue()
    }

    /// The hold, until it is over.
    pub(in crate::machine) fn held(&self, now: Instant) -> Option<(Lease, FencingToken)> {
        match self.status {
            PartStatus::Held { lease, token } if !lease.remaining(now).is_zero() => {
                Some((lease, token))
            }
            _ => None,
        }
    }

    /// Whether it needs a try: it is not held, or its lease is due for renewal.
    pub(in crate::machine) fn needs(&self, now: Instant) -> bool {
        self.held(now).is_none_or(|(lease, _)| now.has_reached(lease.renew_at()))
    }

    /// Whether it was refused and its owner ended, although the part has a queue: no seat was kept.
    pub(in crate::machine) const fn was_turned_away(&self) -> bool {
        self.turn.spent && matches!(self.status, PartStatus::Busy { told: Some(_), .. })
    }

    /// Whether a reply is due that sets its status.
    pub(in crate::machine) const fn is_asked(&self) -> bool {
        matches!(
            self.state,
            State::Asking { .. } | State::Raising { .. } | State::Undoing { then: Some(_), .. }
        )
    }

    pub(in crate::machine) const fn is_resting(&self) -> bool {
        matches!(self.state, State::Resting)
    }

    /// Whether something may be held, or may still be granted, under its owner.
    pub(in crate::machine) const fn is_open(&self) -> bool {
        self.turn.open || matches!(self.state, State::Asking { .. })
    }

    /// Returns how long a hold may exist under its owner, and why that is not known; `None` if none
    /// may.
    pub(in crate::machine) fn unconfirmed(
        &self,
        lease: LeaseTime,
        now: Instant,
    ) -> Option<(Duration, FailureKind)> {
        let cause = self.trouble.unwrap_or(FailureKind::TimedOut);
        let held_at_most = || {
            self.turn.outstanding(lease).held_at_most(
                self.target.clock_allowance(),
                self.clock,
                now,
            )
        };
        self.turn.open.then(|| (held_at_most(), cause))
    }

    /// The number of calls that it may still need for the requests begun: their attempts, and one
    /// to undo.
    pub(in crate::machine) fn reserved_calls(&self) -> u32 {
        let asks = match &self.state {
            State::Undoing { then: Some(ask), .. } => u32::from(ask.attempts),
            _ => 0,
        };
        u32::from(self.unsent) + asks + u32::from(self.is_open() || asks > 0)
    }

    /// Returns the grant of the part. For a part that is not held, it contains the data to release
    /// it.
    pub(in crate::machine) fn grant(&self, shared: &SharedState, token: FencingToken) -> Grant {
        let (lease, token) = match self.status {
            PartStatus::Held { lease, token } => (lease, token),
            _ => (Lease::confirmed(shared.lease, self.turn.asked_at), token),
        };
        Grant { owner: self.turn.owner, token, lease, bound: self.turn.bound }
    }

    /// Sets the token to store with the next grant.
    pub(in crate::machine) fn propose(&mut self, token: Option<u64>) {
        if let Target::Lock(calls) = &mut self.target {
            calls.propose(token);
        }
    }

    /// Sends a try, or extends the hold.
    pub(in crate::machine) fn ask(&mut self, ask: Ask, shared: &mut SharedState, now: Instant) {
        if let State::Undoing { then, .. } = &mut self.state {
            *then = Some(ask);
            return;
        }
        if self.held(now).is_none() && self.turn.is_over(shared, now) {
            self.go_on(shared, now);
        }
        if self.turn.spent && self.turn.open {
            return self.undoing(Some(ask), ask.attempts, shared);
        }
        if self.turn.spent {
            self.turn = Turn::new(shared, self.clock, now);
        }
        self.turn.tries += 1;
        self.turn.asked_at = now;
        let script = self.target.acquire(&Try {
            request: shared.ids.request(),
            bound: self.turn.bound,
            owner: self.turn.owner,
            lease: shared.lease,
            last: ask.last,
            number: self.turn.tries,
            announces: ask.announces,
            previous: self.turn.previous.map(|(owner, _)| owner),
        });
        let script = replicas::awaiting(script, shared.replicas, ask.attempt_time);
        self.unsent = ask.attempts;
        let request = RetriedCall::leasing(script, ask.attempts, ask.attempt_time);
        self.state = State::Asking { request, ask };
    }

    /// Continues the wait under a new owner; in a queue it takes over the seat of the previous one.
    pub(super) fn go_on(&mut self, shared: &mut SharedState, now: Instant) {
        // While it is not known which of two owners has the seat, a third cannot take it over: both
        // are ended.
        if !self.has_queue() || self.turn.previous.is_some() {
            self.turn.spent = true;
            return;
        }
        let seated = (self.turn.owner, self.turn.outstanding(shared.lease));
        self.turn = Turn::new(shared, self.clock, now);
        (self.turn.previous, self.turn.open) = (Some(seated), true);
    }

    /// Stores `token` in a held node whose token is smaller.
    pub(in crate::machine) fn raise(&mut self, token: FencingToken, shared: &mut SharedState) {
        if let (Target::Lock(calls), PartStatus::Held { lease, .. }) = (&self.target, &self.status)
        {
            let (bound, owner, lease) = (self.turn.bound, self.turn.owner, *lease);
            let script = calls.raise(shared.ids.request(), bound, owner, token);
            let script = replicas::awaiting(script, shared.replicas, shared.attempt_time);
            self.unsent = 1;
            let request = RetriedCall::new(script, 1, shared.attempt_time);
            self.state = State::Raising { request, lease };
        }
    }

    /// Releases the part: ends its hold, and prevents grants that are still possible. Its next try
    /// has a new owner.
    pub(in crate::machine) fn undo(&mut self, attempts: u8, shared: &mut SharedState) {
        match &mut self.state {
            State::Undoing { then, .. } => *then = None,
            State::Asking { request, .. } => self.turn.open |= request.was_sent(),
            State::Resting | State::Raising { .. } => {}
        }
        if !matches!(self.state, State::Undoing { .. }) {
            self.undoing(None, attempts, shared);
        }
        self.status = PartStatus::Idle;
    }

    /// Releases the part if its owner is spent, and keeps its status.
    pub(in crate::machine) fn undo_if_spent(&mut self, attempts: u8, shared: &mut SharedState) {
        if self.turn.spent && self.is_resting() {
            self.undoing(None, attempts, shared);
        }
    }

    fn undoing(&mut self, then: Option<Ask>, attempts: u8, shared: &mut SharedState) {
        self.turn.spent = true;
        self.unsent = 0;
        self.state = State::Resting;
        if self.turn.open {
            let Turn { bound, owner, previous, .. } = self.turn;
            let previous = previous.map(|(owner, _)| owner);
            let script = self.target.abandon(shared.ids.request(), bound, owner, previous);
            self.unsent = attempts;
            let request = RetriedCall::undoing(script, attempts, shared.attempt_time);
            self.state = State::Undoing { request, then };
        }
    }

    pub(in crate::machine) fn handle(
        &mut self,
        input: Input,
        shared: &mut SharedState,
        now: Instant,
    ) {
        let request = match &mut self.state {
            State::Resting => return,
            State::Asking { request, .. }
            | State::Raising { request, .. }
            | State::Undoing { request, .. } => request,
        };
        let Some(outcome) = request.handle(input, now, &mut shared.ids) else { return };
        let unsure = request.is_unsure();
        self.unsent = 0;
        if let CallOutcome::Answered(reply, _) = &outcome {
            self.clock = Some(ServerClock::new(reply.server_ms, now));
        }
        match core::mem::replace(&mut self.state, State::Resting) {
            State::Asking { ask, .. } => self.asked(outcome, unsure, ask, shared, now),
            State::Raising { lease, .. } => self.raised(&outcome, lease, shared),
            State::Undoing { then, .. } => self.undone(&outcome, then, shared, now),
            State::Resting => {}
        }
    }

    /// Returns the next call or timeout; `None` if there is nothing to do.
    pub(in crate::machine) fn poll<T>(
        &mut self,
        shared: &mut SharedState,
        now: Instant,
    ) -> Option<Output<T>> {
        match &mut self.state {
            State::Resting => None,
            State::Asking { request, .. }
            | State::Raising { request, .. }
            | State::Undoing { request, .. } => {
                let output = request.poll(now, &mut shared.ids);
                if matches!(output, Output::Call { .. }) {
                    self.unsent = self.unsent.saturating_sub(1);
                }
                Some(output)
            }
        }
    }

    fn undone(
        &mut self,
        outcome: &CallOutcome,
        then: Option<Ask>,
        shared: &mut SharedState,
        now: Instant,
    ) {
        self.trouble = match outcome {
            CallOutcome::Answered(..) => {
                self.turn.open = false;
                None
            }
            CallOutcome::Refused(refusal) => Some(FailureKind::RefusedLater(refusal.kind())),
            CallOutcome::GaveUp(kind) => Some(*kind),
        };
        match (then, self.trouble) {
            (Some(ask), None) => self.ask(ask, shared, now),
            (Some(_), Some(kind)) => self.status = PartStatus::Unheard(kind),
            (None, _) => {}
        }
    }
}
