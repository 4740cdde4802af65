//! The re-entrant lock: Redisson's `RLock`.

use alloc::sync::Arc;
use core::error;
use core::fmt;
use core::future::{pending, poll_fn};
use core::pin::pin;
use core::task::Poll;

use super::Client;
use super::error::{Error, Kind, Object};
use super::lease::Lease;
use super::observe::Acquisition;
use super::options::AcquireOptions;
use super::owner::Owner;
use super::shared::Shared;
use crate::error::{AcquireError, FailureKind, InvalidOption, LossReason, RequestError};
use crate::host::Host;
use crate::transport::Transport;
use edgelatch_proto::engine::{AcquirePolicy, Context, Engine, LockSpec, MemberSpec, Outcome};
use edgelatch_proto::machine::{LeaseState, LockState, Released};
use edgelatch_proto::name::LockName;
use edgelatch_proto::protocol::reply::Code;

/// A distributed lock of any kind, or a number of permits. Creating and cloning it is cheap and
/// sends nothing; the [`Lease`] that it returns holds the lock.
///
/// # Dropped acquisitions
///
/// **Dropping the future of an acquisition at any point (by `tokio::time::timeout`, `select!` or an
/// aborted task) leaves no hold, with a client from `Client::connect`, `Client::connect_with` or
/// [`Client::with_driver`](super::Client::with_driver):** its driver goes on, releases any hold
/// that was granted, and leaves the queue of a fair lock. It ends when Redis has confirmed that, or
/// after three attempts.
///
/// **Nothing is undone with a client from [`Client::new`](super::Client::new), or if the runtime
/// shuts down first: a grant that was under way then blocks the lock until its lease ends.**
/// [`acquire_cancellable`](Self::acquire_cancellable) undoes a cancelled acquisition in the
/// foreground on every host, and returns when the undo has ended.
///
/// Dropping a [`Lease`] does not release it: its hold lasts until the lease ends.
pub struct Lock<T: Transport, H: Host> {
    pub(super) shared: Arc<Shared<T, H>>,
    pub(super) spec: Arc<LockSpec>,
    /// The owner that created the lock; `None` if the client is no owner.
    pub(super) owner: Option<Arc<Owner<T, H>>>,
    /// Whether errors leave out the names.
    pub(super) redacts: bool,
}

/// The reason why [`Lock::run`] failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunError<R> {
    /// The lock was not acquired, and the work did not start.
    Acquire(Error<AcquireError>),
    /// The lease was lost before the work ended: another client may have held the lock at the same
    /// time.
    Lost {
        /// The result of the work.
        result: R,
        /// The reason of the loss.
        error: Error<LossReason>,
    },
}

impl<R> fmt::Display for RunError<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Acquire(error) => error.fmt(f),
            Self::Lost { error, .. } => error.fmt(f),
        }
    }
}

impl<R: fmt::Debug> error::Error for RunError<R> {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Acquire(error) => error.source(),
            Self::Lost { error, .. } => error.source(),
        }
    }
}

impl<T: Transport, H: Host> Clone for Lock<T, H> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            spec: Arc::clone(&self.spec),
            owner: self.owner.clone(),
            redacts: self.redacts,
        }
    }
}

impl<T: Transport, H: Host> fmt::Debug for Lock<T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lock").field("name", self.name()).finish_non_exhaustive()
    }
}

impl<T: Transport, H: Host> Lock<T, H> {
    /// Creates an error about this lock.
    fn error<K: Kind>(&self, kind: K) -> Error<K> {
        let names = self.spec.names().map(LockName::as_str);
        self.shared.error(kind, Object::of(self.spec.first()), names, self.redacts)
    }

    /// Returns the lock's name; for a multi-lock or redLock, the name of the first in the order
    /// that all clients use, whose fencing token is [`Lease::token`]. Errors name all of them.
    pub fn name(&self) -> &LockName {
        self.spec.name()
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
    pub async fn try_acquire(&self) -> Result<Option<Lease<T, H>>, Error<AcquireError>> {
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
    ) -> Result<Option<Lease<T, H>>, Error<AcquireError>> {
        match self.acquire_once(options).await {
            Ok(lease) => Ok(Some(lease)),
            Err(Error { kind: AcquireError::Busy { .. }, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Acquires the lock without waiting.
    pub(super) async fn acquire_once(
        &self,
        options: AcquireOptions,
    ) -> Result<Lease<T, H>, Error<AcquireError>> {
        let acquired = self.acquire_with_policy(options.check_once()?, pending()).await;
        acquired.map_err(|kind| self.error(kind))
    }

    /// Waits for the lock, at most 30 s, and acquires it with the lease of [`AcquireOptions::new`]:
    /// 30 s, renewed while it is [kept](Lease::keep); permits are held until they are released.
    ///
    /// See [dropped acquisitions](#dropped-acquisitions) for cancellation.
    ///
    /// # Errors
    /// [`AcquireError`]; [`AcquireError::Busy`] when the wait is over.
    pub async fn acquire(&self) -> Result<Lease<T, H>, Error<AcquireError>> {
        self.acquire_with(AcquireOptions::new()).await
    }

    /// Waits for the lock and acquires it, with `options`.
    ///
    /// [Dropping](#dropped-acquisitions) the future before it is ready undoes the acquisition in
    /// the background if the client has a driver; otherwise a grant that was under way lasts until
    /// its lease ends. [`acquire_cancellable`](Self::acquire_cancellable) undoes it in the
    /// foreground.
    ///
    /// # Errors
    /// [`AcquireError`]; [`AcquireError::Busy`] when the wait is over.
    pub async fn acquire_with(
        &self,
        options: AcquireOptions,
    ) -> Result<Lease<T, H>, Error<AcquireError>> {
        self.acquire_cancellable(options, pending()).await
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
    ) -> Result<Lease<T, H>, Error<AcquireError>> {
        let acquired = self.acquire_with_policy(options.check()?, cancel).await;
        acquired.map_err(|kind| self.error(kind))
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
            match select(work.as_mut(), lease.keep()).await {
                Either::First(result) => result,
                // The lease was lost. `work` can observe that through its lease, and decides
                // whether to stop.
                Either::Second(_) => work.await,
            }
        };
        // A lost lease stays lost, even if Redis has not yet ended the hold: `work` may have
        // stopped early because of it.
        let lasted = !matches!(lease.state(), LeaseState::Lost(_));
        match lease.release().await {
            Ok(Released::Released) if lasted => Ok(result),
            // The release is not confirmed, but the lease lasted as long as `work`.
            Err(_) if lasted => Ok(result),
            Ok(_) | Err(_) => Err(lease.run_lost(result)),
        }
    }

    /// Ends the hold of the lock, regardless of the client that holds it. Returns whether there was
    /// a hold.
    ///
    /// # Errors
    /// [`RequestError`]; `InvalidOption` if this is a multi-lock or redLock. With `Unreachable`
    /// the hold may have been ended.
    pub async fn force_release(&self) -> Result<bool, Error<RequestError>> {
        let reply = self.client().execute_once(self.single()?.target.force_release()).await;
        reply.map(|reply| reply.code == Code::Done).map_err(|kind| self.error(kind))
    }

    /// Returns the present state of the lock in Redis. `is_held` is always `false`, because a lock
    /// has no hold of its own: use [`Lease::is_held`].
    ///
    /// # Errors
    /// [`RequestError`]; `InvalidOption` if this is a multi-lock or redLock.
    pub async fn inspect(&self) -> Result<LockState, Error<RequestError>> {
        let target = &self.single()?.target;
        let reply = self.client().query(|request| target.inspect(request, None)).await;
        reply.and_then(|reply| LockState::read(&reply)).map_err(|kind| self.error(kind))
    }

    /// The client of the lock's gateway; for a lock on several gateways, the client of all of them.
    fn client(&self) -> Client<T, H> {
        Client { shared: Arc::clone(&self.shared), owner: None, redacts: self.redacts }
    }

    /// Returns the only member. Rejects a lock of several members: these are force-released and
    /// inspected one by one.
    fn single(&self) -> Result<&MemberSpec, InvalidOption> {
        self.spec.only().ok_or_else(|| InvalidOption::new("lock", "a single one"))
    }

    /// Acquires the lock, with an error that names neither lock nor host.
    async fn acquire_with_policy(
        &self,
        policy: AcquirePolicy,
        cancel: impl Future<Output = ()>,
    ) -> Result<Lease<T, H>, AcquireError> {
        let owner = self.owner.as_ref().map(|owner| owner.handle_in(&self.shared));
        let begin = |engine: &mut Engine, scope, is_cancelled, cx: &mut Context<'_>| {
            let lock = Arc::clone(&self.spec);
            engine.acquire(scope, lock, (policy, owner), is_cancelled, cx)
        };
        let observed = Acquisition::begin(self);
        let acquired = match self.shared.perform_cancellable(cancel, begin).await {
            Some(Outcome::Acquired(acquired)) => acquired,
            _ => Err(AcquireError::Unreachable(FailureKind::NO_ANSWER)),
        };
        let observed = observed.end(&acquired);
        Lease::new(Arc::clone(&self.shared), acquired?, observed, self.redacts)
            .ok_or(AcquireError::Unreachable(FailureKind::NO_ANSWER))
    }
}

/// Waits until one of two futures completes, and drops the other.
pub(crate) async fn select<A, B>(
    a: impl Future<Output = A>,
    b: impl Future<Output = B>,
) -> Either<A, B> {
    let (mut a, mut b) = (pin!(a), pin!(b));
    poll_fn(|cx| {
        if let Poll::Ready(a) = a.as_mut().poll(cx) {
            return Poll::Ready(Either::First(a));
        }
        b.as_mut().poll(cx).map(Either::Second)
    })
    .await
}

/// The output of the future that completed.
#[derive(Debug)]
pub(crate) enum Either<A, B> {
    First(A),
    Second(B),
}
