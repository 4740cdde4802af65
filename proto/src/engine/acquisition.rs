//! Acquisitions of locks of any kind. Acquisitions of one lock by one owner run one after the
//! other.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use super::hold::Hold;
use super::hold_part::Part;
use super::operation::{Outcome, Task};
use super::owner::Registration;
use super::runner::Runner;
use super::spec::{Members, targets};
use super::{
    AcquirePolicy, Context, EndpointId, Engine, HoldId, LockSpec, MemberSpec, OpId, OwnerHandle,
};
use crate::error::{AcquireError, FailureKind};
use crate::machine::{
    Acquire, AcquireAll, AcquireParams, AcquireQuorum, AllTargets, Input, MultiGrantPart,
    OneTarget, QuorumNodes, TimeoutReason, wait_deadline,
};
use crate::protocol::calls::Target;
use crate::protocol::reply::ServerClock;
use crate::time::Instant;
use crate::timing::LeaseTime;

/// The longest time for which granted members are kept while another member is busy: the lesser of
/// this and a quarter of the lease.
const KEPT_MAX: Duration = Duration::from_secs(1);
/// The error of an acquisition that was cancelled before anything was sent.
pub(super) const CANCELLED: AcquireError = AcquireError::Cancelled { held_at_most: None };

/// The parameters of an acquisition of several targets, and the clocks of their gateways.
type MultiParams<T> = (AcquireParams<T>, Vec<Option<ServerClock>>);

#[derive(Clone, Debug)]
pub(super) struct Acquisition {
    lock: Arc<LockSpec>,
    policy: AcquirePolicy,
    owner: Option<OwnerHandle>,
    /// When a timed wait is over.
    wait_deadline: Option<Instant>,
    /// Whether its owner has registered it as the acquisition of this lock that is in progress. The
    /// owner's other acquisitions of the lock wait for its end.
    is_registered: bool,
    /// The owner's hold of the write side, if this acquisition is for the read side.
    writer: Option<HoldId>,
    /// The targets of the machine, part by part.
    targets: Vec<(EndpointId, Target)>,
    /// Whether the members of each slot of a cluster form a part of their own.
    by_slot: bool,
}

impl Acquisition {
    pub(super) fn new(
        lock: Arc<LockSpec>,
        policy: AcquirePolicy,
        owner: Option<OwnerHandle>,
        now: Instant,
    ) -> Self {
        Self {
            lock,
            policy,
            owner,
            wait_deadline: wait_deadline(policy.wait, now),
            is_registered: false,
            writer: None,
            targets: Vec::new(),
            by_slot: false,
        }
    }

    /// Lets a machine that begins now wait for the rest of the time.
    fn shorten_wait(&mut self, now: Instant) {
        let left = self.wait_deadline.map(|deadline| now.until(deadline));
        self.policy = self.policy.with_wait_left(left);
    }
}

impl Engine {
    fn acquisition(&mut self, op: OpId) -> Option<&mut Acquisition> {
        match &mut self.ops.get_mut(op.0)?.task {
            Task::Acquire(acquisition) => Some(acquisition),
            _ => None,
        }
    }

    /// Begins an acquisition, or lets it wait for another one of its owner.
    pub(super) fn begin_acquisition(&mut self, op: OpId, cx: &mut Context<'_>) {
        let Some(acquisition) = self.acquisition(op) else { return };
        let (lock, wait_deadline) = (Arc::clone(&acquisition.lock), acquisition.wait_deadline);
        let Some(handle) = acquisition.owner else { return self.begin_machine(op, cx) };
        let Some(owner) = self.owners.get_mut(handle.0) else { return self.begin_machine(op, cx) };
        match owner.register(&lock.key, lock.reenters, &mut self.holds, cx.now) {
            Registration::Shared(hold) => {
                self.finish_or_discard(op, Outcome::Acquired(Ok(hold)), cx);
            }
            Registration::Rejected(error) => {
                self.finish_or_discard(op, Outcome::Acquired(Err(error)), cx);
            }
            Registration::InProgress => {
                owner.waiting.push(op);
                let deadline = wait_deadline.map(|until| (until, TimeoutReason::WaitOver));
                self.set_deadline(op, deadline);
            }
            Registration::Proceed(writer) => {
                if let Some(acquisition) = self.acquisition(op) {
                    acquisition.shorten_wait(cx.now);
                    (acquisition.is_registered, acquisition.writer) = (true, writer);
                }
                self.begin_machine(op, cx);
            }
        }
    }

    /// Handles an input of an operation without a machine: of an acquisition that waits for another
    /// one of its owner, or of one that keeps or watches a hold.
    pub(super) fn on_input_without_machine(
        &mut self,
        op: OpId,
        input: &Input,
        cx: &mut Context<'_>,
    ) {
        let Some(operation) = self.ops.get_mut(op.0) else { return };
        match &operation.task {
            Task::Acquire(acquisition) => {
                let is_over =
                    acquisition.wait_deadline.is_some_and(|deadline| cx.now.has_reached(deadline));
                let error = match input {
                    Input::Cancelled => CANCELLED,
                    Input::Timeout if is_over => AcquireError::Busy { remaining: None },
                    _ => return,
                };
                let owner = acquisition.owner;
                if let Some(owner) = owner.and_then(|owner| self.owners.get_mut(owner.0)) {
                    owner.waiting.retain(|other| *other != op);
                }
                self.finish_or_discard(op, Outcome::Acquired(Err(error)), cx);
            }
            Task::Watch(hold) => {
                let hold = *hold;
                self.watch(op, hold, cx);
            }
            Task::Keep { hold, .. } => {
                let hold = *hold;
                self.begin_keep(op, hold, cx);
            }
            _ => {}
        }
    }

    /// Starts the machine of an acquisition. All of its gateways exist: the caller of
    /// [`Engine::remove_endpoint`] removes none that an operation uses.
    fn begin_machine(&mut self, op: OpId, cx: &mut Context<'_>) {
        let Some(acquisition) = self.acquisition(op) else { return };
        let Acquisition { lock, policy, writer, by_slot, .. } = acquisition.clone();
        let Some(entropy) = cx.draw() else {
            return self.end_acquisition(op, Err(AcquireError::NoEntropy), cx);
        };
        let lease = lock.lease_policy(policy.hold).lease;
        let keep_time = KEPT_MAX.min(lease.get() / 4);
        let (targets, runner) = match &lock.members {
            Members::One(MemberSpec { endpoint: to, target, pacing }) => {
                let writer = writer.and_then(|writer| self.holds.get(writer.0)?.parts.first());
                let target = match writer {
                    Some(part) => target.clone().nested_in_write(part.grant.owner),
                    None => target.clone(),
                };
                let Some(endpoint) = self.endpoint_mut(*to) else { return };
                let is_contended = endpoint.is_contended(&target, cx.now);
                let newest_token = endpoint.rollback.newest_token(&target);
                let one = OneTarget { target: target.clone(), pacing: *pacing, newest_token };
                let params = policy.params(one, lease, endpoint.gateway.attempt(), is_contended);
                let machine = Acquire::new(params, entropy, endpoint.clock(), cx.now);
                ([(*to, target)].into(), Runner::Acquire(machine.into()))
            }
            Members::All(members) => {
                let is_cluster = |member: &MemberSpec| {
                    self.endpoint(member.endpoint).is_some_and(|endpoint| endpoint.is_cluster)
                };
                let by_slot = by_slot || members.iter().any(is_cluster);
                let parts = self.combine_into_parts(members, by_slot);
                let newest_token = |part: &MemberSpec| {
                    self.endpoint(part.endpoint)?.rollback.newest_token(&part.target)
                };
                let all = AllTargets {
                    parts: parts.iter().map(|part| part.target.clone()).collect(),
                    keep_time,
                    pacing: parts.iter().map(|part| part.pacing).collect(),
                    newest_tokens: parts.iter().map(newest_token).collect(),
                };
                let targets: Vec<_> =
                    parts.into_iter().map(|part| (part.endpoint, part.target)).collect();
                let Some((params, clocks)) =
                    self.multi_params(&targets, all, policy, lease, cx.now)
                else {
                    return;
                };
                if let Some(acquisition) = self.acquisition(op) {
                    acquisition.by_slot = by_slot;
                }
                let machine = AcquireAll::new(params, entropy, clocks, cx.now);
                (targets, Runner::AcquireAll(machine.into()))
            }
            Members::Majority(members) => {
                let parts = members.iter().map(|(_, calls)| calls.clone()).collect();
                let nodes = QuorumNodes { parts, keep_time };
                let targets: Vec<_> = targets(members).collect();
                let Some((params, clocks)) =
                    self.multi_params(&targets, nodes, policy, lease, cx.now)
                else {
                    return;
                };
                let machine = AcquireQuorum::new(params, entropy, clocks, cx.now);
                (targets, Runner::AcquireQuorum(machine.into()))
            }
        };
        let endpoints = targets.iter().map(|(endpoint, _)| *endpoint).collect();
        if let Some(acquisition) = self.acquisition(op) {
            acquisition.targets = targets;
        }
        self.run(op, runner, endpoints, cx);
    }

    /// Returns the parameters of an acquisition of several targets, and the clocks of their
    /// gateways; `None` without a target or its gateway.
    fn multi_params<T>(
        &mut self,
        targets: &[(EndpointId, Target)],
        all: T,
        policy: AcquirePolicy,
        lease: LeaseTime,
        now: Instant,
    ) -> Option<MultiParams<T>> {
        let (first, _) = targets.first()?;
        let attempt = self.endpoint(*first)?.gateway.attempt();
        let is_contended = targets.iter().any(|(to, target)| {
            self.endpoint_mut(*to).is_some_and(|endpoint| endpoint.is_contended(target, now))
        });
        let clock = |(to, _): &(EndpointId, Target)| self.endpoint(*to)?.clock();
        let clocks = targets.iter().map(clock).collect();
        Some((policy.params(all, lease, attempt, is_contended), clocks))
    }

    /// Handles the outcome of an acquisition's machine: ends the acquisition, or starts another
    /// machine if a cluster could not execute one script for all. A grant has one part for each
    /// target.
    pub(super) fn on_acquire_done(
        &mut self,
        op: OpId,
        outcome: Result<Vec<MultiGrantPart>, AcquireError>,
        cx: &mut Context<'_>,
    ) {
        let Some(acquisition) = self.acquisition(op) else { return };
        let targets = core::mem::take(&mut acquisition.targets);
        let members = &acquisition.lock.members;
        match outcome {
            Ok(grants) => {
                let count = targets.len();
                let quorum =
                    if matches!(members, Members::Majority(_)) { count / 2 + 1 } else { count };
                let mut parts = Vec::with_capacity(count);
                for ((to, target), MultiGrantPart { grant, counts }) in
                    targets.into_iter().zip(grants)
                {
                    parts.push(Part::new(to, target, grant, counts));
                }
                self.end_acquisition(op, Ok((parts, quorum)), cx);
            }
            // Redis has executed nothing: it is a cluster, so the members of each slot form a part
            // of their own.
            Err(AcquireError::Refused(refusal))
                if refusal.code() == "CROSSSLOT"
                    && matches!(members, Members::All(_))
                    && !acquisition.by_slot =>
            {
                acquisition.by_slot = true;
                acquisition.shorten_wait(cx.now);
                for (to, _) in targets {
                    if let Some(endpoint) = self.endpoint_mut(to) {
                        endpoint.is_cluster = true;
                    }
                }
                self.begin_machine(op, cx);
            }
            Err(error) => self.end_acquisition(op, Err(error), cx),
        }
    }

    /// Creates the hold of an acquisition, or its error, and ends its registration with the owner.
    pub(super) fn end_acquisition(
        &mut self,
        op: OpId,
        granted: Result<(Vec<Part>, usize), AcquireError>,
        cx: &mut Context<'_>,
    ) {
        let Some(acquisition) = self.acquisition(op).map(|acquisition| acquisition.clone()) else {
            return;
        };
        let lock = &acquisition.lock;
        let hold = granted.and_then(|(parts, quorum)| {
            // The nodes of a quorum store one token, which may be ahead of a node's own clock. Its
            // next token would then look older than it is.
            if !matches!(lock.members, Members::Majority(_)) {
                for Part { endpoint, target, grant, .. } in &parts {
                    if let Some(endpoint) = self.endpoint_mut(*endpoint) {
                        endpoint.rollback.on_grant(target, grant.token);
                    }
                }
            }
            let has_waited = self.ops.get(op.0).is_some_and(|operation| operation.has_waited);
            Hold::new(parts, quorum, lock.lease_policy(acquisition.policy.hold), has_waited)
        });
        let hold = hold.map_err(|error| self.refine_unknown(lock, error));
        let id = hold.map(|hold| HoldId(self.holds.insert(hold)));
        self.unregister(&acquisition, id.as_ref().ok().copied());
        self.finish_or_discard(op, Outcome::Acquired(id), cx);
    }

    /// Replaces an unknown outcome by [`AcquireError::Unreachable`] if the address has only sent
    /// web pages: it is no gateway, so nothing was executed there.
    fn refine_unknown(&self, lock: &LockSpec, error: AcquireError) -> AcquireError {
        let may_be_gateway =
            |id: EndpointId| self.endpoint(id).is_some_and(|endpoint| endpoint.may_be_gateway);
        match error {
            AcquireError::Unknown { cause: cause @ FailureKind::WebPage { .. }, .. }
                if !lock.endpoints().into_iter().any(may_be_gateway) =>
            {
                AcquireError::Unreachable(cause)
            }
            error => error,
        }
    }

    /// Ends an acquisition's registration with its owner, if it has one.
    pub(super) fn unregister(&mut self, acquisition: &Acquisition, id: Option<HoldId>) {
        let Some(handle) = acquisition.owner.filter(|_| acquisition.is_registered) else { return };
        if let (Some(writer), Some(id)) = (acquisition.writer, id) {
            self.register_inner_reader(writer, id);
        }
        if let Some(owner) = self.owners.get_mut(handle.0) {
            owner.unregister(&acquisition.lock.key, id);
            self.freed_owners.push(handle);
        }
    }

    /// Links a hold of the read side to the hold of the write side around it. If that one was
    /// released meanwhile, the read hold gets the newer token that the release has brought.
    fn register_inner_reader(&mut self, writer: HoldId, reader: HoldId) {
        let part = self.holds.get(reader.0).and_then(|hold| hold.parts.first());
        let Some(owner) = part.map(|part| part.grant.owner) else { return };
        let writer = self.holds.get_mut(writer.0);
        let newer_token = writer.and_then(|hold| hold.register_inner_reader(owner, reader));
        if let (Some(token), Some(reader)) = (newer_token, self.holds.get_mut(reader.0)) {
            reader.raise_tokens(token);
        }
    }

    /// Begins the waiting acquisitions of an owner again, since another one of it has ended.
    pub(super) fn retry_waiting_acquisitions(&mut self, owner: OwnerHandle, cx: &mut Context<'_>) {
        let Some(owner) = self.owners.get_mut(owner.0) else { return };
        for op in core::mem::take(&mut owner.waiting) {
            if self.ops.get(op.0).is_some_and(|op| !op.is_over()) {
                self.begin_acquisition(op, cx);
            }
        }
    }
}
