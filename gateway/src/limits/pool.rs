//! What all clients share, and what of it a request has.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::shares::{Share, semaphore};
use super::{Exceeded, NO_ROOM};

/// What all clients share.
pub(super) struct Pool {
    all: Arc<Semaphore>,
    /// The part of clients with scoped tokens.
    scoped: Arc<Semaphore>,
}

/// Room that is given back when this is dropped.
pub(crate) struct Room {
    shared: OwnedSemaphorePermit,
    /// Of the client, of its address, and of all clients with scoped tokens.
    own: Option<[OwnedSemaphorePermit; 3]>,
}

impl Pool {
    /// However small it is, clients with scoped tokens have `min` of it.
    pub(super) fn new(all: usize, min: usize) -> Self {
        Self { all: semaphore(all), scoped: semaphore(scoped_part(all).max(min)) }
    }

    /// Takes from the shares of client and address first, so that a client without room takes
    /// nothing from the others.
    pub(super) fn take(
        &self,
        shares: Option<&[Arc<Share>; 2]>,
        part: impl Fn(&Share) -> &Arc<Semaphore>,
        number: u32,
    ) -> Result<Room, Exceeded> {
        let own = shares.map(|shares| {
            let [client, address] = take(shares, part, number)?;
            let scoped = try_take(&self.scoped, number).ok_or(Exceeded::Gateway(NO_ROOM))?;
            Ok([client, address, scoped])
        });
        let own = own.transpose()?;
        let shared = try_take(&self.all, number).ok_or(Exceeded::Gateway(NO_ROOM))?;
        Ok(Room { shared, own })
    }
}

impl Room {
    /// Adds room of the same kind and of the same request.
    pub(super) fn join(&mut self, other: Self) {
        self.shared.merge(other.shared);
        if let (Some(own), Some(others)) = (&mut self.own, other.own) {
            own.iter_mut().zip(others).for_each(|(own, other)| own.merge(other));
        }
    }
}

/// What clients with scoped tokens may take together of what all share: the rest is for full
/// tokens.
fn scoped_part(all: usize) -> usize {
    all - all / 4
}

/// Takes a part of the shares of a client and its address.
pub(super) fn take(
    [client, address]: &[Arc<Share>; 2],
    part: impl Fn(&Share) -> &Arc<Semaphore>,
    number: u32,
) -> Result<[OwnedSemaphorePermit; 2], Exceeded> {
    let of = |share| try_take(part(share), number).ok_or(Exceeded::Client(NO_ROOM));
    Ok([of(client)?, of(address)?])
}

fn try_take(semaphore: &Arc<Semaphore>, number: u32) -> Option<OwnedSemaphorePermit> {
    Arc::clone(semaphore).try_acquire_many_owned(number).ok()
}
