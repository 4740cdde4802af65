//! Awaits an operation of the engine.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::future::poll_fn;
use core::pin::{Pin, pin};
use core::task::{self, Poll};

use super::driver::Driver;
use super::shared::{Shared, Source};
use crate::host::Host;
use crate::transport::Transport;
use edgelatch_proto::engine::{Context, Engine, OpId, Outcome, ScopeId};

impl<T: Transport, H: Host> Shared<T, H> {
    /// Performs an operation, which begins at once. Returns `None` only if the engine has removed
    /// the operation, which it does only after its future was dropped.
    pub(super) fn perform(
        self: &Arc<Self>,
        begin: impl FnOnce(&mut Engine, ScopeId, &mut Context<'_>) -> OpId,
    ) -> impl Future<Output = Option<Outcome>> {
        self.begin(begin).into_future()
    }

    /// Performs an operation that begins when the returned future is first polled, and that
    /// `cancel` cancels when it completes. The cancelled operation is still awaited.
    ///
    /// `begin` gets whether `cancel` was complete before, and must pass this on to the engine,
    /// which gets no other notice of it.
    pub(super) async fn perform_cancellable(
        self: &Arc<Self>,
        cancel: impl Future<Output = ()>,
        begin: impl FnOnce(&mut Engine, ScopeId, bool, &mut Context<'_>) -> OpId,
    ) -> Option<Outcome> {
        let mut cancel = pin!(cancel);
        let mut is_cancelled = poll_fn(|cx| Poll::Ready(cancel.as_mut().poll(cx).is_ready())).await;
        let operation = self.begin(|engine, scope, cx| begin(engine, scope, is_cancelled, cx));
        let (op, mut outcome) = (operation.op, pin!(operation.into_future()));
        poll_fn(|cx| {
            if !is_cancelled && cancel.as_mut().poll(cx).is_ready() {
                is_cancelled = true;
                self.change(|engine, context| engine.cancel(op, context));
            }
            outcome.as_mut().poll(cx)
        })
        .await
    }

    /// Begins an operation.
    fn begin(
        self: &Arc<Self>,
        begin: impl FnOnce(&mut Engine, ScopeId, &mut Context<'_>) -> OpId,
    ) -> Operation<T, H> {
        let (scope, needs_driver) = self.assign_scope();
        let op = self.change(|engine, cx| begin(engine, scope, cx));
        if let Some(spawn) = self.spawn.filter(|_| needs_driver) {
            spawn(Driver::for_operation(Arc::clone(self), scope));
        }
        Operation { shared: Arc::clone(self), op, scope, is_over: false }
    }
}

/// An operation that was begun. If it is dropped before its outcome is taken, an acquisition is
/// undone in the background, a release goes on there, and any other operation ends at once. If
/// nothing runs in the background, every operation ends at once.
pub(super) struct Operation<T: Transport, H: Host> {
    shared: Arc<Shared<T, H>>,
    op: OpId,
    scope: ScopeId,
    is_over: bool,
}

impl<T: Transport, H: Host> Operation<T, H> {
    /// Returns the future of the outcome: `None` if the operation was removed.
    fn into_future(self) -> OperationFuture<T, H, impl Future<Output = ()>> {
        let drives_itself = self.shared.spawn.is_none();
        let driver = || Driver::for_operation(Arc::clone(&self.shared), self.scope);
        let own_driver = drives_itself.then(|| Box::pin(driver().run()));
        OperationFuture { operation: self, own_driver }
    }
}

/// The future of an operation's outcome. `D` is the future of a driver.
struct OperationFuture<T: Transport, H: Host, D> {
    operation: Operation<T, H>,
    /// The operation's own driver, if no other one drives it.
    own_driver: Option<Pin<Box<D>>>,
}

impl<T: Transport, H: Host, D: Future<Output = ()>> Future for OperationFuture<T, H, D> {
    type Output = Option<Outcome>;

    /// Not inlined: each operation of the API awaits such a future, and all share this code.
    #[inline(never)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<Option<Outcome>> {
        let Self { operation: Operation { shared, op, is_over, .. }, own_driver } = &mut *self;
        loop {
            shared.keep_waker(Source::Op(*op), cx.waker());
            // `Some(None)`: the operation was removed.
            let outcome = shared.change(|engine, _| match engine.take_outcome(*op) {
                None if engine.has(*op) => None,
                outcome => Some(outcome),
            });
            if let Some(outcome) = outcome {
                *is_over = true;
                return Poll::Ready(outcome);
            }
            // Starts the driver of all operations, or replaces one that was dropped.
            if let Some(spawn) = shared.spawn.filter(|_| shared.claim_driver()) {
                spawn(Driver::for_operation(Arc::clone(shared), ScopeId::GLOBAL));
            }
            let Some(driver) = own_driver else { return Poll::Pending };
            if driver.as_mut().poll(cx).is_ready() {
                *own_driver = None;
            } else if !shared.is_over(*op) {
                return Poll::Pending;
            }
        }
    }
}

// The futures inside are pinned by their boxes.
impl<T: Transport, H: Host, D> Unpin for OperationFuture<T, H, D> {}

impl<T: Transport, H: Host> Drop for Operation<T, H> {
    fn drop(&mut self) {
        let Self { shared, op, scope, is_over } = self;
        shared.forget_wakers(Source::Op(*op));
        let drives_itself = shared.spawn.is_none();
        if *is_over && !drives_itself {
            return;
        }
        shared.change(|engine, cx| {
            if drives_itself {
                engine.abandon(*op, cx);
                engine.close_scope(*scope, cx);
            } else {
                engine.detach(*op, cx);
            }
        });
        // The work that goes on in the background needs a driver.
        let has_work = || !shared.read(|engine| engine.is_idle(*scope));
        if let Some(spawn) = shared.spawn.filter(|_| has_work() && shared.claim_driver()) {
            spawn(Driver::for_undoing(Arc::clone(shared), *scope));
        }
    }
}
