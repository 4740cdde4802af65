//! The parts of the `reqwest` transport that are special outside of a JavaScript runtime.

use super::{ByteStream, TransportResult};
use crate::error::FailureKind;

pub(super) type DynSending = dyn Future<Output = TransportResult> + Send;
pub(super) type DynByteStream = dyn ByteStream + Send;

/// A program has no limit on connections; at most this many are idle while waiters wait.
pub(super) const STREAMS: usize = 256;

pub(super) fn client() -> reqwest::Client {
    #[expect(
        clippy::expect_used,
        reason = "documented as a panic; only a broken TLS set-up of the system leads here"
    )]
    reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .build()
        .expect("the TLS set-up of this system is usable")
}

pub(super) fn failure(error: &reqwest::Error) -> FailureKind {
    if error.is_redirect() {
        FailureKind::Redirected
    } else if error.is_connect() || error.is_builder() {
        FailureKind::NotSent
    } else {
        FailureKind::Broken
    }
}
