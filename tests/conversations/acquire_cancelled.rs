//! Cancelling an acquisition at each of its stages.

use edgelatch_proto::error::{AcquireError, FailureKind};
use edgelatch_proto::machine::{Input, Machine as _};
use edgelatch_proto::protocol::reply::Code;
use edgelatch_proto::timing::WaitPolicy;

use crate::language::*;

const ACQUIRE: &str = "lock_acquire";
const RELEASE: &str = "lock_release";
const CANCELLED: AcquireError = AcquireError::Cancelled { held_at_most: None };

/// S59.
#[test]
fn an_acquisition_cancelled_before_its_first_call_sends_nothing() {
    let mut machine = acquire_machine(acquire_spec(WaitPolicy::UntilCancelled));
    machine.handle(Input::Cancelled, START);
    assert_eq!(Conversation::new(machine).expect_done(), Err(CANCELLED));
}

/// S59.
#[test]
fn an_acquisition_cancelled_during_a_call_is_undone() {
    let it = acquire(up_to(30_000)).expect_call(ACQUIRE).cancel().expect_call(RELEASE);
    assert_eq!(it.reply(Code::No).expect_done(), Err(CANCELLED));
}

/// S59, S81.
#[test]
fn a_grant_after_the_cancellation_is_undone() {
    let it = acquire(up_to(30_000)).expect_call(ACQUIRE);
    let acquisition = it.newest_call().clone();
    let it = it.cancel().reply_to(&acquisition, granted(TOKEN)).expect_call(RELEASE);
    assert_eq!(it.reply(Code::Done).expect_done(), Err(CANCELLED));
}

/// S8.
#[test]
fn a_cancellation_between_two_tries_releases_so_that_no_copy_is_granted() {
    let it = acquire(up_to(30_000)).expect_call(ACQUIRE).reply(busy(20_000)).cancel();
    assert_eq!(it.expect_call(RELEASE).reply(Code::No).expect_done(), Err(CANCELLED));
}

#[test]
fn a_cancellation_while_redis_is_loading_releases_so_that_no_copy_is_granted() {
    let it = acquire(up_to(30_000)).expect_call(ACQUIRE);
    let it = it.refuse("LOADING Redis is loading the dataset in memory").cancel();
    assert_eq!(it.expect_call(RELEASE).reply(Code::No).expect_done(), Err(CANCELLED));
}

/// S59.
#[test]
fn a_cancellation_during_an_undo_does_not_restart_it() {
    let it = acquire(up_to(30_000)).expect_call(ACQUIRE);
    let it = it.reply(ScriptReply::new(Code::Lost, TOKEN, 0)).expect_call(RELEASE).cancel();
    let it = it.fail(FailureKind::Broken).advance_to_timeout().expect_call(RELEASE);
    assert_eq!(it.reply(Code::No).expect_done(), Err(CANCELLED));
}

/// S59.
#[test]
fn an_unconfirmed_undo_reports_how_long_a_hold_may_exist() {
    let it = acquire(up_to(30_000)).expect_call(ACQUIRE).cancel();
    let it = it.fail_attempts(RELEASE, 3, FailureKind::TimedOut);
    let held_at_most = Some(held_at_most(30_000 + HORIZON_MS + LEASE_MS, ms(it.elapsed_ms())));
    assert_eq!(it.expect_done(), Err(AcquireError::Cancelled { held_at_most }));
}

/// S81.
#[test]
fn a_cancellation_after_the_end_changes_nothing() {
    let it = acquire(WaitPolicy::Once).expect_call(ACQUIRE).reply(granted(TOKEN)).cancel();
    it.expect_done().unwrap();
}
