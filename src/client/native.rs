//! The client over `reqwest` and Tokio, for most programs.

use tokio::runtime::Handle;

use super::Client;
use super::driver::Driver;
use crate::error::InvalidOption;
use crate::host::TokioHost;
use crate::transport::Reqwest;
use edgelatch_proto::protocol::gateway::Gateway;

impl Client<Reqwest, TokioHost> {
    /// Creates a client, as [`connect`](Self::connect) does, of the gateway in the process's
    /// environment: `UPSTASH_REDIS_REST_URL` and `UPSTASH_REDIS_REST_TOKEN`, else `KV_REST_API_URL`
    /// and `KV_REST_API_TOKEN` ([`Gateway::from_variables`]).
    ///
    /// # Errors
    /// [`InvalidOption`] names the variable that is missing or invalid.
    ///
    /// # Panics
    /// If the system's TLS cannot be set up.
    pub fn from_env() -> Result<Self, InvalidOption> {
        Gateway::from_variables(|name| std::env::var(name).ok()).map(Self::connect)
    }

    /// Creates a client over `reqwest` on Tokio. Sends nothing.
    ///
    /// Its I/O is done by a task on the runtime in whose context an operation is first awaited. The
    /// task exists while there is something to do, and operations that are awaited elsewhere wait
    /// for it: use a client on one runtime, or on runtimes that keep running. When the runtime of
    /// the task shuts down, the operations that are still awaited start another one.
    ///
    /// # Panics
    /// If the system's TLS cannot be set up.
    pub fn connect(gateway: Gateway) -> Self {
        Self::connect_with(gateway, Reqwest::new())
    }

    /// Creates a client on Tokio, as [`connect`](Self::connect) does, over a given transport, such
    /// as one [with proxies](Reqwest::with_client). Sends nothing.
    pub fn connect_with(gateway: Gateway, transport: Reqwest) -> Self {
        Self::with_driver(gateway, transport, TokioHost::new(), spawn)
    }
}

/// Spawns the driver on the runtime in whose context an operation is awaited or dropped.
fn spawn(driver: Driver<Reqwest, TokioHost>) {
    if driver.is_awaited() {
        drop(Handle::current().spawn(driver.run()));
    } else if let Ok(runtime) = Handle::try_current() {
        drop(runtime.spawn(driver.run()));
    }
}
