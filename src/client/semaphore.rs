//! The semaphore: Redisson's `RSemaphore`.

use core::fmt;
use core::time::Duration;

use super::error::{Error, Object};
use super::lock::Lock;
use super::options::AcquireOptions;
use super::requests::{NamedObject, is_done};
use super::{Client, Lease};
use crate::error::{AcquireError, InvalidOption, RequestError};
use crate::host::Host;
use crate::transport::Transport;
use edgelatch_proto::machine::{SemaphoreState, parse_number};
use edgelatch_proto::name::LockName;
use edgelatch_proto::protocol::calls::{PermitCount, PermitTotal, SemaphoreCalls, Target};
use edgelatch_proto::timing::LifeTime;

/// A number of permits shared by all clients. It exists once its permits have been
/// [set](Self::try_set_permits) or [added](Self::add_permits).
///
/// Permits are acquired as a [`Lease`], which records what to return: a repeated release or a
/// duplicated request returns them once. By default they are held until they are released, as with
/// Redisson, even if their holder dies. With a fixed lease, or a [renewed](AcquireOptions::renewed)
/// one, the permits of a holder that died become available to clients of this library when the
/// lease ends.
///
/// Dropping the future of an acquisition has the effect described for a
/// [`Lock`](super::Lock#dropped-acquisitions). **With a client from
/// [`Client::new`](super::Client::new), permits whose grant was under way stay acquired until their
/// lease ends, or for ever if they have no lease.**
pub struct Semaphore<T: Transport, H: Host> {
    client: Client<T, H>,
    name: LockName,
}

impl<T: Transport, H: Host> Clone for Semaphore<T, H> {
    fn clone(&self) -> Self {
        Self { client: self.client.clone(), name: self.name.clone() }
    }
}

impl<T: Transport, H: Host> fmt::Debug for Semaphore<T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Semaphore").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<T: Transport, H: Host> Semaphore<T, H> {
    pub(super) const fn new(client: Client<T, H>, name: LockName) -> Self {
        Self { client, name }
    }

    /// The object of requests and of errors.
    const fn named_object(&self) -> NamedObject<'_> {
        (Object::Semaphore, &self.name)
    }

    /// Returns the semaphore's name.
    pub const fn name(&self) -> &LockName {
        &self.name
    }

    /// Returns a lock that acquires `permits` permits at once, with all methods of [`Lock`]. Sends
    /// nothing.
    ///
    /// # Errors
    /// [`InvalidOption`] unless `permits` is 1 to 2147483647.
    pub fn permits(&self, permits: u32) -> Result<Lock<T, H>, InvalidOption> {
        Ok(self.client.lock_for(Target::Semaphore(self.calls(permits)?)))
    }

    /// Waits for `permits` permits, at most 30 s, and acquires them until they are released.
    ///
    /// # Errors
    /// [`AcquireError`]; [`AcquireError::NotSetUp`] if the semaphore does not exist.
    pub async fn acquire(&self, permits: u32) -> Result<Lease<T, H>, Error<AcquireError>> {
        self.permits(permits)?.acquire_with(AcquireOptions::new()).await
    }

    /// Acquires `permits` permits if they are available, without waiting; returns `None` if they
    /// are not.
    ///
    /// # Errors
    /// [`AcquireError`]; never `Busy`.
    pub async fn try_acquire(
        &self,
        permits: u32,
    ) -> Result<Option<Lease<T, H>>, Error<AcquireError>> {
        self.permits(permits)?.try_acquire().await
    }

    /// Creates the semaphore with `permits` permits, 0 to 2147483647. Returns `false` if it exists
    /// already.
    ///
    /// Redis deletes the semaphore after `life`: 1 ms to 10 years in whole milliseconds; `None` for
    /// never.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn try_set_permits(
        &self,
        permits: u32,
        life: Option<Duration>,
    ) -> Result<bool, Error<RequestError>> {
        let life = life.map(LifeTime::new).transpose()?;
        let call = self.calls(1)?.try_set(PermitTotal::new(permits)?, life);
        self.client.execute_about(self.named_object(), call, is_done).await
    }

    /// Adds `permits` available permits, or removes them if negative; creates the semaphore if it
    /// does not exist. Returns the new number of available permits, which can be negative.
    ///
    /// # Errors
    /// [`RequestError`]; `Refused` with the code `LIMIT` if available and held permits together
    /// would exceed 2147483647, or the available ones be less than -2147483648.
    pub async fn add_permits(&self, permits: i32) -> Result<i64, Error<RequestError>> {
        self.client
            .execute_about(self.named_object(), self.calls(1)?.add(permits), parse_number)
            .await
    }

    /// Adds `permits` available permits that are not held by a lease: Redisson's
    /// `release(permits)`. Permits of a lease are released by [`Lease::release`].
    ///
    /// # Errors
    /// [`RequestError`], as of [`add_permits`](Self::add_permits); `InvalidOption` unless `permits`
    /// is 1 to 2147483647.
    pub async fn release(&self, permits: u32) -> Result<(), Error<RequestError>> {
        let permits = i32::try_from(PermitCount::new(permits)?.get()).unwrap_or(i32::MAX);
        self.add_permits(permits).await.map(drop)
    }

    /// Adds `permits` available permits if the semaphore exists; returns `false` if it does not.
    ///
    /// # Errors
    /// [`RequestError`], as of [`add_permits`](Self::add_permits); `InvalidOption` unless `permits`
    /// is 1 to 2147483647.
    pub async fn release_if_exists(&self, permits: u32) -> Result<bool, Error<RequestError>> {
        let call = self.calls(1)?.add_if_exists(PermitCount::new(permits)?);
        self.client.execute_about(self.named_object(), call, is_done).await
    }

    /// Removes all available permits, which no lease then holds. Returns the number of available
    /// permits before; if it was negative, it becomes 0.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn drain_permits(&self) -> Result<i64, Error<RequestError>> {
        self.client.execute_about(self.named_object(), self.calls(1)?.drain(), parse_number).await
    }

    /// Returns the number of available permits; negative after more were removed than there were.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn available_permits(&self) -> Result<i64, Error<RequestError>> {
        Ok(self.inspect().await?.available)
    }

    /// Returns the present state of the semaphore in Redis.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn inspect(&self) -> Result<SemaphoreState, Error<RequestError>> {
        let target = Target::Semaphore(self.calls(1)?);
        let call = |request| target.inspect(request, None);
        self.client.query_about(self.named_object(), call, SemaphoreState::read).await
    }

    /// Returns the permits of all leases of this library, of any client, and returns whether there
    /// were any. Permits that Java programs hold are not recorded in Redis, and stay acquired.
    ///
    /// # Errors
    /// [`RequestError`]; with `Unreachable` the permits may have been returned.
    pub async fn force_release(&self) -> Result<bool, Error<RequestError>> {
        let call = Target::Semaphore(self.calls(1)?).force_release();
        self.client.execute_about(self.named_object(), call, is_done).await
    }

    fn calls(&self, permits: u32) -> Result<SemaphoreCalls, InvalidOption> {
        let permits = PermitCount::new(permits)?;
        Ok(SemaphoreCalls::new(self.name.clone(), self.client.announces(), permits))
    }
}
