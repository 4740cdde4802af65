//! The matrix of faults: every object, every operation, and every fault of one of its requests.

// Slow: each test runs many cells on real servers, whose pauses and silences take real time.

mod acquiring;
mod actions;
mod ending;
mod env;
mod holding;
mod objects;
