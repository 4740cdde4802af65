//! The clients of a lock, one for each of its parts.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::iter;

use super::Client;
use super::link::Link;
use crate::transport::Transport;

/// At least one client; the place of each is that of its part.
pub(super) struct Clients<T: Transport, H> {
    first: Client<T, H>,
    others: Arc<[Client<T, H>]>,
}

impl<T: Transport, H> Clients<T, H> {
    pub(super) fn one(client: Client<T, H>) -> Self {
        Self { first: client, others: Arc::default() }
    }

    /// `None` when there is none.
    pub(super) fn new(clients: Vec<Client<T, H>>) -> Option<Self> {
        let mut clients = clients.into_iter();
        Some(Self { first: clients.next()?, others: clients.collect() })
    }

    pub(super) const fn first(&self) -> &Client<T, H> {
        &self.first
    }

    /// The client of the part at this place.
    pub(super) fn at(&self, place: usize) -> &Client<T, H> {
        place.checked_sub(1).and_then(|place| self.others.get(place)).unwrap_or(&self.first)
    }

    /// Whether web pages are all that has ever come from their addresses.
    pub(super) fn have_no_gateway(&self) -> bool {
        iter::once(&self.first).chain(&*self.others).all(|client| client.link().has_no_gateway())
    }

    /// The ways to the gateways of the parts at these places.
    pub(super) fn links(&self, places: impl Iterator<Item = usize>) -> Vec<&Link<T>> {
        places.map(|place| self.at(place).link()).collect()
    }
}

impl<T: Transport, H> Clone for Clients<T, H> {
    fn clone(&self) -> Self {
        Self { first: self.first.clone(), others: Arc::clone(&self.others) }
    }
}
