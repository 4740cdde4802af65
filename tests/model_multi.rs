//! Locks of several parts in a model checker.
//!
//! What every client does in the end (nobody waits for ever) is searched in small models of the rules, since real machines know
//! the time and so never come back to a state. What never happens is searched with the real machines, against what the scripts
//! do; and in a simulation with a time, losses, copies and slow replies.

#![cfg(not(target_arch = "wasm32"))]
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a search ends at the first surprise"
)]

#[expect(dead_code, reason = "other searches use the rest")]
#[path = "support/script_model/mod.rs"]
mod script_model;

mod model_multi {
    mod client;
    mod exhaustive;
    mod graph;
    mod order;
    mod plan;
    mod sights;
    mod simulation;
    mod tokens;
    mod votes;
    mod world;
}
