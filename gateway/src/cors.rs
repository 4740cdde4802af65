//! Decides which web pages may send requests.

use std::time::Duration;

use axum::http::header::{ACCEPT, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, ORIGIN, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderName, Method};
use tower_http::cors::{AllowOrigin, CorsLayer};

use crate::config::Origin;
use crate::failure::Failure;
use crate::sync_token::SYNC_TOKEN;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Returns the CORS layer for the allowed origins. Without an origin there is none, and no response
/// has a CORS header.
pub(crate) fn layer(origins: &[Origin]) -> Option<CorsLayer> {
    if origins.is_empty() {
        return None;
    }
    let layer = CorsLayer::new()
        .allow_origin(AllowOrigin::list(origins.iter().map(Origin::header)))
        .allow_methods([Method::GET, Method::POST, Method::PUT, Method::OPTIONS])
        .allow_headers([
            ACCEPT,
            AUTHORIZATION,
            CONTENT_TYPE,
            SYNC_TOKEN,
            // The official SDK sends these as well.
            CACHE_CONTROL,
            HeaderName::from_static("upstash-encoding"),
            HeaderName::from_static("upstash-response-format"),
            HeaderName::from_static("upstash-telemetry-platform"),
            HeaderName::from_static("upstash-telemetry-runtime"),
            HeaderName::from_static("upstash-telemetry-sdk"),
        ])
        .expose_headers([SYNC_TOKEN, RETRY_AFTER])
        // Without it a browser sends a preflight before every command.
        .max_age(Duration::from_secs(600));
    Some(layer)
}

/// Refuses a request that a browser sends for a page on an origin that is not allowed.
///
/// A browser sends a `GET` for an image, and a `POST` of text, without a preflight. It sends one
/// before a request with the header `Authorization`. So only requests that can work without this
/// header need this check: those with a command or a token in the address. A page cannot change
/// `Sec-Fetch-Site` or `Origin`. Browsers that send neither are older than 2023, and other clients
/// without them are no browsers.
pub(crate) fn refuse_cross_origin(headers: &HeaderMap, allowed: &[Origin]) -> Result<(), Failure> {
    let site = headers.get(SEC_FETCH_SITE).map(|site| site.as_bytes());
    if matches!(site, Some(b"same-origin" | b"none")) {
        return Ok(());
    }
    let passes = match headers.get(ORIGIN) {
        Some(origin) => allowed.iter().any(|allowed| allowed.header() == origin),
        None => site.is_none(),
    };
    if passes { Ok(()) } else { Err(Failure::CrossOrigin) }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn a_page_on_another_origin_is_recognized_by_its_headers() {
        let allowed = ["https://app.example".parse().unwrap()];
        let passes = |site: &'static str, origin: &'static str| {
            let headers = [(SEC_FETCH_SITE, site), (ORIGIN, origin)].into_iter();
            let headers = headers.filter(|(_, value)| !value.is_empty());
            let headers = headers.map(|(name, value)| (name, HeaderValue::from_static(value)));
            refuse_cross_origin(&headers.collect(), &allowed).is_ok()
        };
        // Allowed are curl, an address that a user typed, a page of the gateway's own origin, and a
        // page of an allowed origin.
        assert!(passes("", "") && passes("none", ""));
        assert!(passes("same-origin", "") && passes("same-origin", "https://gateway.example"));
        assert!(passes("cross-site", "https://app.example") && passes("", "https://app.example"));
        for site in ["cross-site", "same-site", "something-new"] {
            assert!(!passes(site, "") && !passes(site, "https://evil.example"), "{site}");
        }
        assert!(!passes("", "null") && !passes("", "https://app.example.evil.example"));
    }
}
