//! The fair read-write lock.

mod access;
mod bounds;
pub(crate) mod fixtures;
mod idempotency;
mod keys;
mod limits;
mod order;
mod query;
mod stealing;
mod takeover;
