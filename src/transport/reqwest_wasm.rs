//! What `reqwest` offers of itself inside a JavaScript runtime.

use crate::error::FailureKind;

pub(super) fn client() -> reqwest::Client {
    reqwest::Client::new()
}

/// `fetch` does not tell how far it came.
pub(super) fn failure(error: &reqwest::Error) -> FailureKind {
    if error.is_builder() { FailureKind::NotSent } else { FailureKind::Broken }
}
