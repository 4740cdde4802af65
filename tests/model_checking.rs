//! Model checking of the protocol of each object, and of locks of several parts. The real machines
//! run against the model of the scripts, on a network that loses, duplicates and reorders messages.
//! A search tries every run within the bounds of its model; with a rule removed, it must find the
//! counter-example.
//!
//! Liveness, that every client is served in the end, is checked in small models of the rules: real
//! machines know the time, and so never return to an earlier state. Safety is checked with the real
//! machines; for locks of several parts, also in a simulation with virtual time, losses, copies and
//! slow replies.

#![cfg(not(target_arch = "wasm32"))]
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test ends at the first surprise"
)]

// The searches copy states all the time: the allocator takes a third of their time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

mod model_checking {
    mod hashed;
    mod multi;
    mod objects;
}
