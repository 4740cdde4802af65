//! Releases of a hold.

use super::hold::ReleaseStart;
use super::operation::{Outcome, Task};
use super::runner::Runner;
use super::{Context, Engine, HoldId, LeaseEnd, OpId, ScopeId};
use crate::error::ReleaseError;
use crate::machine::{Release, ReleaseAll, Released};
use crate::name::FencingToken;

impl Engine {
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
        let is_shared = if again { hold.hold_count() > 0 } else { !hold.remove_lease() };
        if is_shared {
            hold.expire_if_due(cx.now);
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

    /// Releases a hold whose acquisition was dropped by its caller.
    pub(super) fn release_unclaimed(&mut self, scope: ScopeId, id: HoldId, cx: &mut Context<'_>) {
        let op = self.release(scope, id, false, cx);
        self.detach(op, cx);
        self.drop_reference(id, cx);
    }

    pub(super) fn begin_release(&mut self, op: OpId, id: HoldId, cx: &mut Context<'_>) {
        let Some(hold) = self.holds.get_mut(id.0) else { return };
        match hold.begin_release() {
            ReleaseStart::Waits => {}
            ReleaseStart::Over(result) => {
                self.stop_observing(id, op);
                self.finish_or_discard(op, Outcome::Released(Ok(result)), cx);
            }
            ReleaseStart::Begins => {
                self.changed.push(id);
                let (reader, quorum) = (hold.inner_reader(), hold.quorum);
                let parts = hold.parts.clone();
                let releases = parts.iter().filter_map(|part| {
                    let endpoint = self.endpoints.get(part.endpoint)?;
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
            let reader = if outcome.is_ok() { hold.propagate_token(token) } else { None };
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
}
