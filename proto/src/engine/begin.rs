//! The beginning of operations that do not concern a hold.

use alloc::sync::Arc;

use super::acquisition::{Acquisition, CANCELLED};
use super::operation::{Operation, Outcome, Task};
use super::runner::Runner;
use super::{AcquirePolicy, Context, EndpointId, Engine, LockSpec, OpId, OwnerHandle, ScopeId};
use crate::error::{AcquireError, RequestError};
use crate::machine::{AwaitLatch, ExecuteOnce, Query};
use crate::name::RequestId;
use crate::protocol::calls::{CountDownLatchCalls, IdempotentCall};
use crate::protocol::script::ScriptCall;

/// The outcome of a request without entropy.
const NO_ENTROPY: Outcome = Outcome::Replied(Err(RequestError::NoEntropy), false);

impl Engine {
    /// Acquires a lock, for an owner if there is one. If the caller has cancelled already
    /// (`is_cancelled`), the acquisition fails and sends nothing.
    pub fn acquire(
        &mut self,
        scope: ScopeId,
        lock: Arc<LockSpec>,
        (policy, owner): (AcquirePolicy, Option<OwnerHandle>),
        is_cancelled: bool,
        cx: &mut Context<'_>,
    ) -> OpId {
        let task = Task::Acquire(Acquisition::new(lock, policy, owner, cx.now));
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
        policy: AcquirePolicy,
        is_cancelled: bool,
        cx: &mut Context<'_>,
    ) -> OpId {
        if is_cancelled {
            let op = self.insert(scope, Task::AwaitLatch, cx);
            self.finish(op, Outcome::Opened(Err(CANCELLED)));
            return op;
        }
        let AcquirePolicy { wait, budget, .. } = policy;
        let runner = self.endpoint(to).zip(cx.draw()).map(|(endpoint, entropy)| {
            let attempt = endpoint.gateway.attempt();
            let machine = AwaitLatch::new(calls, wait, budget, attempt, entropy, cx.now);
            Runner::AwaitLatch(machine.into())
        });
        let no_entropy = Outcome::Opened(Err(AcquireError::NoEntropy));
        self.begin((scope, to), Task::AwaitLatch, runner.ok_or(no_entropy), cx)
    }

    /// Sends a query, which changes nothing or recognizes its own copies.
    pub fn query(
        &mut self,
        scope: ScopeId,
        to: EndpointId,
        call: impl FnOnce(RequestId) -> ScriptCall,
        cx: &mut Context<'_>,
    ) -> OpId {
        let runner = self.endpoint(to).zip(cx.draw()).map(|(endpoint, entropy)| {
            Runner::Query(Query::new(call, endpoint.gateway.attempt(), entropy).into())
        });
        self.begin((scope, to), Task::Request, runner.ok_or(NO_ENTROPY), cx)
    }

    /// Executes an idempotent call.
    pub fn execute_once(
        &mut self,
        scope: ScopeId,
        to: EndpointId,
        call: IdempotentCall,
        cx: &mut Context<'_>,
    ) -> OpId {
        let runner = self.endpoint(to).zip(cx.draw()).map(|(endpoint, entropy)| {
            let (attempt, clock) = (endpoint.gateway.attempt(), endpoint.clock());
            Runner::ExecuteOnce(ExecuteOnce::new(call, attempt, entropy, clock, cx.now).into())
        });
        self.begin((scope, to), Task::Request, runner.ok_or(NO_ENTROPY), cx)
    }

    /// Begins an operation at one gateway: runs its machine, or ends with an outcome.
    fn begin(
        &mut self,
        (scope, to): (ScopeId, EndpointId),
        task: Task,
        runner: Result<Runner, Outcome>,
        cx: &mut Context<'_>,
    ) -> OpId {
        let op = self.insert(scope, task, cx);
        match runner {
            Ok(runner) => self.run(op, runner, [to].into(), cx),
            Err(outcome) => self.finish(op, outcome),
        }
        self.settle(cx);
        op
    }

    /// Inserts an operation that has not begun.
    pub(super) fn insert(&mut self, scope: ScopeId, task: Task, cx: &Context<'_>) -> OpId {
        self.wake(scope);
        let op = OpId(self.ops.insert(Operation::new(scope, task, cx.now)));
        let leaf = self.deadlines.insert(scope, op);
        if let Some(operation) = self.ops.get_mut(op.0) {
            operation.leaf = Some(leaf);
        }
        op
    }
}
