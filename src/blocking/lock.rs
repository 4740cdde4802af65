//! Locks and leases.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;
use std::thread;

use tokio::sync::oneshot;

use super::On;
use crate::client::{self, AcquireOptions, Error, LeaseEnd, RunError, select};
use crate::error::{AcquireError, EvalError, ReleaseError, RequestError};
use crate::host::TokioHost;
use crate::transport::Reqwest;
use edgelatch_proto::machine::{LeaseState, LockState, Released};
use edgelatch_proto::name::{FencingToken, LockName, PermitId};
use edgelatch_proto::protocol::calls::UserScript;

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
    /// Returns the lock's name; see [`client::Lock::name`].
    pub fn name(&self) -> &LockName {
        self.inner.name()
    }

    /// Acquires the lock if it is free; see [`client::Lock::try_acquire`].
    ///
    /// # Errors
    /// [`AcquireError`]; never `Busy`.
    pub fn try_acquire(&self) -> Result<Option<Lease>, Error<AcquireError>> {
        self.try_acquire_with(AcquireOptions::new())
    }

    /// Acquires the lock if it is free, with options; see [`client::Lock::try_acquire_with`].
    ///
    /// # Errors
    /// [`AcquireError`]; never `Busy`.
    pub fn try_acquire_with(
        &self,
        options: AcquireOptions,
    ) -> Result<Option<Lease>, Error<AcquireError>> {
        let lease = self.on.wait(self.inner.try_acquire_with(options))?;
        Ok(lease.map(|inner| Lease { inner, on: self.on.clone() }))
    }

    /// Waits for the lock and acquires it; see [`client::Lock::acquire`].
    ///
    /// # Errors
    /// [`AcquireError`].
    pub fn acquire(&self) -> Result<Lease, Error<AcquireError>> {
        self.acquire_with(AcquireOptions::new())
    }

    /// Waits for the lock and acquires it, with options; see [`client::Lock::acquire_with`].
    ///
    /// # Errors
    /// [`AcquireError`].
    pub fn acquire_with(&self, options: AcquireOptions) -> Result<Lease, Error<AcquireError>> {
        let inner = self.on.wait(self.inner.acquire_with(options))?;
        Ok(Lease { inner, on: self.on.clone() })
    }

    /// Acquires, calls `work`, renews meanwhile from a thread that ends with `work`, releases, and
    /// returns the result of `work`.
    ///
    /// # Errors
    /// [`RunError`].
    ///
    /// # Panics
    /// When `work` does; the hold then expires by itself.
    pub fn run<R>(&self, work: impl FnOnce(&Lease) -> R) -> Result<R, RunError<R>> {
        self.run_with(AcquireOptions::new(), work)
    }

    /// Runs `work` under the lock as [`run`](Self::run) does, with options.
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
            // Dropped at the end of the work, also if that panics; this ends the renewals.
            let (_working, stopped) = oneshot::channel::<()>();
            scope.spawn(move || self.on.wait(select(keeping, stopped)));
            work(&lease)
        });
        let lasted = !matches!(lease.state(), LeaseState::Lost(_));
        match lease.release() {
            Ok(Released::Released) if lasted => Ok(result),
            Err(_) if lasted => Ok(result),
            Ok(_) | Err(_) => Err(lease.inner.run_lost(result)),
        }
    }

    /// Ends the hold of any client; see [`client::Lock::force_release`].
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn force_release(&self) -> Result<bool, Error<RequestError>> {
        self.on.wait(self.inner.force_release())
    }

    /// Returns the state of the lock in Redis; see [`client::Lock::inspect`].
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn inspect(&self) -> Result<LockState, Error<RequestError>> {
        self.on.wait(self.inner.inspect())
    }
}

/// A hold for a limited time; see [`client::Lease`].
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
    /// Returns the fencing token; see [`client::Lease::token`].
    pub fn token(&self) -> FencingToken {
        self.inner.token()
    }

    /// Returns the fencing token of one of several locks; see [`client::Lease::token_of`].
    pub fn token_of(&self, name: &str) -> Option<FencingToken> {
        self.inner.token_of(name)
    }

    /// Returns the name of the lock; see [`client::Lease::name`].
    pub fn name(&self) -> &LockName {
        self.inner.name()
    }

    /// Returns the ids of the permits; see [`client::Lease::permit_ids`].
    pub fn permit_ids(&self) -> Vec<PermitId> {
        self.inner.permit_ids()
    }

    /// Returns the number of the owner's acquisitions that share the hold; see
    /// [`client::Lease::hold_count`].
    pub fn hold_count(&self) -> u32 {
        self.inner.hold_count()
    }

    /// Returns how long the hold can still be trusted; see [`client::Lease::remaining`].
    pub fn remaining(&self) -> Duration {
        self.inner.remaining()
    }

    /// Returns the state of the lease; see [`client::Lease::state`].
    pub fn state(&self) -> LeaseState {
        self.inner.state()
    }

    /// Renews the hold in time until it ends, unless it has a fixed lease; returns the reason of
    /// the end. Blocks its thread, so call it in a thread of its own.
    pub fn keep(&self) -> LeaseEnd {
        self.on.wait(self.inner.keep())
    }

    /// Extends the hold; see [`client::Lease::renew`].
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn renew(&self, lease: Option<Duration>) -> Result<(), Error<RequestError>> {
        self.on.wait(self.inner.renew(lease))
    }

    /// Returns whether Redis still has the hold; see [`client::Lease::is_held`].
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn is_held(&self) -> Result<bool, Error<RequestError>> {
        self.on.wait(self.inner.is_held())
    }

    /// Runs the caller's script if the lease is still held; see [`client::Lease::eval`].
    ///
    /// # Errors
    /// [`EvalError`].
    pub fn eval(&self, script: &UserScript) -> Result<String, Error<EvalError>> {
        self.on.wait(self.inner.eval(script))
    }

    /// Ends the hold; see [`client::Lease::release`].
    ///
    /// # Errors
    /// [`ReleaseError`].
    pub fn release(&self) -> Result<Released, Error<ReleaseError>> {
        self.on.wait(self.inner.release())
    }
}

/// The read and the write lock of one name; see [`client::ReadWriteLock`].
#[derive(Clone, Debug)]
pub struct ReadWriteLock {
    pub(super) read: Lock,
    pub(super) write: Lock,
}

impl ReadWriteLock {
    /// Returns the lock that readers share.
    pub const fn read(&self) -> &Lock {
        &self.read
    }

    /// Returns the lock of a writer.
    pub const fn write(&self) -> &Lock {
        &self.write
    }
}
