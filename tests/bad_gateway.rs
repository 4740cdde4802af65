//! A gateway that misbehaves: every call ends in the right kind of error, and nothing is left held.

#![cfg(not(target_arch = "wasm32"))]
#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test ends at the first surprise"
)]

#[expect(dead_code, reason = "each test binary uses its part")]
mod support;

mod bad_gateway {
    mod acquiring;
    mod certificate;
    mod copies;
    mod releasing;
    mod renewing;
    mod secrets;
}
