//! What an error, or a status without a body that tells, means in any dialect.

use alloc::string::ToString as _;

use super::Decoded;
use crate::error::{FailureKind, Refusal, RefusalKind};

/// What is known after a response that is neither a result nor an error of Redis.
pub(super) const fn failure(status: u16) -> FailureKind {
    match status {
        300..400 => FailureKind::Redirected,
        408 | 429 | 500.. => FailureKind::Gateway { status, retry_after: None },
        _ => FailureKind::Garbled { status },
    }
}

fn not_a_gateway(status: u16) -> Refusal {
    Refusal::new(RefusalKind::NotAGateway, ["HTTP ", &status.to_string()].concat())
}

/// What a body means that is neither a result nor an error.
pub(super) fn unreadable(status: u16, body: &[u8]) -> Decoded {
    if matches!(status, 404 | 405 | 410) {
        return Decoded::Refused(not_a_gateway(status));
    }
    if is_page(status, body) {
        return Decoded::Indeterminate(FailureKind::WebPage { status });
    }
    Decoded::Indeterminate(failure(status))
}

/// Whether a web page came back where a gateway would return JSON: a page for any path, as
/// single-page applications have. A proxy may also have put it in place of a gateway's response.
pub(super) fn is_page(status: u16, body: &[u8]) -> bool {
    let begins_with = |tag: &[u8]| {
        let text = body.trim_ascii_start();
        text.get(..tag.len()).is_some_and(|start| start.eq_ignore_ascii_case(tag))
    };
    matches!(status, 200..300) && (begins_with(b"<!doctype html") || begins_with(b"<html"))
}

/// What an error text means: Redis' own, or the gateway's. `path` is that of the gateway's address.
pub(super) fn error(status: u16, text: &str, path: &str) -> Decoded {
    // Some gateways put words of their own in front, so the codes are looked for anywhere.
    let says = |word: &str| text.split(|c: char| !c.is_ascii_uppercase()).any(|part| part == word);
    if says("NOSCRIPT") {
        return Decoded::UnknownHash;
    }
    let known = KNOWN.iter().find(|(word, _)| says(word));
    let refusal = match (known, status) {
        (Some((word, kind)), _) => Refusal::new(*kind, *word),
        (None, 401 | 403) => Refusal::new(RefusalKind::Unauthorized, code(text)),
        // An error that is not Redis' own, from a gateway that failed: it may have failed after the
        // script had run.
        (None, 429 | 500..) => return Decoded::Indeterminate(failure(status)),
        // Not Redis' words, at a status that Redis' own errors come with: the gateway's, and who
        // knows when it said them.
        (None, 200..300 | 400 | 408) if code(text).is_empty() => {
            return Decoded::Indeterminate(failure(status));
        }
        (None, 404 | 405 | 410) => return unreadable(status, &[]),
        (None, _) => Refusal::new(RefusalKind::Other, code(text)),
    };
    if refusal.kind() == RefusalKind::Other && is_about_path(text, path) {
        return Decoded::Refused(not_a_gateway(status));
    }
    let holds = |phrase| holds(text, phrase);
    if holds("script shebang") || holds(SHEBANG_SYMBOL) {
        Decoded::KeyLockingRefused(refusal)
    } else if holds("evalsha") && (status == 403 || says("NOPERM") || is_unknown_command(text)) {
        Decoded::HashesRefused(refusal)
    } else if let Some(diagnostic) = compile_error(text) {
        Decoded::CompileError(refusal, diagnostic.into())
    } else {
        Decoded::Refused(refusal)
    }
}

/// Whether an error says that there is no such command: Redis' words, and Upstash's.
pub(super) fn is_unknown_command(text: &str) -> bool {
    holds(text, UNKNOWN_COMMAND) || holds(text, UNAVAILABLE_COMMAND)
}

/// How Redis begins to say so.
pub(super) const UNKNOWN_COMMAND: &str = "unknown command";
const UNAVAILABLE_COMMAND: &str = "command is not available";
const WRONG_ARITY: &str = "wrong number of arguments for";

/// Whether Redis rejected a command that is part of this path: a gateway takes the path of a
/// request for a command, so the address is not the gateway's root, and no script ran. An error
/// from within a script begins otherwise, or names another command.
pub(super) fn is_about_path(text: &str, path: &str) -> bool {
    let rest = text.strip_prefix("ERR ").unwrap_or(text);
    let rest = [UNKNOWN_COMMAND, UNAVAILABLE_COMMAND, WRONG_ARITY]
        .iter()
        .find_map(|phrase| rest.get(phrase.len()..).filter(|_| position(rest, phrase) == Some(0)));
    let quote = |c| matches!(c, '\'' | '`');
    let command = rest.and_then(|rest| rest.split(quote).nth(1)).unwrap_or_default();
    !command.is_empty() && path.split('/').any(|part| part.eq_ignore_ascii_case(command))
}

/// What Redis says about a script that does not compile, without the line: `Error compiling script
/// (new function): user_script:1: unexpected symbol near '+'`. A quoted literal of the script is
/// left out.
fn compile_error(text: &str) -> Option<&str> {
    const CHUNK: &str = "user_script:";
    let start = position(text, "error compiling script")?;
    let rest = text.get(start..)?;
    let (_, rest) = rest.split_once(CHUNK)?;
    let (line, diagnostic) = rest.split_once(": ")?;
    if !line.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let Some((message, near)) = diagnostic.split_once(" near '") else { return Some(diagnostic) };
    let is_literal = near.starts_with(|c: char| c.is_ascii_digit())
        || near.strip_suffix('\'').is_none_or(|token| token.contains(['"', '\'', '[']));
    Some(if is_literal || near.len() > NEAR_MAX { message } else { diagnostic })
}

/// The most bytes of a script that an error quotes.
const NEAR_MAX: usize = 40;

/// What a Redis without script flags says about the key-locking line.
const SHEBANG_SYMBOL: &str = "unexpected symbol near '#'";

/// Whether a text holds a phrase, whatever the case.
pub(super) fn holds(text: &str, phrase: &str) -> bool {
    position(text, phrase).is_some()
}

/// Where a phrase begins in a text, whatever the case.
fn position(text: &str, phrase: &str) -> Option<usize> {
    let mut parts = text.as_bytes().windows(phrase.len());
    parts.position(|part| part.eq_ignore_ascii_case(phrase.as_bytes()))
}

/// Errors of Redis that prove that nothing was done, and what they mean.
const KNOWN: [(&str, RefusalKind); 15] = [
    ("WRONGPASS", RefusalKind::Unauthorized),
    ("NOAUTH", RefusalKind::Unauthorized),
    ("NOPERM", RefusalKind::Unauthorized),
    ("OOM", RefusalKind::OutOfMemory),
    ("WRONGTYPE", RefusalKind::WrongType),
    ("LOADING", RefusalKind::Unavailable),
    ("BUSY", RefusalKind::Unavailable),
    ("TRYAGAIN", RefusalKind::Unavailable),
    ("CLUSTERDOWN", RefusalKind::Unavailable),
    ("MASTERDOWN", RefusalKind::Unavailable),
    ("NOREPLICAS", RefusalKind::Unavailable),
    ("READONLY", RefusalKind::Unavailable),
    ("MISCONF", RefusalKind::Unavailable),
    ("MOVED", RefusalKind::Unavailable),
    ("CROSSSLOT", RefusalKind::Other),
];

/// The first word, when it is a code: capitals only. Anything else might quote an argument.
pub(super) fn code(text: &str) -> &str {
    let word = text.split_ascii_whitespace().next().unwrap_or_default();
    if word.len() <= 24 && word.bytes().all(|byte| byte.is_ascii_uppercase()) { word } else { "" }
}
