//! The scripts of the fair lock.

mod access;
mod beside_redisson;
mod bounds;
pub(super) mod fixtures;
mod idempotency;
mod vectors;
