//! The client that most programs want.

use tokio::runtime::Handle;

use super::Client;
use super::undo::Undo;
use crate::host::TokioHost;
use crate::protocol::gateway::Gateway;
use crate::transport::Reqwest;

impl Client<Reqwest, TokioHost> {
    /// A client over `reqwest`, on tokio. Sends nothing.
    ///
    /// # Panics
    /// When the system's TLS cannot be set up.
    pub fn connect(gateway: Gateway) -> Self {
        Self::connect_with(gateway, Reqwest::new())
    }

    /// A client on tokio over a transport of your own, such as one [with
    /// proxies](Reqwest::with_client). Sends nothing.
    pub fn connect_with(gateway: Gateway, transport: Reqwest) -> Self {
        Self::with_background(gateway, transport, TokioHost::new(), spawn)
    }
}

/// Undoes an acquisition on the runtime in whose context its future was dropped, if there is one.
fn spawn(undo: Undo<Reqwest, TokioHost>) {
    if let Ok(runtime) = Handle::try_current() {
        drop(runtime.spawn(undo.run()));
    }
}
