//! What the conversations have in common.

pub(crate) mod conversation;
pub(crate) mod fixtures;
pub(crate) mod virtual_time;
