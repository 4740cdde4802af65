//! Refuses requests whose end a proxy and the gateway could find at different bytes.

use axum::extract::Request;
use axum::http::HeaderMap;
use axum::http::header::{CONNECTION, HeaderValue, TRANSFER_ENCODING};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::failure::Failure;

/// Refuses a request with any transfer encoding but one `chunked`, and closes its connection.
///
/// hyper reads `chunked, chunked` and `gzip, chunked` as chunks. A proxy in front of the gateway
/// that reads them in another way finds the end of the request elsewhere, and bytes that it
/// forwards as the rest of a body would run as the next request (RFC 9112, 6.1).
pub(crate) async fn refuse_ambiguous(request: Request, next: Next) -> Response {
    if is_unambiguous(request.headers()) {
        return next.run(request).await;
    }
    let mut response = Failure::Framing.into_response();
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

fn is_unambiguous(headers: &HeaderMap) -> bool {
    let mut encodings = headers.get_all(TRANSFER_ENCODING).iter();
    let is_chunked = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"chunked");
    encodings.next().is_none_or(is_chunked) && encodings.next().is_none()
}
