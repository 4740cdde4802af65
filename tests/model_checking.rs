//! The protocol of each object, and of locks of several parts, in a model checker: the real
//! machines, on a network that loses, doubles and reorders, against what the scripts do. Every run
//! within the bounds is tried; and with a rule removed, its counter-example is found.
//!
//! That every client is served in the end is searched in small models of the rules, since real
//! machines know the time and so never come back to a state. Safety is searched with the real
//! machines; and in a simulation with a time, losses, copies and slow replies.

#![cfg(not(target_arch = "wasm32"))]
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test ends at the first surprise"
)]

// The searches copy states all the time: a third of their time is the allocator's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

mod model_checking {
    mod multi;
    mod objects;
}
