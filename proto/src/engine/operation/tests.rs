//! Operations whose caller leaves early, through the public interface of the engine.

mod client;
mod cluster;
mod holds;
mod kept;
mod majority;
mod owners;
mod scopes;
mod waits;

use alloc::format;
use alloc::string::String;
use core::time::Duration;

use super::*;
use crate::engine::{NotificationMode, StreamInput};
use crate::machine::LockState;
use crate::protocol::script::scripts;
use client::{Client, Command, ONLY, RELEASED, SCOPE, SUBSCRIBED};

/// S59.
#[test]
fn an_acquisition_that_was_sent_and_is_detached_is_undone() {
    let mut client = Client::new();
    let op = client.acquire("job");
    let acquire = client.sent();
    client.detach(op);
    let undo = client.sent();
    assert!(undo.command().runs(&scripts::LOCK_RELEASE), "{undo:?}");
    assert_eq!(undo.command().owner(), acquire.command().owner());
    // Redis has executed the acquisition, and its late reply is ignored.
    let granted = acquire.command().granted();
    client.respond(&acquire, &granted);
    assert!(!client.engine.is_idle(SCOPE), "the undoing is not confirmed");
    client.confirm_release(&undo);
    assert!(!client.engine.has(op));
}

#[test]
fn an_acquisition_that_is_detached_before_it_was_sent_sends_nothing() {
    let mut client = Client::new();
    let op = client.acquire("job");
    client.detach(op);
    assert!(client.engine.is_idle(SCOPE) && !client.engine.has(op));
}

/// S59.
#[test]
fn a_hold_that_a_detached_acquisition_was_granted_is_released() {
    let mut client = Client::new();
    let op = client.acquire("job");
    let acquire = client.sent();
    let granted = acquire.command().granted();
    client.respond(&acquire, &granted);
    assert!(client.engine.is_over(op) && client.engine.has(op));
    client.detach(op);
    let release = client.sent();
    assert!(release.command().runs(&scripts::LOCK_RELEASE), "{release:?}");
    assert_eq!(release.command().owner(), acquire.command().owner());
    client.confirm_release(&release);
    assert!(!client.engine.has(op));
}

#[test]
fn a_notified_waiter_that_is_detached_passes_the_message_on() {
    let mut client = Client::new();
    let [first, second] = [client.acquire("job"), client.acquire("job")];
    let tries = client.sent();
    let busy: Vec<String> = tries.commands.iter().map(Command::busy).collect();
    client.respond(&tries, &format!("[{}]", busy.join(",")));
    let stream = client.opened();
    let head = StreamInput::Head { status: 200, retry_after: None };
    client.with(|engine, cx| engine.handle_stream(stream, head, cx));
    client.receive(stream, SUBSCRIBED);
    assert_eq!(client.engine.notification_mode(ONLY), Some(NotificationMode::Stream));
    // The first waiter retries for both, since a release may have come before the confirmation.
    let retry = client.sent_within(Duration::from_secs(1)).unwrap();
    assert_eq!(retry.command().owner(), tries.commands[0].owner());
    let busy = retry.command().busy();
    client.respond(&retry, &busy);
    assert!(client.sent_within(Duration::from_secs(1)).is_none(), "no waiter polls");

    client.receive(stream, RELEASED);
    client.detach(first);
    // Redis has not recorded the end of the refused acquisition yet.
    let undo = client.sent();
    assert_eq!(undo.command().owner(), tries.commands[0].owner());
    let undone = undo.command().reply(0, "0", 0);
    client.respond(&undo, &undone);
    let retry = client.sent_within(Duration::from_secs(1)).expect("a retry of the second waiter");
    assert_eq!(retry.command().owner(), tries.commands[1].owner());
    let granted = retry.command().granted();
    client.respond(&retry, &granted);
    assert!(matches!(client.engine.take_outcome(second), Some(Outcome::Acquired(Ok(_)))));
}

#[test]
fn an_acquisition_reports_once_that_it_waits() {
    let mut client = Client::with_streams(0);
    let op = client.acquire("job");
    let first = client.sent();
    let waits = |client: &mut Client| {
        let events = core::iter::from_fn(|| client.engine.poll_event());
        events.filter(|event| *event == Event::Waiting(op)).count()
    };
    assert_eq!(waits(&mut client), 0, "Redis has not replied");
    client.respond(&first, &first.command().busy());
    assert_eq!(waits(&mut client), 1);
    client.now = client.now + Duration::from_secs(11);
    client.with(|engine, cx| engine.handle_timeout(SCOPE, cx));
    let second = client.sent();
    client.respond(&second, &second.command().busy());
    assert_eq!(waits(&mut client), 0, "it still waits");
}

#[test]
fn when_a_subscription_ends_the_operation_that_has_polled_for_longest_subscribes() {
    let mut client = Client::new();
    let first = client.wait_for("first");
    client.opened_for("first");
    let second = client.wait_for("second");
    client.wait_for("third");
    assert!(client.engine.poll_transmit(SCOPE).is_none(), "one stream may be open");
    for (op, next) in [(first, "second"), (second, "third")] {
        client.detach(op);
        let undo = client.sent();
        let undone = undo.command().reply(0, "0", 0);
        client.respond(&undo, &undone);
        client.opened_for(next);
    }
}

#[test]
fn an_older_operation_that_waits_for_another_reason_keeps_no_poller_from_subscribing() {
    let mut client = Client::new();
    let hold = client.hold("held", None);
    client.keep(hold);
    let first = client.wait_for("first");
    client.opened_for("first");
    client.wait_for("second");
    client.detach(first);
    let undo = client.sent();
    client.respond(&undo, &undo.command().reply(0, "0", 0));
    client.opened_for("second");
}

#[test]
fn an_acquisition_that_begins_again_in_a_cluster_keeps_the_end_of_its_wait() {
    let mut client = Client::with_streams(0);
    let op = client.acquire_all(&["a", "b"]);
    let end = client.now + Duration::from_secs(60);
    let both = client.sent();
    client.now = client.now + Duration::from_secs(4);
    client.respond(&both, r#"{"error":"CROSSSLOT Keys in request don't hash to the same slot"}"#);
    while !client.engine.is_over(op) {
        let sent = client.sent_within(Duration::from_secs(60)).expect("a request or the end");
        let busy = sent.commands.iter().map(|command| command.reply(0, "1", 600_000));
        let replies: Vec<String> = busy.collect();
        match replies.as_slice() {
            [one] => client.respond(&sent, one),
            several => client.respond(&sent, &format!("[{}]", several.join(","))),
        }
    }
    assert!(!client.now.is_later(end + Duration::from_secs(1)), "{:?}", client.now);
}

#[test]
fn a_call_that_is_dropped_from_a_pipeline_keeps_the_places_of_the_other_replies() {
    let mut client = Client::new();
    let ops = ["a", "b", "c"].map(|name| client.inspect(name));
    let sent = client.sent();
    assert_eq!(sent.commands.len(), 3);
    client.detach(ops[1]);
    let replies = sent.commands.iter().zip(1..).map(|(command, token)| command.inspected(token));
    let replies: Vec<String> = replies.collect();
    client.respond(&sent, &format!("[{}]", replies.join(",")));
    for (op, last_token) in [(ops[0], 1), (ops[2], 3)] {
        match client.engine.take_outcome(op) {
            Some(Outcome::Replied(Ok(reply), false)) => {
                assert_eq!(LockState::read(&reply).unwrap().last_token, last_token);
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(client.engine.is_idle(SCOPE) && !client.engine.has(ops[1]));
}
