//! Drains the engine after each call: outcomes, changes and I/O become records.

use alloc::string::String;

use super::calls::Read;
use super::error::{self, Failure};
use super::numbers::record;
use super::objects::Unused;
use super::outcomes;
use super::records::{Records, Value};
use super::{Engine, entropy, instant};
use crate::web::NEVER;
use edgelatch_proto::engine::{
    Context, EndpointId, Event, LeaseEnd, OpId, Outcome, ScopeId, Transmit,
};
use edgelatch_proto::protocol::gateway::Request;
use edgelatch_proto::time::millis;

/// Which records a call returns.
#[derive(Clone, Copy)]
pub(super) enum Extent {
    /// None: another call of the same turn follows.
    Later,
    /// The events. Other scopes are notified, and do their own I/O.
    Events,
    /// The events, and the I/O of a scope.
    Scope(ScopeId),
}

/// A call of JavaScript.
#[derive(Clone, Copy)]
pub(super) struct Call {
    pub(super) id: u32,
    pub(super) scope: ScopeId,
    /// How the outcome is converted for JavaScript.
    pub(super) read: Read,
}

impl Engine {
    /// Changes the engine, and returns the records of the given extent.
    pub(super) fn with(
        &mut self,
        extent: Extent,
        monotonic: f64,
        wall: f64,
        change: impl FnOnce(&mut Self, &mut Context<'_>),
    ) -> Option<String> {
        let mut cx = Context { now: instant(monotonic, wall), entropy: &mut entropy };
        change(self, &mut cx);
        self.drain(extent, &mut cx)
    }

    fn drain(&mut self, extent: Extent, cx: &mut Context<'_>) -> Option<String> {
        match extent {
            Extent::Later => return None,
            Extent::Events => self.drain_events(None, cx),
            Extent::Scope(scope) => {
                self.drain_events(Some(scope), cx);
                self.drain_io(scope, cx);
            }
        }
        self.records.take()
    }

    /// Records what has ended or changed. The I/O of `own` is recorded next, so it needs no event.
    fn drain_events(&mut self, own: Option<ScopeId>, cx: &mut Context<'_>) {
        while let Some(event) = self.engine.poll_event() {
            match event {
                Event::Finished(op) => self.finished(op, cx),
                Event::Waiting(op) => self.waiting(op),
                Event::Hold(hold) => self.records.add(record::HOLD, [hold.number().into()]),
                Event::Endpoint(EndpointId(index)) => {
                    self.records.add(record::ENDPOINT, [index.into()]);
                }
                Event::Scope(scope) if Some(scope) == own => {}
                Event::Scope(scope) => {
                    let is_idle = self.engine.is_idle(scope).into();
                    self.records.add(record::SCOPE, [scope.number().into(), is_idle]);
                }
            }
        }
        self.remove_unused();
    }

    /// Records the I/O of a scope, the time until its next deadline, and whether it is idle.
    fn drain_io(&mut self, scope: ScopeId, cx: &Context<'_>) {
        while let Some(transmit) = self.engine.poll_transmit(scope) {
            self.records.add_transmit(transmit);
        }
        let left = self.engine.poll_timeout(scope).map(|until| cx.now.until(until));
        let left = left.filter(|left| *left <= NEVER).map(millis);
        let is_idle = self.engine.is_idle(scope);
        self.records.add(record::TIMEOUT, [Value::or_nothing(left), is_idle.into()]);
    }

    /// Reports the outcome of an operation. A hold that was acquired is renewed from now on.
    fn finished(&mut self, op: OpId, cx: &mut Context<'_>) {
        let Some(outcome) = self.engine.take_outcome(op) else { return };
        if let Outcome::Ended(hold, end) = outcome {
            let (reason, message) = match end {
                LeaseEnd::Released => (Value::Nothing, Value::Nothing),
                LeaseEnd::Lost(reason) => (error::loss(reason).into(), reason.message().into()),
            };
            return self.records.add(record::ENDED, [hold.number().into(), reason, message]);
        }
        let Ok(place) = self.calls.binary_search_by(|(other, _)| other.cmp(&op)) else { return };
        let (_, Call { id, scope, read }) = self.calls.remove(place);
        if let Outcome::Acquired(Ok(hold)) = outcome {
            let name =
                self.engine.first_counting_part(hold).map(|(_, target, _)| target.name().as_str());
            let fields = [id.into(), hold.number().into(), Value::or_nothing(name)];
            self.records.add(record::LEASE, fields);
            self.engine.keep(scope, hold, cx);
            return;
        }
        match outcomes::result(&mut self.engine, read, outcome, cx) {
            Ok(value) => self.records.add(record::DONE, [id.into(), value]),
            Err(failure) => self.records.add_failure(id, failure),
        }
    }

    fn waiting(&mut self, op: OpId) {
        let call = self.calls.binary_search_by(|(other, _)| other.cmp(&op));
        if let Some((_, Call { id, .. })) = call.ok().and_then(|place| self.calls.get(place)) {
            self.records.add(record::WAITING, [(*id).into()]);
        }
    }

    /// Removes the entries of the engine that no object uses any more.
    pub(super) fn remove_unused(&mut self) {
        for unused in self.unused.take() {
            match unused {
                Unused::Endpoint(id) => self.engine.remove_endpoint(id),
                Unused::Owner(id) => self.engine.forget_owner(id),
            }
        }
    }
}

impl Records {
    pub(super) fn add_failure(&mut self, call: u32, failure: Failure) {
        match failure {
            Failure::Aborted => self.add(record::ABORTED, [call.into()]),
            Failure::Error { class, message, fields: [first, second] } => {
                let fields = [call.into(), class.into(), message.into(), first, second];
                self.add(record::FAILED, fields);
            }
        }
    }

    fn add_transmit(&mut self, transmit: Transmit) {
        match transmit {
            Transmit::Send { id, to, request } => {
                self.add_request(record::SEND, (id.number(), 0), to, request);
            }
            Transmit::Open { id, to, request } => {
                self.add_request(record::OPEN, id.numbers(), to, request);
            }
            Transmit::Abort { id } => self.add(record::ABORT, [id.number().into()]),
            Transmit::Close { id } => {
                let (subscription, number) = id.numbers();
                self.add(record::CLOSE, [subscription.into(), number.into()]);
            }
        }
    }

    fn add_request(
        &mut self,
        kind: u32,
        (id, number): (u64, u32),
        EndpointId(to): EndpointId,
        request: Request,
    ) {
        let Request { url, authorization, sync_token, content_type, body } = request;
        let fields = [
            id.into(),
            number.into(),
            to.into(),
            url.into(),
            Value::or_nothing(authorization),
            content_type.into(),
            Value::or_nothing(sync_token),
        ];
        self.add(kind, fields);
        self.add_body(&body);
    }
}
