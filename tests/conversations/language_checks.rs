//! Checks of the language itself: an unmet expectation fails, and prints the machine's timeout and
//! its calls.

use edgelatch_proto::machine::TimeoutReason;
use edgelatch_proto::timing::WaitPolicy;

use crate::language::*;

const ACQUIRE: &str = "lock_acquire";

#[test]
#[should_panic(expected = "waits for ReplyDue in 5000 ms; elapsed: 0 ms; expected calls: []; \
                           new calls: [lock_acquire@0]")]
fn a_call_of_another_script_fails_the_expectation() {
    acquire(WaitPolicy::Once).expect_call("lock_release");
}

#[test]
#[should_panic(expected = "expected calls: [lock_acquire@0]; new calls: []")]
fn one_call_does_not_meet_two_expectations() {
    acquire(WaitPolicy::Once).expect_call(ACQUIRE).expect_call(ACQUIRE);
}

#[test]
#[should_panic(expected = "it awaits no reply: the machine waits for BackOff")]
fn a_call_whose_reply_is_not_awaited_fails_the_expectation() {
    // The refused call was made, but the machine waits for its next try.
    multi_lock(1, up_to(60_000)).refuse("LOADING soon").expect_call(ACQUIRE);
}

#[test]
#[should_panic(expected = "unexpected calls: the machine waits for ReplyDue")]
fn a_timeout_after_an_unexpected_call_fails_the_expectation() {
    acquire(WaitPolicy::Once).expect_timeout(TimeoutReason::ReplyDue);
}

#[test]
#[should_panic(expected = "Some(ReplyDue)")]
fn another_timeout_fails_the_expectation() {
    acquire(WaitPolicy::Once).expect_call(ACQUIRE).expect_timeout(TimeoutReason::BackOff);
}

#[test]
#[should_panic(expected = "not within 0..=4999: the machine waits for ReplyDue in 5000 ms")]
fn a_timeout_out_of_its_range_fails_the_expectation() {
    let it = acquire(WaitPolicy::Once).expect_call(ACQUIRE);
    it.expect_timeout_within(TimeoutReason::ReplyDue, 0..=4_999);
}

#[test]
#[should_panic(expected = "the machine waits for ReplyDue")]
fn an_outcome_before_the_end_fails_the_expectation() {
    let _ = acquire(WaitPolicy::Once).expect_call(ACQUIRE).expect_done();
}

#[test]
#[should_panic(expected = "has requested redisson_lock__channel:{invoice:42} of gateway 0")]
fn a_subscription_to_another_channel_fails_the_expectation() {
    let it = acquire(up_to(30_000)).expect_call(ACQUIRE).reply(busy(20_000));
    it.expect_subscription_request(0, "redisson_lock__channel:{other}");
}
