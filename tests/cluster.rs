//! Every object on a real Redis Cluster and on a master that Sentinels watch over, through the gateway.

#![cfg(not(target_arch = "wasm32"))]
#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test ends at the first surprise"
)]

#[expect(dead_code, unused_imports, reason = "each test binary uses its part")]
#[path = "../gateway/tests/servers/mod.rs"]
mod servers;
#[expect(dead_code, reason = "each test binary uses its part")]
mod support;

mod cluster {
    mod announcing;
    mod failover;
    mod load;
    mod names;
    mod objects;
    mod replicas;
    mod scripts;
    mod several;
    mod stand;
}
