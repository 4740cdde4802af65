//! The Rust client on a real gateway and a real Redis.

#![cfg(not(target_arch = "wasm32"))]
#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test ends at the first surprise"
)]

#[expect(dead_code, reason = "each test binary uses its part")]
mod support;

mod client {
    mod acquiring;
    mod contention;
    mod events;
    mod guarding;
    mod holding;
    mod kinds;
    mod losing;
    mod messages;
    mod multi;
    mod options;
    mod outages;
    mod owners;
    mod permits;
    mod read_write;
    mod red_lock;
    mod regress;
    mod renewing;
    mod streams;
    mod together;
    mod waking;
    mod webdis;
}
