//! The bytes that clients send to a gateway and read from its responses
//! (`tests/vectors/upstash.json` and `webdis.json`); and the keys that a gateway reads from each
//! call.

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
