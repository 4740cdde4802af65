//! The client: runs the state machines of `edgelatch-proto` over a transport and a host. All lock
//! rules are in the machines.

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

pub use edgelatch_proto::machine::{
    LeaseState, LockState, PermitsState, Released, SemaphoreState, SpinBackoff,
};
pub use edgelatch_proto::protocol::calls::{FairSettings, GuardedWrite, OwnScript};

use alloc::sync::Arc;
use core::fmt;

use crate::host::Host;
use crate::transport::Transport;
use clients::Clients;
use edgelatch_proto::machine::Entropy;
use edgelatch_proto::protocol::gateway::Gateway;
use edgelatch_proto::timing::AttemptTime;
use link::Link;
use owner::Holds;
use undo::Background;

/// A client of one gateway.
///
/// It holds configuration and the state that it has learned about the gateway, such as Redis'
/// clock. It holds no connection and no timer, and spawns no task except those that undo
/// acquisitions whose future was dropped (see [`Lock`]). Clones share this state and may be used
/// concurrently.
///
/// Calls made in one turn of the event loop, by tasks or by futures that are polled together, are
/// sent as one request if the gateway supports pipelines. If the response to that request is lost,
/// the outcome of each of these calls is unknown, and each call is retried as if it had been sent
/// alone.
pub struct Client<T: Transport, H> {
    inner: Arc<Inner<T, H>>,
    /// The holds of this owner; `None` if the client is no owner.
    holds: Option<Arc<Holds>>,
}

struct Inner<T: Transport, H> {
    link: Link<T>,
    host: H,
    /// Called to undo an acquisition whose future was dropped; `None` if the client has no
    /// background tasks.
    background: Option<Background<T, H>>,
}

impl<T: Transport, H> Client<T, H> {
    /// Creates a client that reaches `gateway` over `transport` and uses the clock, timers and
    /// entropy of `host`. Sends nothing.
    ///
    /// The client spawns no task: if the future of an acquisition is dropped, a grant that was
    /// under way lasts until its lease ends. Clients from `connect`, `connect_with` and
    /// [`with_background`](Self::with_background) release such a grant.
    pub fn new(gateway: Gateway, transport: T, host: H) -> Self {
        Self::make(gateway, transport, host, None)
    }

    /// Creates a client that calls `spawn` when the future of an acquisition is dropped before it
    /// is ready (see [`Lock`]). Sends nothing.
    ///
    /// `spawn` must have [`Undo::run`] run concurrently, for example with
    /// `wasm_bindgen_futures::spawn_local`, and must not block.
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
    /// The longest time for one attempt of a request.
    fn attempt(&self) -> AttemptTime {
        self.inner.link.gateway().attempt()
    }

    /// The entropy for one machine; `None` if the host has none.
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
