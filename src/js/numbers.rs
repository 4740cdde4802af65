//! The numbers that JavaScript passes for names: the places in its lists.

use crate::web::names::place;

const API_JS: &str = include_str!("../../pkg/api.js");
const DRIVER_JS: &str = include_str!("../../pkg/driver.js");
const ERRORS_JS: &str = include_str!("../../pkg/errors.js");
const OPTIONS_JS: &str = include_str!("../../pkg/options.js");

/// The kinds of objects that `Engine::create` creates.
pub(super) mod kind {
    const fn number(name: &str) -> u32 {
        super::place(super::API_JS, "const KINDS = ", name)
    }

    pub(in crate::js) const OWNER: u32 = number("owner");
    pub(in crate::js) const LOCK: u32 = number("lock");
    pub(in crate::js) const NON_REENTRANT_LOCK: u32 = number("nonReentrantLock");
    pub(in crate::js) const SPIN_LOCK: u32 = number("spinLock");
    pub(in crate::js) const FAIR_LOCK: u32 = number("fairLock");
    pub(in crate::js) const NON_REENTRANT_FAIR_LOCK: u32 = number("nonReentrantFairLock");
    pub(in crate::js) const FENCED_LOCK: u32 = number("fencedLock");
    pub(in crate::js) const READ_LOCK: u32 = number("read");
    pub(in crate::js) const WRITE_LOCK: u32 = number("write");
    pub(in crate::js) const GROUP_LOCK: u32 = number("groupLock");
    pub(in crate::js) const SEMAPHORE: u32 = number("semaphore");
    // `countDownLatch` is the default of the match on the kind.
    pub(in crate::js) const PERMITS: u32 = number("permitExpirableSemaphore");
    pub(in crate::js) const GUARD: u32 = number("guard");
    /// A list of locks for a multi-lock or a redLock, while it is being built.
    pub(in crate::js) const LIST: u32 = number("list");
    // `redLock` is the default for a list of locks.
    pub(in crate::js) const MULTI_LOCK: u32 = number("multiLock");
    pub(in crate::js) const FAIR_READ: u32 = number("fairRead");
    pub(in crate::js) const FAIR_WRITE: u32 = number("fairWrite");
    /// Both sides of a fair read-write lock; its acquisition is a steal.
    pub(in crate::js) const FAIR_READ_WRITE: u32 = number("fairReadWriteLock");
}

/// The methods of `Engine::call`.
pub(super) mod method {
    const fn number(name: &str) -> u32 {
        super::place(super::API_JS, "const METHODS = ", name)
    }

    pub(in crate::js) const ACQUIRE: u32 = number("acquire");
    pub(in crate::js) const TRY_ACQUIRE: u32 = number("tryAcquire");
    /// Acquires for a callback, the last argument in JavaScript.
    pub(in crate::js) const RUN: u32 = number("run");
    pub(in crate::js) const FORCE_RELEASE: u32 = number("forceRelease");
    pub(in crate::js) const INSPECT: u32 = number("inspect");
    pub(in crate::js) const RELEASE: u32 = number("release");
    pub(in crate::js) const ADD_PERMITS: u32 = number("addPermits");
    pub(in crate::js) const RELEASE_IF_EXISTS: u32 = number("releaseIfExists");
    // `availablePermits` is the default for both kinds of semaphores.
    pub(in crate::js) const DRAIN_PERMITS: u32 = number("drainPermits");
    pub(in crate::js) const TRY_SET_PERMITS: u32 = number("trySetPermits");
    pub(in crate::js) const UPDATE_LEASE_TIME: u32 = number("updateLeaseTime");
    pub(in crate::js) const SET_PERMITS: u32 = number("setPermits");
    // `count` is the default for a latch.
    pub(in crate::js) const TRY_SET_COUNT: u32 = number("trySetCount");
    pub(in crate::js) const COUNT_DOWN: u32 = number("countDown");
    pub(in crate::js) const WAIT: u32 = number("wait");
    pub(in crate::js) const DELETE: u32 = number("delete");
    // `claim` is the default for a guard.
    pub(in crate::js) const SET: u32 = number("set");
    pub(in crate::js) const NEWEST: u32 = number("newest");
    pub(in crate::js) const IS_HELD: u32 = number("isHeld");
    pub(in crate::js) const RENEW: u32 = number("renew");
    pub(in crate::js) const EVAL: u32 = number("eval");
    /// Releases at the end of a callback or of a block. A lease's `release` is the default.
    pub(in crate::js) const END: u32 = number("end");
    pub(in crate::js) const STEAL: u32 = number("steal");
    pub(in crate::js) const QUERY: u32 = number("query");
}

/// The properties of `Engine::hold_number`.
pub(super) mod property {
    const fn number(name: &str) -> u32 {
        super::place(super::DRIVER_JS, "const PROPERTIES = ", name)
    }

    // `token` is the default.
    pub(in crate::js) const HOLD_COUNT: u32 = number("holdCount");
    pub(in crate::js) const REMAINING: u32 = number("remaining");
    pub(in crate::js) const TOKEN_OF: u32 = number("tokenOf");
    pub(in crate::js) const HAS_WAITED: u32 = number("hasWaited");
}

/// The kinds of records.
pub(super) mod record {
    const fn number(name: &str) -> u32 {
        super::place(super::DRIVER_JS, "const RECORDS = ", name)
    }

    pub(in crate::js) const DONE: u32 = number("done");
    pub(in crate::js) const FAILED: u32 = number("failed");
    pub(in crate::js) const ABORTED: u32 = number("aborted");
    pub(in crate::js) const LEASE: u32 = number("lease");
    pub(in crate::js) const HOLD: u32 = number("hold");
    pub(in crate::js) const ENDED: u32 = number("ended");
    pub(in crate::js) const ENDPOINT: u32 = number("endpoint");
    pub(in crate::js) const SCOPE: u32 = number("scope");
    pub(in crate::js) const SEND: u32 = number("send");
    pub(in crate::js) const ABORT: u32 = number("abort");
    pub(in crate::js) const OPEN: u32 = number("open");
    pub(in crate::js) const CLOSE: u32 = number("close");
    pub(in crate::js) const TIMEOUT: u32 = number("timeout");
    pub(in crate::js) const WAITING: u32 = number("waiting");
}

/// The classes of errors.
pub(super) mod class {
    const fn number(name: &str) -> u32 {
        super::place(super::ERRORS_JS, "const classes = ", name)
    }

    pub(in crate::js) const INVALID_OPTION: u32 = number("InvalidOptionError");
    pub(in crate::js) const WAIT_TIMEOUT: u32 = number("WaitTimeoutError");
    pub(in crate::js) const LEASE_LOST: u32 = number("LeaseLostError");
    pub(in crate::js) const REENTRANCY: u32 = number("ReentrancyError");
    pub(in crate::js) const NOT_EXECUTED: u32 = number("NotExecutedError");
    pub(in crate::js) const REFUSED: u32 = number("GatewayRefusedError");
    pub(in crate::js) const UNREACHABLE: u32 = number("GatewayUnreachableError");
    pub(in crate::js) const TOO_SLOW: u32 = number("GatewayTooSlowError");
    pub(in crate::js) const OUTCOME_UNKNOWN: u32 = number("OutcomeUnknownError");
    pub(in crate::js) const STALE_TOKEN: u32 = number("StaleTokenError");
    pub(in crate::js) const SCRIPT_FAILED: u32 = number("ScriptFailedError");
    pub(in crate::js) const NOT_SET_UP: u32 = number("NotSetUpError");
    pub(in crate::js) const QUEUE_FULL: u32 = number("QueueFullError");
}

/// The snapshots of an object's state.
pub(super) mod snapshot {
    /// Returns the number of the first snapshot with this field.
    const fn number(field: &str) -> u32 {
        super::place(super::ERRORS_JS, "const snapshots = ", field)
    }

    pub(in crate::js) const LOCK: u32 = number("locked");
    pub(in crate::js) const SEMAPHORE: u32 = number("leases");
    pub(in crate::js) const PERMITS: u32 = number("acquired");
    pub(in crate::js) const FAIR_READ_WRITE: u32 = number("waiters");
}

/// Returns the place of an option in the list after the text `start` in `pkg/options.js`.
const fn option(start: &str, name: &str) -> usize {
    place(OPTIONS_JS, start, name) as usize
}

/// Returns the number of a word among those that an option accepts.
const fn word(option: &str, word: &str) -> u32 {
    place(OPTIONS_JS, option, word)
}

/// The options of an acquisition or a wait.
pub(super) mod wait {
    const fn place(name: &str) -> usize {
        super::option("return { numbers: ", name)
    }

    pub(in crate::js) const LEASE: usize = place("leaseMs");
    pub(in crate::js) const WAIT: usize = place("waitMs");
    pub(in crate::js) const REQUESTS: usize = place("requests");
    pub(in crate::js) const REPLICAS: usize = place("replicas");
    pub(in crate::js) const PERMITS: usize = place("permits");
}

/// The options of a fair lock.
pub(super) mod fair {
    const fn place(name: &str) -> usize {
        super::option("  fairLock(options) {", name)
    }

    pub(in crate::js) const LIFE: usize = place("lifeMs");
    pub(in crate::js) const SKEW: usize = place("skewMs");
    pub(in crate::js) const ALLOWANCE: usize = place("redissonWaitTimeoutMs");
    pub(in crate::js) const SHORT: usize = place("shortMs");
    pub(in crate::js) const LONG: usize = place("longMs");
}

/// The options of a read-write lock.
pub(super) mod read_write {
    const fn place(name: &str) -> usize {
        super::option("  const want = ", name)
    }

    pub(in crate::js) const WANT: usize = place("want");
    pub(in crate::js) const WATCHDOG: usize = place("peerWatchdogMs");
}

/// The options of a fair read-write lock.
pub(super) mod fair_read_write {
    const fn place(name: &str) -> usize {
        super::option("clientId = \"\", lifeMs", name)
    }

    pub(in crate::js) const LIFE: usize = place("lifeMs");
    pub(in crate::js) const MAX_HOLDERS: usize = place("maxHolders");
    pub(in crate::js) const MAX_WAITERS: usize = place("maxWaiters");
}

/// The options of a spin lock.
pub(super) mod spin {
    const EXPONENTIAL: &str = "return type === 0";
    const CONSTANT: &str = "pause(\"maxMs\")]";

    pub(in crate::js) const TYPE: usize = super::option(EXPONENTIAL, "type");
    pub(in crate::js) const FACTOR: usize = super::option(EXPONENTIAL, "factor");
    pub(in crate::js) const FIRST: usize = super::option(EXPONENTIAL, "initialMs");
    pub(in crate::js) const MAX: usize = super::option(EXPONENTIAL, "maxMs");
    pub(in crate::js) const DELAY: usize = super::option(CONSTANT, "delayMs");
}

/// The options of a client.
pub(super) mod client {
    const fn place(name: &str) -> usize {
        super::option("  const numbers = ", name)
    }

    pub(in crate::js) const DIALECT: usize = place("dialectIndex");
    pub(in crate::js) const ALLOW_HTTP: usize = place("allowHttp");
    pub(in crate::js) const KEY_LOCKING: usize = place("keyLocking");
    pub(in crate::js) const PUBLISH: usize = place("publish");
    pub(in crate::js) const WAKEUPS: usize = place("wakeups");
    pub(in crate::js) const REQUEST_TIMEOUT: usize = place("requestTimeoutMs");
    pub(in crate::js) const REDACT_NAMES: usize = place("redactNames");

    pub(in crate::js) const WEBDIS: u32 = super::word("choice(dialect, ", "webdis");
    pub(in crate::js) const LOCKING_ON: u32 = super::word("choice(keyLocking, ", "on");
    pub(in crate::js) const LOCKING_OFF: u32 = super::word("choice(keyLocking, ", "off");
    pub(in crate::js) const SHARDED: u32 = super::word("choice(publish, ", "sharded");
    pub(in crate::js) const BOTH: u32 = super::word("choice(publish, ", "both");
    pub(in crate::js) const WAKEUPS_OFF: u32 = super::word("choice(wakeups, ", "off");
}
