//! Simulation of the whole client on virtual hosts, with a virtual network and virtual Redis.
//! Requests and replies are real bytes, a seed determines the faults, and checkers compare the
//! clients with Redis after every step. The promises I1 to I10 that they check, and the conditions
//! C1 to C3 of some promises, are those of docs/reliability.md.
//!
//! * `plan` draws a schedule from its seed; `schedule` plays it; `explore` plays many, and `shrink`
//!   looks for a smaller one that fails in the same way.
//! * `engine` has the virtual time and the tasks, `host` and `clocks` the hosts, `transport` and
//!   `packet_fate` the network, `gateway` and `redis` the servers.
//! * `workload` is the program of a client.
//! * `checker`, `lease_checker` and `outcome_checker` check promises during a schedule, with the
//!   state of Redis; `record` keeps the clients' observations for the checker of histories, and
//!   `export` writes them for a checker outside of this program, in `tests/porcupine`.
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
    mod export;
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
