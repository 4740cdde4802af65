//! Simulation: the whole client on virtual hosts, a virtual network and virtual Redis, with real
//! requests and replies as bytes, faults drawn by a seed, and what must hold compared after every
//! step. See docs/reliability.md.
//!
//! `cargo xtask sim` runs it; without flags it plays some schedules of each kind.

#![cfg(not(target_arch = "wasm32"))]
#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a simulation ends at the first surprise"
)]

mod simulation {
    mod beliefs;
    mod clocks;
    mod engine;
    mod explore;
    mod fate;
    mod faults;
    mod gateway;
    mod guards;
    mod hold;
    mod host;
    mod java;
    mod named;
    mod objects;
    mod plan;
    mod player;
    mod record;
    mod redis;
    pub(crate) mod run;
    mod schedule;
    mod seen;
    mod shrink;
    mod story;
    mod strikes;
    mod teeth;
    mod wire;
    mod witness;
}

/// A third of the time of a schedule would go into the system's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    simulation::run::main()
}
