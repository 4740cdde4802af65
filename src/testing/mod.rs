//! A gateway in memory for unit tests: locks without a server, in Tokio's paused clock.
//!
//! The gateway runs a model of the scripts that edgelatch runs in Redis; the project's tests
//! compare that model with a real Redis. Locks, waits, streams and fencing tokens behave as they do
//! in production, and [`TestGateway`] causes the failures that a test needs.
//!
//! A client of a test has another type than one over `reqwest`, so code under test is generic over
//! [`Transport`](crate::transport::Transport) and [`Host`](crate::host::Host):
//!
//! ```
//! use std::time::Duration;
//!
//! use edgelatch::host::Host;
//! use edgelatch::testing::{HoldOptions, TestGateway};
//! use edgelatch::transport::Transport;
//! use edgelatch::{AcquireOptions, Client};
//!
//! /// The code under test: returns whether it wrote the report.
//! async fn write_report<T: Transport, H: Host>(client: &Client<T, H>) -> bool {
//!     let lock = client.lock("report").unwrap();
//!     let Ok(Some(lease)) = lock.try_acquire().await else { return false };
//!     lease.release().await.is_ok()
//! }
//!
//! // `#[tokio::test(start_paused = true)]` in a test.
//! #[tokio::main(flavor = "current_thread", start_paused = true)]
//! async fn main() {
//!     let gateway = TestGateway::new();
//!     let client = gateway.client();
//!     assert!(write_report(&client).await);
//!
//!     let other = gateway.hold("report", HoldOptions::default()).unwrap();
//!     assert!(!write_report(&client).await);
//!     other.release();
//!     assert!(write_report(&client).await);
//! }
//! ```
//!
//! `docs/testing.md` has a test of each failure: another client holds the lock, the lease is lost
//! in the middle, the gateway is down.

mod transport;

pub use edgelatch_testing::{Held, HoldError, HoldOptions, Kind};
pub use transport::{TestSending, TestStream, TestTransport};

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::mem;
use core::task::Waker;
use core::time::Duration;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ::tokio::runtime::Handle;
use ::tokio::time::Instant;

use crate::client::{Client, Driver};
use crate::host::TokioHost;
use crate::name::FencingToken;
use edgelatch_proto::protocol::gateway::Gateway;
use edgelatch_testing::MemoryGateway;

/// The time of the gateway's Redis when the gateway is created: 2026-01-01 00:00:00 UTC. Tokens,
/// which follow that clock, are the same in each run of a test.
const START: Duration = Duration::from_secs(1_767_225_600);

/// A gateway in memory, with a Redis of its own. Its clones are the same gateway.
///
/// Its clock is Tokio's, so a paused one is respected. Faults do not apply to the methods of this
/// type, only to requests of clients.
#[derive(Clone)]
pub struct TestGateway {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    created_at: Instant,
}

struct State {
    gateway: MemoryGateway,
    /// The wakers of the tasks that read streams.
    wakers: Vec<Waker>,
}

impl TestGateway {
    /// Creates a gateway whose Redis is empty.
    pub fn new() -> Self {
        Self::with_host("gateway.test")
    }

    /// Creates a gateway with this host, whose Redis is empty. The gateways of one redLock need
    /// different hosts.
    ///
    /// # Panics
    /// If `host` is not a host.
    pub fn with_host(host: &str) -> Self {
        let gateway = MemoryGateway::new(host);
        drop(address(&gateway));
        let state = Mutex::new(State { gateway, wakers: Vec::new() });
        Self { shared: Arc::new(Shared { state, created_at: Instant::now() }) }
    }

    /// Creates a client of this gateway, which works as one from
    /// [`connect`](Client::connect) does. Clients of one gateway exclude each other.
    pub fn client(&self) -> Client<TestTransport, TokioHost> {
        let transport = TestTransport::new(self.clone());
        let address = address(&self.state().gateway);
        Client::with_driver(address, transport, TokioHost::new(), spawn)
    }

    /// Loses the responses to the next `requests` requests: the gateway executes them, and then
    /// their connections break.
    pub fn lose_replies(&self, requests: u32) {
        self.change(|gateway, _| gateway.lose_replies(requests));
    }

    /// Refuses the next `requests` requests, with the error of a Redis that reads its data: nothing
    /// is executed.
    pub fn refuse(&self, requests: u32) {
        self.change(|gateway, _| gateway.refuse(requests));
    }

    /// Sets how long each response takes from now on. Default: no time. A client gives a request up
    /// after 5 s, unless its gateway says otherwise.
    pub fn delay_replies(&self, delay: Duration) {
        self.change(|gateway, _| gateway.delay_replies(delay));
    }

    /// Stops the gateway, or starts it again with all data. While it is down, it refuses
    /// connections; its streams end.
    pub fn set_down(&self, is_down: bool) {
        self.change(|gateway, _| gateway.set_down(is_down));
    }

    /// Ends the leases of all holds of this name, of any kind and owner, as if their time were
    /// over; returns whether there was one. Holders notice it at their next renewal, waiters when
    /// the lease would have ended.
    pub fn expire(&self, name: &str) -> bool {
        self.change(|gateway, now| gateway.expire(Some(name), now)) > 0
    }

    /// Acquires an object for another client.
    ///
    /// # Errors
    /// [`HoldError`] if the object cannot be acquired at once, or an option is invalid.
    pub fn hold(&self, name: &str, options: HoldOptions) -> Result<OtherHold, HoldError> {
        let hold = self.change(|gateway, now| gateway.hold(name, options, now))?;
        Ok(OtherHold { hold, gateway: self.clone() })
    }

    /// Lists what is held, by name.
    pub fn held(&self) -> Vec<Held> {
        self.state().gateway.held(self.now())
    }

    /// Changes the gateway, then wakes the tasks that read streams.
    fn change<R>(&self, change: impl FnOnce(&mut MemoryGateway, Duration) -> R) -> R {
        let now = self.now();
        let mut state = self.state();
        let result = change(&mut state.gateway, now);
        let wakers = mem::take(&mut state.wakers);
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
        result
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Duration {
        START + self.shared.created_at.elapsed()
    }
}

impl Default for TestGateway {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for TestGateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestGateway").field("held", &self.held()).finish_non_exhaustive()
    }
}

/// A hold of another client. It is not renewed, and it stays when this value is dropped.
#[derive(Debug)]
pub struct OtherHold {
    hold: edgelatch_testing::OtherHold,
    gateway: TestGateway,
}

impl OtherHold {
    /// The fencing token of the grant.
    pub const fn token(&self) -> FencingToken {
        self.hold.token()
    }

    /// Ends the hold; returns whether it still existed. Waiters are notified.
    pub fn release(self) -> bool {
        self.gateway.change(|gateway, now| gateway.release(&self.hold, now))
    }
}

/// The address of a gateway, and its token.
#[expect(clippy::expect_used, reason = "a test ends at an invalid host")]
fn address(gateway: &MemoryGateway) -> Gateway {
    Gateway::upstash(gateway.url(), MemoryGateway::TOKEN).expect("the host of a test's gateway")
}

/// Spawns the driver on the runtime in whose context an operation is awaited or dropped.
fn spawn(driver: Driver<TestTransport, TokioHost>) {
    if let Ok(runtime) = Handle::try_current() {
        drop(runtime.spawn(driver.run()));
    }
}
