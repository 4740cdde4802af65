//! Which web pages may call.

use std::time::Duration;

use axum::http::header::{ACCEPT, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderName, Method};
use tower_http::cors::{AllowOrigin, CorsLayer};

use crate::config::Origin;

/// The layer for an allow-list, or none: without an origin no header of CORS is ever sent.
pub(crate) fn layer(origins: &[Origin]) -> Option<CorsLayer> {
    if origins.is_empty() {
        return None;
    }
    let sync_token = HeaderName::from_static("upstash-sync-token");
    let layer = CorsLayer::new()
        .allow_origin(AllowOrigin::list(origins.iter().map(Origin::header)))
        .allow_methods([Method::GET, Method::POST, Method::OPTIONS])
        .allow_headers([
            ACCEPT,
            AUTHORIZATION,
            CONTENT_TYPE,
            sync_token.clone(),
            // The official SDK sends these as well.
            CACHE_CONTROL,
            HeaderName::from_static("upstash-encoding"),
            HeaderName::from_static("upstash-telemetry-platform"),
            HeaderName::from_static("upstash-telemetry-runtime"),
            HeaderName::from_static("upstash-telemetry-sdk"),
        ])
        .expose_headers([sync_token, RETRY_AFTER])
        // Without it a browser asks before every single command.
        .max_age(Duration::from_secs(600));
    Some(layer)
}
