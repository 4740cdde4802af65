//! The client API for programs without an event loop: each call blocks its thread until it is
//! complete.
//!
//! ```no_run
//! use edgelatch::blocking::Client;
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let client = Client::from_env()?;
//!     let lock = client.lock("nightly-report")?;
//!     lock.run(|lease| println!("token {}", lease.token().as_u64()))?;
//!     Ok(())
//! }
//! ```
//!
//! Nothing runs in the background. [`Lock::run`] renews from a thread that ends with it; any other
//! lease is renewed while a thread is in [`Lease::keep`]. To bound a wait, give it a time; for
//! cancellation at any moment, use the asynchronous client.

mod fair_read_write;
mod lock;
mod permits;

pub use fair_read_write::FairReadWriteLock;
pub use lock::{Lease, Lock, ReadWriteLock};
pub use permits::{CountDownLatch, PermitExpirableSemaphore, Semaphore};

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use tokio::runtime::{Builder, Runtime};

use crate::client::{self, Error};
use crate::error::{GuardError, InvalidOption, RequestError};
use crate::host::TokioHost;
use crate::transport::Reqwest;
use edgelatch_proto::machine::SpinBackoff;
use edgelatch_proto::protocol::calls::{FairSettings, GuardedWrite};
use edgelatch_proto::protocol::gateway::Gateway;
use edgelatch_proto::timing::{GuardMemory, PeerSkew};

type Inner = client::Client<Reqwest, TokioHost>;

/// A client of one gateway, for programs without an event loop. Clones share its state, and any
/// thread may use them.
#[derive(Clone)]
pub struct Client {
    inner: Inner,
    on: On,
}

/// The runtime of the calls. It has no thread of its own: it runs on the calling threads.
#[derive(Clone)]
struct On(Arc<Runtime>);

impl On {
    fn wait<F: Future>(&self, call: F) -> F::Output {
        self.0.block_on(call)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl Client {
    /// Creates a client, as [`connect`](Self::connect) does, of the gateway in the process's
    /// environment: `UPSTASH_REDIS_REST_URL` and `UPSTASH_REDIS_REST_TOKEN`, else `KV_REST_API_URL`
    /// and `KV_REST_API_TOKEN` ([`Gateway::from_variables`]). It sends nothing.
    ///
    /// # Errors
    /// [`InvalidInput`](std::io::ErrorKind::InvalidInput) with an [`InvalidOption`] that names the
    /// variable that is missing or invalid, or an error of [`connect`](Self::connect).
    ///
    /// # Panics
    /// As [`connect`](Self::connect).
    pub fn from_env() -> std::io::Result<Self> {
        let gateway = Gateway::from_variables(|name| std::env::var(name).ok());
        let invalid = |error| std::io::Error::new(std::io::ErrorKind::InvalidInput, error);
        Self::connect(gateway.map_err(invalid)?)
    }

    /// Creates a client of this gateway. It sends nothing.
    ///
    /// # Errors
    /// The operating system's error if it provides no sockets or timers.
    ///
    /// # Panics
    /// When the system's TLS cannot be set up. Calls panic inside of an asynchronous program: use
    /// the asynchronous client there.
    pub fn connect(gateway: Gateway) -> std::io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        Ok(Self { inner: Inner::connect(gateway), on: On(Arc::new(runtime)) })
    }

    /// Returns the same client with an owner, whose acquisitions are re-entrant; see
    /// [`client::Client::owner`].
    #[must_use]
    pub fn owner(&self) -> Self {
        Self { inner: self.inner.owner(), on: self.on.clone() }
    }

    /// Returns this client with errors that leave out the names of locks and keys; see
    /// [`client::Client::redact_names`].
    #[must_use]
    pub fn redact_names(self) -> Self {
        Self { inner: self.inner.redact_names(), on: self.on }
    }

    /// Returns the re-entrant lock of this name; see [`client::Client::lock`].
    ///
    /// # Errors
    /// [`InvalidOption`].
    pub fn lock(&self, name: &str) -> Result<Lock, InvalidOption> {
        self.inner.lock(name).map(|lock| self.locked(lock))
    }

    /// Returns a lock that is not re-entrant; see [`client::Client::non_reentrant_lock`].
    ///
    /// # Errors
    /// [`InvalidOption`].
    pub fn non_reentrant_lock(&self, name: &str) -> Result<Lock, InvalidOption> {
        self.inner.non_reentrant_lock(name).map(|lock| self.locked(lock))
    }

    /// Returns a lock whose waiters only poll; see [`client::Client::spin_lock`].
    ///
    /// # Errors
    /// [`InvalidOption`].
    pub fn spin_lock(&self, name: &str, backoff: SpinBackoff) -> Result<Lock, InvalidOption> {
        self.inner.spin_lock(name, backoff).map(|lock| self.locked(lock))
    }

    /// Returns a lock whose last token is kept for ever; see [`client::Client::fenced_lock`].
    ///
    /// # Errors
    /// [`InvalidOption`].
    pub fn fenced_lock(&self, name: &str) -> Result<Lock, InvalidOption> {
        self.inner.fenced_lock(name).map(|lock| self.locked(lock))
    }

    /// Returns a lock that serves in the order of arrival; see [`client::Client::fair_lock`].
    ///
    /// # Errors
    /// [`InvalidOption`].
    pub fn fair_lock(&self, name: &str, settings: FairSettings) -> Result<Lock, InvalidOption> {
        self.inner.fair_lock(name, settings).map(|lock| self.locked(lock))
    }

    /// Returns a fair lock that is not re-entrant; see [`client::Client::non_reentrant_fair_lock`].
    ///
    /// # Errors
    /// [`InvalidOption`].
    pub fn non_reentrant_fair_lock(
        &self,
        name: &str,
        settings: FairSettings,
    ) -> Result<Lock, InvalidOption> {
        self.inner.non_reentrant_fair_lock(name, settings).map(|lock| self.locked(lock))
    }

    /// Returns a lock for many readers or one writer; see [`client::Client::read_write_lock`].
    ///
    /// # Errors
    /// [`InvalidOption`].
    pub fn read_write_lock(
        &self,
        name: &str,
        settings: client::ReadWriteSettings,
    ) -> Result<ReadWriteLock, InvalidOption> {
        let lock = self.inner.read_write_lock(name, settings)?;
        let (read, write) = (lock.read().clone(), lock.write().clone());
        Ok(ReadWriteLock { read: self.locked(read), write: self.locked(write) })
    }

    /// Returns a lock for many readers or one writer with one queue for both; see
    /// [`client::Client::fair_read_write_lock`].
    ///
    /// # Errors
    /// [`InvalidOption`].
    pub fn fair_read_write_lock(
        &self,
        name: &str,
        settings: client::FairReadWriteSettings,
    ) -> Result<FairReadWriteLock, InvalidOption> {
        let inner = self.inner.fair_read_write_lock(name, settings)?;
        Ok(FairReadWriteLock::new(inner, &self.on))
    }

    /// Returns a lock on values of a group; see [`client::Client::group_lock`].
    ///
    /// # Errors
    /// [`InvalidOption`].
    pub fn group_lock<V: AsRef<[u8]>>(
        &self,
        group: &str,
        values: impl IntoIterator<Item = V>,
        skew: PeerSkew,
    ) -> Result<Lock, InvalidOption> {
        self.inner.group_lock(group, values, skew).map(|lock| self.locked(lock))
    }

    /// Returns a lock that acquires several locks, all or none; see [`client::Client::multi_lock`].
    ///
    /// # Errors
    /// [`InvalidOption`].
    pub fn multi_lock(&self, locks: impl IntoIterator<Item = Lock>) -> Result<Lock, InvalidOption> {
        let locks: Vec<_> = locks.into_iter().map(|lock| lock.inner).collect();
        self.inner.multi_lock(locks).map(|lock| self.locked(lock))
    }

    /// Returns a lock that a majority of several Redis grants; see [`client::Client::red_lock`].
    ///
    /// # Errors
    /// [`InvalidOption`].
    pub fn red_lock(&self, locks: impl IntoIterator<Item = Lock>) -> Result<Lock, InvalidOption> {
        let locks: Vec<_> = locks.into_iter().map(|lock| lock.inner).collect();
        self.inner.red_lock(locks).map(|lock| self.locked(lock))
    }

    /// Returns a redLock with settings; see [`client::Client::red_lock_with`].
    ///
    /// # Errors
    /// [`InvalidOption`].
    pub fn red_lock_with(
        &self,
        locks: impl IntoIterator<Item = Lock>,
        settings: client::RedLockSettings,
    ) -> Result<Lock, InvalidOption> {
        let locks: Vec<_> = locks.into_iter().map(|lock| lock.inner).collect();
        self.inner.red_lock_with(locks, settings).map(|lock| self.locked(lock))
    }

    /// Returns the semaphore of this name; see [`client::Client::semaphore`].
    ///
    /// # Errors
    /// [`InvalidOption`].
    pub fn semaphore(&self, name: &str) -> Result<Semaphore, InvalidOption> {
        Ok(Semaphore::new(self.inner.semaphore(name)?, self.on.clone()))
    }

    /// Returns a semaphore whose permits have ids and ends; see
    /// [`client::Client::permit_expirable_semaphore`].
    ///
    /// # Errors
    /// [`InvalidOption`].
    pub fn permit_expirable_semaphore(
        &self,
        name: &str,
        skew: PeerSkew,
    ) -> Result<PermitExpirableSemaphore, InvalidOption> {
        let inner = self.inner.permit_expirable_semaphore(name, skew)?;
        Ok(PermitExpirableSemaphore::new(inner, self.on.clone()))
    }

    /// Returns the latch of this name; see [`client::Client::count_down_latch`].
    ///
    /// # Errors
    /// [`InvalidOption`].
    pub fn count_down_latch(&self, name: &str) -> Result<CountDownLatch, InvalidOption> {
        Ok(CountDownLatch::new(self.inner.count_down_latch(name)?, self.on.clone()))
    }

    /// Returns a guard of this key; see [`client::Client::guard`].
    ///
    /// # Errors
    /// [`InvalidOption`].
    pub fn guard(&self, key: &str, memory: GuardMemory) -> Result<Guard, InvalidOption> {
        Ok(Guard { inner: self.inner.guard(key, memory)?, on: self.on.clone() })
    }

    fn locked(&self, inner: client::Lock<Reqwest, TokioHost>) -> Lock {
        Lock { inner, on: self.on.clone() }
    }
}

/// A key that rejects writes with an older fencing token; see [`client::Guard`].
#[derive(Clone)]
pub struct Guard {
    inner: client::Guard<Reqwest, TokioHost>,
    on: On,
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl Guard {
    /// Sets the lock that protects the key; see [`client::Guard::of_lock`].
    ///
    /// # Errors
    /// [`InvalidOption`].
    pub fn of_lock(self, name: &str) -> Result<Self, InvalidOption> {
        Ok(Self { inner: self.inner.of_lock(name)?, ..self })
    }

    /// Writes unless a newer token was seen; see [`client::Guard::write`].
    ///
    /// # Errors
    /// [`GuardError`].
    pub fn write(
        &self,
        lease: &Lease,
        name: Option<&str>,
        write: &GuardedWrite,
    ) -> Result<(), Error<GuardError>> {
        self.on.wait(self.inner.write(&lease.inner, name, write))
    }

    /// Returns the newest token that was seen; see [`client::Guard::newest`].
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn newest(&self) -> Result<Option<u64>, Error<RequestError>> {
        self.on.wait(self.inner.newest())
    }
}
