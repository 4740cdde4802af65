//! Simulation: the whole client on virtual hosts, a virtual network and virtual Redis, with real requests and replies as bytes,
//! faults drawn by a seed, and what must hold compared after every step. See docs/reliability.md.
//!
//! `cargo xtask sim` runs it; without flags it plays some schedules of each kind.

#![cfg(not(target_arch = "wasm32"))]
#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a simulation ends at the first surprise"
)]

#[expect(dead_code, reason = "the comparison with a real Redis uses the rest")]
#[path = "support/script_model/mod.rs"]
mod script_model;

#[expect(dead_code, reason = "each test binary uses its part")]
#[path = "support/history/mod.rs"]
mod history;

mod sim {
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
    sim::run::main()
}
