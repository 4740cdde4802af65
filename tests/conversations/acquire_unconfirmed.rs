//! Acquisitions whose reply is lost, or comes after the machine has stopped waiting for it.

use edgelatch_proto::error::{AcquireError, FailureKind};
use edgelatch_proto::machine::{Machine as _, TimeoutReason};
use edgelatch_proto::protocol::reply::Code;
use edgelatch_proto::timing::WaitPolicy;

use crate::language::*;

const ACQUIRE: &str = "lock_acquire";
const RELEASE: &str = "lock_release";

/// S1.
#[test]
fn an_attempt_without_a_reply_is_repeated_for_the_same_owner() {
    let it = acquire(WaitPolicy::Once).expect_call(ACQUIRE).fail(FailureKind::Broken);
    let it = it.expect_timeout(TimeoutReason::BackOff).advance_to_timeout();
    let it = it.expect_call(ACQUIRE).advance(5).reply(already_yours(TOKEN).with_ms(29_000));
    let lease = it.expect_done().unwrap().lease;
    let [first, second] = it.calls() else { panic!("two calls") };
    assert_eq!(first.script.keys(), second.script.keys());
    assert_eq!(first.script.args()[1..], second.script.args()[1..]);
    assert_eq!(lease.remaining(it.now()), ms(TRUSTED_MS - 5), "from the attempt with the reply");
}

/// A gateway may return the reply to the first attempt for the second; that must not lengthen the
/// lease.
#[test]
fn each_attempt_has_a_request_id_of_its_own() {
    let it = acquire(WaitPolicy::Once).expect_call(ACQUIRE).fail(FailureKind::TimedOut);
    let it = it.advance_to_timeout().expect_call(ACQUIRE);
    let [first, second] = it.calls() else { panic!("two calls") };
    assert_ne!(first.script.request, second.script.request);
    assert_ne!(first.arg(REQUEST_ID), second.arg(REQUEST_ID));
}

#[test]
fn a_hanging_gateway_is_retried_after_the_attempt_s_time() {
    let it = acquire(WaitPolicy::Once).expect_call(ACQUIRE);
    let it = it.expect_timeout_in(TimeoutReason::ReplyDue, ATTEMPT_MS).advance_to_timeout();
    it.expect_timeout(TimeoutReason::BackOff);
}

#[test]
fn a_try_that_fails_at_the_end_of_the_wait_is_followed_by_a_last_try_of_one_attempt() {
    let timed_out = || acquire(up_to(3_000)).expect_call(ACQUIRE).advance_to_timeout();
    let broken = || {
        let it = acquire(up_to(3_000)).expect_call(ACQUIRE).advance(3_000);
        it.fail(FailureKind::Broken)
    };
    for failed in [timed_out, broken] {
        let it = failed().expect_call(ACQUIRE);
        assert_eq!((it.elapsed_ms(), it.arg(LAST_TRY)), (3_000, "1"));
        assert_eq!(it.arg(OWNER), it.calls()[0].arg(OWNER));
        // A last try that is refused has written the tombstone.
        let outcome = it.reply(busy(7_000)).expect_done();
        assert_eq!(outcome, Err(AcquireError::Busy { remaining: Some(ms(7_000)) }));
        let it = failed().expect_call(ACQUIRE).advance_to_timeout();
        let outcome = it.expect_call(RELEASE).reply(Code::No).expect_done();
        assert_eq!(outcome, Err(AcquireError::Unreachable(FailureKind::TimedOut)));
    }
}

/// S79.
#[test]
fn an_unanswered_acquisition_is_undone_before_it_is_reported() {
    let it = acquire(WaitPolicy::Once).fail_attempts(ACQUIRE, 2, FailureKind::Broken);
    let it = it.advance_to_timeout().expect_call(ACQUIRE).fail(FailureKind::TimedOut);
    let it = it.expect_call(RELEASE).reply(Code::No);
    let outcome = it.expect_done();
    assert_eq!(it.arg(OWNER), it.calls()[0].arg(OWNER));
    assert_eq!(it.arg(NOT_AFTER), it.calls()[0].arg(NOT_AFTER));
    assert_eq!(outcome, Err(AcquireError::Unreachable(FailureKind::TimedOut)));
}

/// S2.
#[test]
fn an_acquisition_that_cannot_be_undone_is_unknown_and_reports_held_at_most() {
    let it = acquire(WaitPolicy::Once).fail_attempts(ACQUIRE, 3, FailureKind::Broken);
    let it = it.fail_attempts(RELEASE, 3, FailureKind::Broken);
    let held_at_most = held_at_most(HORIZON_MS + LEASE_MS, ms(it.elapsed_ms()));
    let unknown = AcquireError::Unknown { held_at_most, cause: FailureKind::Broken };
    assert_eq!(it.expect_done(), Err(unknown));
}

#[test]
fn a_request_that_was_never_sent_needs_no_undo() {
    let it = acquire(WaitPolicy::Once).fail_attempts(ACQUIRE, 3, FailureKind::NotSent);
    assert_eq!(it.expect_done(), Err(AcquireError::Unreachable(FailureKind::NotSent)));
}

#[test]
fn a_hold_lost_before_its_grant_was_confirmed_is_released_and_acquired_again() {
    let it = acquire(up_to(30_000)).expect_call(ACQUIRE).fail(FailureKind::Broken);
    let it = it.advance_to_timeout().expect_call(ACQUIRE);
    let it = it.reply(ScriptReply::new(Code::Lost, TOKEN, 0));
    let it = it.expect_call(RELEASE).reply(Code::No).expect_call(ACQUIRE).reply(granted(TOKEN));
    it.expect_done().unwrap();
    assert!(it.arg(OWNER).ends_with(":2"), "the second owner of the machine");
}

#[test]
fn a_repeated_last_try_whose_owner_has_ended_was_refused_the_first_time() {
    let it = acquire(WaitPolicy::Once).expect_call(ACQUIRE).fail(FailureKind::Broken);
    let it = it.advance_to_timeout().expect_call(ACQUIRE).reply(Code::Gone);
    assert_eq!(it.expect_done(), Err(AcquireError::Busy { remaining: None }));
    assert_eq!(it.calls().len(), 2, "the tombstone is there, so nothing is left to undo");
}

/// S8.
#[test]
fn a_late_reply_to_an_earlier_attempt_changes_nothing() {
    let it = acquire(up_to(60_000)).expect_call(ACQUIRE);
    let first = it.newest_call().clone();
    let it = it.fail(FailureKind::Broken).advance_to_timeout().expect_call(ACQUIRE);
    let it = it.reply_to(&first, granted(42)).expect_timeout(TimeoutReason::ReplyDue);
    assert_eq!(it.reply(already_yours(42)).expect_done().unwrap().token.as_u64(), 42);
}

/// S19.
#[test]
fn a_reply_after_the_timeout_of_its_attempt_changes_nothing() {
    let it = acquire(up_to(60_000)).expect_call(ACQUIRE).advance_to_timeout();
    let it = it
        .expect_timeout(TimeoutReason::BackOff)
        .reply(granted(42))
        .expect_timeout(TimeoutReason::BackOff);
    let it = it.advance_to_timeout().expect_call(ACQUIRE);
    assert!(it.reply(already_yours(42)).expect_done().is_ok());
}

#[test]
fn a_reply_to_the_call_of_another_machine_changes_nothing() {
    // The machine has not been polled, so it has made no call.
    let other = Conversation::new(inspect_machine());
    let reply = other.newest_call().reply(granted(TOKEN), SERVER_START);
    let mut machine = acquire_machine(acquire_spec(WaitPolicy::Once));
    machine.handle(reply, START);
    Conversation::new(machine).expect_call(ACQUIRE).expect_timeout(TimeoutReason::ReplyDue);
}
