//! Reads the test vectors.

use edgelatch_proto::error::FailureKind;
use edgelatch_proto::protocol::exchange::{Answer, Exchange, Step};
use edgelatch_proto::protocol::gateway::{
    Gateway, GatewayCapabilities, KeyLocking, Request, Response,
};
use edgelatch_proto::protocol::script::{Publish, ScriptCall};
use serde_json::{Value, json};

use test_support::calls;

/// The number of the request in every vector, and its text form.
const REQUEST: u64 = 255;
pub(crate) const ECHO: &str = "00000000000000ff";

pub(crate) fn vectors(part: &str) -> Vec<Value> {
    let document: Value = serde_json::from_str(include_str!("../vectors/upstash.json")).unwrap();
    document[part].as_array().unwrap().clone()
}

/// The gateway of a vector, with defaults for what the vector omits.
pub(crate) fn gateway(config: &Value) -> Gateway {
    let url = config["url"].as_str().unwrap_or("https://gateway.example");
    Gateway::upstash(url, config["token"].as_str().unwrap_or("tok"))
        .unwrap()
        .publish(publish(config))
        .key_locking(match config["key_locking"].as_str() {
            None => KeyLocking::Auto,
            Some("on") => KeyLocking::On,
            Some("off") => KeyLocking::Off,
            Some(other) => panic!("{other}"),
        })
}

pub(crate) fn publish(config: &Value) -> Publish {
    match config["publish"].as_str() {
        None => Publish::Plain,
        Some("sharded") => Publish::Sharded,
        Some("both") => Publish::Both,
        Some(other) => panic!("{other}"),
    }
}

/// The call with this name in the vectors.
pub(crate) fn call(name: &str, lock: &str, publish: Publish) -> ScriptCall {
    let (request, owner, lease) = (calls::request(REQUEST), calls::owner(1), calls::lease(30_000));
    let bound = calls::bound(1_700_000_090_000, 90_000);
    let unbounded = edgelatch_proto::protocol::script::Bound {
        not_after: None,
        keep: std::time::Duration::from_secs(600),
    };
    let lock = calls::announced_lock(lock, publish);
    match name {
        "acquire" => lock.acquire(request, unbounded, &owner, lease, false),
        "last try" => lock.acquire(request, bound, &owner, lease, true),
        "renew" => lock.renew(request, bound, &owner, lease, calls::token((1 << 53) - 1)),
        "release" => lock.release(request, bound, &owner),
        "force release" => lock.force_release(request, bound),
        "inspect" => lock.inspect(request, None),
        other => panic!("{other}"),
    }
}

/// The call of a vector. A conversation inspects the lock, unless it waits for replicas.
pub(crate) fn call_of(vector: &Value) -> ScriptCall {
    let name = vector["call"].as_str().unwrap_or("inspect");
    let lock = vector["lock"].as_str().unwrap_or("invoice:42");
    match vector["replicas"].as_u64() {
        Some(replicas) => calls::replicated(REQUEST, lock, u8::try_from(replicas).unwrap()),
        None => call(name, lock, publish(&vector["gateway"])),
    }
}

/// A query of the lock's state.
pub(crate) fn inspect() -> ScriptCall {
    call("inspect", "invoice:42", Publish::Plain)
}

/// The words of the script's command. With replicas it is the first of two commands.
pub(crate) fn words(request: &Request) -> Vec<String> {
    if !request.url.ends_with("/pipeline") {
        return serde_json::from_str(&request.body).unwrap();
    }
    let [script, wait]: [Vec<String>; 2] = serde_json::from_str(&request.body).unwrap();
    assert_eq!(wait[0], "WAIT");
    script
}

/// The form in which a call was sent.
pub(crate) fn form(request: &Request, call: &ScriptCall) -> String {
    let words = words(request);
    let script = call.script();
    let locking = [script.sha1(true).to_owned(), script.source(true)].contains(&words[1]);
    assert!(locking || [script.sha1(false).to_owned(), script.source(false)].contains(&words[1]));
    if locking { format!("{} locking", words[0]) } else { words[0].clone() }
}

pub(crate) fn response(status: u16, body: impl Into<Vec<u8>>) -> Response {
    Response::new(status, body)
}

/// An outcome in the form of the vectors.
pub(crate) fn outcome_json(answer: &Answer) -> Value {
    match answer {
        Answer::Reply(reply) => {
            let cells =
                json!([format!("{:?}", reply.code), reply.value, reply.ms, reply.server_ms]);
            match reply.acknowledged {
                Some(replicas) => json!({ "reply": cells, "acknowledged": replicas }),
                None => json!({ "reply": cells }),
            }
        }
        Answer::Refused(refusal) => {
            json!({ "refused": [format!("{:?}", refusal.kind()), refusal.code()] })
        }
        Answer::Failed(kind) => json!({ "failed": format!("{kind:?}") }),
    }
}

/// Runs one call to its end; `respond` returns the response to each request.
pub(crate) fn converse(
    gateway: &Gateway,
    call: &ScriptCall,
    capabilities: &mut GatewayCapabilities,
    mut respond: impl FnMut(&Request) -> Result<Response, FailureKind>,
) -> Answer {
    let (mut exchange, mut step) = Exchange::new(gateway, call.clone(), capabilities);
    loop {
        match step {
            Step::Send(request) => {
                step = exchange.answered(gateway, respond(&request), capabilities)
            }
            Step::Done(answer) => return answer,
        }
    }
}
