//! The count-down latch: Redisson's `RCountDownLatch`.

use core::fmt;
use core::future::pending;
use core::pin::pin;

use super::Client;
use super::drive::drive_until;
use super::options::{AcquireOptions, Terms};
use crate::error::{AcquireError, RequestError};
use crate::host::Host;
use crate::machine::{AwaitLatch, number};
use crate::name::LockName;
use crate::protocol::calls::{CountDownLatchCalls, LatchCount};
use crate::protocol::reply::Code;
use crate::transport::Transport;

/// A gate that opens when it was counted down to nothing. Nobody holds it.
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

    /// Its name.
    pub const fn name(&self) -> &LockName {
        self.calls.name()
    }

    /// Closes an open latch with this count. `false` when it is closed already.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn try_set_count(&self, count: u64) -> Result<bool, RequestError> {
        let call = self.calls.try_set(LatchCount::new(count)?);
        Ok(self.client.once(call).await?.code == Code::Done)
    }

    /// Counts down by one, once, whatever is resent. Answers what is left: 0 opens it, and an open
    /// one stays so.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn count_down(&self) -> Result<u64, RequestError> {
        let reply = self.client.once(self.calls.count_down()).await?;
        Ok(u64::try_from(number(&reply)?).unwrap_or(0))
    }

    /// What is left to count; 0 when it is open.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn count(&self) -> Result<u64, RequestError> {
        let query = self.client.query(|request| self.calls.inspect(request));
        let reply = self.client.question(query).await?;
        Ok(u64::try_from(number(&reply)?).unwrap_or(0))
    }

    /// Opens it, whatever is left to count, and lets all who wait go on. `false` when it was open.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn delete(&self) -> Result<bool, RequestError> {
        Ok(self.client.once(self.calls.delete()).await?.code == Code::Done)
    }

    /// Waits until it is open, 30 s at most.
    ///
    /// # Errors
    /// [`AcquireError::Busy`] when it was closed for the whole wait, and the others that a wait can
    /// end with.
    pub async fn wait(&self) -> Result<(), AcquireError> {
        self.wait_with(AcquireOptions::new()).await
    }

    /// Waits until it is open; what the options say of a lease is not looked at.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub async fn wait_with(&self, options: AcquireOptions) -> Result<(), AcquireError> {
        self.wait_on(options.check()?, pending()).await
    }

    /// The same, until `cancel` ends.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
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
