//! Applies the outcome of a try, or of a raise of the token, to the part that sent it. The outcome
//! of an undoing is in `part.rs`.

use super::super::call::{CallOutcome, may_be_granted};
use super::super::{Lease, replicas};
use super::part::Part;
use super::terms::{PartStatus, SharedState, TryOptions};
use crate::error::{FailureKind, Refusal, RefusalKind};
use crate::name::FencingToken;
use crate::protocol::reply::{Code, Reply};
use crate::time::Instant;

/// The status after a reply with a code or token that its script cannot return: the outcome is as
/// unknown as without a reply.
const GARBLED: PartStatus = PartStatus::NoReply(FailureKind::NO_ANSWER);

impl Part {
    /// Applies the outcome of a try. `unsure` says that Redis may have executed an attempt of it
    /// that has not brought the outcome, or may still do so: the owner is then open.
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
                self.current.open |= may_be_granted(&refusal);
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

    /// Applies an outcome without a usable reply. A valid hold that the try was to extend stays as
    /// it was. An owner that may have been granted is spent, since its hold would block other
    /// clients during the pause; but a waiter in a queue keeps its owner, which has its place
    /// there.
    fn on_no_reply(&mut self, status: PartStatus, unsure: bool, now: Instant) {
        if self.held(now).is_some() {
            return;
        }
        let was_held = matches!(self.status, PartStatus::Held { .. });
        self.spent |= was_held || (unsure && !self.has_queue());
        self.status = status;
    }

    /// Applies the reply to a try.
    fn on_reply(
        &mut self,
        reply: &Reply,
        sent_at: Instant,
        options: TryOptions,
        shared: &mut SharedState,
        now: Instant,
    ) {
        self.current.on_code(reply.code);
        match reply.code {
            Code::Done | Code::AlreadyYours => self.granted(reply, sent_at, shared, now),
            Code::No | Code::TooYoung | Code::Gone => self.busy(reply, options),
            // A new owner, with a later bound, takes over the place in the queue.
            Code::Late if self.has_queue() && options.again && !options.last => {
                self.continue_with_new_owner(shared, now);
                self.send_try(TryOptions { again: false, ..options }, shared, now);
            }
            // The try failed only because of its bound. Its reply has set the clock, from which the
            // next owner gets a later bound.
            Code::Late if options.again => {
                (self.current.open, self.spent, self.status) = (true, true, PartStatus::Idle);
                self.send_try(TryOptions { again: false, ..options }, shared, now);
            }
            // The script needs a bound, and this owner has none, since Redis' clock was unknown.
            // The reply has set the clock, and the next owner gets a bound.
            Code::BoundRequired if options.again && self.current.bound.not_after.is_none() => {
                self.spent = true;
                self.send_try(TryOptions { again: false, ..options }, shared, now);
            }
            // The script wrote no tombstone, so without an undoing a late copy of this try would be
            // granted once the token key allows a grant again.
            Code::TokenRange => {
                let refusal = Refusal::new(RefusalKind::TokenRange, "");
                self.mark_spent(PartStatus::Refused(refusal));
            }
            Code::Late | Code::Lost => self.mark_spent(PartStatus::TooSlow),
            _ => self.mark_spent(GARBLED),
        }
    }

    /// Applies a grant, or the confirmation of one, which extends the lease of a held part. A grant
    /// that is of no use is undone: too few replicas, or no lease left.
    fn granted(&mut self, reply: &Reply, sent_at: Instant, shared: &SharedState, now: Instant) {
        let Some(token) = FencingToken::parse(&reply.value) else {
            return self.mark_spent(GARBLED);
        };
        if let Some(error) = replicas::check(reply, shared.replicas) {
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

    /// Applies a refusal. The owner of a last try has ended; any other owner goes on.
    fn busy(&mut self, reply: &Reply, options: TryOptions) {
        // A last try that is refused writes its owner's tombstone. `Gone` says that an earlier
        // execution of this try has already written it.
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

    /// Sets the status and marks the owner as spent and open: a hold may exist under it, which the
    /// part undoes before its next try.
    fn mark_spent(&mut self, status: PartStatus) {
        (self.current.open, self.spent, self.status) = (true, true, status);
    }

    /// Applies the outcome of [`raise`](Part::raise). `lease` is that of the hold: a raise does not
    /// extend it. Without `Done`, the token that the node stores is unknown or too small for the
    /// quorum, so the owner is spent.
    pub(super) fn on_raised(&mut self, outcome: &CallOutcome, lease: Lease, shared: &SharedState) {
        let token = match outcome {
            CallOutcome::Replied(reply, _) if reply.code == Code::Done => {
                // A failover to a replica without the new token would restore the earlier one.
                if let Some(error) = replicas::check(reply, shared.replicas) {
                    return self.mark_spent(PartStatus::NotReplicated(error));
                }
                FencingToken::parse(&reply.value)
            }
            // The machine raises only to a token that the node should accept by the clock of its
            // last reply. The clock is further behind than that.
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
