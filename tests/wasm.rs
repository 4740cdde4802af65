//! The Rust code inside a JavaScript runtime: the same suites as everywhere, over what `fetch` and the event loop lend.
//!
//! In Node through `wasm-pack test --node`; in Chromium through `wasm-pack test --headless --chrome`, with
//! `WASM_BINDGEN_USE_BROWSER` set.
#![cfg(target_arch = "wasm32")]
#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test ends at the first surprise"
)]

#[path = "conformance/host.rs"]
mod host_suite;
#[path = "conformance/transport.rs"]
mod transport_suite;

mod wasm {
    mod client;
    mod pure;
    #[cfg(feature = "reqwest")]
    mod reqwest;
    mod suites;
    mod support;
}
