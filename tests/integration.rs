//! Tests the Rust client on a real gateway and a real Redis, on a Redis Cluster and under
//! Sentinels; the blocking client; and the conformance suites that every transport and every host
//! must pass.

#![cfg(not(target_arch = "wasm32"))]
#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test ends at the first surprise"
)]

mod integration {
    mod acquiring;
    mod batching;
    mod blocking;
    mod clock_and_token_regression;
    mod cluster;
    mod conformance;
    mod contention;
    mod dropped_acquisitions;
    mod errors;
    mod fair_read_write;
    mod gateway_limits;
    mod guard_and_eval;
    mod holding;
    mod hostile_messages;
    mod lease_events;
    mod lease_loss;
    mod lock_kinds;
    mod multi_lock;
    mod observability;
    mod options;
    mod outages;
    mod owners;
    mod read_write;
    mod readme;
    mod red_lock;
    mod renewing;
    mod semaphores_and_latch;
    mod streams;
    mod waking;
    mod webdis;
}
