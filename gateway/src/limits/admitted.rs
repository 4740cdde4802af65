//! Requests that were let in, and whose shares they take from.

use std::net::IpAddr;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::shares::Share;

/// Those who share the limits of one client: see `client` in `scoped/keys.rs`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ClientKey(Arc<str>);

impl ClientKey {
    pub(crate) fn new(text: &str) -> Self {
        Self(text.into())
    }
}

/// Whose shares a request with a scoped token takes from.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) client: ClientKey,
    /// Of IPv6 the network.
    pub(crate) address: IpAddr,
}

/// A request that was let in. It counts until this is dropped.
pub(crate) struct Admitted(pub(super) Option<Counted>);

/// A request with a scoped token.
pub(super) struct Counted {
    pub(super) source: Source,
    /// Of the client, and of its address.
    pub(super) shares: [Arc<Share>; 2],
    pub(super) _requests: [OwnedSemaphorePermit; 2],
}

impl Admitted {
    /// Those of the client and its address; `None` for full tokens.
    pub(super) fn shares(&self) -> Option<&[Arc<Share>; 2]> {
        self.0.as_ref().map(|counted| &counted.shares)
    }

    /// What a request of a client with a scoped token waits for before it sends to Redis.
    pub(crate) fn turn(&self) -> Option<Arc<Semaphore>> {
        let Counted { shares: [client, _], .. } = self.0.as_ref()?;
        Some(Arc::clone(&client.turn))
    }
}
