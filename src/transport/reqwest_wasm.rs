//! The parts of the `reqwest` transport that are special inside a JavaScript runtime.

use super::{ByteStream, TransportResult};
use crate::error::FailureKind;

pub(super) type DynSending = dyn Future<Output = TransportResult>;
pub(super) type DynByteStream = dyn ByteStream;

/// None: the runtime may be a browser, whose pages share six connections.
pub(super) const STREAMS: usize = 0;

pub(super) fn client() -> reqwest::Client {
    reqwest::Client::new()
}

/// An error of `fetch` does not say whether the request was sent.
pub(super) fn failure(error: &reqwest::Error) -> FailureKind {
    if error.is_builder() { FailureKind::NotSent } else { FailureKind::Broken }
}
