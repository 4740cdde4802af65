//! Errors of the client: what happened, to which lock, at which gateway.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::error;
use core::fmt;

use super::shared::Shared;
use crate::error::{
    AcquireError, EvalError, FailureKind, GuardError, InvalidOption, LossReason, ReleaseError,
    RequestError,
};
use crate::host::Host;
use crate::transport::{Cause, Transport};
use edgelatch_proto::protocol::calls::Target;

/// An error of an operation of the client.
///
/// [`kind`](Self::kind) says what happened. `K` is the enum of the operation, such as
/// [`AcquireError`], and a pattern reaches it through the field:
///
/// ```
/// # use edgelatch::{Error, error::AcquireError};
/// # fn advice(error: Error<AcquireError>) -> &'static str {
/// match error {
///     Error { kind: AcquireError::Busy { .. }, .. } => "try again later",
///     Error { kind: AcquireError::Refused(_), .. } => "check the token",
///     other => panic!("{other}"),
/// }
/// # }
/// ```
///
/// The message names the lock and the gateway's host, never a token, an owner or a script. With
/// [`Client::redact_names`](super::Client::redact_names) it leaves the names out. The
/// [`source`](error::Error::source) is the error of the transport, if the request failed there.
#[derive(Clone)]
pub struct Error<K> {
    /// The reason.
    pub kind: K,
    /// `None` for an invalid option, which concerns no lock.
    subject: Option<Arc<Subject>>,
}

impl<K> Error<K> {
    /// Returns the name of the lock, semaphore or latch; the names of a multi-lock or redLock
    /// are joined by `, `. Returns `None` for a guard, for an invalid option, and if the client
    /// [redacts names](super::Client::redact_names).
    pub fn lock(&self) -> Option<&str> {
        self.subject.as_ref().filter(|subject| subject.object != Object::Key)?.name.as_deref()
    }

    /// Returns the key of a guard, under the conditions of [`lock`](Self::lock).
    pub fn key(&self) -> Option<&str> {
        self.subject.as_ref().filter(|subject| subject.object == Object::Key)?.name.as_deref()
    }

    /// Returns the host of the gateway, with its port if its address has one. The hosts of several
    /// gateways are joined by `, `.
    pub fn host(&self) -> Option<&str> {
        self.subject.as_ref().map(|subject| subject.host.as_str())
    }

    /// Returns the kind alone.
    pub fn into_kind(self) -> K {
        self.kind
    }
}

/// Compares the kinds only.
impl<K: PartialEq> PartialEq<K> for Error<K> {
    fn eq(&self, kind: &K) -> bool {
        self.kind == *kind
    }
}

impl<K: PartialEq> PartialEq for Error<K> {
    fn eq(&self, other: &Self) -> bool {
        let subject = |error: &Self| {
            let subject = error.subject.as_deref()?;
            Some((subject.object, subject.name.clone(), subject.host.clone()))
        };
        self.kind == other.kind && subject(self) == subject(other)
    }
}

impl<K: From<InvalidOption>> From<InvalidOption> for Error<K> {
    fn from(error: InvalidOption) -> Self {
        Self { kind: error.into(), subject: None }
    }
}

impl<K: fmt::Display> fmt::Display for Error<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(Subject { object, name, host, obstacle, .. }) = self.subject.as_deref() else {
            return self.kind.fmt(f);
        };
        match obstacle {
            Some(obstacle) => write!(f, "{obstacle} for the whole wait")?,
            None => self.kind.fmt(f)?,
        }
        match name {
            Some(name) => write!(f, " ({} {name:?}, gateway {host})", object.noun()),
            None => write!(f, " ({}, gateway {host})", object.noun()),
        }
    }
}

impl<K: fmt::Debug + fmt::Display> error::Error for Error<K> {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        let cause = self.subject.as_ref()?.cause.as_deref()?;
        Some(cause)
    }
}

/// Begins with the message: `main` prints an error that it returns in this form.
impl<K: fmt::Debug + fmt::Display> fmt::Debug for Error<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("Error");
        fields.field("message", &format_args!("{self}")).field("kind", &self.kind);
        if let Some(cause) = self.subject.as_ref().and_then(|subject| subject.cause.as_ref()) {
            fields.field("source", cause);
        }
        fields.finish()
    }
}

/// The subject of an error.
struct Subject {
    object: Object,
    /// `None` if the client redacts names.
    name: Option<String>,
    host: String,
    /// The obstacle of a wait that is over.
    obstacle: Option<&'static str>,
    cause: Option<Cause>,
}

/// The object that an error is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Object {
    Lock,
    Semaphore,
    Latch,
    /// The key of a guard.
    Key,
}

impl Object {
    /// The kind of object that `target` belongs to.
    pub(super) const fn of(target: &Target) -> Self {
        if target.holds_permits() { Self::Semaphore } else { Self::Lock }
    }

    const fn noun(self) -> &'static str {
        match self {
            Self::Lock => "lock",
            Self::Semaphore => "semaphore",
            Self::Latch => "latch",
            Self::Key => "key",
        }
    }

    const fn obstacle(self) -> &'static str {
        match self {
            Self::Lock | Self::Key => "another client held the lock",
            Self::Semaphore => "too few permits were available",
            Self::Latch => "the latch was closed",
        }
    }
}

impl<T: Transport, H: Host> Shared<T, H> {
    /// Creates an error about the object with these names, which it leaves out if `redacts`.
    pub(super) fn error<'a, K: Kind>(
        &self,
        kind: K,
        object: Object,
        names: impl IntoIterator<Item = &'a str>,
        redacts: bool,
    ) -> Error<K> {
        if kind.is_invalid_option() {
            return Error { kind, subject: None };
        }
        let has_transport_error =
            matches!(kind.failure(), Some(FailureKind::NotSent | FailureKind::Broken));
        let mut causes = self.endpoints.iter().filter_map(|it| it.transport.last_error());
        let subject = Subject {
            object,
            name: (!redacts).then(|| join_distinct(names)),
            host: join_distinct(self.endpoints.iter().map(|it| it.gateway.host())),
            obstacle: kind.is_busy().then(|| object.obstacle()),
            cause: if has_transport_error { causes.next() } else { None },
        };
        Error { kind, subject: Some(Arc::new(subject)) }
    }
}

/// Joins the texts, each once.
fn join_distinct<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let mut different: Vec<&str> = Vec::new();
    for text in texts {
        if !different.contains(&text) {
            different.push(text);
        }
    }
    different.join(", ")
}

/// The error enum of an operation, as [`Error`] uses it.
pub(super) trait Kind {
    /// The failure of the request, if that is what happened.
    fn failure(&self) -> Option<FailureKind>;

    fn is_invalid_option(&self) -> bool {
        false
    }

    /// Whether a wait is over.
    fn is_busy(&self) -> bool {
        false
    }
}

impl Kind for AcquireError {
    fn failure(&self) -> Option<FailureKind> {
        match self {
            Self::Unreachable(kind) | Self::Unknown { cause: kind, .. } => Some(*kind),
            _ => None,
        }
    }

    fn is_invalid_option(&self) -> bool {
        matches!(self, Self::InvalidOption(_))
    }

    fn is_busy(&self) -> bool {
        matches!(self, Self::Busy { .. })
    }
}

impl Kind for RequestError {
    fn failure(&self) -> Option<FailureKind> {
        match self {
            Self::NotExecuted(kind) | Self::Unreachable(kind) => Some(*kind),
            _ => None,
        }
    }

    fn is_invalid_option(&self) -> bool {
        matches!(self, Self::InvalidOption(_))
    }
}

impl Kind for GuardError {
    fn failure(&self) -> Option<FailureKind> {
        if let Self::Request(error) = self { error.failure() } else { None }
    }

    fn is_invalid_option(&self) -> bool {
        matches!(self, Self::InvalidOption(_) | Self::Request(RequestError::InvalidOption(_)))
    }
}

impl Kind for EvalError {
    fn failure(&self) -> Option<FailureKind> {
        if let Self::Request(error) = self { error.failure() } else { None }
    }

    fn is_invalid_option(&self) -> bool {
        matches!(self, Self::Request(RequestError::InvalidOption(_)))
    }
}

impl Kind for ReleaseError {
    fn failure(&self) -> Option<FailureKind> {
        if let Self::Unknown { cause, .. } = self { Some(*cause) } else { None }
    }
}

impl Kind for LossReason {
    fn failure(&self) -> Option<FailureKind> {
        None
    }
}
