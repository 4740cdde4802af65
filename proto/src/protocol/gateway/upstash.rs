//! Upstash's REST dialect: the request is `["EVALSHA", sha1, count, keys…, args…]`, the response
//! `{"result"}` or `{"error"}`.
//!
//! A call that requires replicas adds `["WAIT", replicas, ms]` in one list, and both replies arrive
//! in one list.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::body::Body;
use super::verdict::{UNKNOWN_COMMAND, code, error, failure, holds, is_about_path, unreadable};
use super::{Decoded, Form};
use crate::error::{Refusal, RefusalKind};
use crate::protocol::reply::RespValue;
use crate::protocol::script::ScriptCall;
use crate::time::millis;

/// Encodes a call. Every element is a JSON string: a number would pass through the gateway's
/// floating point.
pub(super) fn encode(call: &ScriptCall, form: Form) -> String {
    let count = (call.keys().len() as u64).to_string();
    let whole;
    let (verb, text) = match call.sha1(form.key_locking) {
        Some(sha1) if !form.whole => ("EVALSHA", sha1),
        _ => {
            whole = call.source(form.key_locking);
            ("EVAL", whole.as_str())
        }
    };
    let mut elements: Vec<&str> = Vec::with_capacity(3 + call.keys().len() + call.args().len());
    elements.extend([verb, text, &count]);
    elements.extend(call.keys().iter().chain(call.args()).map(String::as_str));
    // Writing strings into memory cannot fail; any gateway would reject an empty body.
    let command = serde_json::to_string(&elements).unwrap_or_default();
    match call.replicas() {
        None => command,
        Some((replicas, within)) => {
            let (replicas, within) =
                (u64::from(replicas.get()).to_string(), millis(within).to_string());
            ["[", &command, r#",["WAIT",""#, &replicas, r#"",""#, &within, r#""]]"#].concat()
        }
    }
}

/// Decodes a response. The body counts more than the status; without a result or an error the
/// outcome is unknown.
pub(super) fn decode(status: u16, body: &[u8], path: &str) -> Decoded {
    decoded(status, body, Body::read(body), None, path)
}

/// Decodes the response to a script and the `WAIT` for its replicas, which counts only if the
/// script has run.
pub(super) fn decode_replicated(status: u16, body: &[u8], path: &str) -> Decoded {
    if let Some([script, replicas]) = Body::read_two(body) {
        return decoded(status, body, Some(script), acknowledged(&replicas), path);
    }
    match Body::read(body) {
        // The gateway has no such path, or parses it as a command: `WAIT` needs two commands in one
        // request.
        Some(Body::Error(text)) if is_about_path(&text, path) => error(status, &text, path),
        Some(Body::Error(text)) if holds(&text, UNKNOWN_COMMAND) => unsupported(),
        _ if matches!(status, 404 | 405 | 501) => unsupported(),
        Some(Body::Error(text)) => error(status, &text, path),
        Some(Body::Result(_)) => Decoded::Indeterminate(failure(status)),
        None => unreadable(status, body),
    }
}

fn decoded(
    status: u16,
    body: &[u8],
    read: Option<Body>,
    acknowledged: Option<u32>,
    path: &str,
) -> Decoded {
    let ok = (200..300).contains(&status);
    match read {
        Some(Body::Error(text)) => error(status, &text, path),
        Some(Body::Result(cells)) if ok => Decoded::Cells { cells, acknowledged },
        Some(Body::Result(_)) => Decoded::Indeterminate(failure(status)),
        None => unreadable(status, body),
    }
}

/// The number of replicas that a `WAIT` counted: 0 if it was interrupted, as on a master that
/// becomes a replica; `None` if the command is refused.
fn acknowledged(replicas: &Body) -> Option<u32> {
    match replicas {
        Body::Error(text) => (!matches!(code(text), "ERR" | "NOPERM")).then_some(0),
        Body::Result(cells) => match cells.as_slice() {
            [RespValue::Int(count)] => u32::try_from(*count).ok(),
            [RespValue::Text(count)] => count.parse().ok(),
            _ => None,
        },
    }
}

fn unsupported() -> Decoded {
    Decoded::Refused(Refusal::new(RefusalKind::Unsupported, ""))
}
