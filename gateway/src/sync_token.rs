//! Upstash's header for clients that want to read their own writes.

use axum::http::{HeaderName, HeaderValue};

/// A client sends the value of the last answer with its next request. The gateway ignores it there:
/// it reads from the primary, which has every earlier write.
pub(crate) const SYNC_TOKEN: HeaderName = HeaderName::from_static("upstash-sync-token");

/// A value unlike any before. Random, because a count would tell one client how much others do.
pub(crate) fn sync_token() -> HeaderValue {
    getrandom::u64().unwrap_or_default().into()
}
