//! Random schedules: clients of this library and Redisson programs use one object in virtual time,
//! on a network that loses, delays and duplicates requests and replies. The scripts run in their
//! model, and invariants are checked after every event. Without one of its rules, an object must
//! violate an invariant.

#![cfg(not(target_arch = "wasm32"))]
#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a schedule ends at the first surprise"
)]

mod schedules {
    mod coverage;
    mod env;
    mod fair;
    mod group;
    mod guard;
    mod latch;
    mod ledger;
    mod machines;
    mod network;
    mod permits;
    mod read_write;
    mod runner;
}

/// With the system's allocator the schedules would spend much of their time in it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
