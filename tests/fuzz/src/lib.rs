//! What the fuzzers run: for each border that data crosses, what must hold whatever comes. `cargo xtask fuzz` runs them, and the
//! tests replay what was found before.
//!
//! A target takes bytes and panics when something does not hold. The measure is another library where there is one, and else what
//! the documents promise, said once more in a few lines.

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
    /// Takes one input; panics when something does not hold.
    pub run: fn(&[u8]),
    /// Inputs that mean something, to begin with.
    seeds: fn() -> Vec<Vec<u8>>,
}

macro_rules! targets {
    ($($name:ident),*) => {
        [$(Target { name: stringify!($name), run: $name::run, seeds: $name::seeds }),*]
    };
}

/// All of them.
pub const TARGETS: [Target; 10] = targets![
    base64,
    classify_error,
    handle_decode,
    machine_events,
    name_to_keys,
    reply_pipeline,
    reply_single,
    sse_stream,
    time_math,
    url_build
];

/// The target of this name.
pub fn target(name: &str) -> Option<&'static Target> {
    const { &TARGETS }.iter().find(|target| target.name == name)
}
