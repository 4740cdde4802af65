//! The meaning of an error: never that a call was executed, a clear refusal only where it is one,
//! and without any part of its text.
//!
//! The first two bytes are the status, the third selects the dialect and the kind of the rest: the
//! text of an error, or a body.

use edgelatch_proto::error::{FailureKind, RefusalKind};
use edgelatch_proto::protocol::exchange::Answer;

use crate::kit::{converse, gateway, inspect, recorded, response};

/// The errors of Redis that mean that nothing was executed, by the section of
/// `proto/src/protocol/README.md`.
const CLEAR: [(&str, RefusalKind); 15] = [
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
/// A text that must never appear in a message.
const SECRET: &str = "s3cret-of-{invoice:42}";

pub(crate) fn run(input: &[u8]) {
    let [high, low, flags, rest @ ..] = input else { return };
    let status = 100 + u16::from_be_bytes([*high, *low]) % 900;
    let webdis = flags & 1 == 1;
    let (body, text) = match std::str::from_utf8(rest) {
        Ok(text) if flags & 2 == 0 => (error(webdis, text), Some(text)),
        _ => (rest.to_vec(), None),
    };
    let (answer, requests) =
        converse(&gateway(webdis), &inspect(255), &response(status, &body), |_| {});
    assert!((1..=3).contains(&requests), "{requests} requests");
    match (&answer, text) {
        (Answer::Reply(reply), Some(text)) => panic!("{reply:?} out of the error {text}"),
        (Answer::Reply(_), None) => assert!((200..300).contains(&status)),
        (Answer::Refused(refusal), text) => {
            let code = refusal.code();
            let is_code = code.len() <= 24 && code.bytes().all(|byte| byte.is_ascii_uppercase());
            assert!(is_code || refusal.kind() == RefusalKind::NotAGateway, "{code}");
            if let Some(text) = text {
                clear_no(refusal.kind(), code, status, text);
            }
        }
        (Answer::Failed(kind), None) => unclear(*kind, status),
        (Answer::Failed(kind), Some(text)) => {
            unclear(*kind, status);
            let of_redis = CLEAR.iter().any(|(word, _)| contains_word(text, word));
            let is_resent = webdis || contains_word(text, "NOSCRIPT");
            assert!(!of_redis || is_resent, "{text} at {status} is a clear no");
        }
    }
    has_unknown_outcome(status, webdis);
}

/// An error in a dialect's form.
fn error(webdis: bool, text: &str) -> Vec<u8> {
    let body = if webdis {
        serde_json::json!({ "EVALSHA": [false, text] })
    } else {
        serde_json::json!({ "error": text })
    };
    body.to_string().into_bytes()
}

/// Whether the text contains the word in capitals, and not as part of a longer one.
fn contains_word(text: &str, word: &str) -> bool {
    text.split(|c: char| !c.is_ascii_uppercase()).any(|part| part == word)
}

fn clear_no(kind: RefusalKind, code: &str, status: u16, text: &str) {
    if kind == RefusalKind::NotAGateway {
        assert!([404, 405, 410].contains(&status));
        assert!(!contains_word(text, "NOSCRIPT"), "{text} is a gateway's");
        return assert_eq!(code, format!("HTTP {status}"));
    }
    let of_redis: Vec<_> = CLEAR.iter().filter(|(word, _)| contains_word(text, word)).collect();
    if !of_redis.is_empty() {
        let known = of_redis.iter().any(|(word, means)| *word == code && *means == kind);
        assert!(known, "{text} is {kind:?} {code}");
        return;
    }
    assert!(
        text.starts_with(code) || text.split_whitespace().next() == Some(code),
        "{code} of {text}"
    );
    // Not an error of Redis: a gateway that failed may have executed the call before.
    assert!(status < 500 && status != 429, "{text} at {status} tells nothing");
    match kind {
        RefusalKind::Unauthorized => assert!([401, 403].contains(&status)),
        RefusalKind::Other if !code.is_empty() => assert!(![401, 403].contains(&status)),
        RefusalKind::Other => {
            assert!(!(200..300).contains(&status) && ![400, 408].contains(&status))
        }
        kind => panic!("{text} at {status} is {kind:?}"),
    }
}

fn unclear(kind: FailureKind, status: u16) {
    match kind {
        FailureKind::Redirected => assert!((300..400).contains(&status)),
        FailureKind::Gateway { status: reported, .. } => {
            assert_eq!(reported, status);
            assert!(status >= 500 || [408, 429].contains(&status));
        }
        FailureKind::Garbled { status: reported } => assert_eq!(reported, status),
        FailureKind::WebPage { status: reported } => {
            assert_eq!(reported, status);
            assert!((200..300).contains(&status));
        }
        other => panic!("{other:?} at {status}"),
    }
}

/// Checks that no part of a text is shown that quotes the request, as Redis' own errors do.
fn has_unknown_outcome(status: u16, webdis: bool) {
    for text in [format!("ERR {SECRET}"), SECRET.to_owned(), format!("WRONGTYPE {SECRET}")] {
        let body = error(webdis, &text);
        let (answer, _) =
            converse(&gateway(webdis), &inspect(255), &response(status, &body), |_| {});
        let shown = match &answer {
            Answer::Refused(refusal) => refusal.to_string(),
            Answer::Failed(kind) => kind.to_string(),
            Answer::Reply(reply) => panic!("{reply:?} out of an error"),
        };
        assert!(!format!("{shown}{answer:?}").contains("s3cret"), "{shown}");
    }
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let seed = |status: u16, flags: u8, rest: &str| {
        [&(status - 100).to_be_bytes()[..], &[flags], rest.as_bytes()].concat()
    };
    let recorded = [false, true].map(|webdis| {
        let seed = move |(status, body): (u16, String)| seed(status, 2 | u8::from(webdis), &body);
        recorded(webdis).into_iter().map(seed)
    });
    let words = CLEAR.iter().map(|(word, _)| seed(400, 0, &format!("{word} x")));
    let texts = [
        (200, "NOSCRIPT No matching script"),
        (403, "evalsha is not allowed"),
        (400, "ERR unknown command 'EVALSHA'"),
        (400, "ERR unknown command 'wrong', with args beginning with: '[\"EVALSHA\"'"),
        (400, "ERR Command is not available: 'WRONG'"),
        (400, "ERR wrong number of arguments for 'hset' command"),
        (400, "ERR Error compiling script (new function): user_script:1: '=' expected near 'x'"),
        (400, "ERR Error compiling script: Unexpected engine in script shebang: lua"),
        (401, "Unauthorized"),
        (429, "ERR max daily request limit exceeded"),
        (500, "WRONGTYPE x"),
        (302, "moved"),
        (408, "timeout"),
        (418, "x"),
    ];
    let texts =
        texts.into_iter().flat_map(|(status, text)| [seed(status, 0, text), seed(status, 1, text)]);
    recorded.into_iter().flatten().chain(words).chain(texts).collect()
}
