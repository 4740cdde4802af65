//! What the fuzzers run: for each border that data crosses, what must hold whatever comes. `cargo
//! xtask fuzz` runs them, and the tests replay what was found before.
//!
//! A target takes bytes and panics when something does not hold. The measure is another library
//! where there is one, and else what the documents promise, said once more in a few lines.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a target ends at the first surprise"
)]

mod base64;
mod classify_error;
mod handle_decode;
mod inputs;
mod kit;
mod machine_events;
mod name_to_keys;
mod reply_pipeline;
mod reply_single;
mod sse_stream;
mod strict;
mod time_math;
mod url_build;

/// One border, and what crosses it.
#[derive(Debug)]
pub struct Target {
    /// The name by which it is run, and that of the folder with what was found.
    pub name: &'static str,
    /// Inputs of a fixed run, half a minute of one core at most. Fewer where coverage stops growing
    /// earlier: twice the number after which no new edge was reached. With one seed they are the
    /// same inputs everywhere.
    pub executions: u32,
    /// Takes one input; panics when something does not hold.
    pub run: fn(&[u8]),
    /// Inputs that mean something, to begin with.
    seeds: fn() -> Vec<Vec<u8>>,
}

macro_rules! targets {
    ($($name:ident: $executions:expr),*) => {
        [$(Target {
            name: stringify!($name),
            executions: $executions,
            run: $name::run,
            seeds: $name::seeds,
        }),*]
    };
}

/// All of them.
pub const TARGETS: [Target; 10] = targets![
    base64: 1_100_000,
    classify_error: 400_000,
    handle_decode: 2_700_000,
    machine_events: 75_000,
    name_to_keys: 130_000,
    reply_pipeline: 1_200_000,
    reply_single: 1_800_000,
    sse_stream: 1_000_000,
    time_math: 100_000,
    url_build: 2_400_000
];

/// The target of this name.
pub fn target(name: &str) -> Option<&'static Target> {
    const { &TARGETS }.iter().find(|target| target.name == name)
}
