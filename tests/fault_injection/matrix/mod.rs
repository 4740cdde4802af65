//! The matrix of faults: every object, every operation, every way in which a gateway may fail one
//! request of it.

// Slow: each test plays many cells on real servers, whose pauses and silence pass in real time.

mod actions;
mod ending;
mod env;
mod holding;
mod objects;
mod taking;
