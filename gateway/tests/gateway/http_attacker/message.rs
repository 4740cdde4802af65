//! Requests as bytes: well-formed ones, and ones that two parsers could read differently.

use std::sync::LazyLock;

use edgelatch_gateway::Right;
use fastrand::Rng;
use serde_json::json;

use crate::client_limits::inspecting;
use crate::scopes::scoped;
use crate::support::TOKEN;

/// The scoped token of a page.
static SCOPED: LazyLock<String> = LazyLock::new(|| scoped(&Right::ALL));

/// The key that no request may write. Only requests hidden in the bodies of other ones would write
/// it.
pub(crate) const CANARY: &str = "canary";

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) bytes: Vec<u8>,
    /// Whether its response has a body; one to `HEAD` has none.
    pub(crate) has_body: bool,
    /// Whether the gateway must respond and keep the connection open. It may close the connection
    /// after any other request.
    pub(crate) is_well_formed: bool,
    /// Whether its end is missing, so that the next bytes on the connection count as its body.
    pub(crate) is_cut: bool,
}

impl Message {
    fn new(head: &str, body: &[u8], is_well_formed: bool) -> Self {
        let bytes = [head.as_bytes(), b"\r\n", body].concat();
        Self { bytes, has_body: !head.starts_with("HEAD "), is_well_formed, is_cut: false }
    }

    /// Returns a request that makes the gateway close the connection after the response.
    pub(crate) fn last() -> Self {
        let head = head("POST / HTTP/1.1", "Connection: close\r\nContent-Length: 8\r\n");
        Self::new(&head, br#"["PING"]"#, true)
    }

    pub(crate) fn random(rng: &mut Rng) -> Self {
        match rng.u8(..10) {
            0..3 => well_formed(rng),
            3 => with_scoped_token(well_formed(rng)),
            4 => other_request(rng),
            5 | 6 => ambiguous_length(rng),
            7 => bad_chunks(rng),
            _ => bad_head(rng),
        }
    }
}

fn head(line: &str, headers: &str) -> String {
    format!("{line}\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n{headers}")
}

/// Returns a whole request that writes a random value to the canary.
fn smuggled(rng: &mut Rng) -> String {
    let body = format!(r#"["SET","{CANARY}","{}"]"#, rng.u64(..));
    let head = head("POST / HTTP/1.1", &format!("Content-Length: {}\r\n", body.len()));
    format!("{head}\r\n{body}")
}

fn any<'a>(words: &[&'a str], rng: &mut Rng) -> &'a str {
    words[rng.usize(..words.len())]
}

/// Returns a request with a right length, and a body that may be JSON.
fn well_formed(rng: &mut Rng) -> Message {
    let body = body(rng);
    let path = any(&["/", "/pipeline", "/multi-exec", "/exists"], rng);
    let header = any(
        &[
            "",
            "Upstash-Encoding: base64\r\n",
            "upstash-encoding:   BASE64  \r\n",
            "Upstash-Encoding: \u{e9}\r\n",
            "Upstash-Response-Format: resp2\r\n",
            "Upstash-Response-Format: json\r\nUpstash-Response-Format: resp2\r\n",
            "Accept-Encoding: gzip, br, deflate, zstd\r\n",
            "Content-Encoding: gzip\r\n",
            "Content-Type: text/plain; charset=utf-16\r\n",
            "Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n",
            "X: y\r\nX: z\r\nCookie: a=b\r\n",
        ],
        rng,
    );
    let length = body.len();
    let head =
        head(&format!("POST {path} HTTP/1.1"), &format!("{header}Content-Length: {length}\r\n"));
    Message::new(&head, &body, true)
}

/// Returns the request with a scoped token. The gateway may refuse it before it reads the body,
/// and then close the connection.
fn with_scoped_token(message: Message) -> Message {
    let text = [b"Bearer ", TOKEN.as_bytes()].concat();
    let place = message.bytes.windows(text.len()).position(|part| part == text);
    let Some(place) = place else { return message };
    let mut bytes = message.bytes;
    bytes.splice(place..place + text.len(), format!("Bearer {}", *SCOPED).into_bytes());
    Message { bytes, is_well_formed: false, ..message }
}

fn body(rng: &mut Rng) -> Vec<u8> {
    let text = match rng.u8(..14) {
        0 => "[".repeat(rng.usize(1..50_000)),
        1 => format!("[\"SET\",\"k\",{}]", "9".repeat(rng.usize(1..5000))),
        2 => smuggled(rng),
        3 => "\r\n\r\n".repeat(9) + &smuggled(rng),
        4 => String::new(),
        5 => r#"[["PING"],["ECHO","x"],["GET",{}],["\ud800"]]"#.to_owned(),
        6 => format!("[{}]", vec![r#"["PING"]"#; rng.usize(1..1100)].join(",")),
        12 => inspecting().to_string(),
        13 => json!(vec![inspecting(); rng.usize(..40)]).to_string(),
        7 => r#"["ECHO","\u0000\u000d\u000aHTTP/1.1 200 OK\u000d\u000a"]"#.to_owned(),
        _ => any(
            &[r#"["PING"]"#, r#"[["PING"]]"#, r#"["ECHO","é"]"#, "[1e999,-0]", "{}", "null"],
            rng,
        )
        .to_owned(),
    };
    let mut bytes = text.into_bytes();
    match rng.u8(..6) {
        0 if !bytes.is_empty() => bytes.truncate(rng.usize(..bytes.len())),
        1 if !bytes.is_empty() => {
            let place = rng.usize(..bytes.len());
            bytes[place] = rng.u8(..);
        }
        _ => {}
    }
    bytes
}

/// Returns a request with another path, method, version or credential. The gateway does not read
/// its body, so it may close the connection.
fn other_request(rng: &mut Rng) -> Message {
    let line = any(
        &[
            "GET /healthz HTTP/1.1",
            "HEAD /healthz HTTP/1.1",
            "OPTIONS * HTTP/1.1",
            "TRACE / HTTP/1.1",
            "PUT / HTTP/1.1",
            "post / HTTP/1.1",
            "M-SEARCH /pipeline HTTP/1.1",
            "POST http://evil.example/ HTTP/1.1",
            "POST //evil.example/.. HTTP/1.1",
            "GET /get/canary?_token=x HTTP/1.1",
            "GET /echo//%00%ff/?_token HTTP/1.1",
            "HEAD /ping?& HTTP/1.1",
            "PUT /exists HTTP/1.1",
            "DELETE /del/canary HTTP/1.1",
            "POST /subscribe/%ff HTTP/1.1",
            "POST /subscribe/a%0d%0ab HTTP/1.1",
            "POST / HTTP/1.0",
            "CONNECT evil.example:80 HTTP/1.1",
        ],
        rng,
    );
    let smuggled = smuggled(rng);
    let length = format!("Content-Length: {}\r\n", smuggled.len());
    let head = match rng.u8(..4) {
        0 => format!("{line}\r\nHost: x\r\nAuthorization: Bearer wrong\r\n{length}"),
        2 => format!("{line}\r\nHost: x\r\nAuthorization: Bearer {}\r\n{length}", *SCOPED),
        1 => format!("{line}\r\nHost: x\r\n{length}"),
        _ => head(line, &length),
    };
    // Bytes after `CONNECT` are not HTTP, and the gateway never reads them.
    Message::new(&head, smuggled.as_bytes(), false)
}

/// Returns a request with several lengths, or with an invalid one.
fn ambiguous_length(rng: &mut Rng) -> Message {
    let smuggled = smuggled(rng);
    let ends = format!("0\r\n\r\n{smuggled}");
    let length = ends.len();
    let whole = format!("Content-Length: {length}\r\n");
    let headers = [
        format!("{whole}Transfer-Encoding: chunked\r\n"),
        format!("Transfer-Encoding: chunked\r\n{whole}"),
        format!("{whole}Transfer-Encoding : chunked\r\n"),
        format!("{whole}Transfer-Encoding: xchunked\r\n"),
        format!("{whole}Transfer-Encoding: chunked, identity\r\n"),
        format!("{whole}Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n"),
        format!("{whole}Transfer-Encoding:\u{b}chunked\r\n"),
        format!("{whole}Transfer-Encoding:\r\n chunked\r\n"),
        format!("{whole}X: y\r\n Transfer-Encoding: chunked\r\n"),
        format!("{whole}Content-Length: 5\r\n"),
        format!("Content-Length: 5\r\n{whole}"),
        format!("Content-Length: 5, {length}\r\n"),
        format!("Content-Length: +{length}\r\n"),
        "Content-Length: -1\r\n".to_owned(),
        "Content-Length: 0x5\r\n".to_owned(),
        "Content-Length: 5 5\r\n".to_owned(),
        "Content-Length:\r\n".to_owned(),
        "Content-Length: 99999999999999999999999\r\n".to_owned(),
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n".to_owned(),
        "Transfer-Encoding: chunked, chunked\r\n".to_owned(),
        "Transfer-Encoding: gzip, chunked\r\n".to_owned(),
    ];
    let version = if rng.u8(..5) == 0 { "POST / HTTP/1.0" } else { "POST / HTTP/1.1" };
    let head = head(version, &headers[rng.usize(..headers.len())]);
    Message::new(&head, ends.as_bytes(), false)
}

/// Returns a request with truncated chunks, or with invalid sizes of chunks.
fn bad_chunks(rng: &mut Rng) -> Message {
    let smuggled = smuggled(rng);
    let size = any(
        &[
            "zz",
            "-1",
            "+8",
            "0x8",
            "ffffffffffffffffff",
            "8 8",
            "8;x=\"\n\"",
            "8\n",
            "",
            "7",
            "9",
            "180",
        ],
        rng,
    );
    let body = format!(
        "{size}\r\n[\"PING\"]\r\n0\r\nX: {}\r\n\r\n{smuggled}",
        "y".repeat(rng.usize(..100))
    );
    let head = head("POST / HTTP/1.1", "Transfer-Encoding: chunked\r\n");
    Message::new(&head, body.as_bytes(), false)
}

/// Returns a request with a malformed or too large head.
fn bad_head(rng: &mut Rng) -> Message {
    let case = rng.u8(..7);
    // A changed byte may change the length. Then a request behind it would be a legitimate one, so
    // there is none.
    let body = if case < 2 { r#"["PING"]"#.to_owned() } else { smuggled(rng) };
    let length = format!("Content-Length: {}\r\n", body.len());
    let mut message = Message::new(&head("POST / HTTP/1.1", &length), body.as_bytes(), false);
    let head_end = message.bytes.len() - body.len();
    match case {
        0 => {
            let place = rng.usize(..head_end);
            message.bytes[place] = [0, b'\r', b'\n', b' ', 0xff, b':'][rng.usize(..6)];
        }
        1 => drop(message.bytes.remove(rng.usize(..head_end))),
        2 => {
            let huge = format!("X: {}\r\n", "y".repeat(rng.usize(60_000..80_000)));
            message.bytes.splice(head_end - 2..head_end - 2, huge.into_bytes());
        }
        3 => {
            let many: String =
                (0..rng.usize(90..300)).map(|number| format!("X{number}: y\r\n")).collect();
            message.bytes.splice(head_end - 2..head_end - 2, many.into_bytes());
        }
        4 => drop(message.bytes.splice(..0, *b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")),
        5 => message.bytes = (0..rng.usize(1..2000)).map(|_| rng.u8(..)).collect(),
        _ => {
            message.is_cut = true;
            message.bytes.truncate(rng.usize(..message.bytes.len()));
        }
    }
    message
}
