//! The beginning of operations that do not concern a hold.

use alloc::sync::Arc;

use super::acquisition::Acquisition;
use super::operation::{Outcome, Task};
use super::runner::Runner;
use super::{Context, EndpointId, Engine, LockSpec, OpId, OwnerHandle, ScopeId, Terms};
use crate::error::{AcquireError, RequestError};
use crate::machine::{AwaitLatch, Once, Query};
use crate::name::RequestId;
use crate::protocol::calls::{CountDownLatchCalls, IdempotentCall};
use crate::protocol::script::ScriptCall;

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
        let op =
            self.insert(scope, Task::Acquire(Acquisition::new(lock, terms, owner, cx.now)), cx);
        if is_cancelled {
            let cancelled = AcquireError::Cancelled { held_at_most: None };
            self.finish(op, Outcome::Acquired(Err(cancelled)));
        } else {
            self.begin_acquisition(op, cx);
        }
        self.settle(cx);
        op
    }

    /// Waits until a latch is open.
    pub fn await_latch(
        &mut self,
        scope: ScopeId,
        to: EndpointId,
        calls: CountDownLatchCalls,
        terms: Terms,
        is_cancelled: bool,
        cx: &mut Context<'_>,
    ) -> OpId {
        let op = self.insert(scope, Task::AwaitLatch, cx);
        let attempt = self.endpoint(to).map(|endpoint| endpoint.gateway.attempt());
        match (attempt, cx.draw()) {
            _ if is_cancelled => {
                let cancelled = AcquireError::Cancelled { held_at_most: None };
                self.finish(op, Outcome::Opened(Err(cancelled)));
            }
            (Some(attempt), Some(entropy)) => {
                let Terms { wait, budget, .. } = terms;
                let machine = AwaitLatch::new(calls, wait, budget, attempt, entropy, cx.now);
                self.run(op, Runner::AwaitLatch(machine.into()), [to].into(), cx);
            }
            _ => self.finish(op, Outcome::Opened(Err(AcquireError::NoEntropy))),
        }
        self.settle(cx);
        op
    }

    /// Sends a query, which changes nothing or recognizes its own copies.
    pub fn query(
        &mut self,
        scope: ScopeId,
        to: EndpointId,
        call: impl FnOnce(RequestId) -> ScriptCall,
        cx: &mut Context<'_>,
    ) -> OpId {
        let op = self.insert(scope, Task::Request, cx);
        let attempt = self.endpoint(to).map(|endpoint| endpoint.gateway.attempt());
        match (attempt, cx.draw()) {
            (Some(attempt), Some(entropy)) => {
                let machine = Query::new(call, attempt, entropy);
                self.run(op, Runner::Query(machine.into()), [to].into(), cx);
            }
            _ => self.finish(op, Outcome::Replied(Err(RequestError::NoEntropy), false)),
        }
        self.settle(cx);
        op
    }

    /// Executes an idempotent call.
    pub fn execute_once(
        &mut self,
        scope: ScopeId,
        to: EndpointId,
        call: IdempotentCall,
        cx: &mut Context<'_>,
    ) -> OpId {
        let op = self.insert(scope, Task::Request, cx);
        let known =
            self.endpoint(to).map(|endpoint| (endpoint.gateway.attempt(), endpoint.clock()));
        match (known, cx.draw()) {
            (Some((attempt, clock)), Some(entropy)) => {
                let machine = Once::new(call, attempt, entropy, clock, cx.now);
                self.run(op, Runner::Once(machine.into()), [to].into(), cx);
            }
            _ => self.finish(op, Outcome::Replied(Err(RequestError::NoEntropy), false)),
        }
        self.settle(cx);
        op
    }
}
