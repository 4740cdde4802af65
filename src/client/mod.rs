//! The client: typed objects over the engine of `edgelatch-proto`, and the driver of its I/O. All
//! rules are in the engine and its machines.

mod count_down_latch;
mod driver;
mod error;
mod events;
mod fair_read_write;
mod guard;
mod lease;
mod lock;
#[cfg(feature = "metrics")]
#[path = "observe/metrics.rs"]
mod meters;
#[cfg(all(feature = "tracing", not(feature = "metrics")))]
#[path = "observe/no_metrics.rs"]
mod meters;
mod multi;
mod objects;
#[cfg(any(feature = "metrics", feature = "tracing"))]
mod observe;
#[cfg(not(any(feature = "metrics", feature = "tracing")))]
#[path = "observe/off.rs"]
mod observe;
mod operation;
mod options;
mod owner;
mod permits;
mod requests;
mod semaphore;
mod shared;
#[cfg(feature = "tracing")]
#[path = "observe/tracing.rs"]
mod spans;
#[cfg(all(feature = "metrics", not(feature = "tracing")))]
#[path = "observe/no_tracing.rs"]
mod spans;

#[cfg(all(feature = "reqwest", feature = "tokio", not(target_arch = "wasm32")))]
mod native;
#[cfg(all(feature = "web", target_arch = "wasm32"))]
mod web;

pub use count_down_latch::CountDownLatch;
pub use driver::Driver;
pub use error::Error;
pub use events::{ClientEvent, ClientEvents, Events};
pub use fair_read_write::FairReadWriteLock;
pub use guard::Guard;
pub use lease::Lease;
#[cfg(all(feature = "blocking", not(target_arch = "wasm32")))]
pub(crate) use lock::select;
pub use lock::{Lock, RunError};
pub use multi::RedLockSettings;
pub use objects::{ReadWriteLock, ReadWriteSettings};
pub use options::AcquireOptions;
pub use permits::PermitExpirableSemaphore;
pub use semaphore::Semaphore;

pub use edgelatch_proto::engine::{LeaseEnd, NotificationMode, Situation};
pub use edgelatch_proto::machine::{
    FairReadWriteState, LeaseState, LockState, PermitsState, Released, SemaphoreState, SpinBackoff,
};
pub use edgelatch_proto::protocol::calls::{
    FairReadWriteSettings, FairSettings, GuardedWrite, QueryEntry, UserScript,
};

use alloc::sync::Arc;
use core::fmt;

use crate::host::Host;
use crate::transport::Transport;
use edgelatch_proto::protocol::gateway::Gateway;
use owner::Owner;
use shared::{Shared, Spawn};

/// A client of one gateway.
///
/// It holds configuration and the state that it has learned about the gateway, such as Redis'
/// clock. Clones share this state and may be used concurrently.
///
/// Calls made in one turn of the event loop, by tasks or by futures that are polled together, are
/// sent as one request if the gateway supports pipelines. If the response to that request is lost,
/// the outcome of each of these calls is unknown, and each call is retried as if it had been sent
/// alone.
pub struct Client<T: Transport, H: Host> {
    shared: Arc<Shared<T, H>>,
    /// The owner that this client acts as, if it is one.
    owner: Option<Arc<Owner<T, H>>>,
    /// Whether errors leave out the names of locks and keys.
    redacts: bool,
}

impl<T: Transport, H: Host> Client<T, H> {
    /// Creates a client that reaches `gateway` over `transport` and uses the clock, timers and
    /// entropy of `host`. Sends nothing.
    ///
    /// The client spawns no task. Each operation does its own I/O while it is polled: operations
    /// share neither requests nor streams, and if the future of an acquisition is dropped, a grant
    /// that was under way lasts until its lease ends. Clients from `connect`, `connect_with` and
    /// [`with_driver`](Self::with_driver) share I/O, and release such a grant.
    pub fn new(gateway: Gateway, transport: T, host: H) -> Self {
        Self::create_client(gateway, transport, host, None)
    }

    /// Creates a client whose I/O is done by a [`Driver`]. Sends nothing.
    ///
    /// `spawn` is called when there is something to do and no driver is running. It must have
    /// [`Driver::run`] run concurrently, for example with `wasm_bindgen_futures::spawn_local`, and
    /// must not block. In a Worker, where I/O belongs to the request that began it, it is called
    /// for the operations that begin in one turn of the event loop, in their request.
    pub fn with_driver(gateway: Gateway, transport: T, host: H, spawn: fn(Driver<T, H>)) -> Self {
        Self::create_client(gateway, transport, host, Some(spawn))
    }

    fn create_client(gateway: Gateway, transport: T, host: H, spawn: Option<Spawn<T, H>>) -> Self {
        Self { shared: Shared::new(gateway, transport, host, spawn), owner: None, redacts: false }
    }

    /// Returns this client with errors that leave out the names of locks and keys, which otherwise
    /// appear in messages and logs. Objects that were created before keep naming them.
    #[must_use]
    pub fn redact_names(mut self) -> Self {
        self.redacts = true;
        self
    }

    const fn shared(&self) -> &Arc<Shared<T, H>> {
        &self.shared
    }
}

impl<T: Transport, H: Host> Clone for Client<T, H> {
    fn clone(&self) -> Self {
        let (shared, owner) = (Arc::clone(&self.shared), self.owner.clone());
        Self { shared, owner, redacts: self.redacts }
    }
}

impl<T: Transport, H: Host> fmt::Debug for Client<T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("gateway", &self.shared).finish_non_exhaustive()
    }
}
