//! The re-entrant lock: Redisson's `RLock`.

use alloc::sync::Arc;
use core::fmt;
use core::future::pending;
use core::pin::{Pin, pin};

use super::Client;
use super::drive::{drive, drive_until};
use super::hold::Hold;
use super::lease::Lease;
use super::notice::{First, first};
use super::options::{AcquireOptions, Terms};
use super::owner::Owner;
use crate::error::{AcquireError, RequestError};
use crate::host::Host;
use crate::machine::{
    Acquire, AcquireSpec, ForceRelease, Inspect, LeaseState, LockState, Released,
};
use crate::name::LockName;
use crate::protocol::script::LockCalls;
use crate::transport::Transport;

/// A distributed lock. Cheap to make and to clone; holds nothing by itself.
pub struct Lock<T, H> {
    client: Client<T, H>,
    calls: LockCalls,
    owner: Option<Owner<T, H>>,
}

/// Why [`Lock::run`] has no good end.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunError<R> {
    /// The lock was not acquired; the work did not begin.
    Acquire(AcquireError),
    /// The work ended with this, but the lease did not last until then: somebody else may have been at work too.
    Lost(R),
}

impl<R> fmt::Display for RunError<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Acquire(error) => error.fmt(f),
            Self::Lost(_) => f.write_str("the lease was lost before the work had ended"),
        }
    }
}

impl<R: fmt::Debug> core::error::Error for RunError<R> {}

impl<T, H> Clone for Lock<T, H> {
    fn clone(&self) -> Self {
        Self { client: self.client.clone(), calls: self.calls.clone(), owner: self.owner.clone() }
    }
}

impl<T, H> fmt::Debug for Lock<T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lock").field("name", &self.calls.name).finish_non_exhaustive()
    }
}

impl<T, H> Lock<T, H> {
    pub(super) fn new(client: Client<T, H>, name: LockName, owner: Option<Owner<T, H>>) -> Self {
        let calls = LockCalls { name, publish: client.inner.link.gateway().announces() };
        Self { client, calls, owner }
    }

    /// The lock's name.
    pub const fn name(&self) -> &LockName {
        &self.calls.name
    }
}

impl<T: Transport, H: Host> Lock<T, H> {
    /// Takes the lock if it is free, in one request; `None` when somebody else holds it.
    ///
    /// # Errors
    /// [`AcquireError`]; never `Busy`.
    pub async fn try_acquire(&self) -> Result<Option<Lease<T, H>>, AcquireError> {
        self.try_acquire_with(AcquireOptions::new()).await
    }

    /// The same with a lease of your own; what the options say of waiting is not looked at.
    ///
    /// # Errors
    /// [`AcquireError`]; never `Busy`.
    pub async fn try_acquire_with(
        &self,
        options: AcquireOptions,
    ) -> Result<Option<Lease<T, H>>, AcquireError> {
        match self.acquire_on(options.check_once()?, pending()).await {
            Ok(lease) => Ok(Some(lease)),
            Err(AcquireError::Busy { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Waits for the lock, 30 s at most. The lease is renewed for as long as it is [kept](Lease::keep).
    ///
    /// # Errors
    /// [`AcquireError`].
    pub async fn acquire(&self) -> Result<Lease<T, H>, AcquireError> {
        self.acquire_with(AcquireOptions::new()).await
    }

    /// Waits for the lock.
    ///
    /// A future of this, as of every acquisition, is not to be dropped half-way (by a time-out of your own, say): a grant that is on its way would then block the lock until it runs
    /// out. To give a wait up, use [`acquire_cancellable`](Self::acquire_cancellable), which undoes it.
    ///
    /// # Errors
    /// [`AcquireError`].
    pub async fn acquire_with(&self, options: AcquireOptions) -> Result<Lease<T, H>, AcquireError> {
        self.acquire_on(options.check()?, pending()).await
    }

    /// Waits for the lock until `cancel` ends; then undoes what may be on its way, and says so.
    ///
    /// # Errors
    /// [`AcquireError`].
    pub async fn acquire_cancellable(
        &self,
        options: AcquireOptions,
        cancel: impl Future<Output = ()>,
    ) -> Result<Lease<T, H>, AcquireError> {
        self.acquire_on(options.check()?, cancel).await
    }

    /// Acquires, does `work`, renews beside it, releases, and answers what the work answered.
    ///
    /// Work that panics, and a future of this that is dropped half-way, leave the hold to run out by itself.
    ///
    /// # Errors
    /// [`RunError`].
    pub async fn run<R>(
        &self,
        work: impl AsyncFnOnce(&Lease<T, H>) -> R,
    ) -> Result<R, RunError<R>> {
        self.run_with(AcquireOptions::new(), work).await
    }

    /// The same with options.
    ///
    /// # Errors
    /// [`RunError`].
    pub async fn run_with<R>(
        &self,
        options: AcquireOptions,
        work: impl AsyncFnOnce(&Lease<T, H>) -> R,
    ) -> Result<R, RunError<R>> {
        let lease = self.acquire_with(options).await.map_err(RunError::Acquire)?;
        let result = {
            let mut work = pin!(work(&lease));
            match first(work.as_mut(), lease.keep()).await {
                First::A(result) => result,
                // Lost: the work is told by its lease, and decides for itself.
                First::B(_) => work.await,
            }
        };
        // Lost once is lost for ever, also when Redis has not yet ended the hold: the work was told to stop.
        let lasted = !matches!(lease.state(), LeaseState::Lost(_));
        match lease.release().await {
            Ok(Released::Released) if lasted => Ok(result),
            // Not known whether it has ended, but it lasted for as long as the work did.
            Err(_) if lasted => Ok(result),
            Ok(_) | Err(_) => Err(RunError::Lost(result)),
        }
    }

    /// Ends whatever hold there is, whoever holds it. Answers whether there was one.
    ///
    /// # Errors
    /// [`RequestError`]; with `Unreachable` it may have been done.
    pub async fn force_release(&self) -> Result<bool, RequestError> {
        let inner = &self.client.inner;
        let entropy = self.client.entropy().ok_or(RequestError::NoEntropy)?;
        let (attempt, clock) = (inner.link.gateway().attempt(), inner.link.clock());
        let calls = self.calls.clone();
        let mut machine = ForceRelease::new(calls, attempt, entropy, clock, inner.host.now());
        drive(&mut machine, &inner.link, &inner.host).await
    }

    /// What Redis says of the lock now; `is_held` is always false here, ask the [lease](Lease::is_held).
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn inspect(&self) -> Result<LockState, RequestError> {
        let inner = &self.client.inner;
        let entropy = self.client.entropy().ok_or(RequestError::NoEntropy)?;
        let mut machine = Inspect::new(&self.calls, None, inner.link.gateway().attempt(), entropy);
        drive(&mut machine, &inner.link, &inner.host).await
    }

    pub(crate) async fn acquire_on(
        &self,
        terms: Terms,
        cancel: impl Future<Output = ()>,
    ) -> Result<Lease<T, H>, AcquireError> {
        let cancel = pin!(cancel);
        let hold = match &self.owner {
            Some(owner) => owner.acquire(self, terms, cancel).await?,
            None => self.take(terms, cancel).await?,
        };
        Ok(Lease::new(self.client.clone(), hold))
    }

    /// A hold of its own.
    pub(super) async fn take(
        &self,
        terms: Terms,
        cancel: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<Arc<Hold>, AcquireError> {
        let inner = &self.client.inner;
        let entropy = self.client.entropy().ok_or(AcquireError::NoEntropy)?;
        let spec = AcquireSpec {
            calls: self.calls.clone(),
            lease: terms.lease,
            patience: terms.patience,
            budget: terms.budget,
            attempt: inner.link.gateway().attempt(),
        };
        let mut machine = Acquire::new(spec, entropy, inner.link.clock(), inner.host.now());
        let grant = drive_until(&mut machine, &[&inner.link], &inner.host, cancel).await?;
        Ok(Arc::new(Hold::new(self.calls.clone(), grant, terms.renews)))
    }
}
