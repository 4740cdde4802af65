//! The Rust code inside a JavaScript runtime: the same suites as everywhere, over what `fetch` and
//! the event loop lend.
//!
//! `cargo xtask test wasm-node wasm-chromium` runs them, by wasm-bindgen's own test runner.
#![cfg(target_arch = "wasm32")]
#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test ends at the first surprise"
)]

#[path = "integration/conformance/host.rs"]
mod host_suite;
#[path = "integration/conformance/transport.rs"]
mod transport_suite;

mod wasm {
    mod client;
    mod pure;
    #[cfg(feature = "reqwest")]
    mod reqwest;
    mod suites;
    mod support;
}
