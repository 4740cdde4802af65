//! Guarded writes.

pub(super) mod writes;
