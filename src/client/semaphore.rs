//! The semaphore: Redisson's `RSemaphore`.

use core::fmt;
use core::time::Duration;

use super::lock::Lock;
use super::options::AcquireOptions;
use super::{Client, Lease};
use crate::error::{AcquireError, InvalidOption, RequestError};
use crate::host::Host;
use crate::machine::{SemaphoreState, number};
use crate::name::LockName;
use crate::protocol::calls::{PermitCount, PermitTotal, SemaphoreCalls, Target};
use crate::protocol::reply::Code;
use crate::timing::LifeTime;
use crate::transport::Transport;

/// A number of permits that many share. It is there once its permits were set or added.
///
/// Permits are taken as a [`Lease`], which knows what is to be given back: released twice, or by a
/// request that comes twice, they are given back once. Without a lease time they are held until
/// they are released, as with Redisson, also when their holder dies; with one, or
/// [renewed](AcquireOptions::renewed), others of ours get them back then.
///
/// **An acquisition whose future is dropped before it is ready is undone in the background where a
/// Tokio runtime is in context, as for a [`Lock`](super::Lock#dropped-acquisitions). Elsewhere
/// nothing is undone: permits that were on their way stay taken until their lease ends, and for
/// ever when they have none.** [`Lock::acquire_cancellable`](super::Lock::acquire_cancellable) of
/// `permits(n)` undoes them in the foreground.
pub struct Semaphore<T: Transport, H> {
    client: Client<T, H>,
    name: LockName,
}

impl<T: Transport, H> Clone for Semaphore<T, H> {
    fn clone(&self) -> Self {
        Self { client: self.client.clone(), name: self.name.clone() }
    }
}

impl<T: Transport, H> fmt::Debug for Semaphore<T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Semaphore").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<T: Transport, H: Host> Semaphore<T, H> {
    pub(super) const fn new(client: Client<T, H>, name: LockName) -> Self {
        Self { client, name }
    }

    /// Its name.
    pub const fn name(&self) -> &LockName {
        &self.name
    }

    /// What takes so many permits at once: it is acquired, tried and run like a lock.
    ///
    /// # Errors
    /// [`InvalidOption`] unless they are 1 to 2147483647.
    pub fn permits(&self, permits: u32) -> Result<Lock<T, H>, InvalidOption> {
        Ok(self.client.taking(Target::Semaphore(self.calls(permits)?)))
    }

    /// Waits for so many permits, 30 s at most.
    ///
    /// # Errors
    /// [`AcquireError`].
    pub async fn acquire(&self, permits: u32) -> Result<Lease<T, H>, AcquireError> {
        self.permits(permits)?.acquire_with(AcquireOptions::new()).await
    }

    /// Takes so many permits if they are available; `None` when they are not.
    ///
    /// # Errors
    /// [`AcquireError`]; never `Busy`.
    pub async fn try_acquire(&self, permits: u32) -> Result<Option<Lease<T, H>>, AcquireError> {
        self.permits(permits)?.try_acquire().await
    }

    /// Makes the semaphore with so many permits, for a time or for ever. `false` when it is there
    /// already.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn try_set_permits(
        &self,
        permits: u32,
        life: Option<Duration>,
    ) -> Result<bool, RequestError> {
        let life = life.map(LifeTime::new).transpose()?;
        let call = self.calls(1)?.try_set(PermitTotal::new(permits)?, life);
        Ok(self.client.once(call).await?.code == Code::Done)
    }

    /// Makes so many more permits available, or fewer; makes the semaphore if it is not there.
    /// Answers how many there are then.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn add_permits(&self, permits: i32) -> Result<i64, RequestError> {
        number(&self.client.once(self.calls(1)?.add(permits)).await?)
    }

    /// Makes so many permits available that nobody here holds: Redisson's `release(permits)`.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn release(&self, permits: u32) -> Result<(), RequestError> {
        let permits = i32::try_from(PermitCount::new(permits)?.get()).unwrap_or(i32::MAX);
        self.add_permits(permits).await.map(drop)
    }

    /// The same if the semaphore is there; `false` when it is not.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn release_if_exists(&self, permits: u32) -> Result<bool, RequestError> {
        let call = self.calls(1)?.add_if_exists(PermitCount::new(permits)?);
        Ok(self.client.once(call).await?.code == Code::Done)
    }

    /// Takes all permits that are available, for good; answers how many they were.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn drain_permits(&self) -> Result<i64, RequestError> {
        number(&self.client.once(self.calls(1)?.drain()).await?)
    }

    /// How many permits are available now.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn available_permits(&self) -> Result<i64, RequestError> {
        Ok(self.inspect().await?.available)
    }

    /// What Redis says of it now.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn inspect(&self) -> Result<SemaphoreState, RequestError> {
        let target = Target::Semaphore(self.calls(1)?);
        let ask = |request| target.inspect(request, None);
        SemaphoreState::read(&self.client.question(self.client.query(ask)).await?)
    }

    /// Gives back whatever leases of ours hold, whoever has them. Answers whether there was
    /// something; what Java holds is not known.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn force_release(&self) -> Result<bool, RequestError> {
        let call = Target::Semaphore(self.calls(1)?).force_release();
        Ok(self.client.once(call).await?.code == Code::Done)
    }

    fn calls(&self, permits: u32) -> Result<SemaphoreCalls, InvalidOption> {
        let permits = PermitCount::new(permits)?;
        Ok(SemaphoreCalls::new(self.name.clone(), self.client.announces(), permits))
    }
}
