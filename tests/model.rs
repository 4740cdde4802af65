//! The lock's protocol in a model checker: the real machines, on a network that loses, doubles and reorders, against what the
//! scripts do. Every run within the bounds is tried.

#![cfg(not(target_arch = "wasm32"))]
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a search ends at the first surprise"
)]

#[expect(dead_code, reason = "the comparison with a real Redis uses the rest")]
#[path = "support/script_model.rs"]
mod script_model;

mod model {
    mod client;
    mod exhaustive;
    mod properties;
    mod seen;
    mod teeth;
    mod world;
}
