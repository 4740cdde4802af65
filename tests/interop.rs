//! Redisson and edgelatch on the same Redis. `cargo xtask test interop` builds and starts the Java
//! side.

#![cfg(not(target_arch = "wasm32"))]
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test ends at the first surprise"
)]

mod interop {
    mod both;
    mod contention;
    mod exclusive;
    mod fair;
    mod group;
    mod jvm;
    mod kinds;
    mod latch;
    mod lock;
    mod multi_and_red_lock;
    mod order;
    mod peer;
    mod permits;
    mod port;
    mod read_leases;
    mod read_write;
    mod reentry;
    mod semaphore;
    mod state_and_force;
    mod table;
}
