//! The matrix of faults: every object, every operation, every way in which a gateway may fail one request of it.

#![cfg(not(target_arch = "wasm32"))]
#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test ends at the first surprise"
)]

#[expect(dead_code, reason = "each test binary uses its part")]
mod support;

mod faults {
    mod actions;
    mod ending;
    mod ground;
    mod holding;
    mod objects;
    mod taking;
}
