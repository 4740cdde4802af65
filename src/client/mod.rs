//! The front door: wires machines to a transport and a host. No rule of a lock is in here.

mod drive;
mod hold;
mod lease;
mod link;
mod lock;
mod notice;
mod options;
mod owner;

#[cfg(all(feature = "reqwest", feature = "tokio", not(target_arch = "wasm32")))]
mod native;

pub use hold::LeaseEnd;
pub use lease::Lease;
pub use lock::{Lock, RunError};
pub use options::AcquireOptions;
#[cfg(all(feature = "js", target_arch = "wasm32"))]
pub(crate) use options::Terms;
pub use owner::Owner;

use alloc::sync::Arc;
use core::fmt;

use crate::error::InvalidOption;
use crate::host::Host;
use crate::machine::Entropy;
use crate::name::LockName;
use crate::protocol::gateway::Gateway;
use crate::transport::Transport;
use link::Link;

/// A client of one gateway.
///
/// It holds configuration and what it has learned about the gateway; no connection, task or timer. Clones share that, and
/// may be used from everywhere at once.
pub struct Client<T, H> {
    inner: Arc<Inner<T, H>>,
}

struct Inner<T, H> {
    link: Link<T>,
    host: H,
}

impl<T, H> Client<T, H> {
    /// A client that reaches `gateway` over `transport`, and lives on `host`. Sends nothing.
    pub fn new(gateway: Gateway, transport: T, host: H) -> Self {
        Self { inner: Arc::new(Inner { link: Link::new(gateway, transport), host }) }
    }
}

impl<T: Transport, H: Host> Client<T, H> {
    /// The lock of this name: Redisson's `getLock(name)`.
    ///
    /// # Errors
    /// [`InvalidOption`] when it is no name for a lock, see [`LockName`].
    pub fn lock(&self, name: &str) -> Result<Lock<T, H>, InvalidOption> {
        Ok(Lock::new(self.clone(), LockName::parse(name)?, None))
    }

    /// An owner whose acquisitions of one lock share one hold.
    pub fn owner(&self) -> Owner<T, H> {
        Owner::new(self.clone())
    }

    /// What a machine draws from; `None` when the host has none.
    fn entropy(&self) -> Option<Entropy> {
        self.inner.host.entropy().ok().map(Entropy::new)
    }
}

impl<T, H> Clone for Client<T, H> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<T, H> fmt::Debug for Client<T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("gateway", self.inner.link.gateway()).finish_non_exhaustive()
    }
}
