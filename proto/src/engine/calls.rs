//! The calls of operations: each is an exchange of up to three requests.

use super::{
    Context, Endpoint, EndpointId, Engine, Event, Key, OpId, ScopeId, Transmit, TransmitId,
};
use crate::error::FailureKind;
use crate::machine::{CallId, Input};
use crate::protocol::exchange::{Answer, Exchange, Step};
use crate::protocol::gateway::{Request, Response};
use crate::protocol::reply::ServerClock;
use crate::protocol::script::ScriptCall;
use crate::time::Instant;

/// A call that an operation waits for.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) op: OpId,
    id: CallId,
    pub(super) scope: ScopeId,
    pub(super) endpoint: EndpointId,
    exchange: Exchange,
    /// Redis' clock as it was known when the call began.
    known_clock: Option<ServerClock>,
    /// The request to send, or one that may have to be sent alone.
    pub(super) request: Option<Request>,
    /// Whether the request may share a pipeline.
    pub(super) shares: bool,
    /// The request under way.
    pub(super) sent: Option<TransmitId>,
    /// Whether a request was sent.
    was_sent: bool,
}

impl Call {
    pub(super) fn sent(&mut self, id: TransmitId) {
        (self.sent, self.was_sent) = (Some(id), true);
    }
}

impl Engine {
    /// Begins a call, and returns its key; `None` if it has ended already.
    pub(super) fn begin_call(
        &mut self,
        (op, scope): (OpId, ScopeId),
        (id, to): (CallId, EndpointId),
        script: ScriptCall,
        now: Instant,
    ) -> Option<Key> {
        let endpoint = self.endpoint(to)?;
        let (exchange, step) = Exchange::new(&endpoint.gateway, script, &endpoint.capabilities);
        let call = Call {
            op,
            id,
            scope,
            endpoint: to,
            exchange,
            known_clock: endpoint.clock(),
            request: None,
            shares: false,
            sent: None,
            was_sent: false,
        };
        let key = self.calls.insert(call);
        self.step_call(key, step, now);
        self.calls.get(key).map(|_| key)
    }

    /// Queues the next request of a call, or ends the call.
    fn step_call(&mut self, key: Key, step: Step, now: Instant) {
        match step {
            Step::Send(request) => {
                let Some(call) = self.calls.get_mut(key) else { return };
                let endpoint = self.endpoints.get_mut(call.endpoint);
                call.shares = endpoint.is_some_and(|endpoint| {
                    call.exchange.may_share(&endpoint.gateway) && endpoint.capabilities.shares()
                });
                (call.request, call.sent) = (Some(request), None);
                let scope = call.scope;
                self.unsent.push((scope, key));
                self.wake(scope);
            }
            Step::Done(answer) => self.end_call(key, answer, now),
        }
    }

    fn end_call(&mut self, key: Key, answer: Answer, now: Instant) {
        let Some(call) = self.calls.remove(key) else { return };
        let Some(endpoint) = self.endpoints.get_mut(call.endpoint) else { return };
        endpoint.may_be_gateway |=
            !matches!(answer, Answer::Failed(FailureKind::NotSent | FailureKind::WebPage { .. }));
        if let Answer::Reply(reply) = &answer {
            let clock = ServerClock::new(reply.server_ms, now);
            if endpoint.rollback.observe(clock, call.known_clock) {
                self.events.push_back(Event::Endpoint(call.endpoint));
            }
        }
        let id = call.id;
        let input = match answer {
            Answer::Reply(reply) => Input::Reply { call: id, reply },
            Answer::Refused(refusal) => Input::Refused { call: id, refusal },
            Answer::Failed(kind) => Input::Failed { call: id, kind },
        };
        self.inputs.push_back((call.op, input));
    }

    /// Passes the outcome of a call's request.
    pub(super) fn call_answered(
        &mut self,
        key: Key,
        result: Result<Response, FailureKind>,
        cx: &Context<'_>,
    ) {
        let Some(call) = self.calls.get_mut(key) else { return };
        let Some(endpoint) = self.endpoints.get_mut(call.endpoint) else { return };
        let Endpoint { gateway, capabilities, .. } = endpoint;
        let step = call.exchange.answered(gateway, result, capabilities);
        self.step_call(key, step, cx.now);
    }

    /// Drops a call whose outcome is no longer needed.
    pub(super) fn drop_call(&mut self, key: Key) {
        let Some(call) = self.calls.remove(key) else { return };
        self.unsent.retain(|(_, other)| *other != key);
        let endpoint = self.endpoints.get_mut(call.endpoint);
        let Some(endpoint) = endpoint.filter(|_| call.was_sent) else { return };
        // It may have been executed.
        endpoint.may_be_gateway = true;
        let Some(id) = call.sent else { return };
        let Some(request) = self.requests.get_mut(id.0) else { return };
        if request.is_pipeline() {
            // A gateway that never responds to pipelines would make each caller give up, so the
            // next calls are sent singly unless pipelines are known to work here.
            endpoint.capabilities.unanswered();
        }
        // A pipeline keeps the place of the call, since the gateway still responds to its command.
        if request.leave(key) {
            self.requests.remove(id.0);
            self.transmit(call.scope, Transmit::Abort { id });
        }
    }
}
