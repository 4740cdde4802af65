//! The read-write lock.

mod ends;
mod given;
mod keys;
mod mixed;
mod random;
mod schedule;
mod steps;
mod twice;
mod vectors;
