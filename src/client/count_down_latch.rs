//! The count-down latch: Redisson's `RCountDownLatch`.

use core::fmt;
use core::future::pending;
use core::pin::pin;

use super::Client;
use super::drive::drive_until;
use super::options::{AcquireOptions, Terms};
use crate::error::{AcquireError, RequestError};
use crate::host::Host;
use crate::transport::Transport;
use edgelatch_proto::machine::{AwaitLatch, number};
use edgelatch_proto::name::LockName;
use edgelatch_proto::protocol::calls::{CountDownLatchCalls, LatchCount};
use edgelatch_proto::protocol::reply::Code;

/// A gate that opens when its count reaches 0. No client holds it.
pub struct CountDownLatch<T: Transport, H> {
    client: Client<T, H>,
    calls: CountDownLatchCalls,
}

impl<T: Transport, H> Clone for CountDownLatch<T, H> {
    fn clone(&self) -> Self {
        Self { client: self.client.clone(), calls: self.calls.clone() }
    }
}

impl<T: Transport, H> fmt::Debug for CountDownLatch<T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CountDownLatch").field("name", self.calls.name()).finish_non_exhaustive()
    }
}

impl<T: Transport, H: Host> CountDownLatch<T, H> {
    pub(super) const fn new(client: Client<T, H>, calls: CountDownLatchCalls) -> Self {
        Self { client, calls }
    }

    /// Returns the latch's name.
    pub const fn name(&self) -> &LockName {
        self.calls.name()
    }

    /// Closes an open latch with `count`, 1 to 2^53 - 1. Returns `false` if it is closed already.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn try_set_count(&self, count: u64) -> Result<bool, RequestError> {
        let call = self.calls.try_set(LatchCount::new(count)?);
        Ok(self.client.once(call).await?.code == Code::Done)
    }

    /// Decrements the count by one. Redis executes it once, however often the request is sent.
    /// Returns the new count: 0 opens the latch, and an open latch stays open.
    ///
    /// # Errors
    /// [`RequestError`]; with `Unreachable` the count may have been decremented.
    pub async fn count_down(&self) -> Result<u64, RequestError> {
        let reply = self.client.once(self.calls.count_down()).await?;
        Ok(u64::try_from(number(&reply)?).unwrap_or(0))
    }

    /// Returns the remaining count; 0 if the latch is open.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn count(&self) -> Result<u64, RequestError> {
        let query = self.client.query(|request| self.calls.inspect(request));
        let reply = self.client.question(query).await?;
        Ok(u64::try_from(number(&reply)?).unwrap_or(0))
    }

    /// Opens the latch, regardless of its count, and wakes all waiters. Returns `false` if it was
    /// open.
    ///
    /// # Errors
    /// [`RequestError`]; with `Unreachable` the latch may have been opened.
    pub async fn delete(&self) -> Result<bool, RequestError> {
        Ok(self.client.once(self.calls.delete()).await?.code == Code::Done)
    }

    /// Waits until the latch is open, at most 30 s. Dropping the future leaves nothing to undo.
    ///
    /// # Errors
    /// [`AcquireError::Busy`] if the latch was closed for the whole wait, or another
    /// [`AcquireError`] of a wait.
    pub async fn wait(&self) -> Result<(), AcquireError> {
        self.wait_with(AcquireOptions::new()).await
    }

    /// Waits until the latch is open, with the wait and the request budget of `options`. Its lease
    /// and replicas are checked, but otherwise ignored.
    ///
    /// # Errors
    /// Those of [`wait`](Self::wait).
    pub async fn wait_with(&self, options: AcquireOptions) -> Result<(), AcquireError> {
        self.wait_on(options.check()?, pending()).await
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
    ) -> Result<(), AcquireError> {
        self.wait_on(options.check()?, cancel).await
    }

    pub(crate) async fn wait_on(
        &self,
        terms: Terms,
        cancel: impl Future<Output = ()>,
    ) -> Result<(), AcquireError> {
        let client = &self.client;
        let entropy = client.entropy().ok_or(AcquireError::NoEntropy)?;
        let (patience, budget, now) = (terms.patience, terms.budget, client.host().now());
        let calls = self.calls.clone();
        let mut machine = AwaitLatch::new(calls, patience, budget, client.attempt(), entropy, now);
        drive_until(&mut machine, &[client.link()], client.host(), pin!(cancel)).await
    }
}
