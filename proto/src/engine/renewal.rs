//! Renewals of a hold on demand, and queries whether it still exists.

use alloc::vec::Vec;

use super::hold::Hold;
use super::operation::{NO_REPLY, Outcome, Task};
use super::runner::Runner;
use super::{Context, EndpointId, Engine, HoldId, OpId, ScopeId};
use crate::error::{LossReason, RequestError};
use crate::machine::{JoinAll, LockState, Query, RenewalOnDemand, Renewed};
use crate::name::OwnerId;
use crate::protocol::calls::Target;
use crate::protocol::reply::Reply;
use crate::timing::LeaseTime;

impl Engine {
    /// Extends a hold to at least `lease` from now; `None` for the lease of the acquisition. If a
    /// request may not ask for the whole lease, the rest is renewed while the hold is kept.
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
    ) -> Result<(Vec<RenewalOnDemand>, Vec<EndpointId>), RequestError> {
        self.check_lasts(id, cx).map_err(RequestError::Lost)?;
        let (mut renewals, mut endpoints) = (Vec::new(), Vec::new());
        let Some(hold) = self.holds.get_mut(id.0) else { return Err(NO_REPLY) };
        let schedule = hold.schedule;
        let lease = schedule.limited(lease.unwrap_or(schedule.whole));
        for part in hold.parts.iter_mut().filter(|part| part.counts) {
            let entropy = cx.draw().ok_or(RequestError::NoEntropy)?;
            let Some(endpoint) = self.endpoints.get(part.endpoint) else { continue };
            let (attempt, clock) = (endpoint.gateway.attempt(), endpoint.clock());
            let (target, grant) = (&part.target, &part.grant);
            let renewal =
                RenewalOnDemand::new(target, grant, lease, attempt, entropy, clock, cx.now);
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
        let outcome = hold.on_renewal(outcomes);
        if outcome.is_ok() {
            hold.schedule.extend(lease.unwrap_or(hold.schedule.whole), at);
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
            .flat_map(Hold::counting_parts)
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
}
