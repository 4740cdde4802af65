//! Refusals: requests that the gateway or Redis did not execute.

use alloc::boxed::Box;
use alloc::string::String;

/// A refusal by the gateway or Redis: the request was not executed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Refusal {
    kind: RefusalKind,
    code: String,
    status: Option<u16>,
    /// Why Redis could not compile the caller's own script.
    compile_error: Option<Box<str>>,
}

impl Refusal {
    pub(crate) fn new(kind: RefusalKind, code: impl Into<String>) -> Self {
        Self { kind, code: code.into(), status: None, compile_error: None }
    }

    /// Sets the HTTP status of the response; one that reports success is left out.
    pub(crate) fn with_status(mut self, status: u16) -> Self {
        self.status = Some(status).filter(|status| *status >= 400);
        self
    }

    /// Creates the refusal of a caller's script that Redis could not compile, for this reason.
    pub(crate) fn of_script(reason: String) -> Self {
        let compile_error = Some(reason.into_boxed_str());
        Self { kind: RefusalKind::Other, code: "ERR".into(), status: None, compile_error }
    }

    /// The sort of refusal.
    pub const fn kind(&self) -> RefusalKind {
        self.kind
    }

    /// The first word of Redis' error, such as `WRONGTYPE`, or an empty text; the rest may quote
    /// arguments. `LIMIT`: the object has its maximum number of values, holders, waiters or
    /// permits.
    pub fn code(&self) -> &str {
        &self.code
    }

    /// Whether the object has reached a limit.
    pub(crate) fn is_limit(&self) -> bool {
        self.code == "LIMIT"
    }

    /// Why Redis could not compile the caller's own script.
    pub(super) fn compile_error(&self) -> Option<&str> {
        self.compile_error.as_deref()
    }

    /// The HTTP status of the response, 400 or above; `None` if Redis' error came with a status of
    /// success, as it does in a pipeline, or if nothing was sent.
    pub const fn status(&self) -> Option<u16> {
        self.status
    }
}

impl Refusal {
    /// The text of `Display`.
    pub fn message(&self) -> String {
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
            RefusalKind::Other if self.is_limit() => "the object has reached its limit",
            RefusalKind::Other => "Redis refused the command",
        };
        if self.code.is_empty() { text.into() } else { [text, " (", &self.code, ")"].concat() }
    }
}

/// The sort of a [`Refusal`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RefusalKind {
    /// The token is wrong, or may not run scripts. A retry does not help.
    Unauthorized,
    /// Redis is full and evicts nothing. Releases and renewals still work.
    OutOfMemory,
    /// A key of the lock holds another type or kind of object, of another program or the same name.
    WrongType,
    /// The last token cannot rise within 2^53, or the nodes of a redLock cannot agree on one, since
    /// it is more than a minute ahead of the clock of too many of them.
    TokenRange,
    /// Redis is loading, failing over, read-only or busy. It passes; a wait retries.
    Unavailable,
    /// The address is not that of a gateway: HTTP 404, 405 or 410, or a gateway took the path of
    /// the URL for a command that does not exist. Configuration, most likely a wrong path; or a
    /// deployment that is being replaced, so a wait tries again.
    NotAGateway,
    /// The gateway cannot wait for replicas: it has no `/pipeline`, or no `WAIT`.
    Unsupported,
    /// Any other error, see [`Refusal::code`].
    Other,
}

impl RefusalKind {
    /// Whether a wait tries again.
    pub(crate) const fn is_transient(self) -> bool {
        matches!(self, Self::Unavailable | Self::NotAGateway)
    }
}
