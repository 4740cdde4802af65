//! Faults under load: real clients, the real gateway program and a real Redis, while one or the
//! other is killed, stopped, emptied or replaced. What the clients were told is judged, and what
//! Redis itself has noted of who was inside.
//!
//! Each test plays a round; `EDGELATCH_ROUNDS` says how many, `EDGELATCH_SEED` where the draws
//! begin. See docs/reliability.md.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test ends at the first surprise"
)]

mod counted;
mod door;
mod failover;
mod forgotten;
mod link;
mod load;
mod object;
mod proofs;
mod redis;
mod rounds;
mod visitor;
mod watch;
