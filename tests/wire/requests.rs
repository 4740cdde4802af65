//! The requests that a client sends.

use edgelatch_proto::protocol::gateway::{GatewayCapabilities, Request};
use edgelatch_proto::protocol::script::{Publish, ScriptCall};
use serde_json::Value;

use super::vectors::{call, call_of, converse, form, gateway, inspect, publish, response, vectors};
use test_support::calls;

#[test]
fn every_request_matches_its_vector() {
    for vector in vectors("requests") {
        let name = vector["name"].as_str().unwrap();
        let gateway = gateway(&vector["gateway"]);
        let call = call_of(&vector);
        let mut capabilities = GatewayCapabilities::default();
        if vector["form"] == "EVAL" {
            let unknown = r#"{"error":"ERR unknown command 'EVALSHA'"}"#;
            converse(&gateway, &inspect(), &mut capabilities, |_| Ok(response(400, unknown)));
        }
        let (_, request) = calls::begin_exchange(&gateway, &call, &capabilities);
        let to = vector["to"].as_str().unwrap_or("https://gateway.example/");
        assert_eq!(request.url, to, "{name}");
        assert_eq!(request.authorization.as_deref(), Some("Bearer tok"), "{name}");
        assert_eq!(request.content_type, "application/json", "{name}");
        assert_eq!(request.sync_token, None, "{name}");
        let script = call.script();
        let text = |locking| {
            let quoted = serde_json::to_string(&script.source(locking)).unwrap();
            quoted[1..quoted.len() - 1].to_owned()
        };
        let expected = vector["body"]
            .as_str()
            .unwrap()
            .replace("$sha1", script.sha1(false))
            .replace("$locking_sha1", script.sha1(true))
            .replace("$source", &text(false))
            .replace("$locking_source", &text(true));
        assert_eq!(request.body, expected, "{name}");
    }
}

#[test]
fn every_element_of_a_request_is_a_string() {
    for name in ["acquire", "last try", "renew", "release", "force release", "inspect"] {
        let call = call(name, "a\u{2028}\u{1f512}\"\\", publish(&Value::Null));
        let (_, request) =
            calls::begin_exchange(&gateway(&Value::Null), &call, &GatewayCapabilities::default());
        let words: Vec<String> = serde_json::from_str(&request.body).unwrap();
        assert_eq!(words.len(), 3 + call.keys().len() + call.args().len(), "{name}");
        assert_eq!(words[3..3 + call.keys().len()], *call.keys(), "{name}");
        assert_eq!(words[3 + call.keys().len()..], *call.args(), "{name}");
    }
}

#[test]
fn the_newest_sync_token_goes_with_the_next_request() {
    let (gateway, call) = (gateway(&Value::Null), inspect());
    let mut capabilities = GatewayCapabilities::default();
    let mut sent = Vec::new();
    let unknown = r#"{"error":"NOSCRIPT"}"#;
    for (token, body) in [
        (Some("t1"), unknown),
        (Some("t2"), "{}"),
        (None, "{}"),
        (Some("t3"), "<html>"),
        (None, ""),
    ] {
        let mut first = true;
        converse(&gateway, &call, &mut capabilities, |request: &Request| {
            sent.push(request.sync_token.clone());
            let mut answer = response(200, body);
            // A response to another form of the same call has no sync token.
            answer.sync_token = token.filter(|_| first).map(ToOwned::to_owned);
            first = false;
            Ok(answer)
        });
    }
    let sent: Vec<Option<&str>> = sent.iter().map(Option::as_deref).collect();
    assert_eq!(sent, [None, Some("t1"), Some("t1"), Some("t2"), Some("t2"), Some("t3")]);
}

/// S61.
#[test]
fn each_script_is_sent_whole_once_after_redis_has_lacked_one() {
    let gateway = gateway(&Value::Null);
    let (first, second) = (inspect(), call("acquire", "invoice:42", Publish::Plain));
    let mut capabilities = GatewayCapabilities::default();
    let mut forms = |call: &ScriptCall, redis_has_it: bool| {
        let mut forms = Vec::new();
        converse(&gateway, call, &mut capabilities, |request: &Request| {
            forms.push(form(request, call));
            let runs = redis_has_it || request.body.contains("\"EVAL\"");
            Ok(if runs { response(200, "{}") } else { response(400, r#"{"error":"NOSCRIPT"}"#) })
        });
        forms
    };
    assert_eq!(forms(&second, true), ["EVALSHA"], "until then by its hash");
    for _ in 0..2 {
        assert_eq!(forms(&first, false), ["EVALSHA", "EVAL"]);
        assert_eq!(forms(&second, false), ["EVAL"]);
        assert_eq!([forms(&first, true), forms(&second, true)], [["EVALSHA"], ["EVALSHA"]]);
    }
}

#[test]
fn neither_token_nor_body_is_shown() {
    let gateway =
        edgelatch_proto::protocol::gateway::Gateway::upstash("https://x.example", "canary");
    let (gateway, call) = (gateway.unwrap(), call("acquire", "invoice:42", publish(&Value::Null)));
    let (exchange, request) =
        calls::begin_exchange(&gateway, &call, &GatewayCapabilities::default());
    let text = format!("{gateway:?} {exchange:?} {request:?} {call:?}");
    for secret in ["canary", "Bearer", "EVALSHA", "0101-", "redis.call"] {
        assert!(!text.contains(secret), "{text}");
    }
}
