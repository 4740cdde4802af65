//! The permit-expirable semaphore: Redisson's `RPermitExpirableSemaphore`.

use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use super::lock::Lock;
use super::options::AcquireOptions;
use super::{Client, Lease};
use crate::error::{AcquireError, InvalidOption, RequestError};
use crate::host::Host;
use crate::machine::{PermitsState, number};
use crate::name::{LockName, PermitId};
use crate::protocol::calls::{BatchSize, PermitCalls, PermitTotal, Target};
use crate::protocol::reply::Code;
use crate::timing::{LeaseTime, PeerSkew};
use crate::transport::Transport;

/// A number of permits that many share, each with an id and, if it is given one, an end of its own.
///
/// Permits are taken as a [`Lease`], whose [`permit_ids`](Lease::permit_ids) may be handed on: who
/// has an id may give the permit back. Without a lease time they are held until they are given
/// back, as with Redisson.
///
/// **An acquisition whose future is dropped before it is ready is undone in the background where a
/// Tokio runtime is in context, as for a [`Lock`](super::Lock#dropped-acquisitions). Elsewhere
/// nothing is undone: permits that were on their way stay taken until their lease ends, and for
/// ever when they have none.** [`Lock::acquire_cancellable`](super::Lock::acquire_cancellable) of
/// `permits(n)` undoes them in the foreground.
pub struct PermitExpirableSemaphore<T: Transport, H> {
    client: Client<T, H>,
    name: LockName,
    skew: PeerSkew,
}

impl<T: Transport, H> Clone for PermitExpirableSemaphore<T, H> {
    fn clone(&self) -> Self {
        Self { client: self.client.clone(), name: self.name.clone(), skew: self.skew }
    }
}

impl<T: Transport, H> fmt::Debug for PermitExpirableSemaphore<T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PermitExpirableSemaphore").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<T: Transport, H: Host> PermitExpirableSemaphore<T, H> {
    pub(super) const fn new(client: Client<T, H>, name: LockName, skew: PeerSkew) -> Self {
        Self { client, name, skew }
    }

    /// Its name.
    pub const fn name(&self) -> &LockName {
        &self.name
    }

    /// What takes so many permits at once: it is acquired, tried and run like a lock.
    ///
    /// # Errors
    /// [`InvalidOption`] unless they are 1 to 1000.
    pub fn permits(&self, permits: u16) -> Result<Lock<T, H>, InvalidOption> {
        Ok(self.client.taking(Target::Permits(self.calls(permits)?)))
    }

    /// Waits for so many permits, 30 s at most.
    ///
    /// # Errors
    /// [`AcquireError`].
    pub async fn acquire(&self, permits: u16) -> Result<Lease<T, H>, AcquireError> {
        self.permits(permits)?.acquire_with(AcquireOptions::new()).await
    }

    /// Takes so many permits if they are available; `None` when they are not.
    ///
    /// # Errors
    /// [`AcquireError`]; never `Busy`.
    pub async fn try_acquire(&self, permits: u16) -> Result<Option<Lease<T, H>>, AcquireError> {
        self.permits(permits)?.try_acquire().await
    }

    /// Gives permits back by their ids, whoever took them. Answers how many of them were held: an
    /// id that was given back before, or has ended and was evicted, does not count.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn release(&self, ids: &[PermitId]) -> Result<u64, RequestError> {
        let reply = self.client.once(self.calls(1)?.release_ids(ids)).await?;
        Ok(u64::try_from(number(&reply)?).unwrap_or(0))
    }

    /// Lets permits end after this time from now, longer or shorter than before; `None` for no end.
    /// Answers whether all of them are held.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn update_lease_time(
        &self,
        ids: &[PermitId],
        lease: Option<Duration>,
    ) -> Result<bool, RequestError> {
        let lease = lease.map_or(Ok(LeaseTime::ENDLESS), LeaseTime::new)?;
        let call = self.calls(1)?.update_lease(ids, lease);
        Ok(self.client.once(call).await?.code == Code::Done)
    }

    /// Makes the semaphore with so many permits. `false` when it is there already.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn try_set_permits(&self, permits: u32) -> Result<bool, RequestError> {
        let call = self.calls(1)?.try_set(PermitTotal::new(permits)?);
        Ok(self.client.once(call).await?.code == Code::Done)
    }

    /// Makes it have so many permits in all, those that are held included. Answers how many are
    /// available then.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn set_permits(&self, permits: u32) -> Result<i64, RequestError> {
        let call = self.calls(1)?.set(PermitTotal::new(permits)?);
        number(&self.client.once(call).await?)
    }

    /// Makes so many more permits available, or fewer; makes the semaphore if it is not there.
    /// Answers how many there are then.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn add_permits(&self, permits: i32) -> Result<i64, RequestError> {
        number(&self.client.once(self.calls(1)?.add(permits)).await?)
    }

    /// What Redis says of it now, and of these permits.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn inspect(&self, ids: &[PermitId]) -> Result<PermitsState, RequestError> {
        let calls = self.calls(1)?;
        let query = self.client.query(|request| calls.inspect_ids(request, ids));
        let reply = self.client.question(query).await?;
        PermitsState::read(&reply)
    }

    /// Gives all permits back, whoever holds them, Java's too. Answers whether there were any.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn force_release(&self) -> Result<bool, RequestError> {
        let call = Target::Permits(self.calls(1)?).force_release();
        Ok(self.client.once(call).await?.code == Code::Done)
    }

    fn calls(&self, permits: u16) -> Result<PermitCalls, InvalidOption> {
        let permits = BatchSize::new(permits)?;
        Ok(PermitCalls::new(self.name.clone(), self.client.announces(), permits, self.skew))
    }
}

impl<T: Transport, H> Lease<T, H> {
    /// The ids of the permits, for a lease of a permit-expirable semaphore; none for others.
    pub fn permit_ids(&self) -> Vec<PermitId> {
        self.part().map(|part| part.target.permit_ids(part.grant.owner)).unwrap_or_default()
    }
}
