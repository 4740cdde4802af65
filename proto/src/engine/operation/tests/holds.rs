//! Holds: their renewals, their ends, and what the client then forgets.

use core::time::Duration;

use super::client::{Client, SCOPE, lock};
use crate::engine::{Event, HoldId, LeaseEnd, OpId, Outcome};
use crate::error::{EvalError, LossReason, RequestError};
use crate::machine::{LeaseState, Released};
use crate::name::{GuardKey, LockName};
use crate::protocol::reply::{Code, Reply};
use crate::protocol::script::scripts;

const EXPIRED: LossReason = LossReason::Expired;

fn watch(client: &mut Client, hold: HoldId) -> OpId {
    client.with(|engine, cx| engine.watch_hold(SCOPE, hold, cx))
}

fn state(client: &mut Client, hold: HoldId) -> LeaseState {
    client.with(|engine, cx| engine.hold_state(hold, cx))
}

fn remaining(client: &mut Client, hold: HoldId) -> Duration {
    client.with(|engine, cx| engine.remaining(hold, cx))
}

/// Takes the end of the renewals of a hold.
fn end(client: &mut Client, keep: OpId) -> Option<LeaseEnd> {
    match client.engine.take_outcome(keep)? {
        Outcome::Ended(_, end) => Some(end),
        other => panic!("{other:?}"),
    }
}

/// Takes the result of a release.
fn released(client: &mut Client, release: OpId) -> Option<Released> {
    match client.engine.take_outcome(release)? {
        Outcome::Released(result) => Some(result.unwrap()),
        other => panic!("{other:?}"),
    }
}

/// Whether an event of this hold is among those of the client, which are removed.
fn has_changed(client: &mut Client, hold: HoldId) -> bool {
    let events: alloc::vec::Vec<Event> =
        core::iter::from_fn(|| client.engine.poll_event()).collect();
    let count = events.iter().filter(|event| **event == Event::Hold(hold)).count();
    assert!(count < 2, "{events:?}");
    count == 1
}

#[test]
fn a_hold_that_is_kept_is_renewed_within_a_third_of_its_lease_again_and_again() {
    let mut client = Client::new();
    let hold = client.hold("job", None);
    let keep = client.keep(hold);
    assert!(client.poll_sent().is_none(), "no renewal is due yet");
    for _ in 0..3 {
        let before = client.now;
        let renewal = client.sent_within(Duration::from_millis(10_001)).expect("a renewal");
        assert!(before.until(client.now) >= Duration::from_millis(7_500), "{:?}", client.now);
        has_changed(&mut client, hold);
        client.respond(&renewal, &renewal.command().renewed());
        assert_eq!(state(&mut client, hold), LeaseState::Renewed);
        assert!(has_changed(&mut client, hold), "the lease lasts longer");
        assert!(remaining(&mut client, hold) > Duration::from_secs(29));
    }
    assert_eq!(end(&mut client, keep), None);
    let release = client.release(hold);
    assert_eq!(remaining(&mut client, hold), Duration::ZERO, "its release has begun");
    assert_eq!(end(&mut client, keep), Some(LeaseEnd::Released));
    let sent = client.sent();
    client.confirm_release(&sent);
    assert_eq!(released(&mut client, release), Some(Released::Released));
}

#[test]
fn a_hold_whose_renewals_get_no_reply_is_lost_at_the_end_of_its_lease() {
    let mut client = Client::new();
    let hold = client.hold("job", None);
    let (keep, watch) = (client.keep(hold), watch(&mut client, hold));
    let end_of_lease = client.now + remaining(&mut client, hold);
    while client.sent_within(Duration::from_secs(60)).is_some() {
        assert!(!client.now.has_reached(end_of_lease), "no renewal after the end");
        assert!(!client.engine.is_over(keep) && !client.engine.is_over(watch));
    }
    assert_eq!(client.now, end_of_lease);
    assert_eq!(state(&mut client, hold), LeaseState::Lost(EXPIRED));
    assert_eq!(end(&mut client, keep), Some(LeaseEnd::Lost(EXPIRED)));
    assert!(matches!(client.engine.take_outcome(watch), Some(Outcome::Lost(EXPIRED))));
    assert_eq!(remaining(&mut client, hold), Duration::ZERO);
}

#[test]
fn a_loss_that_redis_reports_ends_renewals_and_watch_at_once() {
    let mut client = Client::new();
    let hold = client.hold("job", None);
    let (keep, watch) = (client.keep(hold), watch(&mut client, hold));
    let renewal = client.sent_within(Duration::from_millis(10_001)).expect("a renewal");
    client.respond(&renewal, &renewal.command().reply(-3, "0", 0));
    assert_eq!(end(&mut client, keep), Some(LeaseEnd::Lost(LossReason::Gone)));
    assert!(matches!(client.engine.take_outcome(watch), Some(Outcome::Lost(LossReason::Gone))));
    assert!(client.engine.situation(hold).unwrap().is_over());
    client.pass(60);
    assert_eq!(state(&mut client, hold), LeaseState::Lost(LossReason::Gone), "the first reason");
    assert!(client.poll_sent().is_none() && client.engine.is_idle(SCOPE));
}

#[test]
fn a_hold_that_is_only_watched_is_lost_at_the_end_of_its_lease_and_never_after_a_release() {
    let mut client = Client::new();
    let (lost, kept) = (client.hold("lost", None), client.hold("released", None));
    let watches = [lost, kept].map(|hold| watch(&mut client, hold));
    client.release(kept);
    let release = client.sent();
    let confirmed = release.command().reply(1, "0", 0);
    client.respond(&release, &confirmed);
    client.pass(29);
    assert!(watches.iter().all(|watch| !client.engine.is_over(*watch)));
    assert_eq!(state(&mut client, lost), LeaseState::Held);
    client.pass(1);
    assert!(matches!(client.engine.take_outcome(watches[0]), Some(Outcome::Lost(EXPIRED))));
    client.pass(60);
    assert!(!client.engine.is_over(watches[1]), "a release is no loss");
    assert_eq!(client.engine.poll_timeout(SCOPE), None);
    assert!(client.engine.situation(kept).unwrap().is_over());
    client.with(|engine, cx| engine.abandon(watches[1], cx));
    assert!(client.engine.is_idle(SCOPE));
}

#[test]
fn a_hold_without_leases_is_renewed_no_more_and_ends_with_its_lease() {
    let mut client = Client::new();
    let hold = client.hold("job", None);
    let keep = client.keep(hold);
    let renewal = client.sent_within(Duration::from_millis(10_001)).expect("a renewal");
    client.respond(&renewal, &renewal.command().renewed());
    client.with(|engine, cx| engine.drop_lease(hold, cx));
    assert!(client.sent_within(Duration::from_secs(60)).is_none(), "no renewal");
    assert_eq!(end(&mut client, keep), Some(LeaseEnd::Lost(EXPIRED)));
}

#[test]
fn every_acquisition_of_an_owner_shares_the_hold_and_the_last_release_ends_it() {
    let mut client = Client::new();
    let owner = client.engine.new_owner();
    let first = client.hold("job", Some(owner));
    let second = client.acquire_for("job", Some(owner));
    assert_eq!(client.acquired(second), first);
    assert_eq!(client.engine.hold_count(first), 2);
    let release = client.release(first);
    assert!(client.poll_sent().is_none(), "another lease shares the hold");
    assert_eq!(released(&mut client, release), Some(Released::Released));
    assert_eq!(client.engine.hold_count(first), 1);
    assert!(remaining(&mut client, first) > Duration::ZERO);
    // The lease that was released is released again.
    let again = client.with(|engine, cx| engine.release(SCOPE, first, true, cx));
    assert_eq!(released(&mut client, again), Some(Released::Released));
    assert_eq!(client.engine.hold_count(first), 1, "a repeated release counts once");
    let release = client.release(first);
    let sent = client.sent();
    client.confirm_release(&sent);
    assert_eq!(released(&mut client, release), Some(Released::Released));
    let next = client.hold("job", Some(owner));
    assert_ne!(next, first, "a new hold");
    client.pass(60);
    let after_its_end = client.hold("job", Some(owner));
    assert_ne!(after_its_end, next, "the lease of the present hold has run out");
}

#[test]
fn a_release_of_an_expired_lease_that_another_shares_is_a_loss() {
    let mut client = Client::new();
    let owner = client.engine.new_owner();
    let hold = client.hold("job", Some(owner));
    client.acquire_for("job", Some(owner));
    client.release(hold);
    client.acquire_for("job", Some(owner));
    client.now = client.now + Duration::from_secs(30);
    let again = client.with(|engine, cx| engine.release(SCOPE, hold, true, cx));
    assert_eq!(released(&mut client, again), Some(Released::WasLost));
    let release = client.release(hold);
    assert_eq!(released(&mut client, release), Some(Released::WasLost));
}

#[test]
fn a_loss_that_the_reply_to_a_callers_script_shows_ends_the_hold() {
    let mut client = Client::new();
    let hold = client.hold("job", None);
    let watch = watch(&mut client, hold);
    let result = |client: &mut Client, code| {
        let value = "[1,2]".into();
        let reply = Reply { code, value, ms: 0, server_ms: 1, acknowledged: None };
        client.with(|engine, cx| engine.script_result(hold, reply, cx))
    };
    assert_eq!(result(&mut client, Code::Done).unwrap(), "[1,2]");
    assert!(!client.engine.is_over(watch));
    let lost = result(&mut client, Code::Lost).unwrap_err();
    assert_eq!(lost, EvalError::Request(RequestError::Lost(LossReason::Gone)));
    assert!(matches!(client.engine.take_outcome(watch), Some(Outcome::Lost(LossReason::Gone))));
}

#[test]
fn two_releases_of_one_hold_share_a_request_and_a_result() {
    let mut client = Client::new();
    let hold = client.hold("job", None);
    let first = client.release(hold);
    let second = client.with(|engine, cx| engine.release(SCOPE, hold, true, cx));
    let sent = client.sent();
    assert!(client.poll_sent().is_none(), "one request");
    client.respond(&sent, &sent.command().reply(0, "0", 0));
    assert_eq!(released(&mut client, first), Some(Released::WasLost));
    assert_eq!(released(&mut client, second), Some(Released::WasLost));
    assert_eq!(state(&mut client, hold), LeaseState::Lost(LossReason::Gone));
    let third = client.with(|engine, cx| engine.release(SCOPE, hold, true, cx));
    assert_eq!(released(&mut client, third), Some(Released::WasLost));
    assert!(client.poll_sent().is_none());
}

#[test]
fn a_waiting_release_takes_over_from_one_that_was_abandoned() {
    let mut client = Client::new();
    let hold = client.hold("job", None);
    let first = client.release(hold);
    let abandoned = client.sent();
    let second = client.with(|engine, cx| engine.release(SCOPE, hold, true, cx));
    client.with(|engine, cx| engine.abandon(first, cx));
    let sent = client.sent();
    assert!(sent.command().runs(&scripts::LOCK_RELEASE));
    assert_eq!(sent.command().owner(), abandoned.command().owner());
    client.confirm_release(&sent);
    assert_eq!(released(&mut client, second), Some(Released::Released));
}

#[test]
fn a_hold_is_forgotten_with_its_last_reference_but_not_during_its_release() {
    let mut client = Client::new();
    let hold = client.hold("job", None);
    let drop_reference = |client: &mut Client| {
        client.with(|engine, cx| engine.drop_reference(hold, cx));
    };
    client.release(hold);
    drop_reference(&mut client);
    assert!(client.engine.token(hold).is_some(), "its release is under way");
    let sent = client.sent();
    client.confirm_release(&sent);
    assert_eq!(client.engine.token(hold), None);
    let hold = client.hold("job", None);
    let keep = client.keep(hold);
    client.with(|engine, cx| engine.drop_reference(hold, cx));
    assert!(client.engine.token(hold).is_some(), "it is kept");
    client.with(|engine, cx| engine.abandon(keep, cx));
    assert_eq!(client.engine.token(hold), None);
}

#[test]
fn a_hold_that_redis_does_not_have_is_lost_from_then_on() {
    let mut client = Client::new();
    let hold = client.hold("job", None);
    let query = |client: &mut Client, count: u8| {
        let op = client.with(|engine, cx| engine.query_hold(SCOPE, hold, cx));
        let sent = client.sent();
        let code = i8::from(count > 0);
        client.respond(&sent, &sent.command().reply(code, &alloc::format!("5,{count},{count}"), 9));
        match client.engine.take_outcome(op) {
            Some(Outcome::IsHeld(is_held)) => is_held.unwrap(),
            other => panic!("{other:?}"),
        }
    };
    assert!(query(&mut client, 1));
    assert_eq!(state(&mut client, hold), LeaseState::Held);
    assert!(!query(&mut client, 0));
    assert_eq!(state(&mut client, hold), LeaseState::Lost(LossReason::Gone));
}

#[test]
fn a_renewal_on_demand_extends_a_hold_and_sends_nothing_after_its_end() {
    let mut client = Client::new();
    let hold = client.hold("job", None);
    let renew = |client: &mut Client| client.with(|engine, cx| engine.renew(SCOPE, hold, None, cx));
    client.pass(20);
    let op = renew(&mut client);
    let sent = client.sent();
    has_changed(&mut client, hold);
    client.respond(&sent, &sent.command().renewed());
    assert!(has_changed(&mut client, hold));
    assert!(matches!(client.engine.take_outcome(op), Some(Outcome::Renewed(Ok(())))));
    assert_eq!(state(&mut client, hold), LeaseState::Renewed);
    assert!(remaining(&mut client, hold) > Duration::from_secs(29));
    client.pass(30);
    let op = renew(&mut client);
    assert!(client.poll_sent().is_none());
    let lost = Err(RequestError::Lost(EXPIRED));
    match client.engine.take_outcome(op) {
        Some(Outcome::Renewed(outcome)) => assert_eq!(outcome, lost),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_writes_to_a_guarded_key_are_counted_and_run_one_after_the_other() {
    let mut client = Client::new();
    let hold = client.hold("job", None);
    let [a, b] = ["a", "b"].map(|key| GuardKey::parse(key).unwrap());
    let engine = &mut client.engine;
    assert_eq!(engine.begin_write(hold, &a), Some(1));
    assert_eq!(engine.begin_write(hold, &a), None, "another write to this key is under way");
    assert_eq!(engine.begin_write(hold, &b), Some(1), "each key has numbers of its own");
    engine.end_write(hold, &a);
    assert_eq!(engine.begin_write(hold, &b), None);
    assert_eq!(engine.begin_write(hold, &a), Some(2));
    engine.end_write(hold, &b);
    assert_eq!(engine.begin_write(hold, &a), None);
    assert_eq!(engine.begin_write(hold, &b), Some(2));
}

#[test]
fn a_hold_lasts_until_its_release_begins_or_its_lease_ends() {
    let mut client = Client::new();
    let [released, expired] = ["released", "expired"].map(|name| client.hold(name, None));
    let lasts = |client: &mut Client, hold| client.with(|engine, cx| engine.check_lasts(hold, cx));
    assert_eq!(lasts(&mut client, released), Ok(()));
    client.release(released);
    assert_eq!(lasts(&mut client, released), Err(LossReason::Gone));
    assert_eq!(lasts(&mut client, expired), Ok(()));
    client.now = client.now + Duration::from_secs(30);
    assert_eq!(lasts(&mut client, expired), Err(EXPIRED));
}

#[test]
fn a_hold_knows_the_tokens_of_its_names() {
    let mut client = Client::new();
    let hold = client.hold("job", None);
    let token = client.engine.token(hold).unwrap();
    assert_eq!(client.engine.token_of(hold, "job"), Some(token));
    assert_eq!(client.engine.token_of(hold, "other"), None);
    let (_, target, grant) = client.engine.first_counting_part(hold).unwrap();
    assert_eq!((target, grant.token), (&lock("job"), token));
    assert_eq!(client.engine.all_parts(hold).count(), 1);
    assert_eq!(target.name(), &LockName::parse("job").unwrap());
}

#[test]
fn a_hold_is_remembered_until_each_of_its_acquisitions_has_dropped_it() {
    let mut client = Client::new();
    let owner = client.engine.new_owner();
    let hold = client.hold("job", Some(owner));
    let second = client.acquire_for("job", Some(owner));
    assert_eq!(client.acquired(second), hold);
    client.with(|engine, cx| engine.drop_reference(hold, cx));
    assert!(client.engine.token(hold).is_some(), "the second acquisition refers to it");
    client.with(|engine, cx| engine.drop_reference(hold, cx));
    assert_eq!(client.engine.token(hold), None);
}

#[test]
fn a_hold_whose_leases_were_all_dropped_cannot_be_relied_on_or_shared() {
    let mut client = Client::new();
    let owner = client.engine.new_owner();
    let hold = client.hold("job", Some(owner));
    assert!(!client.engine.situation(hold).unwrap().is_over());
    client.with(|engine, cx| engine.drop_lease(hold, cx));
    assert_eq!(remaining(&mut client, hold), Duration::ZERO);
    assert!(!client.engine.situation(hold).unwrap().is_over(), "Redis may still have it");
    assert_ne!(client.hold("job", Some(owner)), hold, "the next acquisition is a new one");
    let keep = client.keep(hold);
    assert!(client.sent_within(Duration::from_secs(60)).is_none(), "no renewal");
    assert_eq!(end(&mut client, keep), Some(LeaseEnd::Lost(EXPIRED)));
}
