//! The judge of histories: what it has to refuse, each for its reason, and what it has to let pass.

#![cfg(not(target_arch = "wasm32"))]
#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test ends at the first surprise"
)]

#[expect(dead_code, reason = "what keeps a history of clients is used where there are clients")]
#[path = "support/history/mod.rs"]
mod judge;

mod history {
    mod counted;
    mod held;
    mod past;
    mod refused;
    mod shared;
}
