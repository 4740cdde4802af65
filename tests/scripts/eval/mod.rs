//! A caller's own script under a lease.

pub(super) mod held;
mod results;
