//! The outcomes that a client reads from a gateway's responses.

use edgelatch_proto::error::FailureKind;
use edgelatch_proto::protocol::exchange::Answer;
use edgelatch_proto::protocol::gateway::GatewayCapabilities;
use serde_json::Value;

use super::vectors::{
    ECHO, call_of, converse, form, gateway, inspect, outcome_json, response, vectors,
};
use test_support::calls;

const GOOD: &str = r#"{"result":[1,"12",30000,1700000000000,"00000000000000ff"]}"#;

/// S15, S46, S49, S61, S67.
#[test]
fn every_conversation_matches_its_vector() {
    for vector in vectors("conversations") {
        let name = vector["name"].as_str().unwrap();
        let (gateway, call) = (gateway(&vector["gateway"]), call_of(&vector));
        let mut capabilities = GatewayCapabilities::default();
        let mut answers = vector["answers"].as_array().unwrap().iter();
        let end = converse(&gateway, &call, &mut capabilities, |request| {
            let answer = answers.next().unwrap_or_else(|| panic!("{name}: another request"));
            assert_eq!(form(request, &call), answer["sent"].as_str().unwrap(), "{name}");
            let status = u16::try_from(answer["status"].as_u64().unwrap()).unwrap();
            Ok(response(status, answer["body"].as_str().unwrap().replace("$echo", ECHO)))
        });
        assert_eq!(outcome_json(&end), vector["ends"], "{name}");
        assert_eq!(answers.count(), 0, "{name}: ends too early");
        let (_, next) = calls::begin_exchange(&gateway, &call, &capabilities);
        assert_eq!(form(&next, &call), vector["next"].as_str().unwrap(), "{name}");
    }
}

/// The result of one response.
fn answer(status: u16, body: impl Into<Vec<u8>>) -> Answer {
    let body = body.into();
    converse(&gateway(&Value::Null), &inspect(), &mut GatewayCapabilities::default(), |_| {
        Ok(response(status, body.clone()))
    })
}

/// Redis did not know the hash when the first request arrived. A copy of it may arrive once Redis
/// does, so the outcome is not that no request was sent.
#[test]
fn a_second_form_that_does_not_leave_leaves_the_first_behind() {
    let mut requests = 0;
    let end =
        converse(&gateway(&Value::Null), &inspect(), &mut GatewayCapabilities::default(), |_| {
            requests += 1;
            match requests {
                1 => Ok(response(400, r#"{"error":"NOSCRIPT No matching script."}"#)),
                _ => Err(FailureKind::NotSent),
            }
        });
    assert_eq!((requests, end), (2, Answer::Failed(FailureKind::Broken)));
}

/// S50.
#[test]
fn a_reply_that_is_cut_anywhere_is_no_reply() {
    for length in 0..GOOD.len() {
        let cut = answer(200, &GOOD.as_bytes()[..length]);
        assert_eq!(cut, Answer::Failed(FailureKind::Garbled { status: 200 }), "{length}");
    }
    assert!(matches!(answer(200, GOOD), Answer::Reply(_)));
}

/// S50.
#[test]
fn an_error_that_is_cut_anywhere_is_no_refusal() {
    let error = r#"{"error":"WRONGTYPE Operation against a key"}"#;
    for length in 0..error.len() {
        let cut = answer(400, &error.as_bytes()[..length]);
        assert_eq!(cut, Answer::Failed(FailureKind::Garbled { status: 400 }), "{length}");
    }
    assert!(matches!(answer(400, error), Answer::Refused(_)));
}

#[test]
fn deep_nesting_is_no_reply_and_no_overflow() {
    for (open, close) in
        [("[", "]"), (r#"{"result":"#, "}"), (r#"{"x":"#, "}"), (r#"{"error":["#, "]}")]
    {
        for depth in [2, 127, 128, 129, 10_000] {
            for body in [open.repeat(depth) + &close.repeat(depth), open.repeat(depth)] {
                let end = answer(200, body);
                assert_eq!(end, Answer::Failed(FailureKind::Garbled { status: 200 }));
            }
        }
    }
}

#[test]
fn bytes_that_are_no_text_are_no_reply() {
    for bad in [&[0xff][..], &[0xc0, 0xaf], &[0xed, 0xa0, 0x80], &[0xf4, 0x90, 0x80, 0x80], &[0x80]]
    {
        for place in [2, 12, 14, GOOD.len() - 4] {
            let mut body = GOOD.as_bytes().to_vec();
            body.splice(place..place, bad.iter().copied());
            let end = answer(200, body);
            assert_eq!(end, Answer::Failed(FailureKind::Garbled { status: 200 }), "{bad:x?}");
        }
    }
}

#[test]
fn the_error_of_the_transport_is_passed_on() {
    for kind in [
        FailureKind::NotSent,
        FailureKind::Broken,
        FailureKind::Redirected,
        FailureKind::TooLarge,
        FailureKind::TimedOut,
    ] {
        let end = converse(
            &gateway(&Value::Null),
            &inspect(),
            &mut GatewayCapabilities::default(),
            |_| Err(kind),
        );
        assert_eq!(end, Answer::Failed(kind));
    }
}

#[test]
fn a_refusal_keeps_nothing_of_the_text_but_its_code() {
    for text in ["ERR unknown key canary", "canary", "WRONGTYPE canary", "canary OOM", "CANARY5 x"]
    {
        let Answer::Refused(refusal) =
            answer(404, serde_json::json!({ "error": text }).to_string())
        else {
            panic!("{text}")
        };
        assert!(!format!("{refusal:?} {refusal}").to_lowercase().contains("canary"), "{text}");
    }
}
