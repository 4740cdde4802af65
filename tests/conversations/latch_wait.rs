//! Waiting until a count-down latch opens.

use edgelatch_proto::error::{AcquireError, FailureKind, RefusalKind};
use edgelatch_proto::machine::{AwaitLatch, TimeoutReason};
use edgelatch_proto::protocol::reply::Code;

use crate::language::*;

const INSPECT: &str = "latch_inspect";
// The replies of `latch_inspect.lua`.
const CLOSED: Code = Code::Done;
const OPEN: Code = Code::No;

/// Advances to the last query; every reply before it says that the latch is closed.
fn last_query(wait_ms: u64) -> Conversation<AwaitLatch> {
    let mut it = latch_wait(wait_ms, None).expect_call(INSPECT);
    for _ in 0..1_000 {
        it = it.reply(CLOSED).advance_to_timeout().expect_call(INSPECT);
        if it.elapsed_ms() == wait_ms {
            return it;
        }
    }
    panic!("the machine {it}");
}

/// A waiter whose subscription was confirmed after one reply that the latch is closed.
fn subscribed(wait_ms: u64, queries: Option<u32>) -> Conversation<AwaitLatch> {
    let it = latch_wait(wait_ms, queries).expect_call(INSPECT).reply(CLOSED);
    it.confirm_subscription()
}

#[test]
fn a_wait_ends_with_the_result_of_its_last_query() {
    let closed = last_query(20_000).reply(CLOSED).expect_done();
    assert_eq!(closed, Err(AcquireError::Busy { remaining: None }));
    assert_eq!(last_query(20_000).reply(OPEN).expect_done(), Ok(()));
}

#[test]
fn the_last_query_has_three_attempts_and_the_others_one() {
    let fail = |it: Conversation<AwaitLatch>| it.fail(FailureKind::Broken);
    let fail_and_repeat = |it| {
        fail(it).expect_timeout(TimeoutReason::BackOff).advance_to_timeout().expect_call(INSPECT)
    };
    let it = fail(fail_and_repeat(fail_and_repeat(last_query(20_000))));
    assert_eq!(it.expect_done(), Err(AcquireError::Unreachable(FailureKind::Broken)));
    // A budget may end before the wait. Each query before the last one has a single attempt.
    let mut it = fail(latch_wait(60_000, Some(4)).expect_call(INSPECT));
    for _ in 0..2 {
        it = fail(it.advance_to_timeout().expect_call(INSPECT));
    }
    let it = it.expect_timeout(TimeoutReason::LastTry).advance_to_timeout().expect_call(INSPECT);
    let it = fail_and_repeat(fail_and_repeat(it));
    assert_eq!(it.reply(OPEN).expect_done(), Ok(()));
}

#[test]
fn a_budget_lasts_for_the_whole_wait() {
    let mut it = latch_wait(60_000, Some(20)).expect_call(INSPECT).reply(CLOSED);
    for _ in 0..18 {
        it = it.advance_to_timeout().expect_call(INSPECT).reply(CLOSED);
    }
    // The pauses spread the queries so that the last one is due when the wait is over.
    assert!((45_000..60_000).contains(&it.elapsed_ms()), "{}", it.elapsed_ms());
    assert_eq!(it.advance_to_timeout().expect_call(INSPECT).elapsed_ms(), 60_000);
}

#[test]
fn a_permanent_refusal_ends_the_wait_and_a_temporary_one_does_not() {
    let refused = |it: Conversation<AwaitLatch>| match it.expect_done() {
        Err(AcquireError::Refused(refusal)) => refusal.kind(),
        other => panic!("not refused: {other:?}"),
    };
    let it = latch_wait(20_000, None).expect_call(INSPECT).refuse("WRONGPASS no");
    assert_eq!(refused(it), RefusalKind::Unauthorized);
    let it = latch_wait(20_000, None).expect_call(INSPECT).refuse("LOADING not yet");
    let it = it.expect_timeout(TimeoutReason::BackOff).advance_to_timeout().expect_call(INSPECT);
    assert_eq!(it.reply(OPEN).expect_done(), Ok(()));
    // The refusal of the last query is the outcome.
    let mut it = last_query(20_000).refuse("LOADING not yet");
    for _ in 0..2 {
        it = it.advance_to_timeout().expect_call(INSPECT).refuse("LOADING not yet");
    }
    assert_eq!(refused(it), RefusalKind::Unavailable);
}

#[test]
fn a_cancelled_wait_is_done_at_once() {
    let cancelled = Err(AcquireError::Cancelled { held_at_most: None });
    let it = latch_wait(20_000, None).expect_call(INSPECT);
    assert_eq!(it.cancel().expect_done(), cancelled);
    let it = latch_wait(20_000, None).expect_call(INSPECT).reply(CLOSED);
    assert_eq!(it.cancel().expect_done(), cancelled);
}

#[test]
fn a_waiter_for_a_latch_subscribes_and_follows_notifications() {
    let it = latch_wait(60_000, None).expect_call(INSPECT).reply(CLOSED);
    let it = it.expect_subscription_request(0, "redisson_countdownlatch__channel__{job}");
    let it = it.confirm_subscription().expect_call(INSPECT).reply(CLOSED);
    let it = it.expect_timeout(TimeoutReason::Silence).notify().expect_call(INSPECT);
    assert_eq!(it.reply(OPEN).expect_done(), Ok(()));
    // The last query stays at the end of the wait.
    let it = subscribed(60_000, Some(3)).expect_call(INSPECT).reply(CLOSED);
    it.notify().expect_timeout_in(TimeoutReason::LastTry, 60_000);
}

#[test]
fn a_short_wait_for_a_latch_follows_notifications() {
    // These waits are shorter than the time for which a waiter trusts a silent subscription.
    for wait_ms in [500, 7_000] {
        let it = subscribed(wait_ms, None).expect_call(INSPECT).reply(CLOSED);
        let it = it.expect_timeout(TimeoutReason::WaitOver).notify().expect_call(INSPECT);
        assert_eq!(it.reply(OPEN).expect_done(), Ok(()));
    }
}

/// S75.
#[test]
fn notifications_cause_a_limited_rate_of_queries() {
    let mut it = subscribed(60_000, None).expect_call(INSPECT).reply(CLOSED);
    // A burst of 20, and then one query per 50 ms.
    for _ in 0..20 {
        it = it.notify().expect_call(INSPECT).reply(CLOSED);
    }
    let it = it.notify().expect_timeout_in(TimeoutReason::Notification, 50).advance_to_timeout();
    it.expect_call(INSPECT).reply(OPEN).expect_done().unwrap();
}
