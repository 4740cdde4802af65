//! Operations: each runs a machine, or waits for another operation of its owner or hold.

use alloc::vec::Vec;

use super::acquisition::{Acquisition, CANCELLED};
use super::runner::{MachineOutcome, Runner};
use super::schedule::RenewalSchedule;
use super::subscription::WaiterRef;
use super::waiters::RetryOutcome;
use super::{Context, EndpointId, Engine, Event, HoldId, Key, LeaseEnd, OpId, ScopeId};
use crate::error::{AcquireError, FailureKind, LossReason, ReleaseError, RequestError};
use crate::machine::{CallId, Endpoint, Input, Output, Released, TimeoutReason};
use crate::protocol::calls::Topic;
use crate::protocol::reply::Reply;
use crate::protocol::script::ScriptCall;
use crate::time::Instant;
use crate::timing::LeaseTime;

/// The outcome of an operation.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// Of an acquisition.
    Acquired(Result<HoldId, AcquireError>),
    /// Of a wait for a latch.
    Opened(Result<(), AcquireError>),
    /// Of a query or of an idempotent call: the reply, and whether an attempt before the one with
    /// the reply may have been executed.
    Replied(Result<Reply, RequestError>, bool),
    /// Of a renewal.
    Renewed(Result<(), RequestError>),
    /// Of a query whether a hold still exists.
    IsHeld(Result<bool, RequestError>),
    /// Of a release.
    Released(Result<Released, ReleaseError>),
    /// Of the renewals of a hold until its end.
    Ended(HoldId, LeaseEnd),
    /// Of the watch over a hold.
    Lost(LossReason),
}

#[derive(Clone, Debug)]
pub(super) struct Operation {
    pub(super) scope: ScopeId,
    pub(super) task: Task,
    /// The machine; `None` while the operation waits for another one, and while its machine is
    /// polled.
    pub(super) runner: Option<Runner>,
    /// The gateways, by the endpoint indices of the machine.
    pub(super) endpoints: Vec<EndpointId>,
    /// The calls under way: the machine's endpoint and id of each, and its entry among the
    /// engine's calls.
    calls: Vec<(usize, CallId, Key)>,
    pub(super) waiter_ref: Option<WaiterRef>,
    /// The topic that the machine has requested a subscription to.
    wanted_topic: Option<(EndpointId, Topic)>,
    /// Whether a request of it was sent.
    pub(super) has_sent: bool,
    /// Whether its machine has waited for anything but a reply.
    pub(super) has_waited: bool,
    /// When the last call was sent.
    sent_at: Instant,
    /// Changed by [`Engine::set_deadline`], and removed with the outcome.
    pub(super) deadline: Option<(Instant, TimeoutReason)>,
    /// The number of its leaf in the tree of deadlines, until it has an outcome.
    pub(super) leaf: Option<u32>,
    /// Whether the caller no longer waits for the outcome.
    pub(super) is_detached: bool,
    outcome: Option<Outcome>,
}

/// The purpose of an operation.
#[derive(Clone, Debug)]
pub(super) enum Task {
    Acquire(Acquisition),
    AwaitLatch,
    Request,
    Renew { hold: HoldId, lease: Option<LeaseTime>, at: Instant },
    QueryHold(HoldId),
    Release(HoldId),
    Keep { hold: HoldId, schedule: RenewalSchedule },
    Watch(HoldId),
}

impl Operation {
    pub(super) const fn new(scope: ScopeId, task: Task, now: Instant) -> Self {
        Self {
            scope,
            task,
            runner: None,
            endpoints: Vec::new(),
            calls: Vec::new(),
            waiter_ref: None,
            wanted_topic: None,
            has_sent: false,
            has_waited: false,
            sent_at: now,
            deadline: None,
            leaf: None,
            is_detached: false,
            outcome: None,
        }
    }

    /// Whether it has an outcome.
    pub(super) const fn is_over(&self) -> bool {
        self.outcome.is_some()
    }
}

impl Engine {
    /// Cancels an acquisition or a wait: it undoes what it has begun, and ends. Other operations
    /// ignore it.
    pub fn cancel(&mut self, op: OpId, cx: &mut Context<'_>) {
        self.inputs.push_back((op, Input::Cancelled));
        self.settle(cx);
    }

    /// Takes the outcome of an operation that has ended, and forgets the operation.
    pub fn take_outcome(&mut self, op: OpId) -> Option<Outcome> {
        self.ops.get(op.0)?.outcome.as_ref()?;
        self.ops.remove(op.0)?.outcome
    }

    /// Whether an operation exists: it was not taken, and not removed.
    pub fn has(&self, op: OpId) -> bool {
        self.ops.get(op.0).is_some()
    }

    /// Whether an operation has an outcome, or does not exist.
    pub fn is_over(&self, op: OpId) -> bool {
        self.ops.get(op.0).is_none_or(Operation::is_over)
    }

    /// Gives up the outcome of an operation. An acquisition is undone, and its hold is released if
    /// it was granted; a release goes on; every other operation ends at once.
    pub fn detach(&mut self, op: OpId, cx: &mut Context<'_>) {
        let Some(operation) = self.ops.get_mut(op.0) else { return };
        operation.is_detached = true;
        match (operation.outcome.take(), &operation.task) {
            (Some(outcome), _) => self.discard(op, &outcome, cx),
            (None, Task::Acquire(_)) if operation.has_sent => {
                self.inputs.push_back((op, Input::Cancelled));
            }
            (None, Task::Release(_)) => {}
            (None, _) => self.remove(op),
        }
        self.settle(cx);
    }

    /// Removes an operation at once, whatever it has begun.
    pub fn abandon(&mut self, op: OpId, cx: &mut Context<'_>) {
        self.remove(op);
        self.settle(cx);
    }

    /// Runs a machine for an operation.
    pub(super) fn run(
        &mut self,
        op: OpId,
        runner: Runner,
        endpoints: Vec<EndpointId>,
        cx: &mut Context<'_>,
    ) {
        if let Some(operation) = self.ops.get_mut(op.0) {
            operation.endpoints = endpoints;
            operation.sent_at = cx.now;
        }
        self.advance(op, runner, cx);
    }

    /// Passes an input to the machine of an operation.
    pub(super) fn on_input(&mut self, op: OpId, input: Input, cx: &mut Context<'_>) {
        let Some(operation) = self.ops.get_mut(op.0).filter(|op| !op.is_over()) else { return };
        match operation.runner.take() {
            // Nothing has left the client, so there is nothing to undo.
            Some(Runner::Acquire(_) | Runner::AcquireAll(_) | Runner::AcquireQuorum(_))
                if matches!(input, Input::Cancelled) && !operation.has_sent =>
            {
                self.stop(op, false);
                self.end_acquisition(op, Err(CANCELLED), cx);
            }
            Some(mut runner) => {
                self.sync(op, &mut runner);
                runner.handle(input, cx.now);
                self.sync(op, &mut runner);
                self.advance(op, runner, cx);
            }
            None => self.on_input_without_machine(op, &input, cx),
        }
    }

    /// Polls the machine of an operation until it waits or ends.
    fn advance(&mut self, op: OpId, mut runner: Runner, cx: &mut Context<'_>) {
        loop {
            match runner.poll(cx.now) {
                Output::Call { call, to, script } => self.call(op, (call, to), script, cx.now),
                Output::Subscribe { to: Endpoint(to), topic } => {
                    self.unsubscribe(op);
                    let Some(operation) = self.ops.get_mut(op.0) else { return };
                    let wanted = operation.endpoints.get(to).map(|to| (*to, topic));
                    if core::mem::replace(&mut operation.wanted_topic, wanted).is_none() {
                        self.events.push_back(Event::Waiting(op));
                    }
                }
                Output::Timeout { until, why } => {
                    self.wait(op, why, cx);
                    let Some(operation) = self.ops.get_mut(op.0) else { return };
                    operation.runner = Some(runner);
                    operation.has_waited |= why != TimeoutReason::ReplyDue;
                    let scope = operation.scope;
                    self.set_deadline(op, Some((until, why)));
                    return self.wake(scope);
                }
                Output::Done(outcome) => {
                    self.stop(op, outcome.is_served());
                    return self.machine_ended(op, outcome, cx);
                }
            }
        }
    }

    /// Sends a call in place of one that is under way to the same gateway.
    fn call(
        &mut self,
        op: OpId,
        (id, Endpoint(index)): (CallId, Endpoint),
        script: ScriptCall,
        now: Instant,
    ) {
        let Some(operation) = self.ops.get_mut(op.0) else { return };
        operation.sent_at = now;
        let (scope, waiter_ref) = (operation.scope, operation.waiter_ref);
        let (replaced, kept): (Vec<_>, _) =
            operation.calls.iter().copied().partition(|(other, ..)| *other == index);
        operation.calls = kept;
        let to = operation.endpoints.get(index).copied();
        replaced.into_iter().for_each(|(.., key)| self.drop_call(key));
        if let Some((waiters, waiter)) = self.waiters_of(waiter_ref) {
            waiters.on_sent(waiter);
        }
        let Some(to) = to else { return };
        if let Some(key) = self.begin_call((op, scope), (id, to), script, now)
            && let Some(operation) = self.ops.get_mut(op.0)
        {
            operation.calls.push((index, id, key));
        }
    }

    /// Updates the subscription of an operation whose machine waits.
    fn wait(&mut self, op: OpId, why: TimeoutReason, cx: &mut Context<'_>) {
        let Some(waiter_ref) = self.ops.get(op.0).map(|op| op.waiter_ref) else { return };
        if let Some((waiters, waiter)) = self.waiters_of(waiter_ref) {
            waiters.on_timeout_set(waiter, why);
        }
        if why == TimeoutReason::LastTry {
            // A waiter with nothing left but its last attempt leaves messages to other waiters.
            return self.unsubscribe(op);
        }
        if why == TimeoutReason::ReplyDue || waiter_ref.is_some() {
            return;
        }
        self.subscribe_operation(op, cx);
    }

    /// Subscribes an operation to the topic that its machine wants.
    fn subscribe_operation(&mut self, op: OpId, cx: &mut Context<'_>) {
        let Some(operation) = self.ops.get_mut(op.0) else { return };
        let (scope, sent_at) = (operation.scope, operation.sent_at);
        let Some(wanted) = operation.wanted_topic.take() else { return };
        let waiter_ref = self.subscribe((op, scope), &wanted, sent_at, cx);
        if let Some(operation) = self.ops.get_mut(op.0) {
            (operation.waiter_ref, operation.wanted_topic) = (waiter_ref, Some(wanted));
        }
    }

    /// Subscribes the operation whose last poll of this gateway is the oldest, since another
    /// subscription has ended. Otherwise a fair lock's waiter could reach the head of the queue
    /// while it polls, and every waiter behind it would wait for its next poll.
    pub(super) fn subscribe_next(&mut self, endpoint: EndpointId, cx: &mut Context<'_>) {
        if !self.endpoint(endpoint).is_some_and(|endpoint| endpoint.may_have_pollers) {
            return;
        }
        let polls = |operation: &Operation| {
            let wants = operation.wanted_topic.as_ref().is_some_and(|(to, _)| *to == endpoint);
            let pauses = operation.deadline.is_some_and(|(_, why)| {
                !matches!(why, TimeoutReason::ReplyDue | TimeoutReason::LastTry)
            });
            wants && pauses && operation.waiter_ref.is_none() && !operation.is_over()
        };
        let mut oldest: Option<(Key, &Operation)> = None;
        for other in self.ops.iter().filter(|(_, operation)| polls(operation)) {
            if oldest.is_none_or(|(_, oldest)| oldest.sent_at.is_later(other.1.sent_at)) {
                oldest = Some(other);
            }
        }
        let oldest = oldest.map(|(key, _)| OpId(key));
        if let Some(endpoint) = self.endpoint_mut(endpoint) {
            endpoint.may_have_pollers = oldest.is_some();
        }
        if let Some(oldest) = oldest {
            self.subscribe_operation(oldest, cx);
        }
    }

    /// Ends the calls and the subscription of an operation.
    fn stop(&mut self, op: OpId, is_served: bool) {
        self.set_deadline(op, None);
        let Some(operation) = self.ops.get_mut(op.0) else { return };
        let (calls, waiter_ref) = (core::mem::take(&mut operation.calls), operation.waiter_ref);
        calls.into_iter().for_each(|(.., key)| self.drop_call(key));
        // A waiter that was woken and did not acquire passes the message on when it leaves.
        if is_served && let Some((waiters, waiter)) = self.waiters_of(waiter_ref) {
            waiters.on_retry_outcome(waiter, RetryOutcome::Acquired);
        }
        self.unsubscribe(op);
    }

    fn machine_ended(&mut self, op: OpId, outcome: MachineOutcome, cx: &mut Context<'_>) {
        match outcome {
            MachineOutcome::Granted(granted) => self.on_acquire_done(op, granted, cx),
            MachineOutcome::Opened(opened) => {
                self.finish_or_discard(op, Outcome::Opened(opened), cx)
            }
            MachineOutcome::Replied(reply, unsure) => {
                self.finish_or_discard(op, Outcome::Replied(reply, unsure), cx);
            }
            MachineOutcome::Renewed(outcomes) => self.renewals_ended(op, outcomes, cx),
            MachineOutcome::AllReplied(replies) => self.hold_queried(op, replies, cx),
            MachineOutcome::Released(released, token) => self.released(op, released, token, cx),
            MachineOutcome::Kept(loss) => self.keep_ended(op, loss, cx),
        }
    }

    /// Ends an operation.
    pub(super) fn finish_or_discard(&mut self, op: OpId, outcome: Outcome, cx: &mut Context<'_>) {
        match self.ops.get(op.0) {
            Some(operation) if operation.is_detached => self.discard(op, &outcome, cx),
            _ => self.finish(op, outcome),
        }
    }

    pub(super) fn finish(&mut self, op: OpId, outcome: Outcome) {
        if let Some(operation) = self.ops.get_mut(op.0) {
            operation.outcome = Some(outcome);
            operation.deadline = None;
            let (scope, leaf) = (operation.scope, operation.leaf.take());
            self.deadlines.remove(scope, leaf);
            self.events.push_back(Event::Finished(op));
            // Its driver may have nothing left to do.
            self.wake(scope);
        }
    }

    /// Takes an operation out of the engine.
    fn take(&mut self, op: OpId) -> Option<Operation> {
        let operation = self.ops.remove(op.0)?;
        self.deadlines.remove(operation.scope, operation.leaf);
        self.wake(operation.scope);
        Some(operation)
    }

    /// Drops an outcome that no caller waits for. A hold is released, since no caller has its id.
    fn discard(&mut self, op: OpId, outcome: &Outcome, cx: &mut Context<'_>) {
        let Some(operation) = self.take(op) else { return };
        if let Outcome::Acquired(Ok(hold)) = outcome {
            self.release_unclaimed(operation.scope, *hold, cx);
        }
    }

    fn remove(&mut self, op: OpId) {
        self.stop(op, false);
        let Some(operation) = self.take(op) else { return };
        match operation.task {
            Task::Acquire(acquisition) => self.unregister(&acquisition, None),
            Task::Release(hold) => {
                if operation.runner.is_some()
                    && let Some(held) = self.holds.get_mut(hold.0)
                {
                    held.end_release(None);
                }
                self.stop_observing(hold, op);
                self.changed.push(hold);
            }
            Task::Keep { hold, .. } | Task::Watch(hold) => self.stop_observing(hold, op),
            Task::AwaitLatch | Task::Request | Task::Renew { .. } | Task::QueryHold(_) => {}
        }
    }
}

/// The error of a request that got no reply.
pub(super) const NO_REPLY: RequestError = RequestError::Unreachable(FailureKind::NO_ANSWER);

#[cfg(test)]
mod tests;
