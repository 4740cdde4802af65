//! The read-write lock.

mod beside_redisson;
mod bounds;
pub(super) mod fixtures;
mod idempotency;
mod keys;
mod vectors;
