//! What a gateway reads out of calls: of every call that the library makes, and of what others make of it.

#![cfg(not(target_arch = "wasm32"))]
#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test ends at the first surprise"
)]

#[expect(dead_code, reason = "each test binary uses its part")]
mod support;

mod scope {
    mod calls;
    mod changed;
    mod channels;
    mod every_call;
}
