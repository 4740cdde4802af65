//! Applies the outcome of a request to its part.

use super::super::call::{CallOutcome, may_pass};
use super::super::{Lease, replicas};
use super::part::Part;
use super::terms::{PartStatus, SharedState, TryOptions};
use crate::error::{FailureKind, Refusal, RefusalKind};
use crate::name::FencingToken;
use crate::protocol::reply::{Code, Reply};
use crate::time::Instant;

const GARBLED: PartStatus = PartStatus::NoReply(FailureKind::NO_ANSWER);

impl Part {
    pub(super) fn on_outcome(
        &mut self,
        outcome: CallOutcome,
        unsure: bool,
        options: TryOptions,
        shared: &mut SharedState,
        now: Instant,
    ) {
        self.current.open |= unsure;
        match outcome {
            CallOutcome::Replied(reply, sent_at) => {
                self.on_reply(&reply, sent_at, options, shared, now)
            }
            CallOutcome::Refused(refusal) => {
                // A script that stops half-way is refused too. A script whose keys lie in several
                // slots does not start.
                let begun = matches!(refusal.kind(), RefusalKind::Other | RefusalKind::Unsupported)
                    && refusal.code() != "CROSSSLOT";
                self.current.open |= begun || may_pass(refusal.kind());
                if refusal.kind().is_transient() {
                    self.on_no_reply(PartStatus::Refused(refusal), unsure, now);
                } else {
                    self.status = PartStatus::Refused(refusal);
                    self.spent = true;
                }
            }
            CallOutcome::GaveUp(kind) => self.on_no_reply(PartStatus::NoReply(kind), unsure, now),
        }
    }

    /// Applies an outcome without a usable reply. A hold that was to be extended stays as it was,
    /// and a seat in a queue is kept.
    fn on_no_reply(&mut self, status: PartStatus, unsure: bool, now: Instant) {
        if self.held(now).is_some() {
            return;
        }
        let was_held = matches!(self.status, PartStatus::Held { .. });
        self.spent |= was_held || (unsure && !self.has_queue());
        self.status = status;
    }

    fn on_reply(
        &mut self,
        reply: &Reply,
        sent_at: Instant,
        options: TryOptions,
        shared: &mut SharedState,
        now: Instant,
    ) {
        if reply.code != Code::Late {
            self.current.previous = None;
        }
        match reply.code {
            Code::Done | Code::AlreadyYours => self.granted(reply, sent_at, shared, now),
            Code::No | Code::TooYoung | Code::Gone => self.busy(reply, options),
            Code::Late if self.has_queue() && options.again && !options.last => {
                self.continue_with_new_owner(shared, now);
                self.send_try(TryOptions { again: false, ..options }, shared, now);
            }
            // Only the bound was wrong, and the reply has brought the clock for a better one.
            Code::Late if options.again => {
                (self.current.open, self.spent, self.status) = (true, true, PartStatus::Idle);
                self.send_try(TryOptions { again: false, ..options }, shared, now);
            }
            Code::BoundRequired if options.again && self.current.bound.not_after.is_none() => {
                self.spent = true;
                self.send_try(TryOptions { again: false, ..options }, shared, now);
            }
            // No tombstone was written: a copy would be granted once the token is in its range
            // again.
            Code::TokenRange => {
                let refusal = Refusal::new(RefusalKind::TokenRange, "");
                self.mark_spent(PartStatus::Refused(refusal));
            }
            Code::Late | Code::Lost => self.mark_spent(PartStatus::TooSlow),
            _ => self.mark_spent(GARBLED),
        }
    }

    fn granted(&mut self, reply: &Reply, sent_at: Instant, shared: &SharedState, now: Instant) {
        let Some(token) = FencingToken::parse(&reply.value) else {
            return self.mark_spent(GARBLED);
        };
        if let Some(error) = replicas::missing(reply, shared.replicas) {
            return self.mark_spent(PartStatus::NotReplicated(error));
        }
        let confirmed = Lease::confirmed(shared.lease, sent_at);
        let lease = match self.status {
            PartStatus::Held { lease, .. } => lease.extended_by(&confirmed),
            _ => confirmed,
        };
        if lease.remaining(now).is_zero() {
            return self.mark_spent(PartStatus::TooSlow);
        }
        self.current.open = true;
        self.status = PartStatus::Held { lease, token };
    }

    fn busy(&mut self, reply: &Reply, options: TryOptions) {
        // The tombstone is written: by this execution, or by an earlier one of the same last try.
        let ended = options.last || reply.code == Code::Gone;
        (self.current.open, self.spent) = (!ended, ended);
        self.status = match reply.code {
            Code::TooYoung => PartStatus::Young { remaining: reply.remaining() },
            Code::Gone => PartStatus::Busy { remaining: None, queue_hint: None, topic: None },
            _ => {
                self.target.learn(reply);
                let queue_hint = reply.place_in_queue().filter(|_| self.target.has_queue());
                let topic = Some(self.target.topic(self.current.owner, reply));
                PartStatus::Busy { remaining: reply.remaining(), queue_hint, topic }
            }
        };
    }

    /// Marks the part as spent: a hold may exist, but it must be undone.
    fn mark_spent(&mut self, status: PartStatus) {
        (self.current.open, self.spent, self.status) = (true, true, status);
    }

    pub(super) fn on_raised(&mut self, outcome: &CallOutcome, lease: Lease, shared: &SharedState) {
        let token = match outcome {
            CallOutcome::Replied(reply, _) if reply.code == Code::Done => {
                // A failover would restore the earlier token.
                if let Some(error) = replicas::missing(reply, shared.replicas) {
                    return self.mark_spent(PartStatus::NotReplicated(error));
                }
                FencingToken::parse(&reply.value)
            }
            // The node's clock is further behind than its last reply showed.
            CallOutcome::Replied(reply, _) if reply.code == Code::TokenAhead => {
                let refusal = Refusal::new(RefusalKind::TokenRange, "");
                return self.mark_spent(PartStatus::Refused(refusal));
            }
            CallOutcome::Replied(..) => return self.mark_spent(PartStatus::TooSlow),
            CallOutcome::Refused(refusal) => {
                return self
                    .mark_spent(PartStatus::NoReply(FailureKind::RefusedLater(refusal.kind())));
            }
            CallOutcome::GaveUp(kind) => return self.mark_spent(PartStatus::NoReply(*kind)),
        };
        match token {
            Some(token) => self.status = PartStatus::Held { lease, token },
            None => self.mark_spent(GARBLED),
        }
    }
}
