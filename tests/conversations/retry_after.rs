//! How long machines wait after a gateway's reply with `Retry-After`.

use std::time::Duration;

use edgelatch_proto::error::{AcquireError, FailureKind, LossReason};
use edgelatch_proto::machine::{LeaseState, TimeoutReason};
use edgelatch_proto::protocol::reply::Code;
use edgelatch_proto::timing::{LeaseTime, WaitPolicy};

use crate::language::*;

const ACQUIRE: &str = "lock_acquire";
const RELEASE: &str = "lock_release";
const RENEW: &str = "lock_renew";

/// The failure of a call that a gateway rejects for a `Retry-After` of `seconds`.
fn rejected(seconds: u64) -> FailureKind {
    let retry_after = Some(Duration::from_secs(seconds));
    FailureKind::Gateway { status: 429, retry_after }
}

/// The longest `Retry-After`, in seconds.
const FOREVER: u64 = u64::MAX;

/// S47.
#[test]
fn a_wait_obeys_the_retry_after_of_a_gateway() {
    let it = acquire(up_to(30_000)).expect_call(ACQUIRE).fail(rejected(5));
    let it = it.expect_timeout_in(TimeoutReason::RetryAfter, 5_000).advance_to_timeout();
    // With `Retry-After: 0` the machine uses its usual back-off.
    let it = it.expect_call(ACQUIRE).fail(rejected(0));
    it.expect_timeout_within(TimeoutReason::BackOff, ..=100);

    let it = latch_wait(30_000, None).expect_call("latch_inspect").fail(rejected(5));
    it.expect_timeout_in(TimeoutReason::RetryAfter, 5_000);
}

/// S47.
#[test]
fn a_wait_for_several_parts_obeys_the_retry_after_of_the_refused_one() {
    let it = multi_lock(2, up_to(30_000)).expect_calls(&[(0, ACQUIRE), (1, ACQUIRE)]);
    let it = it.fail_from(0, rejected(7)).fail_from(1, rejected(9));
    // Both calls may have been granted all the same.
    let it = it.expect_calls(&[(0, RELEASE), (1, RELEASE)]);
    let it = it.reply_from(0, Code::Done).reply_from(1, Code::Done);
    it.expect_timeout_in(TimeoutReason::RetryAfter, 7_000);
}

/// S47.
#[test]
fn a_wait_that_ends_before_the_retry_after_has_its_last_try_at_its_end() {
    let it = acquire(up_to(3_000)).expect_call(ACQUIRE).fail(rejected(FOREVER));
    let it = it.expect_timeout_in(TimeoutReason::RetryAfter, 3_000).advance_to_timeout();
    assert!(it.expect_call(ACQUIRE).reply(granted(TOKEN)).expect_done().is_ok());
}

/// S47.
#[test]
fn an_endless_wait_retries_at_least_once_a_minute() {
    let mut it = acquire(WaitPolicy::UntilCancelled);
    for _ in 0..3 {
        it = it.expect_call(ACQUIRE).fail(rejected(FOREVER));
        it = it.expect_timeout_in(TimeoutReason::RetryAfter, 60_000).advance_to_timeout();
    }
}

/// S47.
#[test]
fn no_message_shortens_a_retry_after() {
    let it = acquire(up_to(30_000)).expect_call(ACQUIRE).reply(busy(20_000));
    let it = it.advance_to_timeout().expect_call(ACQUIRE).fail(rejected(5));
    let it = it.confirm_subscription().expect_timeout_in(TimeoutReason::RetryAfter, 5_000);
    let it = it.notify().expect_timeout_in(TimeoutReason::RetryAfter, 5_000);
    let it = it.end_subscription().expect_timeout_in(TimeoutReason::RetryAfter, 5_000);
    it.cancel().expect_call(RELEASE);
}

/// S47.
#[test]
fn a_retry_outside_a_wait_obeys_retry_after_for_one_attempt_s_time_at_most() {
    let mut it = acquire(WaitPolicy::Once);
    for _ in 0..2 {
        it = it.expect_call(ACQUIRE).fail(rejected(FOREVER));
        it = it.expect_timeout_in(TimeoutReason::BackOff, ATTEMPT_MS).advance_to_timeout();
    }
    let it = it.expect_call(ACQUIRE).fail(rejected(FOREVER)).expect_call(RELEASE);
    let outcome = it.reply(Code::Done).expect_done();
    assert_eq!(outcome, Err(AcquireError::Unreachable(rejected(FOREVER))));

    let it = Conversation::new(release_machine(LeaseTime::DEFAULT)).expect_call(RELEASE);
    it.fail(rejected(FOREVER)).expect_timeout_in(TimeoutReason::BackOff, ATTEMPT_MS);
}

/// S47.
#[test]
fn a_renewal_is_retried_after_half_of_the_remaining_time() {
    let it = renewal().advance_to_timeout().expect_call(RENEW).fail(rejected(5));
    let mut it = it.expect_timeout_in(TimeoutReason::RenewalDue, 5_000).advance_to_timeout();
    let mut renewals = 0;
    while it.machine().state() != LeaseState::Lost(LossReason::Expired) {
        let left = it.machine().lease().remaining(it.now());
        it = it.expect_call(RENEW).fail(rejected(FOREVER));
        renewals += 1;
        // Near the end of the lease the usual pause of up to 2 s is longer than half of the rest.
        assert!(ms(it.timeout_ms()) <= (left / 2).max(ms(2_000)), "{left:?}");
        it = it.advance_to_timeout();
    }
    assert!(renewals > 4, "{renewals}");
    assert_eq!(it.expect_done(), Some(LossReason::Expired));
}
