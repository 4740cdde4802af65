//! Scopes, which share no I/O, and the requests that the calls of one scope share.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use super::client::{Client, ONLY, SCOPE, lock};
use crate::engine::{Event, OpId, Outcome, ScopeId, Transmit, TransmitId};
use crate::error::{FailureKind, RequestError};
use crate::name::{LockName, RequestId};
use crate::protocol::calls::{LockCalls, Target};
use crate::protocol::gateway::{Gateway, Request, Response};
use crate::protocol::script::Publish;

/// Begins to inspect a lock in this scope.
fn inspect(client: &mut Client, scope: ScopeId, name: &str) -> OpId {
    let target = lock(name);
    let call = |request: RequestId| target.inspect(request, None);
    client.with(|engine, cx| engine.query(scope, ONLY, call, cx))
}

/// The next request of this scope, and the number of its commands.
fn sent(client: &mut Client, scope: ScopeId) -> Option<(TransmitId, usize)> {
    match client.engine.poll_transmit(scope)? {
        Transmit::Send { id, request, .. } if request.url.ends_with("pipeline") => {
            let commands: Vec<Vec<String>> = serde_json::from_str(&request.body).unwrap();
            Some((id, commands.len()))
        }
        Transmit::Send { id, .. } => Some((id, 1)),
        other => panic!("{other:?}"),
    }
}

/// Takes the error of a query.
fn error(client: &mut Client, op: OpId) -> RequestError {
    match client.engine.take_outcome(op) {
        Some(Outcome::Replied(Err(error), _)) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn calls_of_one_scope_share_a_request_and_those_of_another_scope_do_not() {
    let mut client = Client::new();
    let (one, other) = (client.engine.new_scope(), client.engine.new_scope());
    assert!(one != other && one != SCOPE && other != SCOPE);
    assert!(client.engine.is_idle(one) && !client.engine.has_transmit(one));
    inspect(&mut client, one, "a");
    inspect(&mut client, other, "b");
    inspect(&mut client, one, "c");
    assert!(client.engine.has_transmit(one) && client.engine.has_transmit(other));
    assert!(!client.engine.has_transmit(SCOPE) && sent(&mut client, SCOPE).is_none());
    assert!(client.engine.is_idle(SCOPE) && !client.engine.is_idle(other));
    assert_eq!(sent(&mut client, one).unwrap().1, 2);
    assert!(!client.engine.has_transmit(one) && sent(&mut client, one).is_none());
    assert_eq!(sent(&mut client, other).unwrap().1, 1);
}

#[test]
fn the_drivers_of_scopes_are_woken_once_for_all_that_they_have_to_do() {
    let mut client = Client::new();
    let scope = client.engine.new_scope();
    let ops = ["a", "b"].map(|name| inspect(&mut client, scope, name));
    let events: Vec<Event> = core::iter::from_fn(|| client.engine.poll_event()).collect();
    assert_eq!(events, [Event::Scope(scope)]);
    let (id, _) = sent(&mut client, scope).unwrap();
    client.with(|engine, cx| engine.handle_response(id, Err(FailureKind::Broken), cx));
    client.with(|engine, cx| engine.abandon(ops[0], cx));
    client.with(|engine, cx| engine.abandon(ops[1], cx));
    let events = core::iter::from_fn(|| client.engine.poll_event());
    assert_eq!(events.filter(|event| *event == Event::Scope(scope)).count(), 1);
}

#[test]
fn time_passes_for_the_operations_of_one_scope_only() {
    let mut client = Client::new();
    let (one, other) = (client.engine.new_scope(), client.engine.new_scope());
    inspect(&mut client, one, "a");
    sent(&mut client, one).unwrap();
    let due = client.engine.poll_timeout(one).expect("the end of the attempt");
    assert_eq!(client.engine.poll_timeout(other), None);
    client.now = due;
    client.with(|engine, cx| engine.handle_timeout(other, cx));
    assert_eq!(client.engine.poll_timeout(one), Some(due));
    client.with(|engine, cx| engine.handle_timeout(one, cx));
    assert_ne!(client.engine.poll_timeout(one), Some(due));
}

#[test]
fn a_scope_that_is_closed_breaks_its_own_requests_and_drops_what_it_had_to_send() {
    let mut client = Client::new();
    let (closed, other) = (client.engine.new_scope(), client.engine.new_scope());
    let op = inspect(&mut client, closed, "a");
    let (late, _) = sent(&mut client, closed).unwrap();
    inspect(&mut client, other, "b");
    let (open, _) = sent(&mut client, other).unwrap();
    client.with(|engine, cx| engine.close_scope(closed, cx));
    // The query is attempted again, after a pause.
    assert!(!client.engine.is_over(op));
    client.with(|engine, cx| engine.handle_response(late, Ok(Response::new(200, "{}")), cx));
    assert!(!client.engine.is_over(op), "the response of a closed scope is ignored");
    assert!(!client.engine.is_idle(other), "a request of another scope goes on");
    let body = r#"{"error":"WRONGPASS invalid token"}"#;
    client.with(|engine, cx| engine.handle_response(open, Ok(Response::new(401, body)), cx));
    assert!(client.engine.is_idle(other));
}

#[test]
fn a_stream_ends_with_its_scope_and_its_waiters_poll() {
    let mut client = Client::new();
    client.wait_for("job");
    let stream = client.opened();
    assert!(!client.engine.is_idle(SCOPE));
    client.with(|engine, cx| engine.close_scope(SCOPE, cx));
    client.receive(stream, super::SUBSCRIBED);
    assert_eq!(
        client.engine.notification_mode(ONLY),
        Some(crate::engine::NotificationMode::Polling),
        "bytes of a closed stream are ignored"
    );
}

#[test]
fn a_pipeline_has_a_limited_number_of_commands() {
    let mut client = Client::new();
    for _ in 0..=Request::SEVERAL_MAX {
        inspect(&mut client, SCOPE, "a");
    }
    let counts: Vec<usize> =
        core::iter::from_fn(|| sent(&mut client, SCOPE)).map(|(_, count)| count).collect();
    assert_eq!(counts, [Request::SEVERAL_MAX, 1]);
}

#[test]
fn a_pipeline_has_a_limited_number_of_bytes() {
    let mut client = Client::new();
    let name = "n".repeat(LockName::BYTES_MAX);
    let mut sizes = Vec::new();
    for _ in 0..Request::SEVERAL_MAX {
        inspect(&mut client, SCOPE, &name);
    }
    while let Some(transmit) = client.engine.poll_transmit(SCOPE) {
        let Transmit::Send { request, .. } = transmit else { panic!("{transmit:?}") };
        sizes.push(request.body.len());
    }
    assert!(sizes.len() > 1, "{sizes:?}");
    assert!(sizes.iter().all(|size| *size <= Request::SEVERAL_BYTES_MAX + 1_000), "{sizes:?}");
    let all_but_last = &sizes[..sizes.len() - 1];
    let full = Request::SEVERAL_BYTES_MAX * 9 / 10;
    assert!(all_but_last.iter().all(|size| *size > full), "{sizes:?}");
}

#[test]
fn calls_to_different_gateways_share_no_request() {
    let mut client = Client::new();
    let gateway = Gateway::upstash("http://localhost:2", "t").unwrap();
    let second = client.engine.add_endpoint(gateway, 0);
    let name = LockName::parse("a").unwrap();
    let target = Target::Lock(LockCalls::new(name, Publish::Plain));
    for to in [ONLY, second, ONLY] {
        client.with(|engine, cx| {
            engine.query(SCOPE, to, |request| target.inspect(request, None), cx)
        });
    }
    let counts = [(); 2].map(|()| match client.engine.poll_transmit(SCOPE) {
        Some(Transmit::Send { to, request, .. }) => (to, request.url.ends_with("pipeline")),
        other => panic!("{other:?}"),
    });
    assert_eq!(counts, [(ONLY, true), (second, false)]);
}

#[test]
fn a_request_is_aborted_when_no_operation_waits_for_it_and_not_before() {
    let mut client = Client::new();
    let ops = ["a", "b"].map(|name| inspect(&mut client, SCOPE, name));
    let (id, count) = sent(&mut client, SCOPE).unwrap();
    assert_eq!(count, 2);
    client.detach(ops[0]);
    assert!(client.engine.poll_transmit(SCOPE).is_none(), "the other call needs the request");
    client.detach(ops[1]);
    match client.engine.poll_transmit(SCOPE) {
        Some(Transmit::Abort { id: aborted }) => assert_eq!(aborted, id),
        other => panic!("{other:?}"),
    }
    assert!(client.engine.is_idle(SCOPE));
}

#[test]
fn the_index_of_a_removed_gateway_is_used_again() {
    let mut client = Client::new();
    let mut add = |port: u16| {
        let address = alloc::format!("http://localhost:{port}");
        client.engine.add_endpoint(Gateway::upstash(&address, "t").unwrap(), 1)
    };
    let [first, second] = [1, 2].map(&mut add);
    assert!(first != second && first != ONLY);
    client.engine.remove_endpoint(first);
    assert_eq!(client.engine.clock(first), None);
    let gateway = Gateway::upstash("http://localhost:3", "t").unwrap();
    assert_eq!(client.engine.add_endpoint(gateway, 1), first);
}

#[test]
fn the_clock_of_redis_is_known_after_a_reply() {
    let mut client = Client::new();
    assert_eq!(client.engine.clock(ONLY), None);
    let bound = client.with(|engine, cx| engine.write_bound(ONLY, cx));
    assert_eq!(bound.not_after, None);
    client.hold("job", None);
    let clock = client.engine.clock(ONLY).expect("the clock of the reply");
    let bound = client.with(|engine, cx| engine.write_bound(ONLY, cx));
    assert_eq!(bound.not_after, Some(clock.after(crate::timing::HORIZON, client.now)));
}

#[test]
fn a_query_without_entropy_sends_nothing() {
    let mut client = Client::new();
    let target = lock("a");
    let mut cx = crate::engine::Context { now: client.now, entropy: &mut || None };
    let op = client.engine.query(SCOPE, ONLY, |id| target.inspect(id, None), &mut cx);
    assert_eq!(error(&mut client, op), RequestError::NoEntropy);
    assert!(client.engine.is_idle(SCOPE));
    assert_eq!(client.engine.poll_timeout(SCOPE), None);
    client.pass(Duration::from_secs(60).as_secs());
}

#[test]
fn the_deadline_of_a_stream_is_one_of_its_scope_only() {
    let mut client = Client::new();
    let other = client.engine.new_scope();
    let op = client.wait_for("job");
    let stream = client.opened();
    let head = crate::engine::StreamInput::Head { status: 200, retry_after: None };
    client.with(|engine, cx| engine.handle_stream(stream, head, cx));
    client.with(|engine, cx| engine.abandon(op, cx));
    assert!(!client.engine.is_idle(SCOPE), "the stream is to be closed");
    assert!(client.poll_sent().is_none() && client.engine.is_idle(SCOPE));
    client.wait_for("job");
    client.opened();
    let due = client.engine.poll_timeout(SCOPE).expect("the stream is to be confirmed");
    assert_eq!(client.engine.poll_timeout(other), None);
    assert!(client.engine.is_idle(other));
    client.now = due;
    client.with(|engine, cx| engine.handle_timeout(other, cx));
    assert_eq!(client.engine.poll_timeout(SCOPE), Some(due), "not a deadline of the other scope");
}

#[test]
fn a_clock_of_redis_that_was_set_back_is_reported_with_its_step() {
    let mut client = Client::new();
    let reply = |client: &mut Client, server_ms: u64| {
        let op = inspect(client, SCOPE, "a");
        let sent = client.sent();
        let echo = &sent.command().args()[0];
        let body = alloc::format!(r#"{{"result":[0,"0,0,0",0,{server_ms},"{echo}"]}}"#);
        client.respond(&sent, &body);
        assert!(client.engine.take_outcome(op).is_some());
    };
    reply(&mut client, 1_700_000_600_000);
    assert_eq!(client.engine.last_rollback(ONLY, 0), None);
    reply(&mut client, 1_700_000_000_000);
    let step = Duration::from_secs(600);
    assert_eq!(client.engine.last_rollback(ONLY, 0), Some((1, step)));
    assert_eq!(client.engine.last_rollback(ONLY, 1), None, "it was seen");
}
