//! Arbitrary responses: no panic, no reply without the echo, and at most three requests for a call.

use edgelatch_proto::protocol::exchange::Answer;
use edgelatch_proto::protocol::gateway::GatewayCapabilities;
use edgelatch_proto::protocol::reply::{Reply, RespValue};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::vectors::{ECHO, call_of, converse, gateway, inspect, response, vectors};
use test_support::random::cases;

/// Bodies: known ones and random ones.
fn body() -> impl Strategy<Value = Vec<u8>> {
    let known: Vec<Vec<u8>> = vectors("conversations")
        .iter()
        .flat_map(|vector| vector["answers"].as_array().unwrap().clone())
        .map(|answer| answer["body"].as_str().unwrap().replace("$echo", ECHO).into_bytes())
        .collect();
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..200),
        "[\\[\\]{}\":,a-z0-9 \\\\-]{0,60}".prop_map(String::into_bytes),
        proptest::sample::select(known.clone()),
        (proptest::sample::select(known), any::<usize>(), any::<u8>()).prop_map(with_changed_byte),
    ]
}

/// Replaces one byte of a body.
fn with_changed_byte((mut body, index, byte): (Vec<u8>, usize, u8)) -> Vec<u8> {
    if let Some(length) = std::num::NonZero::new(body.len()) {
        body[index % length] = byte;
    }
    body
}

/// Bodies in pieces, separated by `~`.
const BODIES: [&str; 3] = [
    r#"{~"result"~:~[~1~,~"12"~,~3~,~4~,~"$echo"~]~}"#,
    r#"{~"error"~:~"ERR no"~}"#,
    r#"{~"x"~:~{~"x"~:~[~1~]~}~,~"error"~:~"ERR"~}"#,
];

/// Pieces to insert. The space separates digits from an exponent: `serde_json` rejects a number
/// like 1e312 anywhere in a body.
const PIECES: &str = concat!(
    r#"{~}~[~]~,~:~"result"~"error"~"x"~null~true~1~-1~12~01~1.5~1e3 ~9223372036854775807~"#,
    r#"9223372036854775808~"\u0041"~"\ud83d\ude00"~"\ud83d"~"\x"~"é"~"NOSCRIPT"~"ERR no"~ ~"#,
    "\n~\u{a0}~\t"
);

/// A known body with a few pieces inserted or replaced.
fn shuffled() -> impl Strategy<Value = Vec<&'static str>> {
    let piece = proptest::sample::select(PIECES.split('~').collect::<Vec<_>>());
    let edits = proptest::collection::vec((any::<usize>(), any::<bool>(), piece), 0..4);
    (proptest::sample::select(&BODIES[..]), edits).prop_map(|(body, edits)| {
        let mut pieces: Vec<&str> = body.split('~').collect();
        for (index, replaces, piece) in edits {
            let index = index % pieces.len();
            pieces.splice(index..index + usize::from(replaces), [piece]);
        }
        pieces
    })
}

/// The only outcome in a body, as `serde_json` reads it: cells, or an error's text.
fn reference(pieces: &[&str]) -> Option<Result<Vec<RespValue>, String>> {
    let body: Value = serde_json::from_str(&whole(pieces)).ok()?;
    // `serde_json` takes the last of two fields with the same name, without an error.
    if count_outcomes(pieces) != 1 {
        return None;
    }
    if let Some(error) = body.get("error") {
        return error.as_str().map(|text| Err(text.to_owned()));
    }
    let cell = |value: &Value| match value {
        Value::String(text) => Some(RespValue::Text(text.clone())),
        number => number.as_i64().map(RespValue::Int),
    };
    let cells: Option<Vec<RespValue>> = body.get("result")?.as_array()?.iter().map(cell).collect();
    cells.map(Ok)
}

/// The number of `result` and `error` fields in the outermost object of a JSON text.
fn count_outcomes(pieces: &[&str]) -> usize {
    let pieces: Vec<&str> =
        pieces.iter().copied().filter(|piece| !piece.trim().is_empty()).collect();
    let mut depth = 0_usize;
    let mut outcomes = 0;
    for pair in pieces.windows(2) {
        match pair[0] {
            "{" | "[" => depth += 1,
            "}" | "]" => depth = depth.saturating_sub(1),
            "\"result\"" | "\"error\"" if depth == 1 && pair[1] == ":" => outcomes += 1,
            _ => {}
        }
    }
    outcomes
}

fn whole(pieces: &[&str]) -> String {
    pieces.concat().replace("$echo", ECHO)
}

fn holds_the_echo(body: &[u8]) -> bool {
    body.windows(ECHO.len()).any(|window| window == ECHO.as_bytes())
        // The echo may be written with escapes.
        || serde_json::from_slice::<Value>(body)
            .is_ok_and(|body| body["result"][4] == ECHO || body[0]["result"][4] == ECHO)
}

proptest! {
    #![proptest_config(cases(4000))]

    /// S15, S16, S49, S58.
    #[test]
    fn an_arbitrary_body_without_the_echo_is_no_reply(
        responses in proptest::collection::vec((100..1000_u16, body()), 4),
        key_locking in proptest::sample::select(vec!["on", "off"]),
        options in proptest::sample::select(vec![json!({}), json!({ "replicas": 1 })]),
    ) {
        let gateway = gateway(&json!({ "key_locking": key_locking }));
        let call = call_of(&options);
        let mut sent = 0;
        let end = converse(&gateway, &call, &mut GatewayCapabilities::default(), |_| {
            let (status, body) = responses[sent].clone();
            sent += 1;
            Ok(response(status, body))
        });
        prop_assert!(sent <= 3);
        let (status, body) = &responses[sent - 1];
        if matches!(end, Answer::Reply(_)) {
            prop_assert!((200..300).contains(status) && holds_the_echo(body));
        }
        // Formatting must not panic, whatever the body was.
        let _ = format!("{end:?}");
    }

    /// S49.
    #[test]
    fn a_body_is_understood_as_another_reader_of_json_understands_it(pieces in shuffled()) {
        let (gateway, call) = (gateway(&Value::Null), inspect());
        // With this status an error is a refusal, whatever its text.
        let at = |status: u16| {
            let body = whole(&pieces);
            converse(&gateway, &call, &mut GatewayCapabilities::default(), |_| {
                Ok(response(status, body.clone()))
            })
        };
        let known = reference(&pieces);
        let reply = known.as_ref().and_then(|known| Reply::read(known.as_ref().ok()?, call.request));
        match at(200) {
            Answer::Reply(read) => prop_assert_eq!(Some(read), reply),
            _ => prop_assert_eq!(reply, None),
        }
        let refused = matches!(known, Some(Err(text)) if text != "NOSCRIPT");
        prop_assert_eq!(matches!(at(418), Answer::Refused(_)), refused);
    }
}
