//! The count-down latch: Redisson's `RCountDownLatch`.

use core::fmt;
use core::future::pending;

use super::Client;
use super::error::{Error, Object};
use super::options::AcquireOptions;
use super::requests::{NamedObject, ONLY_ENDPOINT, count, is_done};
use crate::error::{AcquireError, FailureKind, RequestError};
use crate::host::Host;
use crate::transport::Transport;
use edgelatch_proto::engine::{AcquirePolicy, Context, Engine, Outcome};
use edgelatch_proto::name::LockName;
use edgelatch_proto::protocol::calls::{CountDownLatchCalls, LatchCount};

/// A gate that opens when its count reaches 0. No client holds it.
pub struct CountDownLatch<T: Transport, H: Host> {
    client: Client<T, H>,
    calls: CountDownLatchCalls,
}

impl<T: Transport, H: Host> Clone for CountDownLatch<T, H> {
    fn clone(&self) -> Self {
        Self { client: self.client.clone(), calls: self.calls.clone() }
    }
}

impl<T: Transport, H: Host> fmt::Debug for CountDownLatch<T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CountDownLatch").field("name", self.calls.name()).finish_non_exhaustive()
    }
}

impl<T: Transport, H: Host> CountDownLatch<T, H> {
    pub(super) const fn new(client: Client<T, H>, calls: CountDownLatchCalls) -> Self {
        Self { client, calls }
    }

    /// The object of requests and of errors.
    const fn named_object(&self) -> NamedObject<'_> {
        (Object::Latch, self.calls.name())
    }

    /// Returns the latch's name.
    pub const fn name(&self) -> &LockName {
        self.calls.name()
    }

    /// Closes an open latch with `count`, 1 to 2^53 - 1. Returns `false` if it is closed already.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn try_set_count(&self, count: u64) -> Result<bool, Error<RequestError>> {
        let call = self.calls.try_set(LatchCount::new(count)?);
        self.client.execute_about(self.named_object(), call, is_done).await
    }

    /// Decrements the count by one. Redis executes it once, however often the request is sent.
    /// Returns the new count: 0 opens the latch, and an open latch stays open.
    ///
    /// # Errors
    /// [`RequestError`]; with `Unreachable` the count may have been decremented.
    pub async fn count_down(&self) -> Result<u64, Error<RequestError>> {
        self.client.execute_about(self.named_object(), self.calls.count_down(), count).await
    }

    /// Returns the remaining count; 0 if the latch is open.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn count(&self) -> Result<u64, Error<RequestError>> {
        let call = |request| self.calls.inspect(request);
        self.client.query_about(self.named_object(), call, count).await
    }

    /// Opens the latch, regardless of its count, and wakes all waiters. Returns `false` if it was
    /// open.
    ///
    /// # Errors
    /// [`RequestError`]; with `Unreachable` the latch may have been opened.
    pub async fn delete(&self) -> Result<bool, Error<RequestError>> {
        self.client.execute_about(self.named_object(), self.calls.delete(), is_done).await
    }

    /// Waits until the latch is open, at most 30 s. Dropping the future leaves nothing to undo.
    ///
    /// # Errors
    /// [`AcquireError::Busy`] if the latch was closed for the whole wait, or another
    /// [`AcquireError`] of a wait.
    pub async fn wait(&self) -> Result<(), Error<AcquireError>> {
        self.wait_with(AcquireOptions::new()).await
    }

    /// Waits until the latch is open, with the wait and the request budget of `options`. Its lease
    /// and replicas are checked, but otherwise ignored.
    ///
    /// # Errors
    /// Those of [`wait`](Self::wait).
    pub async fn wait_with(&self, options: AcquireOptions) -> Result<(), Error<AcquireError>> {
        self.wait_cancellable(options, pending()).await
    }

    /// Waits until the latch is open, or until `cancel` completes; then fails with
    /// [`AcquireError::Cancelled`].
    ///
    /// # Errors
    /// Those of [`wait`](Self::wait).
    pub async fn wait_cancellable(
        &self,
        options: AcquireOptions,
        cancel: impl Future<Output = ()>,
    ) -> Result<(), Error<AcquireError>> {
        let waited = self.wait_with_policy(options.check()?, cancel).await;
        waited.map_err(|kind| self.client.error(self.named_object(), kind))
    }

    /// Waits, with an error that names neither latch nor host.
    async fn wait_with_policy(
        &self,
        policy: AcquirePolicy,
        cancel: impl Future<Output = ()>,
    ) -> Result<(), AcquireError> {
        let begin = |engine: &mut Engine, scope, is_cancelled, cx: &mut Context<'_>| {
            engine.await_latch(scope, ONLY_ENDPOINT, self.calls.clone(), policy, is_cancelled, cx)
        };
        match self.client.shared().perform_cancellable(cancel, begin).await {
            Some(Outcome::Opened(opened)) => opened,
            _ => Err(AcquireError::Unreachable(FailureKind::NO_ANSWER)),
        }
    }
}
