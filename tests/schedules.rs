//! Random schedules: clients of this library and Redisson programs use one object in virtual time,
//! on a network that loses and delays messages and duplicates requests. A model in Rust executes
//! the scripts, and the invariants are checked after every event. To show that the invariants would
//! find a fault, other tests leave out one rule of the protocol, and must find a schedule that
//! violates an invariant. Every schedule is drawn from its seed, so a failure can be repeated.
//!
//! Rules such as C8 or F11 are those of `proto/src/protocol/README.md`; `S36` before a test names a
//! scenario of `docs/reliability.md`. Names and messages call Redisson's programs *Java*.

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
    mod fair_read_write;
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
