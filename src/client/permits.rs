//! The permit-expirable semaphore: Redisson's `RPermitExpirableSemaphore`.

use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use super::error::{Error, Object};
use super::lock::Lock;
use super::options::AcquireOptions;
use super::requests::{NamedObject, count, is_done};
use super::{Client, Lease};
use crate::error::{AcquireError, InvalidOption, RequestError};
use crate::host::Host;
use crate::transport::Transport;
use edgelatch_proto::machine::{PermitsState, parse_number};
use edgelatch_proto::name::{LockName, PermitId};
use edgelatch_proto::protocol::calls::{BatchSize, PermitCalls, PermitTotal, Target};
use edgelatch_proto::timing::{LeaseTime, PeerSkew};

/// A number of permits shared by all clients, each with an id and optionally an expiry.
///
/// Permits are acquired as a [`Lease`], whose [`permit_ids`](Lease::permit_ids) can be passed to
/// other programs: any client that has an id can release the permit. By default permits are held
/// until they are released, as with Redisson.
///
/// Dropping the future of an acquisition has the effect described for a
/// [`Lock`](super::Lock#dropped-acquisitions). **With a client from
/// [`Client::new`](super::Client::new), permits whose grant was under way stay acquired until their
/// lease ends, or for ever if they have no lease.**
pub struct PermitExpirableSemaphore<T: Transport, H: Host> {
    client: Client<T, H>,
    name: LockName,
    skew: PeerSkew,
}

impl<T: Transport, H: Host> Clone for PermitExpirableSemaphore<T, H> {
    fn clone(&self) -> Self {
        Self { client: self.client.clone(), name: self.name.clone(), skew: self.skew }
    }
}

impl<T: Transport, H: Host> fmt::Debug for PermitExpirableSemaphore<T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PermitExpirableSemaphore").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<T: Transport, H: Host> PermitExpirableSemaphore<T, H> {
    pub(super) const fn new(client: Client<T, H>, name: LockName, skew: PeerSkew) -> Self {
        Self { client, name, skew }
    }

    /// The object of requests and of errors.
    const fn named_object(&self) -> NamedObject<'_> {
        (Object::Semaphore, &self.name)
    }

    /// Returns the semaphore's name.
    pub const fn name(&self) -> &LockName {
        &self.name
    }

    /// Returns a lock that acquires `permits` permits at once, with all methods of [`Lock`]. Sends
    /// nothing.
    ///
    /// # Errors
    /// [`InvalidOption`] unless `permits` is 1 to 1000.
    pub fn permits(&self, permits: u16) -> Result<Lock<T, H>, InvalidOption> {
        Ok(self.client.lock_for(Target::Permits(self.calls(permits)?)))
    }

    /// Waits for `permits` permits, at most 30 s, and acquires them until they are released.
    ///
    /// # Errors
    /// [`AcquireError`]; [`AcquireError::NotSetUp`] if the semaphore does not exist.
    pub async fn acquire(&self, permits: u16) -> Result<Lease<T, H>, Error<AcquireError>> {
        self.permits(permits)?.acquire_with(AcquireOptions::new()).await
    }

    /// Acquires `permits` permits if they are available, without waiting; returns `None` if they
    /// are not.
    ///
    /// # Errors
    /// [`AcquireError`]; never `Busy`.
    pub async fn try_acquire(
        &self,
        permits: u16,
    ) -> Result<Option<Lease<T, H>>, Error<AcquireError>> {
        self.permits(permits)?.try_acquire().await
    }

    /// Releases permits by their ids, regardless of the client that acquired them. Returns how many
    /// of them were held: an id that was released before, or has expired and was evicted, does not
    /// count.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn release(&self, ids: &[PermitId]) -> Result<u64, Error<RequestError>> {
        let call = self.calls(1)?.release_ids(ids);
        self.client.execute_about(self.named_object(), call, count).await
    }

    /// Sets the expiry of permits to `lease` from now, which can be sooner or later than before:
    /// 100 ms to 24 h in whole milliseconds; `None` for no expiry. Returns `false` if some of them
    /// are not held; the expiry of the held ones is set nevertheless.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn update_lease_time(
        &self,
        ids: &[PermitId],
        lease: Option<Duration>,
    ) -> Result<bool, Error<RequestError>> {
        let lease = lease.map_or(Ok(LeaseTime::ENDLESS), LeaseTime::new)?;
        let call = self.calls(1)?.update_lease(ids, lease);
        self.client.execute_about(self.named_object(), call, is_done).await
    }

    /// Creates the semaphore with `permits` permits, 0 to 2147483647. Returns `false` if it exists
    /// already.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn try_set_permits(&self, permits: u32) -> Result<bool, Error<RequestError>> {
        let call = self.calls(1)?.try_set(PermitTotal::new(permits)?);
        self.client.execute_about(self.named_object(), call, is_done).await
    }

    /// Sets the total number of permits, including those that are held, to `permits`: 0 to
    /// 2147483647. Returns the new number of available permits, which can be negative.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn set_permits(&self, permits: u32) -> Result<i64, Error<RequestError>> {
        let call = self.calls(1)?.set(PermitTotal::new(permits)?);
        self.client.execute_about(self.named_object(), call, parse_number).await
    }

    /// Adds `permits` available permits, or removes them if negative; creates the semaphore if it
    /// does not exist. Returns the new number of available permits, which can be negative.
    ///
    /// # Errors
    /// [`RequestError`]; `Refused` with the code `LIMIT` if available and held permits together
    /// would exceed 2147483647, or the available ones be less than -2147483648.
    pub async fn add_permits(&self, permits: i32) -> Result<i64, Error<RequestError>> {
        self.client
            .execute_about(self.named_object(), self.calls(1)?.add(permits), parse_number)
            .await
    }

    /// Returns the present state of the semaphore in Redis, and of the permits with these ids.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn inspect(&self, ids: &[PermitId]) -> Result<PermitsState, Error<RequestError>> {
        let calls = self.calls(1)?;
        let call = |request| calls.inspect_ids(request, ids);
        self.client.query_about(self.named_object(), call, PermitsState::read).await
    }

    /// Releases all permits that are held by any client, including Java programs. Returns whether
    /// there were any.
    ///
    /// # Errors
    /// [`RequestError`]; with `Unreachable` the permits may have been released.
    pub async fn force_release(&self) -> Result<bool, Error<RequestError>> {
        let call = Target::Permits(self.calls(1)?).force_release();
        self.client.execute_about(self.named_object(), call, is_done).await
    }

    fn calls(&self, permits: u16) -> Result<PermitCalls, InvalidOption> {
        let permits = BatchSize::new(permits)?;
        Ok(PermitCalls::new(self.name.clone(), self.client.announces(), permits, self.skew))
    }
}

impl<T: Transport, H: Host> Lease<T, H> {
    /// Returns the ids of the permits, for a lease of a permit-expirable semaphore; for any other
    /// lease an empty list.
    pub fn permit_ids(&self) -> Vec<PermitId> {
        self.first_counting_part(|_, target, grant| target.permit_ids(grant.owner))
            .unwrap_or_default()
    }
}
