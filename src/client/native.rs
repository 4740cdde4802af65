//! The client that most programs want.

use super::Client;
use crate::host::TokioHost;
use crate::protocol::gateway::Gateway;
use crate::transport::Reqwest;

impl Client<Reqwest, TokioHost> {
    /// A client over `reqwest`, on tokio. Sends nothing.
    ///
    /// # Panics
    /// When the system's TLS cannot be set up.
    pub fn connect(gateway: Gateway) -> Self {
        Self::new(gateway, Reqwest::new(), TokioHost::new())
    }
}
