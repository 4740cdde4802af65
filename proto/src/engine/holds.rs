//! The holder's view of its holds, and what follows from their changes.

use core::time::Duration;

use super::hold::Hold;
use super::operation::Task;
use super::{Context, EndpointId, Engine, Event, HoldId, LeaseEnd, OpId, Situation};
use crate::error::LossReason;
use crate::machine::{Grant, Input, LeaseState};
use crate::name::{FencingToken, GuardKey};
use crate::protocol::calls::Target;

impl Engine {
    pub(super) fn hold(&self, id: HoldId) -> Option<&Hold> {
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

    /// The number of leases that share a hold.
    pub fn hold_count(&self, id: HoldId) -> u32 {
        self.hold(id).map_or(0, Hold::hold_count)
    }

    /// Whether the acquisition of a hold has waited for a retry, rather than being granted at once.
    pub fn has_waited(&self, id: HoldId) -> bool {
        self.hold(id).is_some_and(|hold| hold.has_waited)
    }

    /// The first part of a hold that counts: its gateway, its target and its grant.
    pub fn first_counting_part(&self, id: HoldId) -> Option<(EndpointId, &Target, &Grant)> {
        self.hold(id)?
            .counting_parts()
            .next()
            .map(|part| (part.endpoint, &part.target, &part.grant))
    }

    /// The parts of a hold: the gateway and the target of each.
    pub fn all_parts(&self, id: HoldId) -> impl Iterator<Item = (EndpointId, &Target)> {
        let parts = self.hold(id).into_iter().flat_map(|hold| &hold.parts);
        parts.map(|part| (part.endpoint, &part.target))
    }

    /// How long the holder can still rely on a hold; zero once it is lost or released.
    pub fn remaining(&self, id: HoldId, cx: &Context<'_>) -> Duration {
        match self.hold(id) {
            Some(hold) if hold.is_usable() => hold.lease().remaining(cx.now),
            _ => Duration::ZERO,
        }
    }

    /// The state of a hold now.
    pub fn hold_state(&mut self, id: HoldId, cx: &mut Context<'_>) -> LeaseState {
        self.expire_if_due(id, cx);
        self.hold(id).map_or(LeaseState::Lost(LossReason::Gone), Hold::state)
    }

    /// The situation of a hold, as last known.
    pub fn situation(&self, id: HoldId) -> Option<Situation> {
        self.hold(id).map(Hold::situation)
    }

    /// How a hold has ended by now, if it has.
    pub(super) fn hold_end(&mut self, id: HoldId, cx: &mut Context<'_>) -> Option<LeaseEnd> {
        self.expire_if_due(id, cx);
        self.hold(id).map_or(Some(LeaseEnd::Lost(LossReason::Gone)), Hold::end)
    }

    /// Marks a hold as lost if its lease has run out.
    fn expire_if_due(&mut self, id: HoldId, cx: &mut Context<'_>) {
        if self.holds.get_mut(id.0).is_some_and(|hold| hold.expire_if_due(cx.now)) {
            self.changed.push(id);
            self.settle(cx);
        }
    }

    /// Marks a hold as lost for this reason, unless it is over.
    pub(super) fn lose(&mut self, id: HoldId, reason: LossReason, cx: &mut Context<'_>) {
        if let Some(hold) = self.holds.get_mut(id.0) {
            hold.lose(reason);
            self.changed.push(id);
            self.settle(cx);
        }
    }

    /// Removes a lease that was dropped without a release: the hold is renewed no more with its
    /// last one.
    pub fn drop_lease(&mut self, id: HoldId, cx: &mut Context<'_>) {
        if let Some(hold) = self.holds.get_mut(id.0) {
            hold.remove_lease();
            self.changed.push(id);
            self.settle(cx);
        }
    }

    /// Ends the reference of one acquisition to its hold. The hold is removed after the last one,
    /// and after the operations that still need it, such as a release.
    pub fn drop_reference(&mut self, id: HoldId, cx: &mut Context<'_>) {
        if let Some(hold) = self.holds.get_mut(id.0) {
            hold.references = hold.references.saturating_sub(1);
        }
        self.remove_unused_hold(id);
        self.settle(cx);
    }

    fn remove_unused_hold(&mut self, id: HoldId) {
        if self.hold(id).is_some_and(|hold| hold.references == 0 && hold.observers.is_empty()) {
            self.holds.remove(id.0);
        }
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

    pub(super) fn stop_observing(&mut self, id: HoldId, op: OpId) {
        let Some(hold) = self.holds.get_mut(id.0) else { return };
        hold.observers.retain(|other| *other != op);
        self.remove_unused_hold(id);
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
                    self.on_input(op, Input::Cancelled, cx);
                }
                Task::Keep { .. } => self.on_input(op, Input::Timeout, cx),
                Task::Watch(_) => self.watch(op, id, cx),
                _ => {}
            }
        }
    }
}
