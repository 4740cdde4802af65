//! Random schedules: clients and Redisson's programs at one object, in virtual time, on a network
//! that loses, delays and duplicates requests and replies. The scripts run in their model;
//! invariants are checked after every event. A rule that is left out has to lead to a
//! counter-example.

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

/// The system's allocator would take a good part of the time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
