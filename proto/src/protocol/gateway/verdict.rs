//! The meaning, in any dialect, of an error, and of a status without a known body.

use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use crate::error::{FailureKind, Refusal, RefusalKind};
use crate::protocol::reply::RespValue;

/// The outcome that a response proves, or an error that requires another form of the same call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Decoded {
    /// Redis executed the script.
    Cells {
        cells: Vec<RespValue>,
        /// The number of replicas that acknowledged it; `None` if none was required, or `WAIT` was
        /// refused.
        acknowledged: Option<u32>,
    },
    /// Redis does not know the script by its hash.
    UnknownHash,
    /// The gateway does not allow `EVALSHA`, or Redis has no such command.
    HashesRefused(Refusal),
    /// Redis does not understand the key-locking line.
    KeyLockingRefused(Refusal),
    /// Redis could not compile the script, for this reason.
    CompileError(Refusal, String),
    /// The script did not run.
    Refused(Refusal),
    /// Nothing proves whether the script ran.
    Indeterminate(FailureKind),
}

impl Decoded {
    /// Whether the response shows that the address is not a gateway's.
    pub(crate) fn denies_gateway(&self) -> bool {
        match self {
            Self::Refused(refusal) => refusal.kind() == RefusalKind::NotAGateway,
            Self::Indeterminate(kind) => matches!(kind, FailureKind::WebPage { .. }),
            _ => false,
        }
    }
}

/// The failure that a response proves which is neither a result nor an error of Redis.
pub(super) const fn failure(status: u16) -> FailureKind {
    match status {
        300..400 => FailureKind::Redirected,
        408 | 429 | 500.. => FailureKind::Gateway { status, retry_after: None },
        _ => FailureKind::Garbled { status },
    }
}

fn not_a_gateway(status: u16) -> Refusal {
    let code = ["HTTP ", &u64::from(status).to_string()].concat();
    Refusal::new(RefusalKind::NotAGateway, code).with_status(status)
}

/// The meaning of a body that is neither a result nor an error.
pub(super) fn unreadable(status: u16, body: &[u8]) -> Decoded {
    if matches!(status, 404 | 405 | 410) {
        return Decoded::Refused(not_a_gateway(status));
    }
    if is_page(status, body) {
        return Decoded::Indeterminate(FailureKind::WebPage { status });
    }
    Decoded::Indeterminate(failure(status))
}

/// Whether the response is a web page, where a gateway would return JSON. Single-page applications
/// return their page for any path; a proxy may also have replaced a gateway's response by a page.
pub(super) fn is_page(status: u16, body: &[u8]) -> bool {
    let begins_with = |tag: &[u8]| {
        let text = body.trim_ascii_start();
        text.get(..tag.len()).is_some_and(|start| start.eq_ignore_ascii_case(tag))
    };
    matches!(status, 200..300) && (begins_with(b"<!doctype html") || begins_with(b"<html"))
}

/// The meaning of an error text of Redis or the gateway. `path` is that of the gateway's address.
pub(super) fn error(status: u16, text: &str, path: &str) -> Decoded {
    // Some gateways put a text of their own in front, so the codes are searched for anywhere.
    let has_code =
        |word: &str| text.split(|c: char| !c.is_ascii_uppercase()).any(|part| part == word);
    if has_code("NOSCRIPT") {
        return Decoded::UnknownHash;
    }
    let known = KNOWN.iter().find(|(word, _)| has_code(word));
    let refusal = match (known, status) {
        (Some((word, kind)), _) => Refusal::new(*kind, *word),
        (None, 401 | 403) => Refusal::new(RefusalKind::Unauthorized, code(text)),
        // A failed gateway's own error: the script may have run before the failure.
        (None, 429 | 500..) => return Decoded::Indeterminate(failure(status)),
        // Not an error of Redis, with a status that Redis' errors have: the gateway's, and the
        // script may have run before.
        (None, 200..300 | 400 | 408) if code(text).is_empty() => {
            return Decoded::Indeterminate(failure(status));
        }
        (None, 404 | 405 | 410) => return unreadable(status, &[]),
        (None, _) => Refusal::new(RefusalKind::Other, code(text)),
    };
    let refusal = refusal.with_status(status);
    if refusal.kind() == RefusalKind::Other && is_about_path(text, path) {
        return Decoded::Refused(not_a_gateway(status));
    }
    let holds = |phrase| holds(text, phrase);
    if holds("script shebang") || holds(SHEBANG_SYMBOL) {
        Decoded::KeyLockingRefused(refusal)
    } else if holds("evalsha") && (status == 403 || has_code("NOPERM") || is_unknown_command(text))
    {
        Decoded::HashesRefused(refusal)
    } else if let Some(diagnostic) = compile_error(text) {
        Decoded::CompileError(refusal, diagnostic.into())
    } else {
        Decoded::Refused(refusal)
    }
}

/// Whether an error of Redis or Upstash reports an unknown command.
pub(super) fn is_unknown_command(text: &str) -> bool {
    holds(text, UNKNOWN_COMMAND) || holds(text, UNAVAILABLE_COMMAND)
}

/// The beginning of Redis' error for an unknown command.
pub(super) const UNKNOWN_COMMAND: &str = "unknown command";
const UNAVAILABLE_COMMAND: &str = "command is not available";
const WRONG_ARITY: &str = "wrong number of arguments for";

/// Whether Redis rejected a command that is part of this path: the gateway has parsed the path of
/// the request as a command. Then the address is not the gateway's root, and no script ran. An
/// error from within a script begins differently, or names another command.
pub(super) fn is_about_path(text: &str, path: &str) -> bool {
    let rest = text.strip_prefix("ERR ").unwrap_or(text);
    let rest = [UNKNOWN_COMMAND, UNAVAILABLE_COMMAND, WRONG_ARITY]
        .iter()
        .find_map(|phrase| rest.get(phrase.len()..).filter(|_| position(rest, phrase) == Some(0)));
    let quote = |c| matches!(c, '\'' | '`');
    let command = rest.and_then(|rest| rest.split(quote).nth(1)).unwrap_or_default();
    !command.is_empty() && path.split('/').any(|part| part.eq_ignore_ascii_case(command))
}

/// The diagnostic of a script that does not compile, without the line number: `Error compiling
/// script (new function): user_script:1: unexpected symbol near '+'`. Omits a quoted literal of the
/// script.
fn compile_error(text: &str) -> Option<&str> {
    let rest = after(after(text, "error compiling script")?, "user_script:")?;
    let (line, diagnostic) = rest.split_once(':')?;
    let diagnostic = diagnostic.strip_prefix(' ')?;
    if !line.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    const NEAR: &str = " near '";
    let Some(near) = after(diagnostic, NEAR) else { return Some(diagnostic) };
    let message = diagnostic.get(..diagnostic.len() - near.len() - NEAR.len())?;
    let is_literal = near.starts_with(|c: char| c.is_ascii_digit())
        || near.strip_suffix('\'').is_none_or(|token| token.contains(['"', '\'', '[']));
    Some(if is_literal || near.len() > NEAR_MAX { message } else { diagnostic })
}

/// The largest number of bytes of a script that an error quotes.
const NEAR_MAX: usize = 40;

/// The error of a Redis without script flags for the key-locking line.
const SHEBANG_SYMBOL: &str = "unexpected symbol near '#'";

/// Whether a text contains a phrase, ignoring case.
pub(super) fn holds(text: &str, phrase: &str) -> bool {
    position(text, phrase).is_some()
}

/// The text behind a phrase, ignoring case.
fn after<'t>(text: &'t str, phrase: &str) -> Option<&'t str> {
    text.get(position(text, phrase)? + phrase.len()..)
}

/// The position of a phrase in a text, ignoring case. The search for a text in the standard library
/// would cost the npm package 2 kB.
fn position(text: &str, phrase: &str) -> Option<usize> {
    let mut parts = text.as_bytes().windows(phrase.len());
    parts.position(|part| part.eq_ignore_ascii_case(phrase.as_bytes()))
}

/// Errors of Redis that prove that nothing was executed, and their meanings.
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

/// The first word if it is a code, of capitals only. Other words may quote an argument.
pub(super) fn code(text: &str) -> &str {
    let word = text.split_ascii_whitespace().next().unwrap_or_default();
    if word.len() <= 24 && word.bytes().all(|byte| byte.is_ascii_uppercase()) { word } else { "" }
}
