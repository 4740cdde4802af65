//! The re-entrant lock: Redisson's `RLock`.

use alloc::sync::Arc;
use core::fmt;
use core::future::pending;
use core::pin::{Pin, pin};

use super::Client;
use super::clients::Clients;
use super::drive::drive_acquisition;
use super::hold::{Hold, Part};
use super::lease::Lease;
use super::notice::{First, first};
use super::options::{AcquireOptions, Terms};
use super::owner::{Holds, Key};
use super::plan::{Plan, Rule, Term};
use crate::error::{AcquireError, FailureKind, InvalidOption, RequestError};
use crate::host::Host;
use crate::transport::Transport;
use edgelatch_proto::machine::{Acquire, AcquireSpec, LeaseState, LockState, Released};
use edgelatch_proto::name::LockName;
use edgelatch_proto::protocol::calls::Target;
use edgelatch_proto::protocol::reply::Code;

/// A distributed lock of any kind, or a number of permits. Creating and cloning it is cheap and
/// sends nothing; the [`Lease`] that it returns holds the lock.
///
/// # Dropped acquisitions
///
/// **If the future of an acquisition is dropped before it is ready (by `tokio::time::timeout`,
/// `select!` or an aborted task), a client from `Client::connect` or `Client::connect_with` undoes
/// the acquisition in the background: it spawns a task on the Tokio runtime in whose context the
/// future is dropped.** The task releases any hold that was granted and leaves the queue of a fair
/// lock. It ends when Redis has confirmed that, or after three attempts.
///
/// **Nothing is undone without a Tokio runtime in context, with a client from [`Client::new`], or
/// if the runtime shuts down first: a grant that was under way then blocks the lock until its lease
/// ends.** On another runtime, create the client with [`Client::with_background`].
/// [`acquire_cancellable`](Self::acquire_cancellable) undoes a cancelled acquisition in the
/// foreground on every host, and returns when the undo has ended.
///
/// Dropping a [`Lease`] does not release it: its hold lasts until the lease ends.
pub struct Lock<T: Transport, H> {
    inner: Arc<Inner<T, H>>,
}

/// The configuration of a lock.
pub(super) struct Inner<T: Transport, H> {
    pub(super) clients: Clients<T, H>,
    pub(super) plan: Plan,
    pub(super) key: Key,
    /// The holds of the owner that created the lock; `None` if the client is no owner.
    pub(super) holds: Option<Arc<Holds>>,
    /// Whether an owner that holds the lock may acquire it again.
    pub(super) reenters: bool,
}

/// The reason why [`Lock::run`] failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunError<R> {
    /// The lock was not acquired, and the work did not start.
    Acquire(AcquireError),
    /// The work returned this, but the lease was lost before the work ended: another client may
    /// have held the lock at the same time.
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

impl<T: Transport, H> Clone for Lock<T, H> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<T: Transport, H> fmt::Debug for Lock<T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lock").field("name", self.name()).finish_non_exhaustive()
    }
}

impl<T: Transport, H> Lock<T, H> {
    pub(super) fn new(inner: Inner<T, H>) -> Self {
        Self { inner: Arc::new(inner) }
    }

    pub(super) fn inner(&self) -> &Inner<T, H> {
        &self.inner
    }

    pub(super) fn host(&self) -> &H {
        self.inner.clients.first().host()
    }

    /// Returns the lock's name; for several locks taken as one, the name of the first.
    pub fn name(&self) -> &LockName {
        self.inner.plan.first.name()
    }
}

impl<T: Transport, H: Host> Lock<T, H> {
    /// Acquires the lock if it is free, without waiting: one request decides. Returns `None` if
    /// another client holds the lock.
    ///
    /// The lease is that of [`AcquireOptions::new`].
    ///
    /// # Errors
    /// [`AcquireError`]; never `Busy`.
    pub async fn try_acquire(&self) -> Result<Option<Lease<T, H>>, AcquireError> {
        self.try_acquire_with(AcquireOptions::new()).await
    }

    /// Acquires the lock if it is free, without waiting, with the lease and the replicas of
    /// `options`. Returns `None` if another client holds the lock.
    ///
    /// The wait and the request budget of `options` are ignored.
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

    /// Waits for the lock, at most 30 s, and acquires it with the lease of [`AcquireOptions::new`]:
    /// 30 s, renewed while it is [kept](Lease::keep); permits are held until they are released.
    ///
    /// See [dropped acquisitions](#dropped-acquisitions) for cancellation.
    ///
    /// # Errors
    /// [`AcquireError`]; [`AcquireError::Busy`] when the wait is over.
    pub async fn acquire(&self) -> Result<Lease<T, H>, AcquireError> {
        self.acquire_with(AcquireOptions::new()).await
    }

    /// Waits for the lock and acquires it, with `options`.
    ///
    /// [Dropping](#dropped-acquisitions) the future before it is ready undoes the acquisition in
    /// the background if the client can spawn a task; otherwise a grant that was under way lasts
    /// until its lease ends. [`acquire_cancellable`](Self::acquire_cancellable) undoes it in the
    /// foreground.
    ///
    /// # Errors
    /// [`AcquireError`]; [`AcquireError::Busy`] when the wait is over.
    pub async fn acquire_with(&self, options: AcquireOptions) -> Result<Lease<T, H>, AcquireError> {
        self.acquire_on(options.check()?, pending()).await
    }

    /// Waits for the lock until `cancel` completes; then undoes the acquisition and fails with
    /// [`AcquireError::Cancelled`], which says whether a hold may be left.
    ///
    /// # Errors
    /// [`AcquireError`]; [`AcquireError::Busy`] when the wait is over.
    pub async fn acquire_cancellable(
        &self,
        options: AcquireOptions,
        cancel: impl Future<Output = ()>,
    ) -> Result<Lease<T, H>, AcquireError> {
        self.acquire_on(options.check()?, cancel).await
    }

    /// Acquires the lock with the default options, runs `work` while it renews the lease, releases
    /// the lease, and returns the result of `work`.
    ///
    /// If the lease is lost, `work` is not aborted: it can observe the loss through its lease, for
    /// example with [`Lease::lost`]. A panic in `work` does not release the hold, nor does dropping
    /// the future after the acquisition; the hold then lasts until its lease ends.
    ///
    /// # Errors
    /// [`RunError`].
    pub async fn run<R>(
        &self,
        work: impl AsyncFnOnce(&Lease<T, H>) -> R,
    ) -> Result<R, RunError<R>> {
        self.run_with(AcquireOptions::new(), work).await
    }

    /// Acquires the lock with `options`, runs `work` while it renews the lease, releases the lease,
    /// and returns the result of `work`. A loss, a panic and a dropped future have the effects
    /// described for [`run`](Self::run).
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
                // The lease was lost. `work` can observe that through its lease, and decides
                // whether to stop.
                First::B(_) => work.await,
            }
        };
        // A lost lease stays lost, even if Redis has not yet ended the hold: `work` may have
        // stopped early because of it.
        let lasted = !matches!(lease.state(), LeaseState::Lost(_));
        match lease.release().await {
            Ok(Released::Released) if lasted => Ok(result),
            // The release is not confirmed, but the lease lasted as long as `work`.
            Err(_) if lasted => Ok(result),
            Ok(_) | Err(_) => Err(RunError::Lost(result)),
        }
    }

    /// Ends the hold of the lock, regardless of the client that holds it. Returns whether there was
    /// a hold.
    ///
    /// # Errors
    /// [`RequestError`]; `InvalidOption` if this is several locks taken as one. With `Unreachable`
    /// the hold may have been ended.
    pub async fn force_release(&self) -> Result<bool, RequestError> {
        let (client, target) = self.single()?;
        Ok(client.once(target.force_release()).await?.code == Code::Done)
    }

    /// Returns the present state of the lock in Redis. `is_held` is always `false`, because a lock
    /// has no hold of its own: use [`Lease::is_held`].
    ///
    /// # Errors
    /// [`RequestError`]; `InvalidOption` if this is several locks taken as one.
    pub async fn inspect(&self) -> Result<LockState, RequestError> {
        let (client, target) = self.single()?;
        let query = client.query(|request| target.inspect(request, None));
        LockState::read(&client.question(query).await?)
    }

    /// Returns the only target and its client. Rejects a lock of several members: these are
    /// force-released and inspected one by one.
    pub(crate) fn single(&self) -> Result<(&Client<T, H>, &Target), InvalidOption> {
        let Inner { clients, plan, .. } = &*self.inner;
        match plan.rule {
            Rule::One => Ok((clients.first(), &plan.first)),
            Rule::All(_) | Rule::Majority(_) => Err(InvalidOption::new("lock", "a single one")),
        }
    }

    pub(crate) async fn acquire_on(
        &self,
        terms: Terms,
        cancel: impl Future<Output = ()>,
    ) -> Result<Lease<T, H>, AcquireError> {
        let cancel = pin!(cancel);
        let hold = match &self.inner.holds {
            Some(holds) => holds.acquire(self, terms, cancel).await,
            None => self.take(terms, None, cancel).await,
        };
        let hold = hold.map_err(|error| self.explained(error))?;
        Ok(Lease::new(self.inner.clients.clone(), hold))
    }

    /// Replaces an unknown outcome if nothing but web pages has come from the address: it is no
    /// gateway, so nothing was executed there.
    fn explained(&self, error: AcquireError) -> AcquireError {
        match error {
            AcquireError::Unknown { cause: cause @ FailureKind::WebPage { .. }, .. }
                if self.inner.clients.have_no_gateway() =>
            {
                AcquireError::Unreachable(cause)
            }
            error => error,
        }
    }

    /// Acquires a hold that is not shared yet. `writer` is the owner's hold of the write side, if
    /// there is one and this is the read side: the new hold is nested in it.
    pub(super) async fn take(
        &self,
        terms: Terms,
        writer: Option<&Hold>,
        cancel: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<Arc<Hold>, AcquireError> {
        let term = self.inner.plan.term(terms.hold);
        let hold = match &self.inner.plan.rule {
            Rule::One => self.take_one(terms, term, writer, cancel).await,
            Rule::All(members) => self.inner.clients.gather(members, terms, term, cancel).await,
            Rule::Majority(members) => {
                self.inner.clients.majority(members, terms, term, cancel).await
            }
        };
        hold.map(Arc::new)
    }

    async fn take_one(
        &self,
        terms: Terms,
        term: Term,
        writer: Option<&Hold>,
        cancel: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<Hold, AcquireError> {
        let client = self.inner.clients.first();
        let entropy = client.entropy().ok_or(AcquireError::NoEntropy)?;
        let target = match writer.and_then(|writer| writer.parts.first()) {
            Some(part) => self.inner.plan.first.clone().nested_in_write(part.grant.owner),
            None => self.inner.plan.first.clone(),
        };
        let now = client.host().now();
        let spec = AcquireSpec {
            target: target.clone(),
            lease: term.lease,
            patience: terms.patience,
            budget: terms.budget,
            attempt: client.attempt(),
            pacing: self.inner.plan.pacing,
            replicas: terms.replicas,
            newest: client.link().newest(&target),
            is_contended: client.link().is_contended(&target, now),
        };
        let machine = Acquire::new(spec, entropy, client.link().clock(), now);
        let grant = drive_acquisition(machine, &self.inner.clients, [0], cancel).await?;
        client.link().granted(&target, grant.token);
        let part = Part { place: 0, target, grant, counts: true };
        Hold::new([part].into(), 1, term)
    }
}
