//! Webdis' dialect: the request is `EVALSHA/sha1/count/keys…/args…`, percent-encoded, the response
//! an object with the command as its only key.
//!
//! Every Redis error comes with status 200, as `[false, text]`.

use alloc::string::{String, ToString};

use super::body::Body;
use super::verdict::{error, failure, unreadable};
use super::{Decoded, Form, encoded};
use crate::error::{Refusal, RefusalKind};
use crate::protocol::script::ScriptCall;

/// Whether Webdis can execute the call. It truncates every element at its first zero byte, which
/// would make two names one; and it has many connections to Redis, so a `WAIT` could count the
/// writes of another connection.
pub(super) fn can_send(call: &ScriptCall) -> bool {
    let is_whole = |text: &String| !text.contains('\0');
    call.replicas().is_none()
        && call.keys().iter().chain(call.args()).all(is_whole)
        && (call.sha1(false).is_some() || is_whole(&call.source(false)))
}

/// The command of the request, which the response repeats.
fn verb(call: &ScriptCall, form: Form) -> &'static str {
    if form.whole || call.sha1(false).is_none() { "EVAL" } else { "EVALSHA" }
}

pub(super) fn encode(call: &ScriptCall, form: Form) -> String {
    let verb = verb(call, form);
    let mut body = String::from(verb);
    match call.sha1(false) {
        Some(sha1) if !form.whole => element(&mut body, sha1),
        _ => element(&mut body, &call.source(false)),
    }
    element(&mut body, &(call.keys().len() as u64).to_string());
    call.keys().iter().chain(call.args()).for_each(|text| element(&mut body, text));
    body
}

fn element(body: &mut String, text: &str) {
    body.push('/');
    body.push_str(&encoded(text));
}

pub(super) fn decode(call: &ScriptCall, form: Form, status: u16, body: &[u8]) -> Decoded {
    match Body::read_of(verb(call, form), body) {
        // Webdis reads its commands from the body alone.
        Some(Body::Error(text)) => error(status, &text, ""),
        Some(Body::Result(cells)) if status == 200 => Decoded::Cells { cells, acknowledged: None },
        // The response to a command that this user may not use; its body is empty.
        None if status == 403 && body.is_empty() => {
            Decoded::Refused(Refusal::new(RefusalKind::Unauthorized, ""))
        }
        Some(Body::Result(_)) => Decoded::Indeterminate(failure(status)),
        None => unreadable(status, body),
    }
}
