//! Locks and leases.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;
use std::thread;

use tokio::sync::oneshot;

use super::On;
use crate::client::{self, AcquireOptions, LeaseEnd, RunError, first};
use crate::error::{AcquireError, EvalError, ReleaseError, RequestError};
use crate::host::TokioHost;
use crate::machine::{LeaseState, LockState, Released};
use crate::name::{FencingToken, LockName, PermitId};
use crate::protocol::calls::OwnScript;
use crate::transport::Reqwest;

/// A distributed lock of any kind; see [`client::Lock`].
#[derive(Clone)]
pub struct Lock {
    pub(super) inner: client::Lock<Reqwest, TokioHost>,
    pub(super) on: On,
}

impl fmt::Debug for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl Lock {
    /// Its name; of several, the first.
    pub fn name(&self) -> &LockName {
        self.inner.name()
    }

    /// See [`client::Lock::try_acquire`].
    ///
    /// # Errors
    /// [`AcquireError`]; never `Busy`.
    pub fn try_acquire(&self) -> Result<Option<Lease>, AcquireError> {
        self.try_acquire_with(AcquireOptions::new())
    }

    /// See [`client::Lock::try_acquire_with`].
    ///
    /// # Errors
    /// [`AcquireError`]; never `Busy`.
    pub fn try_acquire_with(&self, options: AcquireOptions) -> Result<Option<Lease>, AcquireError> {
        let lease = self.on.wait(self.inner.try_acquire_with(options))?;
        Ok(lease.map(|inner| Lease { inner, on: self.on.clone() }))
    }

    /// See [`client::Lock::acquire`].
    ///
    /// # Errors
    /// [`AcquireError`].
    pub fn acquire(&self) -> Result<Lease, AcquireError> {
        self.acquire_with(AcquireOptions::new())
    }

    /// See [`client::Lock::acquire_with`].
    ///
    /// # Errors
    /// [`AcquireError`].
    pub fn acquire_with(&self, options: AcquireOptions) -> Result<Lease, AcquireError> {
        let inner = self.on.wait(self.inner.acquire_with(options))?;
        Ok(Lease { inner, on: self.on.clone() })
    }

    /// Acquires, does `work`, renews beside it from a thread that ends with it, releases, and
    /// answers what the work answered.
    ///
    /// # Errors
    /// [`RunError`].
    ///
    /// # Panics
    /// When `work` does; the hold runs out by itself then.
    pub fn run<R>(&self, work: impl FnOnce(&Lease) -> R) -> Result<R, RunError<R>> {
        self.run_with(AcquireOptions::new(), work)
    }

    /// The same with options.
    ///
    /// # Errors
    /// [`RunError`].
    ///
    /// # Panics
    /// As [`run`](Self::run).
    pub fn run_with<R>(
        &self,
        options: AcquireOptions,
        work: impl FnOnce(&Lease) -> R,
    ) -> Result<R, RunError<R>> {
        let lease = self.acquire_with(options).map_err(RunError::Acquire)?;
        let keeping = lease.inner.keep();
        let result = thread::scope(|scope| {
            // Dropped at the end of the work, also when that panics: then nobody renews any more.
            let (_working, stopped) = oneshot::channel::<()>();
            scope.spawn(move || self.on.wait(first(keeping, stopped)));
            work(&lease)
        });
        let lasted = !matches!(lease.state(), LeaseState::Lost(_));
        match lease.release() {
            Ok(Released::Released) if lasted => Ok(result),
            Err(_) if lasted => Ok(result),
            Ok(_) | Err(_) => Err(RunError::Lost(result)),
        }
    }

    /// See [`client::Lock::force_release`].
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn force_release(&self) -> Result<bool, RequestError> {
        self.on.wait(self.inner.force_release())
    }

    /// See [`client::Lock::inspect`].
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn inspect(&self) -> Result<LockState, RequestError> {
        self.on.wait(self.inner.inspect())
    }
}

/// The right to what was taken, for a time; see [`client::Lease`].
#[must_use = "a lease that is dropped blocks the lock until it runs out; release it"]
pub struct Lease {
    pub(super) inner: client::Lease<Reqwest, TokioHost>,
    pub(super) on: On,
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl Lease {
    /// See [`client::Lease::token`].
    pub fn token(&self) -> FencingToken {
        self.inner.token()
    }

    /// See [`client::Lease::token_of`].
    pub fn token_of(&self, name: &str) -> Option<FencingToken> {
        self.inner.token_of(name)
    }

    /// See [`client::Lease::name`].
    pub fn name(&self) -> &LockName {
        self.inner.name()
    }

    /// See [`client::Lease::permit_ids`].
    pub fn permit_ids(&self) -> Vec<PermitId> {
        self.inner.permit_ids()
    }

    /// See [`client::Lease::hold_count`].
    pub fn hold_count(&self) -> u32 {
        self.inner.hold_count()
    }

    /// See [`client::Lease::remaining`].
    pub fn remaining(&self) -> Duration {
        self.inner.remaining()
    }

    /// See [`client::Lease::state`].
    pub fn state(&self) -> LeaseState {
        self.inner.state()
    }

    /// Renews the hold in time until it ends, unless it was taken for a fixed lease: for a thread
    /// of its own.
    pub fn keep(&self) -> LeaseEnd {
        self.on.wait(self.inner.keep())
    }

    /// See [`client::Lease::renew`].
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn renew(&self, lease: Option<Duration>) -> Result<(), RequestError> {
        self.on.wait(self.inner.renew(lease))
    }

    /// See [`client::Lease::is_held`].
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn is_held(&self) -> Result<bool, RequestError> {
        self.on.wait(self.inner.is_held())
    }

    /// See [`client::Lease::eval`].
    ///
    /// # Errors
    /// [`EvalError`].
    pub fn eval(&self, script: &OwnScript) -> Result<String, EvalError> {
        self.on.wait(self.inner.eval(script))
    }

    /// See [`client::Lease::release`].
    ///
    /// # Errors
    /// [`ReleaseError`].
    pub fn release(&self) -> Result<Released, ReleaseError> {
        self.on.wait(self.inner.release())
    }
}

/// Two locks of one name, for readers and for writers; see [`client::ReadWriteLock`].
#[derive(Clone, Debug)]
pub struct ReadWriteLock {
    pub(super) read: Lock,
    pub(super) write: Lock,
}

impl ReadWriteLock {
    /// The reading side.
    pub const fn read(&self) -> &Lock {
        &self.read
    }

    /// The writing side.
    pub const fn write(&self) -> &Lock {
        &self.write
    }
}
