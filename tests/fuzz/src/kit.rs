//! Gateways, calls and conversations. All come from a state machine, as in a program.

use arbitrary::Unstructured;
use edgelatch_proto::error::{FailureKind, Refusal};
use edgelatch_proto::machine::{
    Acquire, AcquireSpec, Entropy, Grant, Input, Machine as _, Output, Query,
};
use edgelatch_proto::name::{LockName, OwnerId, RequestId};
use edgelatch_proto::protocol::calls::{LockCalls, Target};
use edgelatch_proto::protocol::exchange::{Answer, Exchange, Step};
use edgelatch_proto::protocol::gateway::{Gateway, GatewayCapabilities, Request, Response};
use edgelatch_proto::protocol::reply::{Code, Reply};
use edgelatch_proto::protocol::script::{Publish, ScriptCall};
use edgelatch_proto::time::Instant;
use edgelatch_proto::timing::{AttemptTime, LeaseTime, Replicas, WaitPolicy};
use serde_json::Value;

/// The echo of the first request of [`inspect`], as in `tests/vectors`.
pub(crate) const ECHO: &str = "00000000000000ff";

pub(crate) fn gateway(webdis: bool) -> Gateway {
    let new = if webdis { Gateway::webdis } else { Gateway::upstash };
    new("https://gateway.example", "us:er").unwrap()
}

pub(crate) fn name(text: &str) -> LockName {
    LockName::parse(text).unwrap()
}

pub(crate) fn lock(text: &str) -> Target {
    Target::Lock(LockCalls::new(name(text), Publish::Plain))
}

/// Entropy whose first request id has this number.
pub(crate) fn entropy(request: u64) -> Entropy {
    let mut bytes = [7; 32];
    bytes[16..24].copy_from_slice(&request.wrapping_sub(1).to_le_bytes());
    Entropy::new(bytes)
}

/// An inspection of a lock, whose request id has this number.
pub(crate) fn inspect(request: u64) -> ScriptCall {
    first_call(request, |request| lock("invoice:42").inspect(request, None))
}

/// The call that `call` makes with the request id of this number.
pub(crate) fn first_call(number: u64, call: impl FnOnce(RequestId) -> ScriptCall) -> ScriptCall {
    let mut query = Query::new(call, AttemptTime::DEFAULT, entropy(number));
    match query.poll(Instant::from_millis(0, 0)) {
        Output::Call { script, .. } => script,
        other => panic!("a question begins with a call: {other:?}"),
    }
}

/// The echo in the replies to a call.
pub(crate) fn echo(call: &ScriptCall) -> &str {
    &call.args()[0]
}

/// The field of an owner, as Redis stores it.
pub(crate) fn field(owner: OwnerId) -> String {
    let call = first_call(1, |request| lock("x").inspect(request, Some(owner)));
    call.args()[4].clone()
}

/// An acquisition that does not wait.
pub(crate) fn acquisition(target: Target, lease: LeaseTime) -> AcquireSpec {
    AcquireSpec { lease, ..AcquireSpec::new(target, WaitPolicy::Once) }
}

/// A try for a lock that waits for one replica.
pub(crate) fn replicated(request: u64) -> ScriptCall {
    let spec = AcquireSpec {
        replicas: Replicas::new(1).ok(),
        ..acquisition(lock("invoice:42"), LeaseTime::DEFAULT)
    };
    let now = Instant::from_millis(0, 0);
    match Acquire::new(spec, entropy(request), None, now).poll(now) {
        Output::Call { script, .. } => script,
        other => panic!("an acquisition begins with a call: {other:?}"),
    }
}

/// A grant of an acquisition that starts and is granted at `now`.
pub(crate) fn granted(target: Target, lease: LeaseTime, now: Instant) -> Grant {
    let mut machine = Acquire::new(acquisition(target, lease), entropy(1), None, now);
    let Output::Call { call, .. } = machine.poll(now) else { panic!("it begins by asking") };
    let (code, value) = (Code::Done, "1700000000000000".to_owned());
    let reply = Reply { code, value, ms: 1, server_ms: 1_700_000_000_000, acknowledged: None };
    machine.handle(Input::Reply { call, reply }, now);
    match machine.poll(now) {
        Output::Done(Ok(grant)) => grant,
        other => panic!("a grant ends an acquisition: {other:?}"),
    }
}

/// The outcome of one call whose every request gets this response, and the number of requests.
pub(crate) fn converse(
    gateway: &Gateway,
    call: &ScriptCall,
    response: &Response,
    mut sees: impl FnMut(&Request),
) -> (Answer, usize) {
    let mut capabilities = GatewayCapabilities::default();
    let (mut exchange, mut step) = Exchange::new(gateway, call.clone(), &capabilities);
    let mut requests = 0;
    loop {
        match step {
            Step::Send(request) => {
                sees(&request);
                requests += 1;
                step = exchange.answered(gateway, Ok(response.clone()), &mut capabilities);
            }
            Step::Done(answer) => return (answer, requests),
        }
    }
}

pub(crate) fn response(status: u16, body: &[u8]) -> Response {
    Response::new(status, body)
}

/// The refusal that an error of Redis is decoded to.
pub(crate) fn refusal(error: &str) -> Refusal {
    let body = serde_json::json!({ "error": error }).to_string();
    match converse(&gateway(false), &inspect(1), &response(400, body.as_bytes()), |_| {}).0 {
        Answer::Refused(refusal) => refusal,
        other => panic!("{error} is no refusal: {other:?}"),
    }
}

/// A failure of each kind.
pub(crate) const FAILURES: [FailureKind; 6] = [
    FailureKind::NotSent,
    FailureKind::Broken,
    FailureKind::TimedOut,
    FailureKind::TooLarge,
    FailureKind::Redirected,
    FailureKind::Garbled { status: 200 },
];

/// The statuses and bodies of the responses in a dialect's vectors.
pub(crate) fn recorded(webdis: bool) -> Vec<(u16, String)> {
    let text = if webdis {
        include_str!("../../vectors/webdis.json")
    } else {
        include_str!("../../vectors/upstash.json")
    };
    let document: Value = serde_json::from_str(text).unwrap();
    let conversations = document["conversations"].as_array().unwrap();
    let answers = conversations.iter().flat_map(|one| one["answers"].as_array().unwrap());
    let bodies = answers.filter_map(|answer| {
        let status = u16::try_from(answer["status"].as_u64()?).unwrap();
        Some((status, answer["body"].as_str()?.replace("$echo", ECHO)))
    });
    bodies.collect()
}

/// One of several values, chosen by the input.
pub(crate) fn one_of<T: Copy>(input: &mut Unstructured<'_>, of: &[T]) -> T {
    input.choose(of).copied().unwrap_or(of[0])
}

/// A number up to `most`, chosen by the input; 0 once the input is used up.
pub(crate) fn up_to(input: &mut Unstructured<'_>, most: u64) -> u64 {
    input.int_in_range(0..=most).unwrap_or(0)
}
