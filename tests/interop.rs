//! Redisson itself and edgelatch on the same Redis. The Java side is built by `cargo xtask interop`.

#![cfg(not(target_arch = "wasm32"))]
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test ends at the first surprise"
)]

#[expect(dead_code, reason = "each test binary uses its part")]
mod support;

mod interop {
    mod again;
    mod both;
    mod contention;
    mod exclusive;
    mod fair;
    mod group;
    mod kinds;
    mod latch;
    mod lock;
    mod order;
    mod peer;
    mod permits;
    mod port;
    mod read_leases;
    mod read_write;
    mod semaphore;
    mod several;
    mod table;
    mod told;
}
