//! One logical request with its attempts.

use core::time::Duration;

use super::backoff::{Backoff, Pacing};
use super::ids::Ids;
use super::{CallId, Endpoint, Input, Output, TimeoutReason};
use crate::error::{FailureKind, Refusal, RefusalKind};
use crate::protocol::reply::Reply;
use crate::protocol::script::ScriptCall;
use crate::time::Instant;

/// A call that is retried until it has a reply or no attempt is left. The attempts share one
/// request id, so Redis recognizes a repetition; with `fresh_request_ids` each attempt has its own.
///
/// The script must be idempotent, as all scripts of this crate are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct RetriedCall {
    script: ScriptCall,
    attempts_left: u8,
    attempt_time: Duration,
    backoff: Backoff,
    state: State,
    /// Whether each attempt has its own request id, because the reply must belong to that attempt.
    fresh_request_ids: bool,
    /// Whether an attempt ended without a reply, so that it may have been executed.
    unsure: bool,
    /// Whether an attempt was refused for a reason that may pass, and another one followed. A copy
    /// of it may have been executed before, or may be later.
    was_refused: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum State {
    Ready,
    Sent { call: CallId, sent_at: Instant },
    Pausing { until: Instant },
    Over,
}

/// The outcome of a call.
#[derive(Debug)]
pub(super) enum CallOutcome {
    /// A reply, with the time at which its attempt was sent.
    Replied(Reply, Instant),
    /// The gateway or Redis refused it.
    Refused(Refusal),
    /// No attempt got a reply.
    GaveUp(FailureKind),
}

impl RetriedCall {
    pub(super) const fn new(script: ScriptCall, attempts: u8, attempt_time: Duration) -> Self {
        let backoff = Backoff::new(Pacing::Jittered);
        Self {
            script,
            attempts_left: attempts,
            attempt_time,
            backoff,
            state: State::Ready,
            fresh_request_ids: false,
            unsure: false,
            was_refused: false,
        }
    }

    /// Creates a call whose reply begins a lease. The lease counts from the sending of the attempt
    /// with the reply, so each attempt has its own request id: a reply to an earlier attempt, which
    /// a gateway may deliver for it, does not count.
    pub(super) fn for_lease(script: ScriptCall, attempts: u8, attempt_time: Duration) -> Self {
        Self { fresh_request_ids: true, ..Self::new(script, attempts, attempt_time) }
    }

    /// Creates a call that ends or undoes a hold, or cancels an operation: its attempts are further
    /// apart.
    pub(super) fn for_undoing(script: ScriptCall, attempts: u8, attempt_time: Duration) -> Self {
        Self { backoff: Backoff::for_undoing(), ..Self::new(script, attempts, attempt_time) }
    }

    /// Whether an attempt without a reply may have been executed.
    pub(super) const fn is_unsure(&self) -> bool {
        self.unsure
    }

    /// Whether an attempt that has not brought the outcome, or a copy of it, may have been executed
    /// or may be later.
    pub(super) const fn may_be_executed(&self) -> bool {
        self.unsure || self.was_refused
    }

    /// Whether an attempt was sent, with or without a reply.
    pub(super) const fn was_sent(&self) -> bool {
        self.may_be_executed() || matches!(self.state, State::Sent { .. })
    }

    /// Returns the next output; never `Done`.
    pub(super) fn poll<T>(&mut self, now: Instant, ids: &mut Ids) -> Output<T> {
        match self.state {
            State::Ready => {
                let call = ids.call();
                self.attempts_left = self.attempts_left.saturating_sub(1);
                self.state = State::Sent { call, sent_at: now };
                Output::Call { call, to: Endpoint::ONLY, script: self.script.clone() }
            }
            State::Sent { sent_at, .. } => {
                Output::Timeout { until: sent_at + self.attempt_time, why: TimeoutReason::ReplyDue }
            }
            State::Pausing { until } => Output::Timeout { until, why: TimeoutReason::BackOff },
            State::Over => Output::Timeout { until: now, why: TimeoutReason::ReplyDue },
        }
    }

    /// Handles an input, and returns the outcome if there is one.
    pub(super) fn handle(
        &mut self,
        input: Input,
        now: Instant,
        ids: &mut Ids,
    ) -> Option<CallOutcome> {
        let sent = match self.state {
            State::Sent { call, sent_at } => Some((call, sent_at)),
            State::Pausing { until } if now.has_reached(until) => {
                if self.fresh_request_ids {
                    self.script.set_request_id(ids.request());
                }
                self.state = State::Ready;
                None
            }
            State::Ready | State::Pausing { .. } | State::Over => None,
        };
        let (sent, sent_at) = sent?;
        match input {
            Input::Reply { call, reply } if call == sent => {
                self.state = State::Over;
                Some(CallOutcome::Replied(reply, sent_at))
            }
            Input::Refused { call, refusal } if call == sent => self.on_refused(refusal, now, ids),
            Input::Failed { call, kind } if call == sent => self.on_failed(kind, now, ids),
            // Any input may arrive after the time for this attempt.
            _ if now.has_reached(sent_at + self.attempt_time) => {
                self.on_failed(FailureKind::TimedOut, now, ids)
            }
            _ => None,
        }
    }

    fn on_refused(&mut self, refusal: Refusal, now: Instant, ids: &mut Ids) -> Option<CallOutcome> {
        let is_transient = refusal.kind() == RefusalKind::Unavailable;
        let retries = is_transient && self.start_pause(None, now, ids);
        self.was_refused |= retries;
        if retries { None } else { self.end(CallOutcome::Refused(refusal)) }
    }

    fn on_failed(&mut self, kind: FailureKind, now: Instant, ids: &mut Ids) -> Option<CallOutcome> {
        self.unsure |= kind != FailureKind::NotSent;
        let retries = self.start_pause(kind.retry_after(), now, ids);
        if retries { None } else { self.end(CallOutcome::GaveUp(kind)) }
    }

    fn end(&mut self, outcome: CallOutcome) -> Option<CallOutcome> {
        self.state = State::Over;
        Some(outcome)
    }

    /// Starts the pause before the next attempt; returns `false` if no attempt is left. The pause
    /// is at least the gateway's `Retry-After`, but not longer than an attempt for that, since a
    /// lease may depend on this call.
    fn start_pause(&mut self, retry_after: Option<Duration>, now: Instant, ids: &mut Ids) -> bool {
        if self.attempts_left == 0 {
            return false;
        }
        let retry_after = retry_after.unwrap_or_default().min(self.attempt_time);
        let pause = self.backoff.next(Duration::ZERO, ids).max(retry_after);
        self.state = State::Pausing { until: now + pause };
        true
    }
}

/// Whether a refused acquisition may have been granted all the same, or may be granted later.
///
/// Redis also returns an error if a script fails after its first writes, and a gateway if `WAIT`
/// fails after the script. `CROSSSLOT` comes before a script starts.
pub(super) fn may_be_granted(refusal: &Refusal) -> bool {
    match refusal.kind() {
        RefusalKind::Other | RefusalKind::Unsupported => refusal.code() != "CROSSSLOT",
        kind => may_be_executed_later(kind),
    }
}

/// Whether a request that was refused for this reason may be executed a little later, as may a copy
/// that is still on its way.
pub(super) const fn may_be_executed_later(kind: RefusalKind) -> bool {
    matches!(kind, RefusalKind::Unavailable | RefusalKind::OutOfMemory)
}
