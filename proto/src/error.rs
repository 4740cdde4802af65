//! The errors of each operation, without the lock and the gateway's host, which the client adds.
//!
//! No message contains a gateway's token, an owner id, a script or a lock's name.

mod failure;
mod refusal;

pub use failure::FailureKind;
pub use refusal::{Refusal, RefusalKind};

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use core::fmt;
use core::time::Duration;

/// A value of the wrong type or out of range, or a variable that is not set. The caller's mistake;
/// nothing was sent.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct InvalidOption {
    /// Boxed to keep errors small.
    texts: Box<InvalidOptionTexts>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct InvalidOptionTexts {
    option: String,
    problem: &'static str,
    accepted: String,
}

impl InvalidOption {
    /// Creates the error of `option`, which accepts only the values described by `accepted`.
    pub fn new(option: impl Into<String>, accepted: impl Into<String>) -> Self {
        Self::with_problem(option.into(), "is not acceptable", accepted.into())
    }

    /// Creates the error of a variable that is not set; `accepted` describes what to set.
    pub(crate) fn missing(variable: &str, accepted: String) -> Self {
        Self::with_problem(variable.into(), "is not set", accepted)
    }

    fn with_problem(option: String, problem: &'static str, accepted: String) -> Self {
        Self { texts: Box::new(InvalidOptionTexts { option, problem, accepted }) }
    }

    /// The name of the option.
    pub fn option(&self) -> &str {
        &self.texts.option
    }

    /// A description of the accepted values.
    pub fn accepted(&self) -> &str {
        &self.texts.accepted
    }

    /// The text of `Display`.
    pub fn message(&self) -> String {
        ["`", self.option(), "` ", self.texts.problem, ": expected ", self.accepted()].concat()
    }
}

/// Has the message: `main` prints an error that it returns in this form.
impl fmt::Debug for InvalidOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("InvalidOption").field(&self.message()).finish()
    }
}

const NOTHING_HELD: &str = "; nothing is held";
const GIVEN_BACK: &str = "; it was given back; nothing is held";

/// The reason why the lock was not acquired.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AcquireError {
    /// An option is invalid. Nothing was sent.
    InvalidOption(InvalidOption),
    /// Another client holds the lock, and the wait (if any) is over. Nothing is held.
    Busy {
        /// The time until the present hold expires; `None` if it has no expiry.
        remaining: Option<Duration>,
    },
    /// The queue of a fair lock or of a fair read-write lock is full. Nothing is held or queued.
    QueueFull,
    /// There is no semaphore of this name: create it with `try_set_permits`, or with
    /// `add_permits(0)` to wait for permits as in Redisson. Nothing is held.
    NotSetUp,
    /// This owner holds the lock already, and the lock is not re-entrant. Nothing was sent.
    HeldAlready,
    /// This owner holds the read side and would wait for itself to write. Nothing was sent.
    SelfDeadlock,
    /// The caller cancelled the wait.
    Cancelled {
        /// `None`: nothing is held. Otherwise the undo was not confirmed, and nothing is held after
        /// this time: see [`Unknown`](Self::Unknown).
        held_at_most: Option<Duration>,
    },
    /// The gateway or Redis refused the request. Nothing is held.
    Refused(Refusal),
    /// No usable reply came, but the undo was confirmed. Nothing is held.
    Unreachable(FailureKind),
    /// Granted, but less than half of the lease was left when the reply came, so it was given back.
    /// Nothing is held.
    TooSlow,
    /// Granted, but too few replicas had the grant in time, so it was given back. Nothing is held.
    NotReplicated {
        /// The number of replicas that had it.
        acknowledged: u32,
    },
    /// Granted with a token older than an earlier one of this client, so it was given back. Nothing
    /// is held. Redis' clock was set back and its tokens are lost, or another Redis replied that
    /// lags: stores that compare tokens would reject writes with this one.
    TokenRegressed {
        /// The newest earlier token. The client remembers those of the last 64 names.
        newest: u64,
    },
    /// No usable reply came, also not to the undo: a hold may exist.
    Unknown {
        /// After this time, from now on, nothing is held and nothing can be granted any more.
        ///
        /// The rest of the requests' bound plus the lease: about two and a half minutes for a wait
        /// of 30 s, 12 minutes and more for a wait without an end. Without a known time of Redis,
        /// requests have no bound, and their copies count for ten minutes. It holds while Redis'
        /// clock is not set back and this machine's clocks are not both more than 1 % fast.
        held_at_most: Duration,
        /// The last failure.
        cause: FailureKind,
    },
    /// The host has no entropy for an owner. Nothing was sent.
    NoEntropy,
}

impl AcquireError {
    /// The text of `Display`.
    pub fn message(&self) -> String {
        match self {
            Self::InvalidOption(error) => error.message(),
            Self::Busy { .. } => "another client holds the lock".into(),
            Self::QueueFull => ["the queue is full", NOTHING_HELD].concat(),
            Self::NotSetUp => "the semaphore does not exist; create it with try_set_permits".into(),
            Self::HeldAlready => "this owner holds the lock already".into(),
            Self::SelfDeadlock => "this owner reads, and would wait for itself".into(),
            Self::Cancelled { .. } => "the wait was cancelled".into(),
            Self::Refused(refusal) => refusal.message() + NOTHING_HELD,
            Self::Unreachable(kind) => kind.message() + NOTHING_HELD,
            Self::TooSlow => {
                ["the grant came when too little of the lease was left", GIVEN_BACK].concat()
            }
            Self::NotReplicated { acknowledged } => {
                let number = u64::from(*acknowledged).to_string();
                ["only ", &number, " replicas had the grant in time", GIVEN_BACK].concat()
            }
            Self::TokenRegressed { .. } => {
                ["the fencing token is older than one that was granted before", GIVEN_BACK].concat()
            }
            Self::Unknown { cause, .. } => {
                cause.message() + "; whether a hold is left is not known"
            }
            Self::NoEntropy => "the host has no entropy".into(),
        }
    }
}

impl From<InvalidOption> for AcquireError {
    fn from(error: InvalidOption) -> Self {
        Self::InvalidOption(error)
    }
}

/// The reason why a hold ended before its release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LossReason {
    /// No renewal was confirmed in time, by the holder's own clock.
    Expired,
    /// Redis no longer has the hold: expired, force-released, evicted, or lost in a failover.
    Gone,
    /// Another client has taken the lock by a steal.
    Stolen,
}

impl LossReason {
    /// The text of `Display`.
    pub const fn message(self) -> &'static str {
        match self {
            Self::Expired => "the lease has expired: no renewal was confirmed in time",
            Self::Gone => {
                "the lease is gone: Redis no longer has the hold (expired, released by force, or lost in a failover)"
            }
            Self::Stolen => "another client has stolen the lock",
        }
    }
}

/// The reason why a query, a renewal or a forced release failed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RequestError {
    /// An option is invalid. Nothing was sent.
    InvalidOption(InvalidOption),
    /// The hold is gone, so there is nothing to renew.
    Lost(LossReason),
    /// The gateway or Redis refused the request. Nothing was done.
    Refused(Refusal),
    /// The operation was not applied and never will be; it is safe to retry. Redis has confirmed
    /// this, or the request had no bound, and Redis executes no such request without one.
    NotExecuted(FailureKind),
    /// No usable reply came. A renewal, forced release, count-down or guarded write may be done.
    Unreachable(FailureKind),
    /// The host has no entropy for a request id. Nothing was sent.
    NoEntropy,
}

impl RequestError {
    /// The text of `Display`.
    pub fn message(&self) -> String {
        match self {
            Self::InvalidOption(error) => error.message(),
            Self::Lost(reason) => reason.message().into(),
            Self::Refused(refusal) => refusal.message(),
            Self::NotExecuted(kind) => {
                kind.message() + "; the operation was not applied, and it is safe to retry"
            }
            Self::Unreachable(kind) => kind.message(),
            Self::NoEntropy => "the host has no entropy".into(),
        }
    }
}

impl From<InvalidOption> for RequestError {
    fn from(error: InvalidOption) -> Self {
        Self::InvalidOption(error)
    }
}

/// The reason why a guarded write failed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GuardError {
    /// An argument is invalid. Nothing was sent.
    InvalidOption(InvalidOption),
    /// The lease has ended. Nothing was sent.
    Lost(LossReason),
    /// A lease with a newer or the same token has written. This write was not executed and never
    /// will be. If the network has delivered the request twice, a copy of it may have written
    /// before the newer lease did.
    Stale {
        /// The newest token that the guard has seen.
        newest: u64,
    },
    /// The token is older than the guard's memory of newer ones. Nothing was written.
    TooOld {
        /// The oldest accepted token.
        oldest: u64,
    },
    /// The token is over a minute ahead of the clock of the guard's Redis. Nothing was written.
    TokenAhead,
    /// The request failed.
    Request(RequestError),
}

impl GuardError {
    /// The text of `Display`.
    pub fn message(&self) -> String {
        match self {
            Self::InvalidOption(error) => error.message(),
            Self::Lost(reason) => reason.message().into(),
            Self::Stale { .. } => "a newer fencing token has been seen".into(),
            Self::TooOld { .. } => "the fencing token is older than the guard remembers".into(),
            Self::TokenAhead => {
                "the fencing token is more than a minute ahead of Redis' clock".into()
            }
            Self::Request(error) => error.message(),
        }
    }
}

/// The reason why a caller's script has no result.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EvalError {
    /// The script does not compile, failed, or has a result that JSON cannot express; the text is
    /// Redis' own. The writes before the failure remain; the script is not run again.
    ScriptFailed(String),
    /// The request failed. With [`RequestError::Lost`] the script did not run.
    Request(RequestError),
}

impl EvalError {
    /// The text of `Display`.
    pub fn message(&self) -> String {
        match self {
            Self::ScriptFailed(text) => ["the script failed: ", text].concat(),
            Self::Request(error) => error.message(),
        }
    }
}

impl From<InvalidOption> for GuardError {
    fn from(error: InvalidOption) -> Self {
        Self::InvalidOption(error)
    }
}

impl From<InvalidOption> for EvalError {
    fn from(error: InvalidOption) -> Self {
        Self::Request(error.into())
    }
}

impl From<RequestError> for EvalError {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::Refused(refusal) => match refusal.compile_error() {
                Some(reason) => Self::ScriptFailed(reason.into()),
                None => Self::Request(RequestError::Refused(refusal)),
            },
            error => Self::Request(error),
        }
    }
}

/// The reason why the end of a hold is not confirmed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReleaseError {
    /// The gateway or Redis refused the request. The hold ends with its lease.
    Refused(Refusal),
    /// No usable reply came. The hold has ended, or expires.
    Unknown {
        /// After this time, from now on, the hold is gone, under the conditions of
        /// [`AcquireError::Unknown`]: no copy of a request can extend it, and a lease has passed
        /// since. A write hold around a read of the same owner lasts at least as long as that read.
        held_at_most: Duration,
        /// The last failure.
        cause: FailureKind,
    },
}

impl ReleaseError {
    /// The text of `Display`.
    pub fn message(&self) -> String {
        match self {
            Self::Refused(refusal) => refusal.message() + "; the hold ends with its lease",
            Self::Unknown { cause, .. } => {
                cause.message() + "; whether the hold is left is not known"
            }
        }
    }
}

/// Implements `Display` by joined texts: formatting would cost the npm package bytes.
macro_rules! show {
    ($($error:ty),*) => {$(
        impl fmt::Display for $error {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.message())
            }
        }
        impl core::error::Error for $error {}
    )*};
}

show!(InvalidOption, Refusal, LossReason);
show!(AcquireError, RequestError, GuardError, EvalError, ReleaseError);
