//! A caller's own script under a lease.

mod held;
mod results;
