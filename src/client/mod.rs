//! The front door: wires machines to a transport and a host. No rule of a lock is in here.

mod alarm;
mod ask;
mod batch;
mod clients;
mod count_down_latch;
mod drive;
mod events;
mod guard;
mod hold;
mod lease;
mod link;
mod listening;
mod lock;
mod multi;
mod notice;
mod objects;
mod options;
mod owner;
mod permits;
mod plan;
mod red_lock;
mod rollback;
mod semaphore;
mod undo;

#[cfg(all(feature = "reqwest", feature = "tokio", not(target_arch = "wasm32")))]
mod native;

pub use count_down_latch::CountDownLatch;
#[cfg(all(feature = "js", target_arch = "wasm32"))]
pub(crate) use events::Seen;
pub use events::{ClientEvent, ClientEvents, Events};
pub use guard::Guard;
pub use hold::{LeaseEnd, Situation};
pub use lease::Lease;
pub use listening::Waking;
pub use lock::{Lock, RunError};
#[cfg(all(feature = "blocking", not(target_arch = "wasm32")))]
pub(crate) use notice::first;
pub use objects::{ReadWriteLock, ReadWriteSettings};
pub use options::AcquireOptions;
#[cfg(all(feature = "js", target_arch = "wasm32"))]
pub(crate) use options::{HoldTime, Terms};
pub use permits::PermitExpirableSemaphore;
pub use red_lock::RedLockSettings;
pub use semaphore::Semaphore;
pub use undo::Undo;

use alloc::sync::Arc;
use core::fmt;

use crate::host::Host;
use crate::machine::Entropy;
use crate::protocol::gateway::Gateway;
use crate::timing::AttemptTime;
use crate::transport::Transport;
use clients::Clients;
use link::Link;
use owner::Holds;
use undo::Background;

/// A client of one gateway.
///
/// It holds configuration and what it has learned about the gateway; no connection or timer, and no
/// task but those that undo acquisitions whose future was dropped (see [`Lock`]). Clones share
/// that, and may be used from everywhere at once.
///
/// What is asked in one turn of the event loop, by tasks or by futures that are polled together, is
/// one request where the gateway has pipelines. When the answer to that is lost, nothing is known
/// of any of them, and each asks again as it would have for itself.
pub struct Client<T: Transport, H> {
    inner: Arc<Inner<T, H>>,
    /// What it holds as an owner.
    holds: Option<Arc<Holds>>,
}

struct Inner<T: Transport, H> {
    link: Link<T>,
    host: H,
    /// Where acquisitions are undone whose future was dropped; `None` where nothing runs beside the
    /// caller.
    background: Option<Background<T, H>>,
}

impl<T: Transport, H> Client<T, H> {
    /// A client that reaches `gateway` over `transport`, and lives on `host`. Sends nothing.
    ///
    /// It spawns nothing: an acquisition whose future is dropped leaves its grant until the lease
    /// ends. A client from `connect`, `connect_with` or [`with_background`](Self::with_background)
    /// gives such a grant back.
    pub fn new(gateway: Gateway, transport: T, host: H) -> Self {
        Self::make(gateway, transport, host, None)
    }

    /// A client that calls `spawn` when an acquisition is dropped before it is ready (see
    /// [`Lock`]). `spawn` has [`Undo::run`] run beside the caller, for example by
    /// `wasm_bindgen_futures::spawn_local`. It must not block.
    pub fn with_background(gateway: Gateway, transport: T, host: H, spawn: fn(Undo<T, H>)) -> Self {
        Self::make(gateway, transport, host, Some(spawn))
    }

    fn make(gateway: Gateway, transport: T, host: H, background: Option<Background<T, H>>) -> Self {
        let link = Link::new(gateway, transport);
        Self { inner: Arc::new(Inner { link, host, background }), holds: None }
    }

    fn background(&self) -> Option<Background<T, H>> {
        self.inner.background
    }

    fn link(&self) -> &Link<T> {
        &self.inner.link
    }

    fn host(&self) -> &H {
        &self.inner.host
    }
}

impl<T: Transport, H: Host> Client<T, H> {
    /// How long one attempt may take.
    fn attempt(&self) -> AttemptTime {
        self.inner.link.gateway().attempt()
    }

    /// What a machine draws from; `None` when the host has none.
    fn entropy(&self) -> Option<Entropy> {
        self.inner.host.entropy().ok().map(Entropy::new)
    }
}

impl<T: Transport, H> Clone for Client<T, H> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), holds: self.holds.clone() }
    }
}

impl<T: Transport, H> fmt::Debug for Client<T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("gateway", self.inner.link.gateway()).finish_non_exhaustive()
    }
}
