//! The beginning of operations that do not concern a hold.

use alloc::sync::Arc;

use super::acquisition::{Acquisition, CANCELLED};
use super::endpoint::Endpoint;
use super::operation::{Outcome, Task};
use super::runner::Runner;
use super::{Context, EndpointId, Engine, LockSpec, OpId, OwnerHandle, ScopeId, Terms};
use crate::error::{AcquireError, RequestError};
use crate::machine::{AwaitLatch, Entropy, ExecuteOnce, Query};
use crate::name::RequestId;
use crate::protocol::calls::{CountDownLatchCalls, IdempotentCall};
use crate::protocol::script::ScriptCall;
use crate::time::Instant;

impl Engine {
    /// Acquires a lock, for an owner if there is one. If the caller has cancelled already
    /// (`is_cancelled`), the acquisition fails and sends nothing.
    pub fn acquire(
        &mut self,
        scope: ScopeId,
        lock: Arc<LockSpec>,
        (terms, owner): (Terms, Option<OwnerHandle>),
        is_cancelled: bool,
        cx: &mut Context<'_>,
    ) -> OpId {
        let task = Task::Acquire(Acquisition::new(lock, terms, owner, cx.now));
        let op = self.insert(scope, task, cx);
        if is_cancelled {
            self.finish(op, Outcome::Acquired(Err(CANCELLED)));
        } else {
            self.begin_acquisition(op, cx);
        }
        self.settle(cx);
        op
    }

    /// Waits until a latch is open. If the caller has cancelled already (`is_cancelled`), the wait
    /// fails and sends nothing.
    pub fn await_latch(
        &mut self,
        scope: ScopeId,
        to: EndpointId,
        calls: CountDownLatchCalls,
        terms: Terms,
        is_cancelled: bool,
        cx: &mut Context<'_>,
    ) -> OpId {
        if is_cancelled {
            let op = self.insert(scope, Task::AwaitLatch, cx);
            self.finish(op, Outcome::Opened(Err(CANCELLED)));
            return op;
        }
        let no_entropy = Outcome::Opened(Err(AcquireError::NoEntropy));
        self.begin((scope, to), (Task::AwaitLatch, no_entropy), cx, |endpoint, entropy, now| {
            let Terms { wait, budget, .. } = terms;
            let attempt = endpoint.gateway.attempt();
            Runner::AwaitLatch(AwaitLatch::new(calls, wait, budget, attempt, entropy, now).into())
        })
    }

    /// Sends a query, which changes nothing or recognizes its own copies.
    pub fn query(
        &mut self,
        scope: ScopeId,
        to: EndpointId,
        call: impl FnOnce(RequestId) -> ScriptCall,
        cx: &mut Context<'_>,
    ) -> OpId {
        let no_entropy = Outcome::Replied(Err(RequestError::NoEntropy), false);
        self.begin((scope, to), (Task::Request, no_entropy), cx, |endpoint, entropy, _| {
            Runner::Query(Query::new(call, endpoint.gateway.attempt(), entropy).into())
        })
    }

    /// Executes an idempotent call.
    pub fn execute_once(
        &mut self,
        scope: ScopeId,
        to: EndpointId,
        call: IdempotentCall,
        cx: &mut Context<'_>,
    ) -> OpId {
        let no_entropy = Outcome::Replied(Err(RequestError::NoEntropy), false);
        self.begin((scope, to), (Task::Request, no_entropy), cx, |endpoint, entropy, now| {
            let (attempt, clock) = (endpoint.gateway.attempt(), endpoint.clock());
            Runner::ExecuteOnce(ExecuteOnce::new(call, attempt, entropy, clock, now).into())
        })
    }

    /// Begins an operation at one gateway. `machine` creates its machine; without entropy the
    /// operation ends with the outcome `no_entropy`.
    fn begin(
        &mut self,
        (scope, to): (ScopeId, EndpointId),
        (task, no_entropy): (Task, Outcome),
        cx: &mut Context<'_>,
        machine: impl FnOnce(&Endpoint, Entropy, Instant) -> Runner,
    ) -> OpId {
        let op = self.insert(scope, task, cx);
        match (self.endpoint(to), cx.draw()) {
            (Some(endpoint), Some(entropy)) => {
                let runner = machine(endpoint, entropy, cx.now);
                self.run(op, runner, [to].into(), cx);
            }
            _ => self.finish(op, no_entropy),
        }
        self.settle(cx);
        op
    }
}
