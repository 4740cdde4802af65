//! Fault injection under load: real clients, the real gateway program and a real Redis, while the
//! gateway or Redis is killed, stopped, emptied or replaced. The tests check the results that
//! clients received, and the entries of holders in Redis.
//!
//! Each test runs one round; `EDGELATCH_ROUNDS` sets the number of rounds, `EDGELATCH_SEED` the
//! first seed. See docs/reliability.md.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test ends at the first surprise"
)]

mod counted;
mod failover;
mod gateway_process;
mod holder_log;
mod load;
mod load_client;
mod lost_holds;
mod object;
mod recorder;
mod redis;
mod replication_proxy;
mod rounds;
