//! The scripts of the fair lock.

mod kit;
mod limits;
mod mixed;
mod odd;
mod random;
mod schedule;
mod steps;
mod twice;
mod vectors;
