//! What is sent to a gateway and what is made of its answers, byte for byte: `tests/vectors/upstash.json` and `webdis.json`.

#![cfg(not(target_arch = "wasm32"))]
#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test ends at the first surprise"
)]

#[expect(dead_code, reason = "each test binary uses its part")]
mod support;

mod dialect {
    mod arbitrary;
    mod conversations;
    mod pipelines;
    mod requests;
    mod streams;
    mod vectors;
    mod webdis;
}
