//! What several test binaries have in common.

pub(crate) mod calls;
pub(crate) mod redis;
