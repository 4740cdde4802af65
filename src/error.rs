//! What a caller can meet: one enum per operation.
//!
//! No message holds a gateway's token, an owner id, a script or a lock's name.

mod failure;

pub use failure::FailureKind;

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use core::fmt;
use core::time::Duration;

/// A value that is not of the accepted kind or range. The caller's mistake; nothing was sent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InvalidOption {
    /// The option's name, and what is accepted: in one place, since errors are handed on by everybody.
    texts: Box<[String; 2]>,
}

impl InvalidOption {
    pub(crate) fn new(option: impl Into<String>, accepted: impl Into<String>) -> Self {
        Self { texts: Box::new([option.into(), accepted.into()]) }
    }

    /// The name of the option.
    pub fn option(&self) -> &str {
        let [option, _] = &*self.texts;
        option
    }

    /// What would have been accepted.
    pub fn accepted(&self) -> &str {
        let [_, accepted] = &*self.texts;
        accepted
    }

    /// What is shown of it.
    pub(crate) fn message(&self) -> String {
        ["`", self.option(), "` is not acceptable: expected ", self.accepted()].concat()
    }
}

/// A clear no from the gateway or from Redis: the request was not done.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Refusal {
    kind: RefusalKind,
    code: String,
    /// Why Redis could not compile the caller's own script.
    compile_error: Option<Box<str>>,
}

impl Refusal {
    pub(crate) fn new(kind: RefusalKind, code: impl Into<String>) -> Self {
        Self { kind, code: code.into(), compile_error: None }
    }

    /// Of the caller's own script, which Redis could not compile for this reason.
    pub(crate) fn of_script(reason: String) -> Self {
        let compile_error = Some(reason.into_boxed_str());
        Self { kind: RefusalKind::Other, code: "ERR".into(), compile_error }
    }

    /// What sort of no it is.
    pub const fn kind(&self) -> RefusalKind {
        self.kind
    }

    /// The first word of Redis' error, such as `WRONGTYPE`; empty when there is none. The rest of its text is not kept,
    /// since it may quote arguments. `LIMIT`: the object has as many values, holders or waiters as it can have, and nothing
    /// was done.
    pub fn code(&self) -> &str {
        &self.code
    }
}

impl Refusal {
    /// What is shown of it.
    pub(crate) fn message(&self) -> String {
        let text = match self.kind {
            RefusalKind::Unauthorized => "the gateway does not accept the token or its rights",
            RefusalKind::OutOfMemory => "Redis is out of memory",
            RefusalKind::WrongType => "a key of the lock holds something else",
            RefusalKind::TokenRange => "the last fencing token is out of range",
            RefusalKind::Unavailable => "Redis is not ready",
            RefusalKind::NotAGateway => {
                "the address does not belong to a gateway; check the URL and its path"
            }
            RefusalKind::Unsupported => "the gateway has no way to wait for replicas",
            RefusalKind::Other => "Redis refused the command",
        };
        if self.code.is_empty() { text.into() } else { [text, " (", &self.code, ")"].concat() }
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
    /// Something that is no lock is stored under one of its keys, or an object of another kind: a group under a lock's name, a lock
    /// under a guarded key. Another program's doing, or a clash of names.
    WrongType,
    /// The token key holds no number that could rise within 2^53. Another program's doing. Or the nodes of a redLock cannot agree on
    /// a token, since it is more than a minute ahead of the clock of too many of them: clocks are apart, or were set back.
    TokenRange,
    /// Redis is loading, failing over, read-only or busy. Passes by itself; asked again within the wait.
    Unavailable,
    /// The address is not that of a gateway: HTTP 404, 405 or 410, or a gateway took the path of the URL for a command that does
    /// not exist. Configuration, most likely a wrong path; or a deployment that is being replaced, so a wait tries again.
    NotAGateway,
    /// The gateway cannot wait for replicas: it knows no `/pipeline`, or no `WAIT`. Acquire without them, or use one that can.
    Unsupported,
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
    /// There is no semaphore of this name. Create it with `try_set_permits`, or with `add_permits(0)` to
    /// wait, as Redisson does, until another client adds permits. Nothing is held.
    NotSetUp,
    /// This owner holds the lock already, and it is one that cannot be taken twice. Nothing was sent.
    HeldAlready,
    /// This owner holds the reading side, and asks for the writing side: it would wait for itself. Release the one before
    /// asking for the other. Nothing was sent.
    SelfDeadlock,
    /// The caller ended the wait.
    Cancelled {
        /// `None`: nothing is held. Else the undoing was not confirmed, and after this time nothing is held any more: see
        /// [`Unknown`](Self::Unknown).
        held_at_most: Option<Duration>,
    },
    /// The gateway or Redis said no. Nothing is held.
    Refused(Refusal),
    /// No usable answer came, but the undoing was confirmed. Nothing is held.
    Unreachable(FailureKind),
    /// Granted, but less than half of the lease was left when the answer came, so it was given back. Nothing is held.
    /// The gateway is too slow for this lease.
    TooSlow,
    /// Granted, but fewer replicas than were asked for had the grant in time, so it was given back. Nothing is held. Replicas are
    /// missing, or far behind.
    NotReplicated {
        /// How many had it.
        acknowledged: u32,
    },
    /// Granted, but with a fencing token that is older than one that this client was granted before, so it was given back. Nothing is
    /// held. Redis' clock was set back and its tokens are lost, or another Redis answers, which is behind: whoever guards by tokens
    /// would refuse what is done with this one.
    TokenRegressed {
        /// The newest token that this client was granted for it. It remembers those of the last 64 names.
        newest: u64,
    },
    /// No usable answer came, also not to the undoing: a hold may be there.
    Unknown {
        /// After this time, from now on, no hold of this acquisition is left, and none can be granted any more.
        ///
        /// That is the time until Redis refuses what was asked, as it was told to when it was asked, and the lease: of a wait of 30 s
        /// up to some two and a half minutes, of one without an end up to 12 minutes and more. Of a client that had not heard from
        /// this Redis before, requests bear no such time; copies of them are reckoned with for ten minutes then. It holds
        /// while Redis' clock is not set back and this machine's clocks are not both more than 1 % fast.
        held_at_most: Duration,
        /// What went wrong last.
        cause: FailureKind,
    },
    /// The host has no entropy to make an owner of. Nothing was sent.
    NoEntropy,
}

impl AcquireError {
    /// What is shown of it.
    pub(crate) fn message(&self) -> String {
        match self {
            Self::InvalidOption(error) => error.message(),
            Self::Busy { .. } => "another client holds the lock".into(),
            Self::NotSetUp => "the semaphore does not exist; create it with try_set_permits".into(),
            Self::HeldAlready => "this owner holds the lock already".into(),
            Self::SelfDeadlock => "this owner reads, and would wait for itself".into(),
            Self::Cancelled { .. } => "the wait was cancelled".into(),
            Self::Refused(refusal) => refusal.message(),
            Self::Unreachable(kind) => kind.message() + "; nothing is held",
            Self::TooSlow => {
                "the grant came when too little of the lease was left; it was given back".into()
            }
            Self::NotReplicated { acknowledged } => [
                "only ",
                &acknowledged.to_string(),
                " replicas had the grant in time; it was given back",
            ]
            .concat(),
            Self::TokenRegressed { .. } => {
                "the fencing token is older than one that was granted before; it was given back"
                    .into()
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

/// Why a hold ended before it was released.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LossReason {
    /// No renewal was confirmed in time, by the holder's own clock.
    Expired,
    /// Redis says that the hold is not there: expired there, force-released, evicted, or lost in a failover.
    Gone,
}

impl RefusalKind {
    /// Whether a wait tries again.
    pub(crate) const fn is_transient(self) -> bool {
        matches!(self, Self::Unavailable | Self::NotAGateway)
    }
}

impl LossReason {
    /// What is shown of it.
    pub(crate) const fn message(self) -> &'static str {
        match self {
            Self::Expired => "the lease has expired: no renewal was confirmed in time",
            Self::Gone => {
                "the lease is gone: Redis no longer has the hold (expired, released by force, or lost in a failover)"
            }
        }
    }
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
    /// No usable answer came, but Redis has confirmed that it was not done, and never will be. Safe to ask afresh.
    NotExecuted(FailureKind),
    /// No usable answer came. A renewal, a forced release, a count or a guarded write may have been done.
    Unreachable(FailureKind),
    /// The host has no entropy to make a request id of. Nothing was sent.
    NoEntropy,
}

impl RequestError {
    /// What is shown of it.
    pub(crate) fn message(&self) -> String {
        match self {
            Self::InvalidOption(error) => error.message(),
            Self::Lost(reason) => reason.message().into(),
            Self::Refused(refusal) => refusal.message(),
            Self::NotExecuted(kind) => kind.message() + "; it was not done",
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

/// Why a guarded write was not made.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GuardError {
    /// An argument is not acceptable. Nothing was sent.
    InvalidOption(InvalidOption),
    /// The lease has ended. Nothing was sent.
    Lost(LossReason),
    /// A newer lease has written, or one with the same token. Nothing was written.
    Stale {
        /// The newest token that was seen.
        newest: u64,
    },
    /// The token is older than the guard remembers: something newer may have been forgotten. Nothing was written.
    TooOld {
        /// The oldest token that would have been accepted.
        oldest: u64,
    },
    /// The token is more than a minute ahead of the clock of the guard's Redis: believing it would lock everybody else out.
    /// Nothing was written.
    TokenAhead,
    /// The request had no good end.
    Request(RequestError),
}

impl GuardError {
    /// What is shown of it.
    pub(crate) fn message(&self) -> String {
        match self {
            Self::InvalidOption(error) => error.message(),
            Self::Lost(reason) => reason.message().into(),
            Self::Stale { .. } => "a newer fencing token has been seen".into(),
            Self::TooOld { .. } => "the fencing token is older than the guard remembers".into(),
            Self::TokenAhead => "the fencing token is from the future".into(),
            Self::Request(error) => error.message(),
        }
    }
}

/// Why a caller's own script has no result.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EvalError {
    /// The script does not compile, failed, or has a result that JSON cannot express; the text is Redis' own. The writes before
    /// the failure remain; the script is not run again.
    ScriptFailed(String),
    /// The request had no good end. With [`RequestError::Lost`] the script did not run.
    Request(RequestError),
}

impl EvalError {
    /// What is shown of it.
    pub(crate) fn message(&self) -> String {
        match self {
            Self::ScriptFailed(text) => ["the script failed: ", text].concat(),
            Self::Request(error) => error.message(),
        }
    }
}

impl From<RequestError> for EvalError {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::Refused(Refusal { compile_error: Some(reason), .. }) => {
                Self::ScriptFailed(reason.into())
            }
            error => Self::Request(error),
        }
    }
}

/// Why it is not known that a hold has ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReleaseError {
    /// The gateway or Redis said no. The hold ends with its lease.
    Refused(Refusal),
    /// No usable answer came. The hold has ended, or ends by itself.
    Unknown {
        /// After this time, from now on, the hold is not there any more: no copy of its acquisition or of a renewal can extend it,
        /// and a lease has passed since. It rests on the same as that of [`AcquireError::Unknown`]. A write hold
        /// around a read of the same owner is there for as long as that read, too.
        held_at_most: Duration,
        /// What went wrong last.
        cause: FailureKind,
    },
}

impl ReleaseError {
    /// What is shown of it.
    pub(crate) fn message(&self) -> String {
        match self {
            Self::Refused(refusal) => refusal.message(),
            Self::Unknown { cause, .. } => {
                cause.message() + "; whether the hold is left is not known"
            }
        }
    }
}

/// Shows messages that were put together by simpler means than formatting, which costs the npm package bytes.
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

show!(InvalidOption, Refusal, AcquireError, RequestError, GuardError, EvalError, ReleaseError);
