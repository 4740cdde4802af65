//! Keeps a hold until its end: renews it in time, and watches its lease.

use alloc::vec::Vec;

use super::hold::Hold;
use super::operation::{Outcome, Task};
use super::runner::Runner;
use super::{Context, Engine, HoldId, LeaseEnd, OpId, ScopeId};
use crate::error::LossReason;
use crate::machine::{Entropy, Grant, QuorumLease, Renewal, TimeoutReason};

impl Engine {
    /// Renews a hold in time until it ends.
    pub fn keep(&mut self, scope: ScopeId, id: HoldId, cx: &mut Context<'_>) -> OpId {
        let schedule = self.hold(id).map(|hold| hold.schedule);
        let Some(schedule) = schedule else {
            let op = self.insert(scope, Task::Watch(id), cx);
            self.finish(op, Outcome::Ended(id, LeaseEnd::Lost(LossReason::Gone)));
            return op;
        };
        let op = self.insert(scope, Task::Keep { hold: id, schedule }, cx);
        if let Some(hold) = self.holds.get_mut(id.0) {
            hold.observers.push(op);
        }
        self.begin_keep(op, id, cx);
        self.settle(cx);
        op
    }

    /// Waits until the first renewal is due or the lease ends. Most holds are released before that,
    /// so the machines of the renewals are created only when they are due.
    pub(super) fn begin_keep(&mut self, op: OpId, id: HoldId, cx: &mut Context<'_>) {
        let Some(hold) = self.holds.get_mut(id.0) else { return };
        if hold.expire_if_due(cx.now) {
            self.changed.push(id);
        }
        if hold.is_over() {
            let end = hold.end();
            return self.kept(op, id, end, cx);
        }
        let (schedule, due) = (hold.schedule, hold.renewal_due());
        let ends = (hold.lease().expires_at(), TimeoutReason::LeaseEnds);
        let deadline = due.map_or(ends, |due| (due, TimeoutReason::RenewalDue));
        let Some(operation) = self.ops.get_mut(op.0) else { return };
        operation.task = Task::Keep { hold: id, schedule };
        let scope = operation.scope;
        self.set_deadline(op, Some(deadline));
        if due.is_some_and(|due| cx.now.has_reached(due)) {
            self.start_renewals(op, id, cx);
        } else {
            self.wake(scope);
        }
    }

    /// Starts the renewals of a hold by its present schedule.
    fn start_renewals(&mut self, op: OpId, id: HoldId, cx: &mut Context<'_>) {
        let Some(hold) = self.holds.get_mut(id.0) else { return };
        let (schedule, quorum) = (hold.schedule, hold.quorum);
        let (mut renewals, mut endpoints) = (Vec::new(), Vec::new());
        for part in hold.counting_parts() {
            // Without entropy a renewal has no request id; the lease is then only watched.
            let entropy = if schedule.renews { cx.draw() } else { None };
            let renews = entropy.is_some();
            let entropy = entropy.unwrap_or(Entropy::new([0; 32]));
            let Some(endpoint) = self.endpoints.get(part.endpoint) else { continue };
            let (attempt, clock) = (endpoint.gateway.attempt(), endpoint.clock());
            let lease = part.grant.lease.renewed_for(schedule.lease);
            let (target, grant) = (part.target.clone(), Grant { lease, ..part.grant.clone() });
            let renewal = Renewal::new(target, grant, renews, attempt, entropy, clock);
            renewals.push(renewal.with_end(schedule.ends_at));
            endpoints.push(part.endpoint);
        }
        let mut keeping = QuorumLease::new(renewals, quorum);
        hold.sync(&mut keeping);
        self.run(op, Runner::Keep(keeping.into()), endpoints, cx);
    }

    /// Exchanges state with the renewals of a hold.
    pub(super) fn sync(&mut self, op: OpId, runner: &mut Runner) {
        let Runner::Keep(keeping) = runner else { return };
        let Some(Task::Keep { hold: id, .. }) = self.ops.get(op.0).map(|op| &op.task) else {
            return;
        };
        let id = *id;
        if self.holds.get_mut(id.0).is_some_and(|hold| hold.sync(keeping)) {
            self.changed.push(id);
        }
    }

    /// Handles the end of renewals: by a loss, by a release, or by another schedule.
    pub(super) fn keep_ended(&mut self, op: OpId, loss: Option<LossReason>, cx: &mut Context<'_>) {
        let Some(Task::Keep { hold: id, .. }) = self.ops.get(op.0).map(|op| &op.task) else {
            return;
        };
        let id = *id;
        if let (Some(reason), Some(hold)) = (loss, self.holds.get_mut(id.0)) {
            hold.lose(reason);
            self.changed.push(id);
        }
        match self.hold(id).map(Hold::end) {
            // A renewal on demand has changed the schedule.
            Some(None) => self.begin_keep(op, id, cx),
            Some(end) => self.kept(op, id, end, cx),
            None => self.kept(op, id, None, cx),
        }
    }

    fn kept(&mut self, op: OpId, id: HoldId, end: Option<LeaseEnd>, cx: &mut Context<'_>) {
        self.stop_observing(id, op);
        let end = end.unwrap_or(LeaseEnd::Lost(LossReason::Gone));
        self.finish_or_discard(op, Outcome::Ended(id, end), cx);
    }

    /// Ends when a hold is lost, at its expiry at the latest; never after a release.
    pub fn watch_hold(&mut self, scope: ScopeId, id: HoldId, cx: &mut Context<'_>) -> OpId {
        let op = self.insert(scope, Task::Watch(id), cx);
        if let Some(hold) = self.holds.get_mut(id.0) {
            hold.observers.push(op);
        }
        self.watch(op, id, cx);
        self.settle(cx);
        op
    }

    pub(super) fn watch(&mut self, op: OpId, id: HoldId, cx: &mut Context<'_>) {
        let mut deadline = None;
        if let Some(hold) = self.holds.get_mut(id.0) {
            if hold.expire_if_due(cx.now) {
                self.changed.push(id);
            }
            match hold.end() {
                Some(LeaseEnd::Lost(reason)) => {
                    self.stop_observing(id, op);
                    return self.finish_or_discard(op, Outcome::Lost(reason), cx);
                }
                Some(LeaseEnd::Released) => {}
                None => deadline = Some((hold.lease().expires_at(), TimeoutReason::LeaseEnds)),
            }
        }
        self.set_deadline(op, deadline);
        if let Some(operation) = self.ops.get(op.0) {
            self.wake(operation.scope);
        }
    }
}
