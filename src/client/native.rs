//! The client over `reqwest` and Tokio, for most programs.

use tokio::runtime::Handle;

use super::Client;
use super::undo::Undo;
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

    /// Creates a client over `reqwest` on Tokio, with background tasks that undo dropped
    /// acquisitions (see [`Lock`](super::Lock#dropped-acquisitions)). Sends nothing.
    ///
    /// # Panics
    /// If the system's TLS cannot be set up.
    pub fn connect(gateway: Gateway) -> Self {
        Self::connect_with(gateway, Reqwest::new())
    }

    /// Creates a client on Tokio over a given transport, such as one [with
    /// proxies](Reqwest::with_client), with background tasks that undo dropped acquisitions (see
    /// [`Lock`](super::Lock#dropped-acquisitions)). Sends nothing.
    pub fn connect_with(gateway: Gateway, transport: Reqwest) -> Self {
        Self::with_background(gateway, transport, TokioHost::new(), spawn)
    }
}

/// Spawns the undo of an acquisition on the runtime in whose context its future was dropped, if
/// there is one.
fn spawn(undo: Undo<Reqwest, TokioHost>) {
    if let Ok(runtime) = Handle::try_current() {
        drop(runtime.spawn(undo.run()));
    }
}
