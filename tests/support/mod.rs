//! What several test binaries have in common.

pub(crate) mod answers;
pub(crate) mod calls;
pub(crate) mod fake_host;
pub(crate) mod mail;
pub(crate) mod misbehaviour;
pub(crate) mod redis;
pub(crate) mod relay;
pub(crate) mod script_model;
pub(crate) mod stand;
pub(crate) mod streaming;
pub(crate) mod webdis;
