//! Guarded writes.

mod random;
mod schedule;
mod table;
