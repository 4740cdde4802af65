//! Applies the outcome of a request to its part.

use super::super::call::{CallOutcome, may_pass};
use super::super::{Lease, replicas};
use super::part::Part;
use super::terms::{Ask, PartStatus, SharedState};
use crate::error::{FailureKind, Refusal, RefusalKind};
use crate::name::FencingToken;
use crate::protocol::reply::{Code, Reply};
use crate::time::Instant;

const GARBLED: PartStatus = PartStatus::Unheard(FailureKind::NO_ANSWER);

impl Part {
    pub(super) fn asked(
        &mut self,
        outcome: CallOutcome,
        unsure: bool,
        ask: Ask,
        shared: &mut SharedState,
        now: Instant,
    ) {
        self.turn.open |= unsure;
        match outcome {
            CallOutcome::Answered(reply, sent_at) => {
                self.answered(&reply, sent_at, ask, shared, now)
            }
            CallOutcome::Refused(refusal) => {
                // A script that stops half-way is refused too. A script whose keys lie in several
                // slots does not start.
                let begun = matches!(refusal.kind(), RefusalKind::Other | RefusalKind::Unsupported)
                    && refusal.code() != "CROSSSLOT";
                self.turn.open |= begun || may_pass(refusal.kind());
                if refusal.kind().is_transient() {
                    self.unheard(PartStatus::Refused(refusal), unsure, now);
                } else {
                    self.status = PartStatus::Refused(refusal);
                    self.turn.spent = true;
                }
            }
            CallOutcome::GaveUp(kind) => self.unheard(PartStatus::Unheard(kind), unsure, now),
        }
    }

    /// Applies an outcome without a usable reply. A hold that was to be extended stays as it was,
    /// and a seat in a queue is kept.
    fn unheard(&mut self, status: PartStatus, unsure: bool, now: Instant) {
        if self.held(now).is_some() {
            return;
        }
        let was_held = matches!(self.status, PartStatus::Held { .. });
        self.turn.spent |= was_held || (unsure && !self.has_queue());
        self.status = status;
    }

    fn answered(
        &mut self,
        reply: &Reply,
        sent_at: Instant,
        ask: Ask,
        shared: &mut SharedState,
        now: Instant,
    ) {
        if reply.code != Code::Late {
            self.turn.previous = None;
        }
        match reply.code {
            Code::Done | Code::AlreadyYours => self.granted(reply, sent_at, shared, now),
            Code::No | Code::TooYoung | Code::Gone => self.busy(reply, ask),
            Code::Late if self.has_queue() && ask.again && !ask.last => {
                self.go_on(shared, now);
                self.ask(Ask { again: false, ..ask }, shared, now);
            }
            // Only the bound was wrong, and the reply has brought the clock for a better one.
            Code::Late if ask.again => {
                (self.turn.open, self.turn.spent, self.status) = (true, true, PartStatus::Idle);
                self.ask(Ask { again: false, ..ask }, shared, now);
            }
            Code::BoundRequired if ask.again && self.turn.bound.not_after.is_none() => {
                self.turn.spent = true;
                self.ask(Ask { again: false, ..ask }, shared, now);
            }
            // No tombstone was written: a copy would be granted once the token is in its range
            // again.
            Code::TokenRange => {
                let refusal = Refusal::new(RefusalKind::TokenRange, "");
                self.is_no_hold(PartStatus::Refused(refusal));
            }
            Code::Late | Code::Lost => self.is_no_hold(PartStatus::TooSlow),
            _ => self.is_no_hold(GARBLED),
        }
    }

    fn granted(&mut self, reply: &Reply, sent_at: Instant, shared: &SharedState, now: Instant) {
        let Some(token) = FencingToken::parse(&reply.value) else {
            return self.is_no_hold(GARBLED);
        };
        if let Some(error) = replicas::missing(reply, shared.replicas) {
            return self.is_no_hold(PartStatus::NotReplicated(error));
        }
        let confirmed = Lease::confirmed(shared.lease, sent_at);
        let lease = match self.status {
            PartStatus::Held { lease, .. } => lease.extended_by(&confirmed),
            _ => confirmed,
        };
        if lease.remaining(now).is_zero() {
            return self.is_no_hold(PartStatus::TooSlow);
        }
        self.turn.open = true;
        self.status = PartStatus::Held { lease, token };
    }

    fn busy(&mut self, reply: &Reply, ask: Ask) {
        // The tombstone is written: by this execution, or by an earlier one of the same last try.
        let ended = ask.last || reply.code == Code::Gone;
        (self.turn.open, self.turn.spent) = (!ended, ended);
        self.status = match reply.code {
            Code::TooYoung => PartStatus::Young { remaining: reply.remaining() },
            Code::Gone => PartStatus::Busy { remaining: None, told: None, topic: None },
            _ => {
                self.target.learn(reply);
                let told = reply.place_in_queue().filter(|_| self.target.has_queue());
                let topic = Some(self.target.topic(self.turn.owner, reply));
                PartStatus::Busy { remaining: reply.remaining(), told, topic }
            }
        };
    }

    /// Marks the part as spent: a hold may exist, but it must be undone.
    fn is_no_hold(&mut self, status: PartStatus) {
        (self.turn.open, self.turn.spent, self.status) = (true, true, status);
    }

    pub(super) fn raised(&mut self, outcome: &CallOutcome, lease: Lease, shared: &SharedState) {
        let token = match outcome {
            CallOutcome::Answered(reply, _) if reply.code == Code::Done => {
                // A failover would restore the earlier token.
                if let Some(error) = replicas::missing(reply, shared.replicas) {
                    return self.is_no_hold(PartStatus::NotReplicated(error));
                }
                FencingToken::parse(&reply.value)
            }
            // The node's clock is further behind than its last reply showed.
            CallOutcome::Answered(reply, _) if reply.code == Code::TokenAhead => {
                let refusal = Refusal::new(RefusalKind::TokenRange, "");
                return self.is_no_hold(PartStatus::Refused(refusal));
            }
            CallOutcome::Answered(..) => return self.is_no_hold(PartStatus::TooSlow),
            CallOutcome::Refused(refusal) => {
                return self
                    .is_no_hold(PartStatus::Unheard(FailureKind::RefusedLater(refusal.kind())));
            }
            CallOutcome::GaveUp(kind) => return self.is_no_hold(PartStatus::Unheard(*kind)),
        };
        match token {
            Some(token) => self.status = PartStatus::Held { lease, token },
            None => self.is_no_hold(GARBLED),
        }
    }
}
