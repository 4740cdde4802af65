//! The numbers of script arguments, as the headers of the scripts count them.

// Of every script.
pub(crate) const REQUEST_ID: usize = 1;
/// The bound; empty for a request without one.
pub(crate) const NOT_AFTER: usize = 2;
/// The shortest time for which Redis remembers the request, in milliseconds.
pub(crate) const MIN_RETENTION: usize = 3;

// Of every script for an owner: those that acquire, renew, raise or release, not by force.
pub(crate) const OWNER: usize = 5;

// Of `lock_acquire.lua`.
pub(crate) const LAST_TRY: usize = 7;
/// How long the token keys are kept, a letter for each lock: `f` for ever, `x` until the key
/// expires. Absent if all expire and no later argument is needed.
pub(crate) const TOKEN_RETENTION_PER_LOCK: usize = 9;
pub(crate) const PROPOSED_TOKEN: usize = 10;
/// How long after its start a node of a majority refuses to vote, in milliseconds.
pub(crate) const MIN_UPTIME_TO_VOTE: usize = 11;
/// The channel on which Redis publishes the grant of the first lock; those of the other locks
/// follow. Absent if nothing is published.
pub(crate) const GRANT_CHANNEL: usize = 12;

// Of `lock_renew.lua`.
pub(crate) const RENEWED_LEASE: usize = 6;

// Of `lock_raise.lua`.
pub(crate) const RAISED_TOKEN: usize = 6;

// Of `fair_acquire.lua`.
/// The number of the try: each try of an owner has a higher one.
pub(crate) const FAIR_TRY_NUMBER: usize = 10;
pub(crate) const FAIR_LAST_TRY: usize = 12;
pub(crate) const FAIR_PREVIOUS_OWNER: usize = 15;

// Of `fair_release.lua`.
pub(crate) const FAIR_RELEASE_PREVIOUS_OWNER: usize = 10;

// Of `fair_rw_acquire.lua`.
/// `wait`, `last` or `steal`.
pub(crate) const FAIR_RW_KIND: usize = 6;
/// The send number: each try of an owner has a higher one.
pub(crate) const FAIR_RW_SEND: usize = 10;
/// The member of the previous owner.
pub(crate) const FAIR_RW_PREVIOUS: usize = 13;
