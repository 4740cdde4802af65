//! The fuzz targets: for each boundary that data crosses, the assertions for any data. `cargo xtask
//! fuzz` runs them, and the tests replay earlier findings.
//!
//! A target takes bytes and panics when an assertion fails. The reference is another library where
//! there is one, and otherwise what the documents promise, in a few lines of code.

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

/// One boundary, and the data that crosses it.
#[derive(Debug)]
pub struct Target {
    /// The name of the target, and of the folder with its findings.
    pub name: &'static str,
    /// The number of inputs of a fixed run: half a minute of one core at most. Fewer where coverage
    /// stops growing earlier: twice the number after which no new edge was reached. With one seed
    /// the inputs are the same everywhere.
    pub executions: u32,
    /// Runs one input; panics when an assertion fails.
    pub run: fn(&[u8]),
    /// Valid inputs to start with.
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

/// All targets.
pub const TARGETS: [Target; 10] = targets![
    base64: 550_000,
    classify_error: 80_000,
    handle_decode: 900_000,
    machine_events: 40_000,
    name_to_keys: 130_000,
    reply_pipeline: 600_000,
    reply_single: 1_200_000,
    sse_stream: 700_000,
    time_math: 100_000,
    url_build: 1_600_000
];

/// The target of this name.
pub fn target(name: &str) -> Option<&'static Target> {
    const { &TARGETS }.iter().find(|target| target.name == name)
}
