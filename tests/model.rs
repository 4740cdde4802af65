//! The protocol of each object in a model checker: the real machines, on a network that loses, doubles and reorders, against what
//! the scripts do. Every run within the bounds is tried; and with a rule taken away, what it is for is found.

#![cfg(not(target_arch = "wasm32"))]
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a search ends at the first surprise"
)]

#[expect(dead_code, reason = "the comparison with a real Redis uses the rest")]
#[path = "support/script_model/mod.rs"]
mod script_model;

mod model {
    mod client;
    mod counted;
    mod exhaustive;
    mod fair;
    mod group;
    mod network;
    mod once;
    mod plan;
    mod premises;
    mod properties;
    mod read_write;
    mod search;
    mod seen;
    mod sights;
    mod stage;
    mod stand;
    mod teeth;
    mod unknown;
    mod world;
}
