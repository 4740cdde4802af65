//! Upstash's header with which clients read their own writes.

use axum::http::{HeaderName, HeaderValue};

/// The header's name. A client sends the value of the last response with its next request. The
/// gateway ignores it, since it reads from the primary, which has every earlier write.
pub(crate) const SYNC_TOKEN: HeaderName = HeaderName::from_static("upstash-sync-token");

/// Returns a new random value. A counter would show one client the number of other clients'
/// requests.
pub(crate) fn sync_token() -> HeaderValue {
    getrandom::u64().unwrap_or_default().into()
}
