//! Waits for a release: streams that are opened again, waiters that are served, and pipelines that
//! a gateway does not answer.

use core::time::Duration;

use super::client::{Client, ONLY, RELEASED, SCOPE, SUBSCRIBED, Sent, a_minute};
use crate::engine::{
    AcquirePolicy, Event, HoldTime, NotificationMode, OpId, ScopeId, StreamId, StreamInput,
    Transmit,
};
use crate::name::LockName;
use crate::protocol::gateway::{Gateway, Response};

const HEAD: StreamInput<'_> = StreamInput::Head { status: 200, retry_after: None };

/// Lets time pass until the engine opens a stream, for at most `limit`.
fn opened_within(client: &mut Client, limit: Duration) -> Option<StreamId> {
    let end = client.now + limit;
    loop {
        match client.engine.poll_transmit(SCOPE) {
            Some(Transmit::Open { id, .. }) => return Some(id),
            Some(_) => {}
            None => {
                client.now =
                    client.engine.poll_timeout(SCOPE).filter(|until| end.is_later(*until))?;
                client.with(|engine, cx| engine.handle_timeout(SCOPE, cx));
            }
        }
    }
}

/// Lets a stream begin, and confirms its subscription.
fn confirm(client: &mut Client, stream: StreamId) {
    client.with(|engine, cx| engine.handle_stream(stream, HEAD, cx));
    client.receive(stream, SUBSCRIBED);
}

/// The number of events that report another notification mode, which are removed.
fn mode_changes(client: &mut Client) -> usize {
    let events = core::iter::from_fn(|| client.engine.poll_event());
    events.filter(|event| *event == Event::Endpoint(ONLY)).count()
}

/// Refuses the retries that follow a confirmation.
fn refuse_retries(client: &mut Client) {
    while let Some(sent) = client.sent_within(Duration::from_secs(1)) {
        client.respond(&sent, &sent.command().busy());
    }
}

#[test]
fn a_stream_that_has_ended_is_opened_again_within_a_second() {
    let mut client = Client::new();
    client.wait_for("job");
    let stream = client.opened();
    confirm(&mut client, stream);
    assert_eq!(mode_changes(&mut client), 1);
    refuse_retries(&mut client);
    client.receive(stream, ":\n\n");
    assert_eq!(mode_changes(&mut client), 0, "a sign of life");
    client.with(|engine, cx| engine.handle_stream(stream, StreamInput::End, cx));
    assert_eq!(client.engine.notification_mode(ONLY), Some(NotificationMode::Polling));
    assert_eq!(mode_changes(&mut client), 1);
    let next = opened_within(&mut client, Duration::from_millis(1_001)).expect("a stream");
    confirm(&mut client, next);
    assert_eq!(client.engine.notification_mode(ONLY), Some(NotificationMode::Stream));
}

#[test]
fn one_release_makes_no_other_waiter_retry_after_the_first_has_acquired() {
    let mut client = Client::new();
    let first = client.wait_for("job");
    let stream = client.opened();
    let second = client.wait_for("job");
    confirm(&mut client, stream);
    refuse_retries(&mut client);
    client.receive(stream, RELEASED);
    let retry = client.sent_within(Duration::from_secs(1)).expect("a retry");
    client.respond(&retry, &retry.command().granted());
    let hold = client.acquired(first);
    assert!(client.sent_within(Duration::from_secs(1)).is_none(), "another client holds it");
    assert!(!client.engine.is_over(second));
    assert!(client.engine.has_waited(hold));
    let other = client.hold("other", None);
    assert!(!client.engine.has_waited(other), "it was granted at once");
}

#[test]
fn a_gateway_without_wake_ups_gets_no_request_for_a_stream() {
    let mut client = Client::new();
    let gateway = Gateway::upstash("http://localhost:2", "t").unwrap().wakeups(false);
    let polled = client.engine.add_endpoint(gateway, 1);
    let lock = client.engine.lock(polled, LockName::parse("job").unwrap(), true);
    let policy = AcquirePolicy::new(HoldTime::AsUsual, a_minute(), None);
    client.with(|engine, cx| engine.acquire(SCOPE, lock.into(), (policy, None), false, cx));
    let sent = client.sent();
    client.respond(&sent, &sent.command().busy());
    assert!(client.engine.poll_transmit(SCOPE).is_none());
    assert_eq!(client.engine.notification_mode(polled), Some(NotificationMode::Polling));
}

#[test]
fn an_operation_that_polls_keeps_its_scope_busy() {
    let mut client = Client::with_streams(0);
    let op = client.wait_for("job");
    assert!(!client.engine.has_transmit(SCOPE) && !client.engine.is_idle(SCOPE));
    let other = client.engine.new_scope();
    client.inspect("a");
    client.sent();
    assert!(client.engine.is_idle(other), "the request is one of another scope");
    client.detach(op);
}

#[test]
fn a_stream_without_a_confirmation_is_closed_in_time_for_its_scope_only() {
    let mut client = Client::new();
    let other = client.engine.new_scope();
    client.wait_for("job");
    client.opened();
    client.now = client.now + Duration::from_secs(10);
    client.with(|engine, cx| engine.handle_timeout(other, cx));
    assert!(!client.engine.has_transmit(SCOPE));
    client.with(|engine, cx| engine.handle_timeout(SCOPE, cx));
    let next = client.engine.poll_transmit(SCOPE);
    assert!(matches!(next, Some(Transmit::Close { .. })), "{next:?}");
}

#[test]
fn the_streams_of_a_closed_scope_are_not_opened_and_those_of_another_are() {
    for (closed, opens) in [(SCOPE, false), (ScopeId::from_number(7), true)] {
        let mut client = Client::new();
        client.wait_for("job");
        assert!(client.engine.has_transmit(SCOPE));
        client.with(|engine, cx| engine.close_scope(closed, cx));
        let next = client.engine.poll_transmit(SCOPE);
        assert_eq!(matches!(next, Some(Transmit::Open { .. })), opens, "{next:?}");
    }
}

/// Sends two calls of one turn; returns them with their request if they share one.
fn share(client: &mut Client) -> Option<([OpId; 2], Sent)> {
    let ops = ["a", "b"].map(|name| client.inspect(name));
    let sent = client.sent();
    (sent.commands.len() == 2).then_some((ops, sent))
}

#[test]
fn after_a_pipeline_without_a_response_the_next_calls_are_sent_singly() {
    let mut client = Client::new();
    // A single request without a response says nothing about pipelines.
    let op = client.inspect("a");
    client.sent();
    client.detach(op);
    let (ops, _) = share(&mut client).expect("a pipeline");
    client.detach(ops[0]);
    client.detach(ops[1]);
    assert!(share(&mut client).is_none());
}

#[test]
fn the_calls_of_a_pipeline_that_a_gateway_does_not_support_are_sent_singly() {
    let mut client = Client::new();
    let (ops, pipeline) = share(&mut client).expect("a pipeline");
    let not_found = Response::new(404, "Not Found");
    client.with(|engine, cx| engine.handle_response(pipeline.id, Ok(not_found), cx));
    for (op, command) in ops.into_iter().zip(&pipeline.commands) {
        let sent = client.sent();
        assert_eq!(sent.command().0, command.0);
        client.respond(&sent, &sent.command().inspected(1));
        assert!(client.engine.is_over(op));
    }
}

#[test]
fn the_numbers_of_scopes_holds_requests_and_streams_identify_them() {
    use crate::engine::{HoldId, TransmitId};

    let mut client = Client::new();
    let [one, other] = [(); 2].map(|()| client.engine.new_scope());
    assert_ne!(one.number(), other.number());
    assert_eq!(ScopeId::from_number(other.number()), other);
    let [first, second] = ["first", "second"].map(|name| client.hold(name, None));
    assert_ne!(first.number(), second.number());
    assert_eq!(HoldId::from_number(second.number()), Some(second));
    client.inspect("a");
    let sent = client.sent();
    assert_eq!(TransmitId::from_number(sent.id.number()), Some(sent.id));
    client.wait_for("job");
    let stream = client.opened();
    let (subscription, number) = stream.numbers();
    assert_eq!(StreamId::from_numbers(subscription, number), Some(stream));
    assert_ne!(StreamId::from_numbers(subscription, number + 1), Some(stream));
    assert_eq!(HoldId::from_number(0), None);
    assert_eq!(StreamId::from_numbers(0, 1), None);
}
