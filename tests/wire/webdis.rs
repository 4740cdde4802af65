//! Requests to Webdis and its responses: `tests/vectors/webdis.json`.

use edgelatch_proto::error::RefusalKind;
use edgelatch_proto::protocol::calls::UserScript;
use edgelatch_proto::protocol::exchange::Answer;
use edgelatch_proto::protocol::gateway::{Gateway, GatewayCapabilities, Request};
use edgelatch_proto::protocol::script::ScriptCall;
use serde_json::Value;

use super::vectors::{ECHO, call, converse, outcome_json, publish, response};
use test_support::calls;

fn vectors(part: &str) -> Vec<Value> {
    let document: Value = serde_json::from_str(include_str!("../vectors/webdis.json")).unwrap();
    document[part].as_array().unwrap().clone()
}

fn gateway(config: &Value) -> Gateway {
    let url = config["url"].as_str().unwrap_or("https://gateway.example");
    Gateway::webdis(url, config["token"].as_str().unwrap_or("user:pa:ss")).unwrap()
}

fn call_of(vector: &Value) -> ScriptCall {
    let lock = vector["lock"].as_str().unwrap_or("invoice:42");
    call(vector["call"].as_str().unwrap(), lock, publish(&Value::Null))
}

fn form(request: &Request) -> &str {
    request.body.split('/').next().unwrap()
}

/// Encodes a text as a browser encodes one segment of a path, and encodes the dot too.
fn encoded(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'~' => char::from(byte).into(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

#[test]
fn every_request_matches_its_vector() {
    for vector in vectors("requests") {
        let name = vector["name"].as_str().unwrap();
        let (gateway, call) = (gateway(&vector["gateway"]), call_of(&vector));
        let mut capabilities = GatewayCapabilities::default();
        if vector["form"] == "EVAL" {
            let unknown = r#"{"EVALSHA":[false,"ERR unknown command 'EVALSHA'"]}"#;
            converse(&gateway, &call, &mut capabilities, |_| Ok(response(200, unknown)));
        }
        let (_, request) = calls::begin_exchange(&gateway, &call, &capabilities);
        let to = vector["to"].as_str().unwrap_or("https://gateway.example/");
        // `user:pa:ss`, as the shell's `base64` encodes it.
        let basic = vector.get("authorization").is_none().then_some("Basic dXNlcjpwYTpzcw==");
        assert_eq!((request.url.as_str(), request.authorization.as_deref()), (to, basic), "{name}");
        assert_eq!((request.content_type, &request.sync_token), ("text/plain", &None), "{name}");
        let expected = vector["body"]
            .as_str()
            .unwrap()
            .replace("$sha1", call.script().sha1(false))
            .replace("$source", &encoded(&call.script().source(false)));
        assert_eq!(request.body, expected, "{name}");
    }
}

#[test]
fn every_conversation_ends_as_in_its_vector() {
    for vector in vectors("conversations") {
        let name = vector["name"].as_str().unwrap();
        let (gateway, call, mut capabilities) =
            (gateway(&Value::Null), call_of(&vector), GatewayCapabilities::default());
        let mut answers = vector["answers"].as_array().unwrap().iter();
        let end = converse(&gateway, &call, &mut capabilities, |request| {
            let answer = answers.next().unwrap_or_else(|| panic!("{name}: another request"));
            assert_eq!(form(request), answer["sent"].as_str().unwrap(), "{name}");
            let status = u16::try_from(answer["status"].as_u64().unwrap()).unwrap();
            Ok(response(status, answer["body"].as_str().unwrap().replace("$echo", ECHO)))
        });
        assert_eq!(outcome_json(&end), vector["ends"], "{name}");
        assert_eq!(answers.count(), 0, "{name}: ends too early");
        let (_, next) = calls::begin_exchange(&gateway, &call, &capabilities);
        assert_eq!(form(&next), vector["next"].as_str().unwrap(), "{name}");
    }
}

#[test]
fn a_call_that_the_dialect_cannot_express_is_rejected_before_it_is_sent() {
    let lock = calls::lock("job").0;
    let with_zero = UserScript::new("return ARGV[1]", vec![], vec!["a\0b".into()]).unwrap();
    let zero_inside = UserScript::new("return '\0'", vec![], vec![]).unwrap();
    let eval = |own: &UserScript| {
        let once = lock.eval(calls::owner(1), calls::token(7), own).unwrap();
        once.call(calls::request(9), calls::bound(1, 0))
    };
    for call in [calls::replicated(7, "job", 1), eval(&with_zero), eval(&zero_inside)] {
        let end =
            converse(&gateway(&Value::Null), &call, &mut GatewayCapabilities::default(), |_| {
                panic!("nothing may be sent")
            });
        let Answer::Refused(refusal) = end else { panic!("{end:?}") };
        assert_eq!(refusal.kind(), RefusalKind::Unsupported);
    }
}

#[test]
fn user_and_password_are_checked_before_anything_is_sent() {
    let option = |token: &str| {
        Gateway::webdis("https://x.example", token).err().map(|error| error.option().to_owned())
    };
    for good in ["", " ", "user:", ":password", "user:pass:word", "é:ü"] {
        assert_eq!(option(good), None, "{good:?}");
    }
    for bad in ["user", "user:pass\nword", &format!("u:{}", "x".repeat(1023))] {
        assert_eq!(option(bad).as_deref(), Some("token"), "{bad:?}");
    }
    assert!(Gateway::webdis("http://10.0.0.1:7379", "").is_err());
    assert!(Gateway::webdis_over_http("http://10.0.0.1:7379", "").is_ok());
}
