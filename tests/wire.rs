//! What is sent to a gateway and what is read from its answers, byte for byte
//! (`tests/vectors/upstash.json` and `webdis.json`); and which keys a gateway reads from each call.

#![cfg(not(target_arch = "wasm32"))]
#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test ends at the first surprise"
)]

mod wire {
    mod arbitrary;
    mod pipelines;
    mod replies;
    mod requests;
    mod scope;
    mod streams;
    mod vectors;
    mod webdis;
}
