//! Differential tests: random calls on a real Redis and on the model of the scripts in memory.
//! After each call both must have returned, stored and published the same.

// Slow: a full run makes a million calls in all, and compares all keys and messages after each.

mod coverage;
mod eval;
mod fair_lock;
mod fair_read_write_lock;
mod group;
mod guard;
mod lock;
mod multi_lock;
pub(crate) mod pair;
mod read_write_lock;
mod red_lock_tokens;
mod redisson;
mod semaphores_and_latch;
mod steps;
