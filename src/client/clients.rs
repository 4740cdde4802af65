//! The clients of a lock, one for each gateway of its parts.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::iter;

use super::Client;
use super::link::Link;
use crate::transport::Transport;

/// One or more clients. A part refers to its client by its place in this list.
pub(super) struct Clients<T: Transport, H> {
    first: Client<T, H>,
    others: Arc<[Client<T, H>]>,
}

impl<T: Transport, H> Clients<T, H> {
    pub(super) fn one(client: Client<T, H>) -> Self {
        Self { first: client, others: Arc::default() }
    }

    /// Returns `None` if `clients` is empty.
    pub(super) fn new(clients: Vec<Client<T, H>>) -> Option<Self> {
        let mut clients = clients.into_iter();
        Some(Self { first: clients.next()?, others: clients.collect() })
    }

    pub(super) const fn first(&self) -> &Client<T, H> {
        &self.first
    }

    /// The client at this place; the first client for a place that does not exist.
    pub(super) fn at(&self, place: usize) -> &Client<T, H> {
        place.checked_sub(1).and_then(|place| self.others.get(place)).unwrap_or(&self.first)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Client<T, H>> {
        iter::once(&self.first).chain(&*self.others)
    }

    /// Whether all addresses have returned nothing but web pages.
    pub(super) fn have_no_gateway(&self) -> bool {
        self.all().all(|client| client.link().has_no_gateway())
    }

    /// The links of the clients at these places.
    pub(super) fn links(&self, places: impl Iterator<Item = usize>) -> Vec<&Link<T>> {
        places.map(|place| self.at(place).link()).collect()
    }
}

impl<T: Transport, H> Clone for Clients<T, H> {
    fn clone(&self) -> Self {
        Self { first: self.first.clone(), others: Arc::clone(&self.others) }
    }
}
