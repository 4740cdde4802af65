//! The operations of a hold: renewals, releases, queries, and the watch over its lease.

use alloc::vec::Vec;
use core::time::Duration;

use super::hold::{Hold, ReleaseTurn};
use super::operation::{NO_REPLY, Outcome, Task};
use super::runner::Runner;
use super::{Context, EndpointId, Engine, Event, HoldId, LeaseEnd, OpId, ScopeId, Situation};
use crate::error::{InvalidOption, LossReason, ReleaseError, RequestError};
use crate::machine::{
    Entropy, Grant, Input, JoinAll, LeaseState, LockState, Query, QuorumLease, Release, ReleaseAll,
    Released, Renew, Renewal, Renewed, TimeoutReason,
};
use crate::name::{FencingToken, GuardKey, LockName, OwnerId};
use crate::protocol::calls::Target;
use crate::protocol::reply::Reply;
use crate::timing::LeaseTime;

/// The holder's view of a hold.
impl Engine {
    fn hold(&self, id: HoldId) -> Option<&Hold> {
        self.holds.get(id.0)
    }

    /// The fencing token of a hold.
    pub fn token(&self, id: HoldId) -> Option<FencingToken> {
        self.hold(id)?.token()
    }

    /// The fencing token of one of the names of a hold.
    pub fn token_of(&self, id: HoldId, name: &str) -> Option<FencingToken> {
        self.hold(id)?.token_of(name)
    }

    /// The name of a hold: that of its first part.
    pub fn hold_name(&self, id: HoldId) -> Option<&LockName> {
        self.hold(id)?.name()
    }

    /// The number of leases that share a hold.
    pub fn hold_count(&self, id: HoldId) -> u32 {
        self.hold(id).map_or(0, Hold::count)
    }

    /// The first part of a hold that counts: its gateway, its target and its grant.
    pub fn hold_part(&self, id: HoldId) -> Option<(EndpointId, &Target, &Grant)> {
        self.hold(id)?.counting().next().map(|part| (part.endpoint, &part.target, &part.grant))
    }

    /// The number of parts of a hold.
    pub fn hold_parts(&self, id: HoldId) -> impl Iterator<Item = (EndpointId, &Target)> {
        let parts = self.hold(id).into_iter().flat_map(|hold| &hold.parts);
        parts.map(|part| (part.endpoint, &part.target))
    }

    /// How long the holder can still rely on a hold; zero once it is lost or released.
    pub fn remaining(&self, id: HoldId, cx: &Context<'_>) -> Duration {
        match self.hold(id) {
            Some(hold) if hold.stands() => hold.lease().remaining(cx.now),
            _ => Duration::ZERO,
        }
    }

    /// The state of a hold now.
    pub fn hold_state(&mut self, id: HoldId, cx: &mut Context<'_>) -> LeaseState {
        self.look(id, cx);
        self.hold(id).map_or(LeaseState::Lost(LossReason::Gone), Hold::state)
    }

    /// The situation of a hold, as last known.
    pub fn situation(&self, id: HoldId) -> Option<Situation> {
        self.hold(id).map(Hold::situation)
    }

    /// How a hold has ended by now, if it has.
    pub fn hold_end(&mut self, id: HoldId, cx: &mut Context<'_>) -> Option<LeaseEnd> {
        self.look(id, cx);
        self.hold(id).map_or(Some(LeaseEnd::Lost(LossReason::Gone)), Hold::end)
    }

    /// Marks a hold as lost if its lease has run out.
    fn look(&mut self, id: HoldId, cx: &mut Context<'_>) {
        if self.holds.get_mut(id.0).is_some_and(|hold| hold.look(cx.now)) {
            self.changed.push(id);
            self.settle(cx);
        }
    }

    /// Marks a hold as lost for this reason, unless it is over.
    pub fn lose(&mut self, id: HoldId, reason: LossReason, cx: &mut Context<'_>) {
        if let Some(hold) = self.holds.get_mut(id.0) {
            hold.lose(reason);
            self.changed.push(id);
            self.settle(cx);
        }
    }

    /// Removes a lease that was dropped without a release: the hold is renewed no more with its
    /// last one.
    pub fn leave(&mut self, id: HoldId, cx: &mut Context<'_>) {
        if let Some(hold) = self.holds.get_mut(id.0) {
            hold.leave();
            self.changed.push(id);
            self.settle(cx);
        }
    }

    /// Forgets a hold that no handle refers to.
    pub fn forget(&mut self, id: HoldId, cx: &mut Context<'_>) {
        let Some(hold) = self.hold(id) else { return };
        // A release or a renewal that goes on needs the hold until it ends.
        if hold.observers.is_empty() {
            self.holds.remove(id.0);
        } else if let Some(hold) = self.holds.get_mut(id.0) {
            hold.is_forgotten = true;
        }
        self.settle(cx);
    }

    /// Begins a write to a guarded key under a hold, and returns its number; `None` while another
    /// write to the key is under way.
    pub fn begin_write(&mut self, id: HoldId, key: &GuardKey) -> Option<u64> {
        match self.holds.get_mut(id.0) {
            Some(hold) => hold.begin_write(key),
            None => Some(0),
        }
    }

    /// Ends a write to a guarded key.
    pub fn end_write(&mut self, id: HoldId, key: &GuardKey) {
        if let Some(hold) = self.holds.get_mut(id.0) {
            hold.end_write(key);
            self.events.push_back(Event::Hold(id));
        }
    }
}

/// Operations of a hold.
impl Engine {
    /// Extends a hold to at least `lease` from now; `None` for the lease of the acquisition.
    pub fn renew(
        &mut self,
        scope: ScopeId,
        id: HoldId,
        lease: Option<LeaseTime>,
        cx: &mut Context<'_>,
    ) -> OpId {
        let op = self.insert(scope, Task::Renew { hold: id, lease, at: cx.now }, cx);
        match self.renewals(id, lease, cx) {
            Ok((renewals, endpoints)) => {
                self.run(op, Runner::Renew(JoinAll::new(renewals)), endpoints, cx);
            }
            Err(error) => self.finish(op, Outcome::Renewed(Err(error))),
        }
        self.settle(cx);
        op
    }

    fn renewals(
        &mut self,
        id: HoldId,
        lease: Option<LeaseTime>,
        cx: &mut Context<'_>,
    ) -> Result<(Vec<Renew>, Vec<EndpointId>), RequestError> {
        let end = match self.hold(id) {
            Some(hold) if lease.zip(hold.lease_max()).is_some_and(|(lease, max)| lease > max) => {
                let accepted = "no more than the delay after which a node rejoins";
                return Err(InvalidOption::new("lease", accepted).into());
            }
            Some(_) => self.hold_end(id, cx),
            None => Some(LeaseEnd::Lost(LossReason::Gone)),
        };
        match end {
            Some(LeaseEnd::Lost(reason)) => return Err(RequestError::Lost(reason)),
            Some(LeaseEnd::Released) => return Err(RequestError::Lost(LossReason::Gone)),
            None => {}
        }
        let (mut renewals, mut endpoints) = (Vec::new(), Vec::new());
        let Some(hold) = self.holds.get_mut(id.0) else { return Err(NO_REPLY) };
        let schedule = hold.schedule;
        for part in hold.parts.iter_mut().filter(|part| part.counts) {
            let lease = schedule.limited(lease.unwrap_or_else(|| part.grant.lease.time()));
            let entropy = cx.draw().ok_or(RequestError::NoEntropy)?;
            let Some(endpoint) = self.endpoints.get(part.endpoint.0 as usize) else { continue };
            let (attempt, clock) = (endpoint.gateway.attempt(), endpoint.clock());
            let (target, grant) = (&part.target, &part.grant);
            let renewal = Renew::new(target, grant, lease, attempt, entropy, clock, cx.now);
            part.outstanding = part.outstanding.and(renewal.outstanding());
            renewals.push(renewal);
            endpoints.push(part.endpoint);
        }
        Ok((renewals, endpoints))
    }

    pub(super) fn renewals_ended(
        &mut self,
        op: OpId,
        outcomes: Vec<Result<Renewed, RequestError>>,
        cx: &mut Context<'_>,
    ) {
        let Some(Task::Renew { hold: id, lease, at }) = self.ops.get(op.0).map(|op| &op.task)
        else {
            return;
        };
        let (id, lease, at) = (*id, *lease, *at);
        let Some(hold) = self.holds.get_mut(id.0) else {
            return self.finish_or_discard(op, Outcome::Renewed(Err(NO_REPLY)), cx);
        };
        let outcome = hold.renewed(outcomes);
        if let (Ok(()), Some(lease)) = (&outcome, lease) {
            hold.schedule.extend(lease, at);
        }
        self.changed.push(id);
        self.finish_or_discard(op, Outcome::Renewed(outcome), cx);
    }

    /// Queries Redis whether a hold still exists. A hold that is gone counts as lost from then on.
    pub fn query_hold(&mut self, scope: ScopeId, id: HoldId, cx: &mut Context<'_>) -> OpId {
        let op = self.insert(scope, Task::QueryHold(id), cx);
        let parts: Vec<(EndpointId, Target, OwnerId)> = self
            .hold(id)
            .into_iter()
            .flat_map(Hold::counting)
            .map(|part| (part.endpoint, part.target.clone(), part.grant.owner))
            .collect();
        let mut queries = Vec::new();
        for (to, target, owner) in &parts {
            let attempt = self.endpoint(*to).map(|endpoint| endpoint.gateway.attempt());
            let Some((attempt, entropy)) = attempt.zip(cx.draw()) else {
                self.finish(op, Outcome::IsHeld(Err(RequestError::NoEntropy)));
                return op;
            };
            let inspect = |request| target.inspect(request, Some(*owner));
            queries.push(Query::new(inspect, attempt, entropy));
        }
        let endpoints = parts.iter().map(|(to, ..)| *to).collect();
        self.run(op, Runner::Queries(JoinAll::new(queries)), endpoints, cx);
        self.settle(cx);
        op
    }

    pub(super) fn hold_queried(
        &mut self,
        op: OpId,
        replies: Vec<Result<Reply, RequestError>>,
        cx: &mut Context<'_>,
    ) {
        let Some(Task::QueryHold(id)) = self.ops.get(op.0).map(|op| &op.task) else { return };
        let id = *id;
        let (mut held, mut unknown) = (0, None);
        for reply in replies {
            match reply.and_then(|reply| LockState::read(&reply)) {
                Ok(state) => held += usize::from(state.is_held),
                Err(error) => unknown = Some(error),
            }
        }
        let is_held = self.hold(id).is_some_and(|hold| held >= hold.quorum);
        let outcome = match unknown {
            Some(error) if !is_held => Err(error),
            _ => Ok(is_held),
        };
        if let (Ok(false), Some(hold)) = (&outcome, self.holds.get_mut(id.0)) {
            hold.lose(LossReason::Gone);
            self.changed.push(id);
        }
        self.finish_or_discard(op, Outcome::IsHeld(outcome), cx);
    }

    /// Releases one lease of a hold; the last release ends the hold in Redis. `again` for a lease
    /// whose release was called before.
    pub fn release(
        &mut self,
        scope: ScopeId,
        id: HoldId,
        again: bool,
        cx: &mut Context<'_>,
    ) -> OpId {
        let op = self.insert(scope, Task::Release(id), cx);
        let Some(hold) = self.holds.get_mut(id.0) else {
            self.finish(op, Outcome::Released(Ok(Released::WasLost)));
            return op;
        };
        if !again && !hold.leave() {
            hold.look(cx.now);
            let is_lost = matches!(hold.end(), Some(LeaseEnd::Lost(_)));
            let released = if is_lost { Released::WasLost } else { Released::Released };
            self.changed.push(id);
            self.finish(op, Outcome::Released(Ok(released)));
        } else {
            hold.observers.push(op);
            self.changed.push(id);
            self.begin_release(op, id, cx);
        }
        self.settle(cx);
        op
    }

    /// Releases a hold whose acquisition nobody waits for any more.
    pub(super) fn release_unclaimed(&mut self, scope: ScopeId, id: HoldId, cx: &mut Context<'_>) {
        let op = self.release(scope, id, false, cx);
        if let Some(hold) = self.holds.get_mut(id.0) {
            hold.is_forgotten = hold.count() == 0;
        }
        self.detach(op, cx);
    }

    fn begin_release(&mut self, op: OpId, id: HoldId, cx: &mut Context<'_>) {
        let Some(hold) = self.holds.get_mut(id.0) else { return };
        match hold.begin_release() {
            ReleaseTurn::Waits => {}
            ReleaseTurn::Over(verdict) => {
                self.stop_observing(id, op);
                self.finish_or_discard(op, Outcome::Released(Ok(verdict)), cx);
            }
            ReleaseTurn::Begins => {
                self.changed.push(id);
                let (reader, quorum) = (hold.reader(), hold.quorum);
                let parts = hold.parts.clone();
                let releases = parts.iter().filter_map(|part| {
                    let endpoint = self.endpoints.get(part.endpoint.0 as usize)?;
                    let target = match reader {
                        Some(reader) => part.target.clone().with_nested_read(reader),
                        None => part.target.clone(),
                    };
                    let (attempt, clock) = (endpoint.gateway.attempt(), endpoint.clock());
                    let outstanding = part.outstanding;
                    let release = Release::new(&target, &part.grant, outstanding, attempt, clock);
                    Some((release, part.counts))
                });
                let machine = ReleaseAll::new(releases, quorum);
                let endpoints = parts.iter().map(|part| part.endpoint).collect();
                self.run(op, Runner::Release(machine.into()), endpoints, cx);
            }
        }
    }

    pub(super) fn released(
        &mut self,
        op: OpId,
        outcome: Result<Released, ReleaseError>,
        token: Option<FencingToken>,
        cx: &mut Context<'_>,
    ) {
        let Some(Task::Release(id)) = self.ops.get(op.0).map(|op| &op.task) else { return };
        let id = *id;
        if let Some(hold) = self.holds.get_mut(id.0) {
            let reader = if outcome.is_ok() { hold.hands_on(token) } else { None };
            hold.end_release(outcome.as_ref().ok().copied());
            if let (Some(reader), Some(token)) =
                (reader.and_then(|reader| self.holds.get_mut(reader.0)), token)
            {
                reader.raise_tokens(token);
            }
        }
        self.changed.push(id);
        self.stop_observing(id, op);
        self.finish_or_discard(op, Outcome::Released(outcome), cx);
    }

    /// Renews a hold in time until it ends.
    pub fn keep(&mut self, scope: ScopeId, id: HoldId, cx: &mut Context<'_>) -> OpId {
        let schedule = self.hold(id).map(|hold| hold.schedule);
        let Some(schedule) = schedule else {
            let op = self.insert(scope, Task::Watch(id), cx);
            self.finish(op, Outcome::Ended(LeaseEnd::Lost(LossReason::Gone)));
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

    /// Starts the renewals of a hold by its present schedule.
    fn begin_keep(&mut self, op: OpId, id: HoldId, cx: &mut Context<'_>) {
        let Some(hold) = self.holds.get_mut(id.0) else { return };
        let (schedule, quorum) = (hold.schedule, hold.quorum);
        if let Some(operation) = self.ops.get_mut(op.0) {
            operation.task = Task::Keep { hold: id, schedule };
        }
        let (mut renewals, mut endpoints) = (Vec::new(), Vec::new());
        for part in hold.counting() {
            // Without entropy a renewal has no request id; the lease is then only watched.
            let entropy = if schedule.renews { cx.draw() } else { None };
            let renews = entropy.is_some();
            let entropy = entropy.unwrap_or(Entropy::new([0; 32]));
            let Some(endpoint) = self.endpoints.get(part.endpoint.0 as usize) else { continue };
            let (attempt, clock) = (endpoint.gateway.attempt(), endpoint.clock());
            let lease = part.grant.lease.renewed_for(schedule.lease);
            let (target, grant) = (part.target.clone(), Grant { lease, ..part.grant.clone() });
            let renewal = Renewal::new(target, grant, renews, attempt, entropy, clock);
            renewals.push(renewal.until(schedule.until));
            endpoints.push(part.endpoint);
        }
        let mut keeping = QuorumLease::new(renewals, quorum);
        hold.share(&mut keeping);
        if hold.is_over() {
            // Nothing is renewed after the end.
            let end = hold.end();
            return self.kept(op, id, end, cx);
        }
        self.run(op, Runner::Keep(keeping.into()), endpoints, cx);
    }

    /// Exchanges state with the renewals of a hold.
    pub(super) fn share(&mut self, op: OpId, runner: &mut Runner) {
        let Runner::Keep(keeping) = runner else { return };
        let Some(Task::Keep { hold: id, .. }) = self.ops.get(op.0).map(|op| &op.task) else {
            return;
        };
        let id = *id;
        if self.holds.get_mut(id.0).is_some_and(|hold| hold.share(keeping)) {
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
        self.finish_or_discard(op, Outcome::Ended(end), cx);
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
            if hold.look(cx.now) {
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
        if let Some(operation) = self.ops.get_mut(op.0) {
            operation.deadline = deadline;
            let scope = operation.scope;
            self.wake(scope);
        }
    }

    pub(super) fn stop_observing(&mut self, id: HoldId, op: OpId) {
        let Some(hold) = self.holds.get_mut(id.0) else { return };
        hold.observers.retain(|other| *other != op);
        if hold.is_forgotten && hold.observers.is_empty() {
            self.holds.remove(id.0);
        }
    }

    /// Passes a change of a hold to the operations that wait for it.
    pub(super) fn hold_changed(&mut self, id: HoldId, cx: &mut Context<'_>) {
        let Some(hold) = self.hold(id) else { return };
        let (is_over, now) = (hold.is_over(), hold.schedule);
        let observers = hold.observers.clone();
        let event = Event::Hold(id);
        if !self.events.contains(&event) {
            self.events.push_back(event);
        }
        for op in observers {
            let Some(operation) = self.ops.get(op.0).filter(|op| !op.is_over()) else { continue };
            match &operation.task {
                Task::Release(_) if operation.runner.is_none() => self.begin_release(op, id, cx),
                Task::Keep { schedule, .. } if is_over || *schedule != now => {
                    self.tell(op, Input::Cancelled, cx);
                }
                Task::Keep { .. } => self.tell(op, Input::Timeout, cx),
                Task::Watch(_) => self.watch(op, id, cx),
                _ => {}
            }
        }
    }
}
