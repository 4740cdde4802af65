//! Resources that all clients share, and the part that one request holds.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::shares::{Share, semaphore};
use super::{Exceeded, RETRY_SOON};

/// A resource that all clients share, with a permit for each unit.
pub(super) struct Pool {
    all: Arc<Semaphore>,
    /// The part that clients with scoped tokens may use together.
    scoped: Arc<Semaphore>,
}

/// Permits of one request, returned when this is dropped.
pub(crate) struct PoolPermit {
    shared: OwnedSemaphorePermit,
    /// Permits of the client, of its address, and of all clients with scoped tokens; `None` for
    /// full tokens.
    own: Option<[OwnedSemaphorePermit; 3]>,
}

impl Pool {
    /// Creates a pool of `all` units. Clients with scoped tokens may use three quarters, and at
    /// least `min`.
    pub(super) fn new(all: usize, min: usize) -> Self {
        Self { all: semaphore(all), scoped: semaphore(scoped_part(all).max(min)) }
    }

    /// Acquires `number` permits. Checks the shares of client and address first, so that a client
    /// beyond its share uses nothing of the shared pool.
    pub(super) fn try_acquire(
        &self,
        shares: Option<&[Arc<Share>; 2]>,
        part: impl Fn(&Share) -> &Arc<Semaphore>,
        number: u32,
    ) -> Result<PoolPermit, Exceeded> {
        let own = shares.map(|shares| {
            let [client, address] = try_acquire_both(shares, part, number)?;
            let scoped =
                try_acquire_from(&self.scoped, number).ok_or(Exceeded::Gateway(RETRY_SOON))?;
            Ok([client, address, scoped])
        });
        let own = own.transpose()?;
        let shared = try_acquire_from(&self.all, number).ok_or(Exceeded::Gateway(RETRY_SOON))?;
        Ok(PoolPermit { shared, own })
    }
}

impl PoolPermit {
    /// Adds permits of the same pool and the same request.
    pub(super) fn join(&mut self, other: Self) {
        self.shared.merge(other.shared);
        if let (Some(own), Some(others)) = (&mut self.own, other.own) {
            own.iter_mut().zip(others).for_each(|(own, other)| own.merge(other));
        }
    }
}

/// Returns the part of a pool that clients with scoped tokens may use together. The rest is
/// reserved for full tokens.
fn scoped_part(all: usize) -> usize {
    all - all / 4
}

/// Acquires `number` permits of the semaphore `part` from the shares of a client and its address.
pub(super) fn try_acquire_both(
    [client, address]: &[Arc<Share>; 2],
    part: impl Fn(&Share) -> &Arc<Semaphore>,
    number: u32,
) -> Result<[OwnedSemaphorePermit; 2], Exceeded> {
    let of = |share| try_acquire_from(part(share), number).ok_or(Exceeded::Client(RETRY_SOON));
    Ok([of(client)?, of(address)?])
}

fn try_acquire_from(semaphore: &Arc<Semaphore>, number: u32) -> Option<OwnedSemaphorePermit> {
    Arc::clone(semaphore).try_acquire_many_owned(number).ok()
}
