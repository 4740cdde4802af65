//! Simulation of the whole client on virtual hosts, with a virtual network and virtual Redis.
//! Requests and replies are real bytes, a seed determines the faults, and the promises are checked
//! after every step. See docs/reliability.md.
//!
//! `cargo xtask sim` runs it; without flags it plays some schedules of each kind.

#![cfg(not(target_arch = "wasm32"))]
#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a simulation ends at the first surprise"
)]

mod simulation {
    mod checker;
    mod clocks;
    mod coverage;
    mod engine;
    mod explore;
    mod faults;
    mod gateway;
    mod guards;
    mod hold;
    mod host;
    mod host_fault;
    mod java;
    mod lease_checker;
    mod named;
    mod objects;
    mod outcome_checker;
    mod packet_fate;
    mod plan;
    mod record;
    mod redis;
    pub(crate) mod run;
    mod schedule;
    mod seeded_faults;
    mod shrink;
    mod subscription;
    mod trace;
    mod transport;
    mod workload;
}

/// With the system's allocator a schedule would spend a third of its time in it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    simulation::run::main()
}
