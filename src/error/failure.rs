//! What tells nothing.

use alloc::string::{String, ToString as _};
use core::fmt;
use core::time::Duration;

use super::RefusalKind;

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
    /// A web page came back, with a status of success. Most likely the address is not that of a gateway.
    WebPage {
        /// The HTTP status it came with.
        status: u16,
    },
    /// The gateway said that it failed (HTTP 408, 429 or 5xx, without a word of Redis).
    Gateway {
        /// The HTTP status it came with.
        status: u16,
        /// For how long it asked to be left alone (`Retry-After`), if it did. A wait heeds that by itself, for up to a minute at a time.
        retry_after: Option<Duration>,
    },
    /// A request had no answer, and then the gateway or Redis said no to its next attempt, or to undoing it.
    RefusedLater(RefusalKind),
}

impl FailureKind {
    /// What has the form of a reply, but is none that its script can give.
    pub(crate) const NO_ANSWER: Self = Self::Garbled { status: 200 };

    /// For how long the gateway asked to be left alone.
    pub(crate) const fn retry_after(self) -> Option<Duration> {
        if let Self::Gateway { retry_after, .. } = self { retry_after } else { None }
    }

    /// What is shown of it.
    pub(crate) fn message(&self) -> String {
        match self {
            Self::NotSent => "the gateway could not be reached".into(),
            Self::Broken => "the connection to the gateway broke".into(),
            Self::TimedOut => "the gateway did not answer in time".into(),
            Self::Redirected => "the gateway redirects, which is never followed".into(),
            Self::TooLarge => "the gateway's answer is too large".into(),
            Self::Garbled { status } => {
                ["the gateway's answer is not understood (HTTP ", &status.to_string(), ")"].concat()
            }
            Self::WebPage { status } => [
                "a web page came back (HTTP ",
                &status.to_string(),
                "): the address does not belong to a gateway; check the URL and its path",
            ]
            .concat(),
            Self::Gateway { status, .. } => {
                ["the gateway failed (HTTP ", &status.to_string(), ")"].concat()
            }
            Self::RefusedLater(_) => {
                "the gateway did not answer, and refused when it was asked again".into()
            }
        }
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message())
    }
}
