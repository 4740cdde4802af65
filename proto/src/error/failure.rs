//! Failures that leave the outcome of a request open.

use alloc::string::{String, ToString as _};
use core::fmt;
use core::time::Duration;

use super::RefusalKind;

/// The reason why a request has no usable reply. Its outcome is unknown, except for
/// [`NotSent`](Self::NotSent).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FailureKind {
    /// The request did not leave: no connection. It is safe to retry.
    NotSent,
    /// The connection broke, or the body ended early. Retry idempotent requests only.
    Broken,
    /// No response within the time for one attempt.
    TimedOut,
    /// The gateway sent a redirection. The client does not follow it, since the token must not
    /// reach another host. Usually a wrong address.
    Redirected,
    /// The response is larger than any script's reply, and was not read to its end.
    TooLarge,
    /// The response violates the protocol: not JSON, another shape, or no echo of the request id.
    Garbled {
        /// The HTTP status.
        status: u16,
    },
    /// The response is a web page with a status of success. Usually the address does not belong to
    /// a gateway.
    WebPage {
        /// The HTTP status.
        status: u16,
    },
    /// The gateway failed: HTTP 408, 429 or 5xx, without an error of Redis.
    Gateway {
        /// The HTTP status.
        status: u16,
        /// The time of its `Retry-After`, if it sent one. A wait respects it by itself, for up to a
        /// minute at a time.
        retry_after: Option<Duration>,
    },
    /// The gateway or Redis refused a request, but an earlier one may have been executed, or may be
    /// later: another attempt of this request, or the request that this one was to undo.
    RefusedLater(RefusalKind),
}

impl FailureKind {
    /// A reply of the right form that its script cannot give.
    pub const NO_ANSWER: Self = Self::Garbled { status: 200 };

    /// The time of the gateway's `Retry-After`.
    pub(crate) const fn retry_after(self) -> Option<Duration> {
        if let Self::Gateway { retry_after, .. } = self { retry_after } else { None }
    }

    /// The text of `Display`.
    pub fn message(&self) -> String {
        match self {
            Self::NotSent => "the gateway could not be reached".into(),
            Self::Broken => {
                "the connection ended before the gateway's response was complete".into()
            }
            Self::TimedOut => "the gateway did not respond in time".into(),
            Self::Redirected => "the gateway redirects, which is never followed".into(),
            Self::TooLarge => "the gateway's response is too large".into(),
            Self::Garbled { status } => {
                ["the gateway's response is not valid (HTTP ", &u64::from(*status).to_string(), ")"]
                    .concat()
            }
            Self::WebPage { status } => [
                "a web page came back (HTTP ",
                &u64::from(*status).to_string(),
                "): the address does not belong to a gateway; check the URL and its path",
            ]
            .concat(),
            Self::Gateway { status, .. } => {
                ["the gateway failed (HTTP ", &u64::from(*status).to_string(), ")"].concat()
            }
            Self::RefusedLater(_) => {
                "the gateway refused a request, but an earlier one may have been executed".into()
            }
        }
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message())
    }
}
