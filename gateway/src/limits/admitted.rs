//! Admitted requests, and the shares that they use.

use std::net::IpAddr;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::shares::Share;

/// Identifies a client for its limits. Several tokens can have one key: see `client` in
/// `scoped/keys.rs`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ClientKey(Arc<str>);

impl ClientKey {
    pub(crate) fn new(text: &str) -> Self {
        Self(text.into())
    }
}

/// The client and the address whose shares a request with a scoped token uses.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) client: ClientKey,
    /// An IPv4 address, or a /64 network of IPv6.
    pub(crate) address: IpAddr,
}

/// An admitted request. It counts against its limits until this is dropped.
pub(crate) struct Admitted(pub(super) Option<Counted>);

/// An admitted request with a scoped token.
pub(super) struct Counted {
    pub(super) source: Source,
    /// The share of the client, and that of its address.
    pub(super) shares: [Arc<Share>; 2],
    pub(super) _requests: [OwnedSemaphorePermit; 2],
}

impl Admitted {
    /// Returns the shares of the client and of its address; `None` for full tokens.
    pub(super) fn shares(&self) -> Option<&[Arc<Share>; 2]> {
        self.0.as_ref().map(|counted| &counted.shares)
    }

    /// Returns the semaphore that a request with a scoped token acquires before it sends to Redis;
    /// `None` for full tokens.
    pub(crate) fn send_permit(&self) -> Option<Arc<Semaphore>> {
        let Counted { shares: [client, _], .. } = self.0.as_ref()?;
        Some(Arc::clone(&client.send_permit))
    }
}
