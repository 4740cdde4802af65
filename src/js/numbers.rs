//! The numbers that JavaScript passes for names: the places in the lists of `pkg/api.js`.

/// The kinds of objects that `Handle::create` creates.
pub(super) mod kind {
    pub(in crate::js) const OWNER: u32 = 0;
    pub(in crate::js) const LOCK: u32 = 1;
    pub(in crate::js) const NON_REENTRANT_LOCK: u32 = 2;
    pub(in crate::js) const SPIN_LOCK: u32 = 3;
    pub(in crate::js) const FAIR_LOCK: u32 = 4;
    pub(in crate::js) const NON_REENTRANT_FAIR_LOCK: u32 = 5;
    pub(in crate::js) const FENCED_LOCK: u32 = 6;
    pub(in crate::js) const READ_LOCK: u32 = 7;
    pub(in crate::js) const WRITE_LOCK: u32 = 8;
    pub(in crate::js) const GROUP_LOCK: u32 = 9;
    pub(in crate::js) const SEMAPHORE: u32 = 10;
    pub(in crate::js) const PERMITS: u32 = 11;
    // 12 is the latch: the default of the match on the kind.
    pub(in crate::js) const GUARD: u32 = 13;
    /// A list of locks for a multi-lock or a redLock, while it is being built.
    pub(in crate::js) const LIST: u32 = 14;
    /// The multi-lock; 16 is the redLock.
    pub(in crate::js) const MULTI_LOCK: u32 = 15;
    /// The events of a lease or of a client.
    pub(in crate::js) const EVENTS: u32 = 17;
}

/// The methods of `Handle::call`.
pub(super) mod method {
    pub(in crate::js) const ACQUIRE: u32 = 0;
    pub(in crate::js) const TRY_ACQUIRE: u32 = 1;
    /// Acquires for a callback, the last argument in JavaScript.
    pub(in crate::js) const RUN: u32 = 2;
    pub(in crate::js) const FORCE_RELEASE: u32 = 3;
    pub(in crate::js) const INSPECT: u32 = 4;
    pub(in crate::js) const RELEASE: u32 = 5;
    pub(in crate::js) const ADD_PERMITS: u32 = 6;
    pub(in crate::js) const RELEASE_IF_EXISTS: u32 = 7;
    pub(in crate::js) const DRAIN_PERMITS: u32 = 8;
    pub(in crate::js) const TRY_SET_PERMITS: u32 = 9;
    // 10 is availablePermits: the default for both kinds of semaphores.
    pub(in crate::js) const UPDATE_LEASE_TIME: u32 = 11;
    pub(in crate::js) const SET_PERMITS: u32 = 12;
    pub(in crate::js) const TRY_SET_COUNT: u32 = 13;
    pub(in crate::js) const COUNT_DOWN: u32 = 14;
    // 15 is count: the default for a latch.
    pub(in crate::js) const WAIT: u32 = 16;
    pub(in crate::js) const DELETE: u32 = 17;
    pub(in crate::js) const SET: u32 = 18;
    // 19 is claim: the default for a guard.
    pub(in crate::js) const NEWEST: u32 = 20;
    pub(in crate::js) const IS_HELD: u32 = 21;
    pub(in crate::js) const RENEW: u32 = 22;
    pub(in crate::js) const EVAL: u32 = 23;
    /// Releases at the end of a callback or of a block.
    pub(in crate::js) const END: u32 = 24;
    // 25 is next: the only call of events.
}

/// The properties of `Handle::get`.
pub(super) mod property {
    pub(in crate::js) const NAME: u32 = 0;
    pub(in crate::js) const TOKEN: u32 = 1;
    pub(in crate::js) const SIGNAL: u32 = 2;
    pub(in crate::js) const HOLD_COUNT: u32 = 3;
    pub(in crate::js) const REMAINING: u32 = 4;
    pub(in crate::js) const PERMIT_IDS: u32 = 5;
    // 6 is tokenOf: the default for a lease.
}
