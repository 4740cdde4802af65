//! The numbers of script arguments, as the headers of the scripts count them.

// Of every script.
pub(crate) const REQUEST_ID: usize = 1;
/// The bound; empty for a request without one.
pub(crate) const NOT_AFTER: usize = 2;
/// The shortest time for which Redis remembers the request.
pub(crate) const KEEP: usize = 3;

// Of every script of a lock.
pub(crate) const OWNER: usize = 5;

// Of `lock_acquire.lua`.
pub(crate) const LAST_TRY: usize = 7;
pub(crate) const TOKENS_KEPT_FOREVER: usize = 9;
pub(crate) const PROPOSED_TOKEN: usize = 10;
pub(crate) const NO_VOTE_WHILE_YOUNG: usize = 11;
/// The channel on which Redis publishes the grant; empty to publish none.
pub(crate) const GRANT_CHANNEL: usize = 12;

// Of `lock_renew.lua`.
pub(crate) const RENEWED_LEASE: usize = 6;

// Of `lock_raise.lua`.
pub(crate) const RAISED_TOKEN: usize = 6;

// Of `fair_acquire.lua`.
/// The number of the try: each try of an owner has a higher one.
pub(crate) const FAIR_SEND_NUMBER: usize = 10;
pub(crate) const FAIR_LAST_TRY: usize = 12;
pub(crate) const FAIR_PREVIOUS_OWNER: usize = 15;

// Of `fair_release.lua`.
pub(crate) const FAIR_RELEASE_PREVIOUS_OWNER: usize = 10;
