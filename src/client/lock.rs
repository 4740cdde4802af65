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
use crate::machine::{Acquire, AcquireSpec, LeaseState, LockState, Released};
use crate::name::LockName;
use crate::protocol::calls::Target;
use crate::protocol::reply::Code;
use crate::transport::Transport;

/// A distributed lock. Cheap to make and to clone; holds nothing by itself.
///
/// # Dropped acquisitions
///
/// **A future of an acquisition that is dropped before it is ready (by `tokio::time::timeout`,
/// `select!` or an aborted task) is undone in the background: a client from `Client::connect` or
/// `Client::connect_with` spawns a task on the Tokio runtime in whose context the future is
/// dropped.** The task gives back what may have been granted and leaves the queue of a fair lock.
/// It ends when Redis has confirmed that, or after three attempts.
///
/// **Without a Tokio runtime in context, with a client from [`Client::new`], and when the runtime
/// ends first, nothing is undone: a grant that was on its way blocks the lock until its lease
/// ends.** On another runtime, [`Client::with_background`] says where to undo it.
/// [`acquire_cancellable`](Self::acquire_cancellable) gives a wait up in the foreground on every
/// host, and returns when the grant is undone.
///
/// A [`Lease`] that is dropped is not released; it ends with its lease time.
pub struct Lock<T: Transport, H> {
    inner: Arc<Inner<T, H>>,
}

/// What a lock is made of.
pub(super) struct Inner<T: Transport, H> {
    pub(super) clients: Clients<T, H>,
    pub(super) plan: Plan,
    pub(super) key: Key,
    /// What the owner that it was asked of holds.
    pub(super) holds: Option<Arc<Holds>>,
    /// Whether an owner that holds it may take it again.
    pub(super) reenters: bool,
}

/// Why [`Lock::run`] has no good end.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunError<R> {
    /// The lock was not acquired; the work did not begin.
    Acquire(AcquireError),
    /// The work ended with this, but the lease did not last until then: somebody else may have been
    /// at work too.
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

    /// The lock's name; of several, the first.
    pub fn name(&self) -> &LockName {
        self.inner.plan.first.name()
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

    /// Waits for the lock, 30 s at most. The lease is renewed for as long as it is
    /// [kept](Lease::keep).
    ///
    /// # Errors
    /// [`AcquireError`].
    pub async fn acquire(&self) -> Result<Lease<T, H>, AcquireError> {
        self.acquire_with(AcquireOptions::new()).await
    }

    /// Waits for the lock.
    ///
    /// [Dropping](#dropped-acquisitions) the future before it is ready undoes the acquisition in
    /// the background where a Tokio runtime is there, and nowhere else.
    /// [`acquire_cancellable`](Self::acquire_cancellable) undoes it in the foreground.
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
    /// Work that panics, and a future of this that is dropped after the acquisition, leave the hold
    /// to run out by itself.
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
        // Lost once is lost for ever, also when Redis has not yet ended the hold: the work was told
        // to stop.
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
        let (client, target) = self.single()?;
        Ok(client.once(target.force_release()).await?.code == Code::Done)
    }

    /// What Redis says of the lock now; `is_held` is always false here, ask the
    /// [lease](Lease::is_held).
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn inspect(&self) -> Result<LockState, RequestError> {
        let (client, target) = self.single()?;
        let query = client.query(|request| target.inspect(request, None));
        LockState::read(&client.question(query).await?)
    }

    /// What is taken, and its client. Several locks as one are not ended by force or asked about:
    /// their members are, one by one.
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

    /// An address that has returned nothing but web pages is not a gateway's, so nothing was done
    /// there.
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

    /// A hold of its own; inside `writer`, when its owner writes and this is the reading side.
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
