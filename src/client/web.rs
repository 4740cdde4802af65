//! The client inside a JavaScript runtime, for Rust programs that are compiled to wasm32.

use wasm_bindgen_futures::spawn_local;

use super::Client;
use super::driver::Driver;
use crate::host::JsHost;
use crate::transport::HostFetch;
use edgelatch_proto::protocol::gateway::Gateway;

impl Client<HostFetch, JsHost> {
    /// Creates a client over the runtime's `fetch`, whose I/O is done by a task on the event loop
    /// while there is something to do. Sends nothing.
    ///
    /// In a Worker, where I/O belongs to the request that began it, the operations of one turn of
    /// the event loop have a task of their own.
    pub fn connect(gateway: Gateway) -> Self {
        Self::connect_with(gateway, HostFetch::default())
    }

    /// Creates a client, as [`connect`](Self::connect) does, over a given transport, such as one
    /// [with a fetch function](HostFetch::new) of the caller. Sends nothing.
    pub fn connect_with(gateway: Gateway, transport: HostFetch) -> Self {
        let spawn = |driver: Driver<_, _>| spawn_local(driver.run());
        Self::with_driver(gateway, transport, JsHost, spawn)
    }
}
