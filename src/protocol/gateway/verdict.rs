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

/// What a body means that is neither a result nor an error.
pub(super) fn unreadable(status: u16, body: &[u8]) -> Decoded {
    if matches!(status, 404 | 405 | 410) {
        let code = ["HTTP ", &status.to_string()].concat();
        return Decoded::Refused(Refusal::new(RefusalKind::NotAGateway, code));
    }
    if is_page(status, body) {
        return Decoded::Indeterminate(FailureKind::WebPage { status });
    }
    Decoded::Indeterminate(failure(status))
}

/// Whether a web page came back where a gateway would return JSON: a page for any path, as single-page
/// applications have. A proxy may also have put it in place of a gateway's response.
pub(super) fn is_page(status: u16, body: &[u8]) -> bool {
    let begins_with = |tag: &[u8]| {
        let text = body.trim_ascii_start();
        text.get(..tag.len()).is_some_and(|start| start.eq_ignore_ascii_case(tag))
    };
    matches!(status, 200..300) && (begins_with(b"<!doctype html") || begins_with(b"<html"))
}

/// What an error text means: Redis' own, or the gateway's.
pub(super) fn error(status: u16, text: &str) -> Decoded {
    // Some gateways put words of their own in front, so the codes are looked for anywhere.
    let says = |word: &str| text.split(|c: char| !c.is_ascii_uppercase()).any(|part| part == word);
    if says("NOSCRIPT") {
        return Decoded::UnknownHash;
    }
    let known = KNOWN.iter().find(|(word, _)| says(word));
    let refusal = match (known, status) {
        (Some((word, kind)), _) => Refusal::new(*kind, *word),
        (None, 401 | 403) => Refusal::new(RefusalKind::Unauthorized, code(text)),
        // An error that is not Redis' own, from a gateway that failed: it may have failed after the script had run.
        (None, 429 | 500..) => return Decoded::Indeterminate(failure(status)),
        // Not Redis' words, at a status that Redis' own errors come with: the gateway's, and who knows when it said them.
        (None, 200..300 | 400 | 408) if code(text).is_empty() => {
            return Decoded::Indeterminate(failure(status));
        }
        (None, 404 | 405 | 410) => return unreadable(status, &[]),
        (None, _) => Refusal::new(RefusalKind::Other, code(text)),
    };
    let holds = |phrase| holds(text, phrase);
    if holds("script shebang") || holds("unexpected symbol near '#'") {
        Decoded::KeyLockingRefused(refusal)
    } else if holds("evalsha") && (status == 403 || says("NOPERM") || holds("unknown command")) {
        Decoded::HashesRefused(refusal)
    } else {
        Decoded::Refused(refusal)
    }
}

/// Whether a text holds a phrase, whatever the case.
pub(super) fn holds(text: &str, phrase: &str) -> bool {
    text.as_bytes().windows(phrase.len()).any(|part| part.eq_ignore_ascii_case(phrase.as_bytes()))
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
