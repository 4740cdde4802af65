//! The requests under way. Calls of one turn and one scope to one gateway share a request.

use alloc::vec::Vec;

use super::{Context, EndpointId, Engine, Key, ScopeId, Transmit, TransmitId};
use crate::error::FailureKind;
use crate::protocol::gateway::{PipelineOutcome, Request, Response};

/// A request under way.
#[derive(Clone, Debug)]
pub(super) struct SentRequest {
    pub(super) scope: ScopeId,
    endpoint: EndpointId,
    /// The calls in the order of their commands; `None` for one that was dropped.
    calls: Vec<Option<Key>>,
}

impl SentRequest {
    pub(super) const fn is_pipeline(&self) -> bool {
        self.calls.len() > 1
    }

    /// Removes a call, and returns whether none is left.
    pub(super) fn leave(&mut self, key: Key) -> bool {
        for call in &mut self.calls {
            call.take_if(|call| *call == key);
        }
        self.calls.iter().all(Option::is_none)
    }
}

impl Engine {
    /// Creates the next request of the calls of a scope that are not sent yet.
    pub(super) fn next_request(&mut self, scope: ScopeId) -> Option<Transmit> {
        let (_, first) = *self.unsent.iter().find(|(of, _)| *of == scope)?;
        let keys = self.batch(scope, first);
        self.unsent.retain(|(_, key)| !keys.contains(key));
        let endpoint = self.calls.get(first)?.endpoint;
        let requests = keys.iter().filter_map(|key| self.calls.get(*key)?.request.as_ref());
        let request = match &*requests.collect::<Vec<_>>() {
            [] => return None,
            [only] => (*only).clone(),
            [first, others @ ..] => Request::several(first, others.iter().copied()),
        };
        let calls = keys.iter().copied().map(Some).collect();
        let id = TransmitId(self.requests.insert(SentRequest { scope, endpoint, calls }));
        for key in &keys {
            if let Some(call) = self.calls.get_mut(*key) {
                call.sent(id);
                // A pipeline that the gateway does not support is sent call by call.
                if keys.len() == 1 {
                    call.request = None;
                }
                if let Some(operation) = self.ops.get_mut(call.op.0) {
                    operation.has_sent = true;
                }
            }
        }
        Some(Transmit::Send { id, to: endpoint, request })
    }

    /// The calls that share a request with the first one, in their order.
    fn batch(&self, scope: ScopeId, first: Key) -> Vec<Key> {
        let mut keys = Vec::new();
        let (mut endpoint, mut bytes) = (None, 0);
        for (_, key) in self.unsent.iter().filter(|(of, _)| *of == scope) {
            let Some(call) = self.calls.get(*key) else { continue };
            let size = call.request.as_ref().map_or(0, |request| request.body.len());
            if *key == first {
                (endpoint, bytes) = (Some(call.endpoint), size);
                keys.push(*key);
                if !call.shares {
                    break;
                }
            } else if endpoint == Some(call.endpoint) && call.shares {
                bytes += size;
                if keys.len() == Request::SEVERAL_MAX || bytes > Request::SEVERAL_BYTES_MAX {
                    break;
                }
                keys.push(*key);
            }
        }
        keys
    }

    /// Passes the outcome of a request to its calls.
    pub(super) fn responded(
        &mut self,
        id: TransmitId,
        result: Result<Response, FailureKind>,
        cx: &Context<'_>,
    ) {
        let Some(SentRequest { endpoint, calls, .. }) = self.requests.remove(id.0) else { return };
        if let [only] = &*calls {
            if let Some(call) = *only {
                self.call_answered(call, result, cx);
            }
            return;
        }
        let Some(endpoint) = self.endpoint_mut(endpoint) else { return };
        match endpoint.capabilities.pipeline_outcome(result, calls.len()) {
            PipelineOutcome::Each(each) => {
                for (call, response) in calls.into_iter().zip(each) {
                    if let Some(call) = call {
                        self.call_answered(call, Ok(response), cx);
                    }
                }
            }
            PipelineOutcome::All(all) => {
                for call in calls.into_iter().flatten() {
                    self.call_answered(call, all.clone(), cx);
                }
            }
            PipelineOutcome::Unsupported => calls.into_iter().flatten().for_each(|key| {
                self.send_alone(key);
            }),
        }
    }

    /// Queues the request of a call again, to be sent by itself.
    fn send_alone(&mut self, key: Key) {
        let Some(call) = self.calls.get_mut(key) else { return };
        (call.shares, call.sent) = (false, None);
        let scope = call.scope;
        self.unsent.push((scope, key));
        self.wake(scope);
    }
}
