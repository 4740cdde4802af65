//! Facts that the client learns of a gateway: a cluster, an address of another server, competitors,
//! and tokens that went back.

use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use core::time::Duration;

use super::client::{Client, Command, ONLY, SCOPE, a_minute};
use crate::engine::{AcquirePolicy, HoldTime, OpId, Outcome};
use crate::error::{AcquireError, FailureKind};
use crate::name::LockName;
use crate::protocol::calls::UserScript;
use crate::protocol::gateway::Gateway;
use crate::protocol::script::scripts;
use crate::timing::{LeaseTime, WaitPolicy};

const CROSSSLOT: &str = r#"{"error":"CROSSSLOT Keys in request don't hash to the same slot"}"#;
const WEB_PAGE: &str = "<!DOCTYPE html><html></html>";

/// Takes the error of an acquisition.
fn error(client: &mut Client, op: OpId) -> AcquireError {
    match client.engine.take_outcome(op) {
        Some(Outcome::Acquired(Err(error))) => error,
        other => panic!("{other:?}"),
    }
}

/// The code of the error of Redis with which an acquisition ended.
fn refusal(client: &mut Client, op: OpId) -> String {
    match error(client, op) {
        AcquireError::Refused(refusal) => refusal.code().to_string(),
        other => panic!("{other:?}"),
    }
}

fn names(command: &Command, name: &str) -> bool {
    command.0.iter().any(|word| word.contains(name))
}

#[test]
fn locks_in_several_slots_of_a_cluster_are_acquired_slot_by_slot_from_then_on() {
    let mut client = Client::with_streams(0);
    let op = client.acquire_all(&["first", "second"]);
    let both = client.sent();
    assert!(names(both.command(), "first") && names(both.command(), "second"));
    client.respond(&both, CROSSSLOT);
    assert!(!client.engine.is_over(op));
    let granted = |_, command: &Command| {
        assert!(!(names(command, "first") && names(command, "second")), "{command:?}");
        Some(command.granted())
    };
    client.serve(op, granted);
    let hold = client.acquired(op);
    assert_eq!(client.engine.all_parts(hold).count(), 2);
    let script = UserScript::new("return 1", Vec::new(), Vec::new()).unwrap();
    let call = client.with(|engine, cx| engine.script_call(hold, &script, cx));
    assert!(call.is_err(), "a script runs in one slot");
    let one = client.hold("one", None);
    let call = client.with(|engine, cx| engine.script_call(one, &script, cx));
    assert_eq!(call.unwrap().0, ONLY);
    let op = client.acquire_all(&["first", "second"]);
    client.serve(op, granted);
    client.acquired(op);
}

#[test]
fn a_refusal_that_no_other_request_avoids_ends_the_acquisition() {
    let mut client = Client::with_streams(0);
    let op = client.acquire("job");
    let sent = client.sent();
    client.respond(&sent, CROSSSLOT);
    assert_eq!(refusal(&mut client, op), "CROSSSLOT", "one lock has one slot");
    let op = client.acquire_all(&["first", "second"]);
    let sent = client.sent();
    client.respond(&sent, r#"{"error":"NOPERM this user has no permissions"}"#);
    assert_eq!(refusal(&mut client, op), "NOPERM", "it concerns each lock");
    let op = client.acquire_all(&["first", "second"]);
    client.serve(op, |_, _| Some(CROSSSLOT.into()));
    assert_eq!(refusal(&mut client, op), "CROSSSLOT", "the locks of one slot");
}

#[test]
fn an_address_that_only_sends_web_pages_is_no_gateway_that_may_have_granted() {
    let mut client = Client::with_streams(0);
    let op = client.acquire("job");
    client.serve(op, |_, _| Some(WEB_PAGE.into()));
    let web_page = FailureKind::WebPage { status: 200 };
    assert_eq!(error(&mut client, op), AcquireError::Unreachable(web_page));

    client.hold("other", None);
    let op = client.acquire("job");
    client.serve(op, |_, _| Some(WEB_PAGE.into()));
    match error(&mut client, op) {
        AcquireError::Unknown { cause, .. } => assert_eq!(cause, web_page),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_address_that_sent_a_web_page_after_no_response_may_be_a_gateway() {
    let mut client = Client::with_streams(0);
    let op = client.acquire("job");
    let first = client.sent();
    client.fail(&first);
    client.serve(op, |_, _| Some(WEB_PAGE.into()));
    let error = error(&mut client, op);
    assert!(matches!(error, AcquireError::Unknown { .. }), "{error:?}");
}

#[test]
fn a_token_that_went_back_is_not_granted() {
    let mut client = Client::with_streams(0);
    let hold = client.hold("job", None);
    let newest = client.engine.token(hold).unwrap();
    let op = client.acquire("job");
    let sent = client.sent();
    client.respond(&sent, &sent.command().reply(1, "1795276611386444", 30_000));
    let undo = client.sent();
    client.respond(&undo, &undo.command().reply(1, "0", 0));
    let newest = newest.to_string().parse().unwrap();
    assert_eq!(error(&mut client, op), AcquireError::TokenRegressed { newest });
    client.hold("other", None);
}

#[test]
fn a_grant_is_published_where_other_waiters_are_known() {
    let mut client = Client::new();
    let words = |client: &mut Client, name: &str| {
        let lock = client.engine.lock(ONLY, LockName::parse(name).unwrap(), true);
        let policy = AcquirePolicy::new(HoldTime::AsUsual, WaitPolicy::Once, None);
        client.with(|engine, cx| engine.acquire(SCOPE, lock.into(), (policy, None), false, cx));
        let sent = client.sent();
        client.respond(&sent, &sent.command().busy());
        sent.command().0.len()
    };
    let alone = words(&mut client, "job");
    client.wait_for("job");
    client.opened();
    assert!(words(&mut client, "job") > alone);
    assert_eq!(words(&mut client, "one"), alone, "no waiter is known there");
}

#[test]
fn a_granted_lock_is_kept_for_a_quarter_of_a_short_lease_while_another_is_busy() {
    let mut client = Client::with_streams(0);
    let gateway = Gateway::upstash("http://localhost:2", "t").unwrap();
    let second = client.engine.add_endpoint(gateway, 0);
    let name = || LockName::parse("job").unwrap();
    let locks = [ONLY, second].map(|to| client.engine.lock(to, name(), true));
    let all = client.engine.multi_lock(&[&locks[0], &locks[1]]).unwrap();
    let lease = LeaseTime::new(Duration::from_secs(2)).unwrap();
    let policy = AcquirePolicy::new(HoldTime::Fixed(lease), a_minute(), None);
    client.with(|engine, cx| engine.acquire(SCOPE, all.into(), (policy, None), false, cx));
    let mut first_grant = None;
    let kept = loop {
        let sent = client.sent_within(Duration::from_secs(10)).expect("a request");
        let (granted_by, granted_at) = *first_grant.get_or_insert((sent.to, client.now));
        if sent.command().runs(&scripts::LOCK_RELEASE) {
            break granted_at.until(client.now);
        } else if granted_by == sent.to {
            client.respond(&sent, &sent.command().granted());
        } else {
            client.respond(&sent, &sent.command().busy());
        }
    };
    assert!(kept <= Duration::from_millis(500), "{kept:?}");
}
