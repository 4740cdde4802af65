//! What `reqwest` offers of itself inside a JavaScript runtime.

use super::{Carried, Chunks};
use crate::error::FailureKind;

pub(super) type DynSending = dyn Future<Output = Carried>;
pub(super) type DynChunks = dyn Chunks;

/// It may run where there are six connections for all.
pub(super) const STREAMS: usize = 0;

pub(super) fn client() -> reqwest::Client {
    reqwest::Client::new()
}

/// `fetch` does not tell how far it came.
pub(super) fn failure(error: &reqwest::Error) -> FailureKind {
    if error.is_builder() { FailureKind::NotSent } else { FailureKind::Broken }
}
