//! The matrix of faults: every object, every operation, every way in which a gateway may fail one request of it.

mod actions;
mod ending;
mod env;
mod holding;
mod objects;
mod taking;
