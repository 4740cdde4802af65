//! Semaphores and latches.

use core::fmt;
use core::time::Duration;

use super::{Lock, On};
use crate::client::{self, AcquireOptions};
use crate::error::{AcquireError, InvalidOption, RequestError};
use crate::host::TokioHost;
use crate::transport::Reqwest;
use edgelatch_proto::machine::{PermitsState, SemaphoreState};
use edgelatch_proto::name::PermitId;

/// A number of permits that clients share; see [`client::Semaphore`].
#[derive(Clone)]
pub struct Semaphore {
    inner: client::Semaphore<Reqwest, TokioHost>,
    on: On,
}

/// A semaphore whose permits each have an id and an end; see [`client::PermitExpirableSemaphore`].
#[derive(Clone)]
pub struct PermitExpirableSemaphore {
    inner: client::PermitExpirableSemaphore<Reqwest, TokioHost>,
    on: On,
}

/// A latch that opens when its count reaches 0; see [`client::CountDownLatch`].
#[derive(Clone)]
pub struct CountDownLatch {
    inner: client::CountDownLatch<Reqwest, TokioHost>,
    on: On,
}

impl fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl fmt::Debug for PermitExpirableSemaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl fmt::Debug for CountDownLatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl Semaphore {
    pub(super) const fn new(inner: client::Semaphore<Reqwest, TokioHost>, on: On) -> Self {
        Self { inner, on }
    }

    /// Returns a lock whose leases hold this number of permits each.
    ///
    /// # Errors
    /// [`InvalidOption`].
    pub fn permits(&self, permits: u32) -> Result<Lock, InvalidOption> {
        Ok(Lock { inner: self.inner.permits(permits)?, on: self.on.clone() })
    }

    /// Creates the semaphore and returns whether it did not exist; see
    /// [`client::Semaphore::try_set_permits`].
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn try_set_permits(
        &self,
        permits: u32,
        life: Option<Duration>,
    ) -> Result<bool, RequestError> {
        self.on.wait(self.inner.try_set_permits(permits, life))
    }

    /// Adds or removes permits and returns the available number; see
    /// [`client::Semaphore::add_permits`].
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn add_permits(&self, permits: i32) -> Result<i64, RequestError> {
        self.on.wait(self.inner.add_permits(permits))
    }

    /// Makes permits available that no lease holds; see [`client::Semaphore::release`].
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn release(&self, permits: u32) -> Result<(), RequestError> {
        self.on.wait(self.inner.release(permits))
    }

    /// Makes permits available if the semaphore exists; see
    /// [`client::Semaphore::release_if_exists`].
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn release_if_exists(&self, permits: u32) -> Result<bool, RequestError> {
        self.on.wait(self.inner.release_if_exists(permits))
    }

    /// Removes all available permits and returns their number; see
    /// [`client::Semaphore::drain_permits`].
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn drain_permits(&self) -> Result<i64, RequestError> {
        self.on.wait(self.inner.drain_permits())
    }

    /// Returns the number of available permits; see [`client::Semaphore::available_permits`].
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn available_permits(&self) -> Result<i64, RequestError> {
        self.on.wait(self.inner.available_permits())
    }

    /// Returns the state of the semaphore in Redis; see [`client::Semaphore::inspect`].
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn inspect(&self) -> Result<SemaphoreState, RequestError> {
        self.on.wait(self.inner.inspect())
    }

    /// Releases the permits of all leases; see [`client::Semaphore::force_release`].
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn force_release(&self) -> Result<bool, RequestError> {
        self.on.wait(self.inner.force_release())
    }
}

impl PermitExpirableSemaphore {
    pub(super) const fn new(
        inner: client::PermitExpirableSemaphore<Reqwest, TokioHost>,
        on: On,
    ) -> Self {
        Self { inner, on }
    }

    /// Returns a lock whose leases hold this number of permits each.
    ///
    /// # Errors
    /// [`InvalidOption`].
    pub fn permits(&self, permits: u16) -> Result<Lock, InvalidOption> {
        Ok(Lock { inner: self.inner.permits(permits)?, on: self.on.clone() })
    }

    /// Releases permits by their ids and returns how many were held; see
    /// [`client::PermitExpirableSemaphore::release`].
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn release(&self, ids: &[PermitId]) -> Result<u64, RequestError> {
        self.on.wait(self.inner.release(ids))
    }

    /// Sets the end of permits; see [`client::PermitExpirableSemaphore::update_lease_time`].
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn update_lease_time(
        &self,
        ids: &[PermitId],
        lease: Option<Duration>,
    ) -> Result<bool, RequestError> {
        self.on.wait(self.inner.update_lease_time(ids, lease))
    }

    /// Creates the semaphore and returns whether it did not exist; see
    /// [`client::PermitExpirableSemaphore::try_set_permits`].
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn try_set_permits(&self, permits: u32) -> Result<bool, RequestError> {
        self.on.wait(self.inner.try_set_permits(permits))
    }

    /// Sets the total number of permits and returns the available number; see
    /// [`client::PermitExpirableSemaphore::set_permits`].
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn set_permits(&self, permits: u32) -> Result<i64, RequestError> {
        self.on.wait(self.inner.set_permits(permits))
    }

    /// Adds or removes permits and returns the available number; see
    /// [`client::PermitExpirableSemaphore::add_permits`].
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn add_permits(&self, permits: i32) -> Result<i64, RequestError> {
        self.on.wait(self.inner.add_permits(permits))
    }

    /// Returns the state of the semaphore and of permits; see
    /// [`client::PermitExpirableSemaphore::inspect`].
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn inspect(&self, ids: &[PermitId]) -> Result<PermitsState, RequestError> {
        self.on.wait(self.inner.inspect(ids))
    }

    /// Releases all permits of all clients; see
    /// [`client::PermitExpirableSemaphore::force_release`].
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn force_release(&self) -> Result<bool, RequestError> {
        self.on.wait(self.inner.force_release())
    }
}

impl CountDownLatch {
    pub(super) const fn new(inner: client::CountDownLatch<Reqwest, TokioHost>, on: On) -> Self {
        Self { inner, on }
    }

    /// Closes an open latch with this count; see [`client::CountDownLatch::try_set_count`].
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn try_set_count(&self, count: u64) -> Result<bool, RequestError> {
        self.on.wait(self.inner.try_set_count(count))
    }

    /// Decrements the count and returns the new count; see [`client::CountDownLatch::count_down`].
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn count_down(&self) -> Result<u64, RequestError> {
        self.on.wait(self.inner.count_down())
    }

    /// Returns the count; see [`client::CountDownLatch::count`].
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn count(&self) -> Result<u64, RequestError> {
        self.on.wait(self.inner.count())
    }

    /// Opens the latch; see [`client::CountDownLatch::delete`].
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn delete(&self) -> Result<bool, RequestError> {
        self.on.wait(self.inner.delete())
    }

    /// Waits until the latch is open; see [`client::CountDownLatch::wait_with`].
    ///
    /// # Errors
    /// [`AcquireError`].
    pub fn wait(&self, options: AcquireOptions) -> Result<(), AcquireError> {
        self.on.wait(self.inner.wait_with(options))
    }
}
