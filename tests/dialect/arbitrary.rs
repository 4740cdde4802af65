//! Whatever comes back: no panic, no reply without the echo, and never more than three requests.

use edgelatch::protocol::exchange::Answer;
use edgelatch::protocol::gateway::Memory;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::vectors::{ECHO, converse, gateway, inspect, response, vectors};

/// Bodies that mean something, and some that do not.
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
        (proptest::sample::select(known), any::<usize>(), any::<u8>()).prop_map(changed),
    ]
}

/// The body with one byte of it replaced.
fn changed((mut body, place, byte): (Vec<u8>, usize, u8)) -> Vec<u8> {
    if let Some(length) = std::num::NonZero::new(body.len()) {
        body[place % length] = byte;
    }
    body
}

fn holds_the_echo(body: &[u8]) -> bool {
    body.windows(ECHO.len()).any(|window| window == ECHO.as_bytes())
        // Written with escapes, it is the echo all the same.
        || serde_json::from_slice::<Value>(body).is_ok_and(|body| body["result"][4] == ECHO)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 4000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn whatever_comes_back_is_no_reply_without_the_echo(
        answers in proptest::collection::vec((100..1000_u16, body()), 4),
        key_locking in proptest::sample::select(vec!["on", "off"]),
    ) {
        let gateway = gateway(&json!({ "key_locking": key_locking }));
        let call = inspect();
        let mut asked = 0;
        let end = converse(&gateway, &call, &mut Memory::default(), |_| {
            let (status, body) = answers[asked].clone();
            asked += 1;
            Ok(response(status, body))
        });
        prop_assert!(asked <= 3);
        let (status, body) = &answers[asked - 1];
        if matches!(end, Answer::Reply(_)) {
            prop_assert!((200..300).contains(status) && holds_the_echo(body));
        }
        // The texts must be safe to print, whatever they were made of.
        let _ = format!("{end:?}");
    }
}
