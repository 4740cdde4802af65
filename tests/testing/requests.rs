//! The requests that a gateway in memory accepts, as bytes.

use std::collections::BTreeSet;
use std::task::Poll;
use std::time::Duration;

use edgelatch_proto::protocol::calls::Target;
use edgelatch_proto::protocol::exchange::{Answer, Step};
use edgelatch_proto::protocol::gateway::{Gateway, GatewayCapabilities, KeyLocking, Request};
use edgelatch_proto::protocol::reply::Reply;
use edgelatch_proto::protocol::script::{Publish, ScriptCall, scripts};
use edgelatch_testing::MemoryGateway;
use test_support::calls::{begin_exchange, bound, lock, owner, request};
use test_support::every_call::every_call;

/// The time of Redis' clock, before the bound of every call.
const NOW: Duration = Duration::from_secs(1_700_000_000);

const URL: &str = "https://gateway.test";

fn new_gateway() -> MemoryGateway {
    MemoryGateway::new("gateway.test")
}

fn client() -> Gateway {
    Gateway::upstash(URL, MemoryGateway::TOKEN).unwrap()
}

fn post(path: &str, body: &str) -> Request {
    let url = format!("{URL}/{path}");
    let authorization = Some(format!("Bearer {}", MemoryGateway::TOKEN));
    let (content_type, body) = ("application/json", body.to_owned());
    Request { url, authorization, sync_token: None, content_type, body }
}

/// The status and body of the response to a request.
fn respond(gateway: &mut MemoryGateway, request: &Request) -> (u16, String) {
    let response = gateway.send(request, NOW).unwrap();
    (response.status, String::from_utf8(response.body).unwrap())
}

#[test]
fn every_call_of_the_library_gets_a_reply_of_its_script() {
    let (address, mut seen) = (client(), BTreeSet::new());
    for publish in [Publish::Plain, Publish::Sharded, Publish::Both] {
        for known in every_call("a", "b", publish) {
            let mut gateway = new_gateway();
            let mut capabilities = GatewayCapabilities::default();
            let (mut exchange, request) = begin_exchange(&address, &known.call, &capabilities);
            let response = gateway.send(&request, NOW).unwrap();
            let text = String::from_utf8_lossy(&response.body).into_owned();
            let step = exchange.answered(&address, Ok(response), &mut capabilities);
            let is_reply = matches!(step, Step::Done(Answer::Reply(_)));
            assert!(is_reply, "{:?}: {text}", known.call);
            seen.insert(known.call.script().name);
        }
    }
    let missing: BTreeSet<&str> =
        scripts::ALL.iter().map(|script| script.name).filter(|name| !seen.contains(name)).collect();
    // Callers' own scripts, the query of a namespace, and the call of a redLock that stores its
    // token, which `several_gateways_make_a_red_lock` makes.
    assert_eq!(missing, BTreeSet::from(["eval", "fair_rw_query", "lock_raise"]));
}

#[test]
fn a_script_is_known_by_its_hash_and_by_its_text_with_and_without_key_locking() {
    let call = lock("a").inspect(request(1), None);
    for line in [false, true] {
        for (verb, text) in
            [("EVALSHA", call.sha1(line).unwrap().to_owned()), ("EVAL", call.source(line))]
        {
            let mut words = vec![verb.to_owned(), text, call.keys().len().to_string()];
            words.extend_from_slice(call.keys());
            words.extend_from_slice(call.args());
            let body = serde_json::to_string(&words).unwrap();
            let (status, body) = respond(&mut new_gateway(), &post("", &body));
            assert_eq!((status, &body[..13]), (200, r#"{"result":[0,"#), "{verb}: {body}");
        }
    }
}

#[test]
fn a_request_that_no_client_makes_is_refused_without_a_panic() {
    for (path, body, status, part) in [
        ("", "", 400, "syntax error"),
        ("", "{}", 400, "syntax error"),
        ("", "[]", 400, "wrong number"),
        ("", r#"["GET","a"]"#, 400, "unknown command"),
        ("", r#"["EVALSHA","0","0"]"#, 400, "NOSCRIPT"),
        ("", r#"["EVAL","return 1","0"]"#, 400, "unknown script"),
        ("", r#"["EVAL","return 1","2","a"]"#, 400, "Number of keys"),
        ("", r#"["WAIT","a","1"]"#, 400, "not an integer"),
        ("pipeline", r#"["GET"]"#, 400, "syntax error"),
        ("pipeline", "[]", 200, "[]"),
        ("pipeline", r#"[["GET"],["WAIT","2","1"]]"#, 200, r#","#),
        ("set/a", "[]", 404, "no such path"),
    ] {
        let (got, text) = respond(&mut new_gateway(), &post(path, body));
        assert_eq!(got, status, "{path} {body}: {text}");
        assert!(text.contains(part), "{path} {body}: {text}");
    }
    let sha1 = lock("a").inspect(request(1), None).sha1(false).unwrap();
    for rest in ["", r#","x""#, r#","1""#, r#","1","a""#, r#","0","a","b","c","d","e""#] {
        let body = format!(r#"["EVALSHA","{sha1}"{rest}]"#);
        let (status, text) = respond(&mut new_gateway(), &post("", &body));
        assert_eq!(status, 400, "{body}: {text}");
    }
}

#[test]
fn a_request_without_the_token_is_unauthorized() {
    let mut gateway = new_gateway();
    for authorization in [None, Some("Bearer other".to_owned()), Some("test-token".to_owned())] {
        let request = Request { authorization, ..post("", "[]") };
        assert_eq!(respond(&mut gateway, &request).0, 401);
        let (status, id) = gateway.open(&request).unwrap();
        assert_eq!((status, gateway.read(id)), (401, Poll::Ready(None)));
    }
}

#[test]
fn a_stream_has_the_messages_of_its_channel_until_it_is_closed() {
    let mut gateway = new_gateway();
    let [mine, other] = ["a{x}", "b"].map(lock);
    let topic = mine.0.topic(owner(1), &refusal(&mut gateway, &mine.0));
    let (request, _) = client().listen(&topic);
    let (status, id) = gateway.open(&request).unwrap();
    let channel = topic.channel().to_owned();
    assert_eq!(status, 200);
    assert_eq!(gateway.read(id), Poll::Ready(Some(format!("data: subscribe,{channel},1\n\n"))));
    for calls in [&other, &mine] {
        force_release(&mut gateway, &calls.0);
    }
    assert_eq!(gateway.read(id), Poll::Ready(Some(format!("data: message,{channel},0\n\n"))));
    assert_eq!(gateway.read(id), Poll::Pending);
    gateway.close(id);
    assert_eq!(gateway.read(id), Poll::Ready(None));
}

/// Has another client hold the lock; returns the reply to a try of a client.
fn refusal(gateway: &mut MemoryGateway, target: &Target) -> Reply {
    gateway.hold(target.name().as_str(), Default::default(), NOW).unwrap();
    run(gateway, &target.inspect(request(1), None))
}

fn force_release(gateway: &mut MemoryGateway, target: &Target) {
    let until = bound(1_700_000_090_000, 1000);
    run(gateway, &target.force_release().call(request(1), until));
}

fn run(gateway: &mut MemoryGateway, call: &ScriptCall) -> Reply {
    let address = client().key_locking(KeyLocking::Off);
    let mut capabilities = GatewayCapabilities::default();
    let (mut exchange, request) = begin_exchange(&address, call, &capabilities);
    let response = gateway.send(&request, NOW).unwrap();
    match exchange.answered(&address, Ok(response), &mut capabilities) {
        Step::Done(Answer::Reply(reply)) => reply,
        other => panic!("{other:?}"),
    }
}
