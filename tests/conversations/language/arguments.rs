//! The numbers of script arguments, as the headers of the scripts count them.

/// Arguments of every script: the request id; the bound, empty if it has none; and the shortest
/// time for which Redis remembers the request.
pub(crate) const REQUEST_ID: usize = 1;
pub(crate) const NOT_AFTER: usize = 2;
pub(crate) const KEEP: usize = 3;

/// The owner field, an argument of the scripts of locks.
pub(crate) const OWNER: usize = 5;

/// Arguments of `lock_acquire.lua`.
pub(crate) const LAST_TRY: usize = 7;
pub(crate) const TOKENS_KEPT_FOREVER: usize = 9;
pub(crate) const PROPOSED_TOKEN: usize = 10;
pub(crate) const NO_VOTE_WHILE_YOUNG: usize = 11;
pub(crate) const GRANT_CHANNEL: usize = 12;

/// The lease, an argument of `lock_renew.lua`.
pub(crate) const RENEWED_LEASE: usize = 6;

/// The token to store, an argument of `lock_raise.lua`.
pub(crate) const RAISED_TOKEN: usize = 6;

/// Arguments of `fair_acquire.lua`.
pub(crate) const FAIR_SEND_NUMBER: usize = 10;
pub(crate) const FAIR_LAST_TRY: usize = 12;
pub(crate) const FAIR_PREVIOUS_OWNER: usize = 15;

/// The previous owner, an argument of `fair_release.lua`.
pub(crate) const FAIR_RELEASE_PREVIOUS_OWNER: usize = 10;
