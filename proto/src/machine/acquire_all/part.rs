//! One part of a hold: one object on one gateway, tried, held and undone independently of the
//! others. For a quorum, a part is one node.
//!
//! ```text
//!   Quiescent ──try──► Requesting ────────► Quiescent (held, or refused)
//!      │ ▲             │ ▲
//!      │ └──Undoing◄───┘ │
//!      └──undo──►└───────┘ a try that finds its owner spent waits for this undoing
//! ```
//!
//! An owner is *open* while Redis may store a hold of it, or may still grant one. At most one owner
//! of a part is open: a new one begins only when the end of the last is confirmed. The exception is
//! a place in a queue, which a new owner takes over; [`OwnerRound::previous`] then records the
//! second open owner. So one request can undo everything that the part has sent.

use core::time::Duration;

use super::super::call::{CallOutcome, RetriedCall};
use super::super::owner_round::OwnerRound;
use super::super::{Grant, Input, Lease, Output, replicas};
use super::terms::{PartStatus, SharedState, TryOptions};
use crate::error::FailureKind;
use crate::name::FencingToken;
use crate::protocol::calls::{Target, Try};
use crate::protocol::reply::ServerClock;
use crate::time::Instant;
use crate::timing::LeaseTime;

/// One part: its target, its current owner, and the request under way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::machine) struct Part {
    pub(super) target: Target,
    /// The clock of the part's Redis, from its last reply.
    clock: Option<ServerClock>,
    pub(super) current: OwnerRound,
    /// Whether no more tries may be sent with the current owner: it has ended, or has to be undone.
    pub(super) spent: bool,
    /// When the last try was sent.
    tried_at: Instant,
    pub(super) status: PartStatus,
    state: State,
    /// The number of calls that the request under way may still make.
    attempts_left: u8,
    /// Why the last undoing was not confirmed; `None` if it was, or if there was none.
    undo_failure: Option<FailureKind>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum State {
    Quiescent,
    /// A try, or the extension of a hold.
    Requesting {
        request: RetriedCall,
        options: TryOptions,
    },
    /// Storing a larger token under the hold of a quorum's node.
    Raising {
        request: RetriedCall,
        lease: Lease,
    },
    /// Ending the owner; when that is confirmed, the try with these options follows.
    Undoing {
        request: RetriedCall,
        then: Option<TryOptions>,
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
            current: shared.next_round(clock, now),
            spent: false,
            tried_at: now,
            status: PartStatus::Idle,
            state: State::Quiescent,
            attempts_left: 0,
            undo_failure: None,
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

    /// The lease and the token of the hold; `None` when the lease has expired, whatever the status.
    pub(in crate::machine) fn held(&self, now: Instant) -> Option<(Lease, FencingToken)> {
        match self.status {
            PartStatus::Held { lease, token } if !lease.remaining(now).is_zero() => {
                Some((lease, token))
            }
            _ => None,
        }
    }

    /// Whether it needs a try: it is not held, or its lease is due for renewal.
    pub(in crate::machine) fn needs_try(&self, now: Instant) -> bool {
        self.held(now).is_none_or(|(lease, _)| now.has_reached(lease.renew_at()))
    }

    /// Whether a last try was refused by a queue: the script has ended the owner, so it has no
    /// place in the queue.
    pub(in crate::machine) const fn was_refused_without_place(&self) -> bool {
        self.spent && matches!(self.status, PartStatus::Busy { queue_hint: Some(_), .. })
    }

    /// Whether a reply is due that sets its status. An undoing without a following try does not
    /// count: the machine continues without waiting for it.
    pub(in crate::machine) const fn awaits_reply(&self) -> bool {
        matches!(
            self.state,
            State::Requesting { .. } | State::Raising { .. } | State::Undoing { then: Some(_), .. }
        )
    }

    pub(in crate::machine) const fn is_quiescent(&self) -> bool {
        matches!(self.state, State::Quiescent)
    }

    /// Whether its owner is open: Redis may store a hold of it, or may still grant one.
    pub(in crate::machine) const fn is_open(&self) -> bool {
        self.current.open || matches!(self.state, State::Requesting { .. })
    }

    /// Returns the longest time for which a hold may still exist under its owner, and the failure
    /// that left its end unconfirmed; `None` if the owner is not open.
    pub(in crate::machine) fn unconfirmed(
        &self,
        lease: LeaseTime,
        now: Instant,
    ) -> Option<(Duration, FailureKind)> {
        let cause = self.undo_failure.unwrap_or(FailureKind::TimedOut);
        let held_at_most = || {
            self.current.outstanding(lease).held_at_most(
                self.target.clock_allowance(),
                self.clock,
                now,
            )
        };
        self.current.open.then(|| (held_at_most(), cause))
    }

    /// The number of calls to reserve for what has begun: the attempts left of the request under
    /// way, those of the try that follows it, and one to undo an open owner.
    pub(in crate::machine) fn reserved_calls(&self) -> u32 {
        let planned = match &self.state {
            State::Undoing { then: Some(options), .. } => u32::from(options.attempts),
            _ => 0,
        };
        u32::from(self.attempts_left) + planned + u32::from(self.is_open() || planned > 0)
    }

    /// Returns the grant of the part. For a part that is not held, it contains the owner and bound
    /// to release it by, `token`, and a lease from the last try: the latest that a copy may have
    /// got.
    pub(in crate::machine) fn grant(&self, shared: &SharedState, token: FencingToken) -> Grant {
        let (lease, token) = match self.status {
            PartStatus::Held { lease, token } => (lease, token),
            _ => (Lease::confirmed(shared.lease, self.tried_at), token),
        };
        Grant { owner: self.current.owner, token, lease, bound: self.current.bound }
    }

    /// Sets the token that a quorum asks each node to store with its next grant; `None` lets the
    /// node mint its own.
    pub(in crate::machine) fn propose(&mut self, token: Option<u64>) {
        if let Target::Lock(calls) = &mut self.target {
            calls.propose(token);
        }
    }

    /// Sends a try, which extends the hold if the part is held. While an undoing is under way, or
    /// if the owner is spent and open, the try follows the undoing.
    pub(in crate::machine) fn send_try(
        &mut self,
        options: TryOptions,
        shared: &mut SharedState,
        now: Instant,
    ) {
        if let State::Undoing { then, .. } = &mut self.state {
            *then = Some(options);
            return;
        }
        if self.held(now).is_none() && self.is_round_over(shared, now) {
            self.continue_with_new_owner(shared, now);
        }
        if self.spent && self.current.open {
            return self.start_undo(Some(options), options.attempts, shared);
        }
        if self.spent {
            self.start_round(shared, now);
        }
        self.current.tries += 1;
        self.tried_at = now;
        let script = self.target.acquire(&Try {
            request: shared.ids.request(),
            bound: self.current.bound,
            owner: self.current.owner,
            lease: shared.lease,
            last: options.last,
            number: self.current.tries,
            announces: options.announces,
            previous: self.current.previous_owner(),
        });
        let script = replicas::await_replicas(script, shared.replicas, options.attempt_time);
        self.attempts_left = options.attempts;
        let request = RetriedCall::for_lease(script, options.attempts, options.attempt_time);
        self.state = State::Requesting { request, options };
    }

    /// Ends the use of the current owner. In a queue, a new owner takes over its place; otherwise
    /// the owner is spent, and `send_try` undoes it and begins a new one.
    pub(super) fn continue_with_new_owner(&mut self, shared: &mut SharedState, now: Instant) {
        // While it is unknown which of two owners has the place, a third cannot take it over: the
        // undoing ends both.
        if !self.has_queue() || self.current.previous.is_some() {
            self.spent = true;
            return;
        }
        let next = shared.next_round(self.clock, now);
        self.current.continue_as(next, shared.lease);
        self.spent = false;
    }

    /// Replaces an owner that has ended by a new one, which has sent nothing yet.
    fn start_round(&mut self, shared: &mut SharedState, now: Instant) {
        (self.current, self.spent) = (shared.next_round(self.clock, now), false);
    }

    /// Whether the wait has outlasted the current owner: its requests share one bound (rule C8),
    /// and a longer wait needs a later one.
    fn is_round_over(&self, shared: &SharedState, now: Instant) -> bool {
        let OwnerRound { open, ends_at, .. } = self.current;
        open && !self.spent && now.has_reached(ends_at) && !shared.is_wait_over(now)
    }

    /// Stores `token` under the hold of a node whose token is smaller, so that a majority stores
    /// the same one.
    pub(in crate::machine) fn raise(&mut self, token: FencingToken, shared: &mut SharedState) {
        if let (Target::Lock(calls), PartStatus::Held { lease, .. }) = (&self.target, &self.status)
        {
            let (bound, owner, lease) = (self.current.bound, self.current.owner, *lease);
            let script = calls.raise(shared.ids.request(), bound, owner, token);
            let script = replicas::await_replicas(script, shared.replicas, shared.attempt_time);
            self.attempts_left = 1;
            let request = RetriedCall::new(script, 1, shared.attempt_time);
            self.state = State::Raising { request, lease };
        }
    }

    /// Releases the part, with up to `attempts` calls: ends its hold, and prevents grants that are
    /// still possible. Its status is then `Idle`, and its next try has a new owner. Cancels a try
    /// that was to follow an undoing.
    pub(in crate::machine) fn undo(&mut self, attempts: u8, shared: &mut SharedState) {
        match &mut self.state {
            State::Undoing { then, .. } => *then = None,
            State::Requesting { request, .. } => self.current.open |= request.was_sent(),
            State::Quiescent | State::Raising { .. } => {}
        }
        if !matches!(self.state, State::Undoing { .. }) {
            self.start_undo(None, attempts, shared);
        }
        self.status = PartStatus::Idle;
    }

    /// Undoes an owner that is spent, and keeps the status, so that the part remains the awaited
    /// one.
    pub(in crate::machine) fn undo_if_spent(&mut self, attempts: u8, shared: &mut SharedState) {
        if self.spent && self.is_quiescent() {
            self.start_undo(None, attempts, shared);
        }
    }

    /// Marks the owner as spent, and ends it if it is open.
    fn start_undo(&mut self, then: Option<TryOptions>, attempts: u8, shared: &mut SharedState) {
        self.spent = true;
        self.attempts_left = 0;
        self.state = State::Quiescent;
        if self.current.open {
            let OwnerRound { bound, owner, .. } = self.current;
            let previous = self.current.previous_owner();
            let script = self.target.abandon(shared.ids.request(), bound, owner, previous);
            self.attempts_left = attempts;
            let request = RetriedCall::for_undoing(script, attempts, shared.attempt_time);
            self.state = State::Undoing { request, then };
        }
    }

    /// Handles an input of the request under way; ignores all others.
    pub(in crate::machine) fn handle(
        &mut self,
        input: Input,
        shared: &mut SharedState,
        now: Instant,
    ) {
        let request = match &mut self.state {
            State::Quiescent => return,
            State::Requesting { request, .. }
            | State::Raising { request, .. }
            | State::Undoing { request, .. } => request,
        };
        let Some(outcome) = request.handle(input, now, &mut shared.ids) else { return };
        let unsure = request.may_be_executed();
        self.attempts_left = 0;
        if let CallOutcome::Replied(reply, _) = &outcome {
            self.clock = Some(ServerClock::new(reply.server_ms, now));
        }
        match core::mem::replace(&mut self.state, State::Quiescent) {
            State::Requesting { options, .. } => {
                self.on_outcome(outcome, unsure, options, shared, now)
            }
            State::Raising { lease, .. } => self.on_raised(&outcome, lease, shared),
            State::Undoing { then, .. } => self.on_undone(&outcome, then, shared, now),
            State::Quiescent => {}
        }
    }

    /// Returns the next call or timeout; `None` if there is nothing to do.
    pub(in crate::machine) fn poll<T>(
        &mut self,
        shared: &mut SharedState,
        now: Instant,
    ) -> Option<Output<T>> {
        match &mut self.state {
            State::Quiescent => None,
            State::Requesting { request, .. }
            | State::Raising { request, .. }
            | State::Undoing { request, .. } => {
                let output = request.poll(now, &mut shared.ids);
                if matches!(output, Output::Call { .. }) {
                    self.attempts_left = self.attempts_left.saturating_sub(1);
                }
                Some(output)
            }
        }
    }

    /// Applies the outcome of an undoing. A try that was to follow is sent only if the end of the
    /// owner is confirmed.
    fn on_undone(
        &mut self,
        outcome: &CallOutcome,
        then: Option<TryOptions>,
        shared: &mut SharedState,
        now: Instant,
    ) {
        self.undo_failure = match outcome {
            CallOutcome::Replied(..) => {
                self.current.open = false;
                None
            }
            CallOutcome::Refused(refusal) => Some(FailureKind::RefusedLater(refusal.kind())),
            CallOutcome::GaveUp(kind) => Some(*kind),
        };
        match (then, self.undo_failure) {
            (Some(options), None) => self.send_try(options, shared, now),
            (Some(_), Some(kind)) => self.status = PartStatus::NoReply(kind),
            (None, _) => {}
        }
    }
}
