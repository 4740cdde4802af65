//! Responses of a faulty gateway, and how the client classifies each.

use edgelatch_proto::error::FailureKind;

use super::faults::{FaultResponse, http, json, page};

/// A response that leaves the outcome unknown: its name, the response, and the failure that the
/// client reports.
pub type Bad = (&'static str, FaultResponse, FailureKind);

/// Every response that leaves the outcome unknown, except for silence.
pub fn indeterminate() -> Vec<Bad> {
    let garbled = FailureKind::Garbled { status: 200 };
    let failed = |status| FailureKind::Gateway { status, retry_after: None };
    let large = "x".repeat(10_000_000);
    let wrong_echo = r#"{"result":[1,"1",30000,1700000000000,"0000000000000000"]}"#;
    let chunked = b"HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{\"res\r\n".to_vec();
    let endless = format!("HTTP/1.1 200 X\r\nconnection: close\r\n\r\n{{\"result\":\"{large}");
    let early_end = b"HTTP/1.1 200 X\r\ncontent-length: 500\r\n\r\n{\"result\":[".to_vec();
    vec![
        ("a page", page(200), FailureKind::WebPage { status: 200 }),
        ("nothing", FaultResponse::Bytes(Vec::new()), FailureKind::Broken),
        ("a reset", FaultResponse::Reset, FailureKind::Broken),
        ("no HTTP", FaultResponse::Bytes(b"-ERR\r\n".to_vec()), FailureKind::Broken),
        ("half a head", FaultResponse::Bytes(b"HTTP/1.1 200".to_vec()), FailureKind::Broken),
        ("half a JSON", json(200, r#"{"result":[1,"17"#), garbled),
        ("half a body", FaultResponse::Bytes(early_end), FailureKind::Broken),
        ("half a chunk", FaultResponse::Bytes(chunked), FailureKind::Broken),
        ("half the truth", FaultResponse::Truncated, FailureKind::Broken),
        ("10 MB", http(200, "", &large), FailureKind::TooLarge),
        ("10 MB without an end", FaultResponse::Bytes(endless.into_bytes()), FailureKind::TooLarge),
        ("an empty body", json(200, ""), garbled),
        ("another shape", json(200, r#"{"result":"OK"}"#), garbled),
        ("null", json(200, r#"{"result":null}"#), garbled),
        ("QUEUED", json(200, r#"{"result":"QUEUED"}"#), garbled),
        ("another request's reply", json(200, wrong_echo), garbled),
        ("429", json(429, r#"{"error":"Too many requests"}"#), failed(429)),
        ("500", http(500, "", ""), failed(500)),
        ("502 with a page", page(502), failed(502)),
        ("503", json(503, r#"{"error":"Service Unavailable"}"#), failed(503)),
        ("504 with a page", page(504), failed(504)),
    ]
}

/// Responses that certainly mean that the request was not executed.
pub fn refusals() -> Vec<(&'static str, FaultResponse)> {
    vec![
        ("401", json(401, r#"{"error":"WRONGPASS invalid or missing auth token"}"#)),
        ("401 in words", json(401, r#"{"error":"Unauthorized"}"#)),
        ("403", json(403, r#"{"error":"NOPERM this user has no permissions"}"#)),
    ]
}
