//! Upstash's REST dialect: `["EVALSHA", sha1, count, keys…, args…]` up, `{"result"}` or `{"error"}` down.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::{Decoded, Form};
use crate::error::{FailureKind, Refusal, RefusalKind};
use crate::protocol::reply::Cell;
use crate::protocol::script::ScriptCall;

/// Every element a JSON string: a number would pass through the gateway's floating point.
pub(super) fn encode(call: &ScriptCall, form: Form) -> String {
    let count = call.keys().len().to_string();
    let whole;
    let (verb, text) = if form.whole {
        whole = call.script().source(form.key_locking);
        ("EVAL", whole.as_str())
    } else {
        ("EVALSHA", call.script().sha1(form.key_locking))
    };
    let mut elements: Vec<&str> = Vec::with_capacity(3 + call.keys().len() + call.args().len());
    elements.extend([verb, text, &count]);
    elements.extend(call.keys().iter().chain(call.args()).map(String::as_str));
    // Writing strings into memory cannot fail; an empty body would be refused by any gateway.
    serde_json::to_string(&elements).unwrap_or_default()
}

/// The body decides before the status does; what is neither a result nor an error tells nothing.
pub(super) fn decode(status: u16, body: &[u8]) -> Decoded {
    let ok = (200..300).contains(&status);
    match serde_json::from_slice::<Body>(body) {
        Ok(Body::Error(text)) => error(status, &text),
        Ok(Body::Result(cells)) if ok => Decoded::Cells(cells),
        Ok(Body::Result(_)) | Err(_) => Decoded::Indeterminate(failure(status)),
    }
}

const fn failure(status: u16) -> FailureKind {
    match status {
        300..400 => FailureKind::Redirected,
        408 | 429 | 500.. => FailureKind::Gateway { status },
        _ => FailureKind::Garbled { status },
    }
}

fn error(status: u16, text: &str) -> Decoded {
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
        (None, 200..300 | 400 | 408) if code(text).is_empty() => return Decoded::Indeterminate(failure(status)),
        (None, _) => Refusal::new(RefusalKind::Other, code(text)),
    };
    let lower = text.to_ascii_lowercase();
    if lower.contains("script shebang") || lower.contains("unexpected symbol near '#'") {
        Decoded::KeyLockingRefused(refusal)
    } else if lower.contains("evalsha") && (status == 403 || says("NOPERM") || lower.contains("unknown command")) {
        Decoded::HashesRefused(refusal)
    } else {
        Decoded::Refused(refusal)
    }
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
fn code(text: &str) -> &str {
    let word = text.split_ascii_whitespace().next().unwrap_or_default();
    if word.len() <= 24 && word.bytes().all(|byte| byte.is_ascii_uppercase()) { word } else { "" }
}

/// A body that is exactly `{"result": [flat]}` or `{"error": text}`; further fields are passed over.
enum Body {
    Result(Vec<Cell>),
    Error(String),
}

impl<'de> Deserialize<'de> for Body {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(BodyVisitor)
    }
}

struct BodyVisitor;

impl<'de> Visitor<'de> for BodyVisitor {
    type Value = Body;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a result or an error")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Body, A::Error> {
        let mut body = None;
        while let Some(field) = map.next_key::<String>()? {
            let part = match field.as_str() {
                "result" => Body::Result(map.next_value()?),
                "error" => Body::Error(map.next_value()?),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            // Twice the same field, or both: somebody has tampered with it.
            if body.replace(part).is_some() {
                return Err(A::Error::custom("two answers"));
            }
        }
        body.ok_or_else(|| A::Error::custom("no answer"))
    }
}

impl<'de> Deserialize<'de> for Cell {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CellVisitor)
    }
}

struct CellVisitor;

impl<'de> Visitor<'de> for CellVisitor {
    type Value = Cell;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number or text")
    }

    fn visit_i64<E>(self, number: i64) -> Result<Cell, E> {
        Ok(Cell::Int(number))
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Cell, E> {
        i64::try_from(number).map(Cell::Int).map_err(E::custom)
    }

    fn visit_str<E>(self, text: &str) -> Result<Cell, E> {
        Ok(Cell::Text(text.into()))
    }

    // Arrays inside a reply, null and booleans fall to the default, which refuses them.
    fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<Cell, A::Error> {
        Err(A::Error::custom("nested"))
    }
}
