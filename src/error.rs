//! What a caller can meet: one enum per operation.
//!
//! No message holds a gateway's token, an owner id, a script or a lock's name.

use alloc::string::String;
use core::fmt;
use core::time::Duration;

/// A value that is not of the accepted kind or range. The caller's mistake; nothing was sent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InvalidOption {
    option: String,
    accepted: String,
}

impl InvalidOption {
    pub(crate) fn new(option: impl Into<String>, accepted: impl Into<String>) -> Self {
        Self { option: option.into(), accepted: accepted.into() }
    }

    /// The name of the option.
    pub fn option(&self) -> &str {
        &self.option
    }

    /// What would have been accepted.
    pub fn accepted(&self) -> &str {
        &self.accepted
    }
}

impl fmt::Display for InvalidOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not acceptable: expected {}", self.option, self.accepted)
    }
}

impl core::error::Error for InvalidOption {}

/// Why a request ended without a usable answer. Whether it was done is not known, except for [`NotSent`](Self::NotSent).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FailureKind {
    /// The request did not leave: no connection. Safe to ask again.
    NotSent,
    /// The connection broke, or the body ended early. Ask again only what may be done twice.
    Broken,
    /// No answer within the time for one attempt.
    TimedOut,
    /// The gateway pointed elsewhere. Not followed, since the token must not travel; most likely a wrong address.
    Redirected,
    /// The answer is larger than any script's reply and was not read to its end.
    TooLarge,
    /// The answer is not what the protocol says: no JSON, another shape, no echo of the request's id.
    Garbled {
        /// The HTTP status it came with.
        status: u16,
    },
    /// The gateway said that it failed (HTTP 429 or 5xx, without a word of Redis).
    Gateway {
        /// The HTTP status it came with.
        status: u16,
    },
    /// A request had no answer, and then the gateway or Redis said no to its next attempt, or to undoing it.
    RefusedLater(RefusalKind),
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSent => f.write_str("the gateway could not be reached"),
            Self::Broken => f.write_str("the connection to the gateway broke"),
            Self::TimedOut => f.write_str("the gateway did not answer in time"),
            Self::Redirected => f.write_str("the gateway redirects, which is never followed"),
            Self::TooLarge => f.write_str("the gateway's answer is too large"),
            Self::Garbled { status } => {
                write!(f, "the gateway's answer is not understood (HTTP {status})")
            }
            Self::Gateway { status } => write!(f, "the gateway failed (HTTP {status})"),
            Self::RefusedLater(_) => {
                f.write_str("the gateway did not answer, and refused when it was asked again")
            }
        }
    }
}

/// A clear no from the gateway or from Redis: the request was not done.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Refusal {
    kind: RefusalKind,
    code: String,
}

impl Refusal {
    pub(crate) fn new(kind: RefusalKind, code: impl Into<String>) -> Self {
        Self { kind, code: code.into() }
    }

    /// What sort of no it is.
    pub const fn kind(&self) -> RefusalKind {
        self.kind
    }

    /// The first word of Redis' error, such as `WRONGTYPE`; empty when there is none. The rest of its text is not kept,
    /// since it may quote arguments.
    pub fn code(&self) -> &str {
        &self.code
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.kind {
            RefusalKind::Unauthorized => "the gateway does not accept the token or its rights",
            RefusalKind::OutOfMemory => "Redis is out of memory",
            RefusalKind::WrongType => "a key of the lock holds something else",
            RefusalKind::TokenRange => "the last fencing token is out of range",
            RefusalKind::Unavailable => "Redis is not ready",
            RefusalKind::Other => "Redis refused the command",
        };
        f.write_str(text)?;
        if self.code.is_empty() { Ok(()) } else { write!(f, " ({})", self.code) }
    }
}

/// The sorts of [`Refusal`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RefusalKind {
    /// The token is wrong, or may not run scripts. Configuration; asking again does not help.
    Unauthorized,
    /// Redis is full and evicts nothing. Releases and renewals still pass.
    OutOfMemory,
    /// Something that is no lock is stored under one of its keys. Another program's doing, or a clash of names.
    WrongType,
    /// The token key holds no number that could rise within 2^53. Another program's doing.
    TokenRange,
    /// Redis is loading, failing over, read-only or busy. Passes by itself; asked again within the wait.
    Unavailable,
    /// Anything else, see [`Refusal::code`].
    Other,
}

/// Why the lock was not acquired.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AcquireError {
    /// An option is not acceptable. Nothing was sent.
    InvalidOption(InvalidOption),
    /// Somebody else holds the lock, and the wait (if any) is over. Nothing is held.
    Busy {
        /// Until the present hold runs out by itself, as Redis told; `None` when it has no end.
        remaining: Option<Duration>,
    },
    /// The caller ended the wait.
    Cancelled {
        /// `None`: nothing is held. Else the undoing was not confirmed, and after this time nothing is held any more.
        held_at_most: Option<Duration>,
    },
    /// The gateway or Redis said no. Nothing is held.
    Refused(Refusal),
    /// No usable answer came, but the undoing was confirmed. Nothing is held.
    Unreachable(FailureKind),
    /// Granted, but less than half of the lease was left when the answer came, so it was given back. Nothing is held.
    /// The gateway is too slow for this lease.
    TooSlow,
    /// No usable answer came, also not to the undoing: a hold may be there.
    Unknown {
        /// After this time no hold of this acquisition is left.
        held_at_most: Duration,
        /// What went wrong last.
        cause: FailureKind,
    },
    /// The host has no entropy to make an owner of. Nothing was sent.
    NoEntropy,
}

impl fmt::Display for AcquireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidOption(error) => error.fmt(f),
            Self::Busy { .. } => f.write_str("somebody else holds the lock"),
            Self::Cancelled { .. } => f.write_str("the wait was cancelled"),
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Unreachable(kind) => write!(f, "{kind}; nothing is held"),
            Self::TooSlow => f.write_str(
                "the grant came when too little of the lease was left; it was given back",
            ),
            Self::Unknown { cause, .. } => {
                write!(f, "{cause}; whether a hold is left is not known")
            }
            Self::NoEntropy => f.write_str("the host has no entropy"),
        }
    }
}

impl core::error::Error for AcquireError {}

impl From<InvalidOption> for AcquireError {
    fn from(error: InvalidOption) -> Self {
        Self::InvalidOption(error)
    }
}

/// Why a hold ended before it was released.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LossReason {
    /// No renewal was confirmed in time, by the holder's own clock.
    Expired,
    /// Redis says that the hold is not there: expired there, force-released, evicted, or lost in a failover.
    Gone,
}

/// Why a question about a lock, a renewal or a forced release has no answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RequestError {
    /// An option is not acceptable. Nothing was sent.
    InvalidOption(InvalidOption),
    /// The hold is gone, so there is nothing to renew.
    Lost(LossReason),
    /// The gateway or Redis said no. Nothing was done.
    Refused(Refusal),
    /// No usable answer came. A renewal or a forced release may have been done.
    Unreachable(FailureKind),
    /// The host has no entropy to make a request id of. Nothing was sent.
    NoEntropy,
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidOption(error) => error.fmt(f),
            Self::Lost(_) => f.write_str("the lease was lost"),
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Unreachable(kind) => kind.fmt(f),
            Self::NoEntropy => f.write_str("the host has no entropy"),
        }
    }
}

impl core::error::Error for RequestError {}

/// Why it is not known that a hold has ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReleaseError {
    /// The gateway or Redis said no. The hold ends with its lease.
    Refused(Refusal),
    /// No usable answer came. The hold has ended, or ends by itself.
    Unknown {
        /// After this time the hold is not there any more.
        held_at_most: Duration,
        /// What went wrong last.
        cause: FailureKind,
    },
}

impl fmt::Display for ReleaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Unknown { cause, .. } => {
                write!(f, "{cause}; whether the hold is left is not known")
            }
        }
    }
}

impl core::error::Error for ReleaseError {}
