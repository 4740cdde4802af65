//! The fair read-write lock.

use alloc::vec::Vec;
use core::fmt;

use super::{Lease, Lock, On};
use crate::client::{self, AcquireOptions, Error, FairReadWriteState, QueryEntry};
use crate::error::{AcquireError, InvalidOption, RequestError};
use crate::host::TokioHost;
use crate::transport::Reqwest;
use edgelatch_proto::name::LockName;

/// A lock for many readers or one writer with one queue for both; see
/// [`client::FairReadWriteLock`].
#[derive(Clone)]
pub struct FairReadWriteLock {
    inner: client::FairReadWriteLock<Reqwest, TokioHost>,
    read: Lock,
    write: Lock,
}

impl fmt::Debug for FairReadWriteLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl FairReadWriteLock {
    pub(super) fn new(inner: client::FairReadWriteLock<Reqwest, TokioHost>, on: &On) -> Self {
        let side = |lock: &client::Lock<_, _>| Lock { inner: lock.clone(), on: on.clone() };
        Self { read: side(inner.read()), write: side(inner.write()), inner }
    }

    /// Sets the text that identifies this client; see [`client::FairReadWriteLock::client_id`].
    ///
    /// # Errors
    /// [`InvalidOption`].
    pub fn client_id(self, id: &str) -> Result<Self, InvalidOption> {
        Ok(Self::new(self.inner.client_id(id)?, &self.read.on))
    }

    /// Returns the lock's name.
    pub const fn name(&self) -> &LockName {
        self.inner.name()
    }

    /// Returns the lock that readers share.
    pub const fn read(&self) -> &Lock {
        &self.read
    }

    /// Returns the lock of a writer.
    pub const fn write(&self) -> &Lock {
        &self.write
    }

    /// Acquires the write side at once; see [`client::FairReadWriteLock::steal`].
    ///
    /// # Errors
    /// [`AcquireError`]; never `Busy`.
    pub fn steal(&self) -> Result<Lease, Error<AcquireError>> {
        self.steal_with(AcquireOptions::new())
    }

    /// Acquires the write side at once, with options; see
    /// [`client::FairReadWriteLock::steal_with`].
    ///
    /// # Errors
    /// [`AcquireError`]; never `Busy`.
    pub fn steal_with(&self, options: AcquireOptions) -> Result<Lease, Error<AcquireError>> {
        let on = &self.write.on;
        let inner = on.wait(self.inner.steal_with(options))?;
        Ok(Lease { inner, on: on.clone() })
    }

    /// Returns the state of the lock; see [`client::FairReadWriteLock::inspect`].
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn inspect(&self) -> Result<FairReadWriteState, Error<RequestError>> {
        self.write.on.wait(self.inner.inspect())
    }

    /// Returns the holds and waits of the namespace; see [`client::FairReadWriteLock::query`].
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn query(&self) -> Result<Vec<QueryEntry>, Error<RequestError>> {
        self.write.on.wait(self.inner.query())
    }

    /// Ends the holds of all clients; see [`client::FairReadWriteLock::force_release`].
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn force_release(&self) -> Result<bool, Error<RequestError>> {
        self.write.on.wait(self.inner.force_release())
    }
}
