//! How the waiter of one lock uses its subscription and the messages.

use std::ops::RangeInclusive;
use std::time::Duration;

use edgelatch_proto::error::FailureKind;
use edgelatch_proto::machine::{Acquire, AcquireSpec, Pacing, SpinBackoff, TimeoutReason};
use edgelatch_proto::protocol::calls::{LockCalls, Member, Target};
use edgelatch_proto::protocol::reply::Code;
use edgelatch_proto::protocol::script::Publish;

use crate::language::*;

const CHANNEL: &str = "redisson_lock__channel:{job}";
const ACQUIRE: &str = "lock_acquire";
/// How long a waiter trusts a silent subscription, in milliseconds.
const SILENCE_MS: RangeInclusive<u64> = 7_500..=10_000;

fn job_spec(wait_ms: u64) -> AcquireSpec {
    AcquireSpec::new(lock("job"), up_to(wait_ms))
}

/// A waiter that was refused once and is not subscribed yet.
fn refused(wait_ms: u64) -> Conversation<Acquire> {
    acquire_with(job_spec(wait_ms)).expect_call(ACQUIRE).reply(busy(50_000))
}

/// A waiter whose subscription was confirmed; it has retried and waits for the reply.
fn subscribed(wait_ms: u64) -> Conversation<Acquire> {
    refused(wait_ms).confirm_subscription().expect_call(ACQUIRE)
}

/// A subscribed waiter, refused again 10 ms after its retry.
fn waiting() -> Conversation<Acquire> {
    subscribed(60_000).advance(10).reply(busy(50_000)).expect_timeout(TimeoutReason::Silence)
}

/// S72, S74, S75.
#[test]
fn a_refused_waiter_subscribes_and_polls_until_its_subscription_is_confirmed() {
    let it = refused(60_000).expect_subscription_request(0, CHANNEL);
    let it = it.expect_timeout_within(TimeoutReason::BackOff, ..=50);
    // The waiter may have missed messages before the confirmation.
    let it = it.confirm_subscription().expect_call(ACQUIRE).reply(busy(50_000));
    let it = it.expect_timeout_within(TimeoutReason::Silence, SILENCE_MS);
    let it = it.notify().expect_call(ACQUIRE).reply(busy(3_000));
    let it = it.expect_timeout_in(TimeoutReason::HolderExpires, 3_001).advance_to_timeout();
    let it = it.expect_call(ACQUIRE).reply(busy(50_000)).expect_timeout(TimeoutReason::Silence);
    assert!(it.notify().expect_call(ACQUIRE).reply(granted(5)).expect_done().is_ok());
}

/// S76.
#[test]
fn a_message_during_a_try_is_followed_by_another_try() {
    let it = subscribed(60_000).notify().notify().reply(busy(50_000)).advance_to_timeout();
    let it = it.expect_call(ACQUIRE).reply(busy(50_000));
    it.expect_timeout_within(TimeoutReason::Silence, SILENCE_MS);
}

#[test]
fn a_short_wait_for_a_lock_follows_notifications() {
    // These waits are shorter than the time for which a waiter trusts a silent subscription.
    for wait_ms in [500, 7_000] {
        let waiting =
            || subscribed(wait_ms).reply(busy(50_000)).expect_timeout(TimeoutReason::WaitOver);
        let it = waiting().notify().expect_call(ACQUIRE).reply(granted(5));
        assert!(it.expect_done().is_ok());
        waiting().notify_within(5).expect_timeout_within(TimeoutReason::Notification, ..=5);
        let it = waiting().notify_acquired(Some(ms(200)));
        it.expect_timeout_in(TimeoutReason::HolderExpires, 201);
        waiting().end_subscription().expect_timeout_within(TimeoutReason::BackOff, ..=100);
    }
}

/// S27.
#[test]
fn a_waiter_whose_subscription_ends_polls_with_back_off() {
    let it = subscribed(60_000).reply(busy(50_000)).expect_timeout(TimeoutReason::Silence);
    let it = it.end_subscription().expect_timeout_within(TimeoutReason::BackOff, ..=2_000);
    // A second end changes nothing.
    let pause = it.timeout_ms();
    let it = it.end_subscription().expect_timeout_in(TimeoutReason::BackOff, pause);
    let it = it.advance_to_timeout().expect_call(ACQUIRE).reply(busy(50_000));
    it.expect_timeout(TimeoutReason::BackOff);
}

#[test]
fn a_waiter_for_the_end_of_a_lease_polls_when_its_subscription_ends() {
    let it = subscribed(60_000).reply(busy(3_000)).expect_timeout(TimeoutReason::HolderExpires);
    let it = it.end_subscription().expect_timeout_within(TimeoutReason::BackOff, ..=100);
    // A second end changes nothing.
    let pause = it.timeout_ms();
    it.end_subscription().expect_timeout_in(TimeoutReason::BackOff, pause);
}

#[test]
fn a_waiter_that_joins_a_subscription_makes_no_call() {
    let it = refused(60_000).expect_timeout(TimeoutReason::BackOff).advance_and_wake(5);
    it.join_subscription().expect_timeout_within(TimeoutReason::Silence, SILENCE_MS);
    let it = acquire_with(job_spec(60_000)).expect_call(ACQUIRE).reply(busy(3_000));
    let it = it.expect_timeout(TimeoutReason::BackOff).advance_and_wake(5);
    // The refusal reported 3,000 ms, 5 ms ago; Redis counts in whole milliseconds.
    let it = it.join_subscription().expect_timeout_in(TimeoutReason::HolderExpires, 3_001 - 5);
    // Joining again changes nothing.
    let it = it.join_subscription().expect_timeout(TimeoutReason::HolderExpires);
    it.notify().expect_call(ACQUIRE);
}

#[test]
fn a_woken_waiter_retries_at_a_random_time() {
    for ms in [1, 20, 500] {
        let it =
            waiting().notify_within(ms).expect_timeout_within(TimeoutReason::Notification, ..=ms);
        let pause = it.timeout_ms();
        // A second message does not change the time of the retry.
        let it = it.notify_within(ms).expect_timeout_in(TimeoutReason::Notification, pause);
        it.advance_to_timeout().expect_call(ACQUIRE);
    }
    // A waiter without competitors retries at once.
    assert_eq!(waiting().notify().expect_call(ACQUIRE).elapsed_ms(), 10);
}

/// S75.
#[test]
fn a_woken_waiter_skips_its_retry_when_another_client_acquires() {
    let it = waiting().notify_within(180).expect_timeout(TimeoutReason::Notification);
    let it = it.notify_acquired(Some(Duration::from_secs(3)));
    // The waiter waits for the end of the new lease.
    let it = it.expect_timeout_in(TimeoutReason::HolderExpires, 3_001);
    // It skips the retry after a second message too. The second lease outlasts the silence timeout.
    let it = it.notify_within(180).notify_acquired(Some(Duration::from_secs(600)));
    // After a message without competitors the waiter retries at once.
    it.expect_timeout(TimeoutReason::Silence).notify().expect_call(ACQUIRE);
}

/// S75.
#[test]
fn a_flood_of_messages_causes_a_limited_rate_of_retries() {
    let mut it = waiting();
    let (begun, before) = (it.elapsed_ms(), it.calls().len());
    while it.elapsed_ms() < begun + 10_000 {
        it = it.notify().advance_and_wake(1);
        if it.has_new_calls() {
            it = it.expect_call(ACQUIRE).reply(busy(50_000));
        }
    }
    let tries = it.calls().len() - before;
    // One retry per 50 ms, and a burst of 20.
    assert!((200..=221).contains(&tries), "{tries}");
    // After two seconds without a message the waiter retries at once.
    it.advance_and_wake(2_000).notify().expect_call(ACQUIRE);
    // Messages that cause no retry, because another client's grant follows, do not count.
    let mut it = waiting();
    for _ in 0..100 {
        it = it.notify_within(5).notify_acquired(None);
    }
    it.notify().expect_call(ACQUIRE);
}

#[test]
fn a_grant_to_another_client_during_a_try_causes_no_further_try() {
    let it = waiting().notify().expect_call(ACQUIRE);
    let it = it.notify_within(60).notify_acquired(Some(Duration::from_secs(600)));
    it.reply(busy(50_000)).expect_timeout(TimeoutReason::Silence);
    let it = waiting().notify().expect_call(ACQUIRE).notify_within(60);
    it.reply(busy(50_000)).expect_timeout(TimeoutReason::Notification);
}

#[test]
fn a_scheduled_retry_outlives_the_subscription_but_not_the_wait() {
    let it = waiting().notify_within(180).expect_timeout(TimeoutReason::Notification);
    let pause = it.timeout_ms();
    let it = it
        .end_subscription()
        .expect_timeout_in(TimeoutReason::Notification, pause)
        .advance_to_timeout();
    it.expect_call(ACQUIRE).reply(busy(50_000)).expect_timeout(TimeoutReason::BackOff);
    let it =
        subscribed(1_000).advance(998).reply(busy(50_000)).expect_timeout(TimeoutReason::WaitOver);
    it.notify_within(18_000).expect_timeout_in(TimeoutReason::Notification, 2);
}

#[test]
fn a_waiter_that_keeps_polling_ignores_the_grants_of_other_clients() {
    let it = refused(60_000).expect_timeout(TimeoutReason::BackOff);
    let pause = it.timeout_ms();
    it.notify_acquired(Some(ms(1))).expect_timeout_in(TimeoutReason::BackOff, pause);
}

#[test]
fn a_grant_is_published_for_other_clients_once_its_client_has_waited() {
    let it = acquire_with(job_spec(60_000)).expect_call(ACQUIRE);
    assert_eq!(it.arg(GRANT_CHANNEL), "", "no waiter is known");
    let it = it.reply(busy(3_000)).advance_to_timeout().expect_call(ACQUIRE);
    assert_eq!(it.arg(GRANT_CHANNEL), CHANNEL);
    // The optional arguments before the channel have no effect: `x` is a token key that expires.
    assert_eq!(it.arg(TOKEN_RETENTION_PER_LOCK), "x");
    assert_eq!((it.arg(PROPOSED_TOKEN), it.arg(MIN_UPTIME_TO_VOTE)), ("", ""));
}

#[test]
fn a_failing_gateway_is_retried_soon_despite_the_subscription() {
    let it = subscribed(60_000).fail(FailureKind::Broken);
    it.expect_timeout_within(TimeoutReason::BackOff, ..=2_000);
}

#[test]
fn the_last_try_stays_at_the_end_of_the_wait() {
    let it = acquire_with(AcquireSpec { budget: budget(3), ..job_spec(20_000) });
    let it = it.expect_call(ACQUIRE).reply(busy(50_000)).expect_timeout(TimeoutReason::LastTry);
    let it = it.confirm_subscription().notify().expect_timeout_in(TimeoutReason::LastTry, 20_000);
    let it = it.advance_to_timeout().expect_call(ACQUIRE);
    assert_eq!(it.arg(LAST_TRY), "1");
}

#[test]
fn an_acquisition_of_several_locks_subscribes_to_the_refused_one() {
    let member = |name: &str| Member { name: lock_name(name), fenced: false };
    let several = LockCalls::of_several(member("{t}a"), vec![member("{t}b")], Publish::Plain);
    let refused_lock = |number: u8| ScriptReply::new(Code::No, number, 9_000);
    let it = acquire_with(AcquireSpec::new(Target::Lock(several), up_to(60_000)));
    let it = it.expect_call(ACQUIRE).reply(refused_lock(2));
    let it = it.expect_subscription_request(0, "redisson_lock__channel:{t}b");
    let it = it.advance_to_timeout().expect_call(ACQUIRE).reply(refused_lock(1));
    it.expect_subscription_request(0, "redisson_lock__channel:{t}a");
}

#[test]
fn a_fair_waiter_polls_as_often_as_its_queue_requires() {
    // The head of the queue must retry within 3 s. The third number of the reply is optional.
    let head = || ScriptReply::new(Code::No, "0,3000", 50_000);
    let it = acquire_with(AcquireSpec::new(fair_lock("job"), up_to(60_000)));
    let it = it.expect_call("fair_acquire").reply(head());
    // Without a subscription the head backs off as a waiter without a queue does.
    let it = it.expect_timeout_within(TimeoutReason::BackOff, ..=50);
    let it = it.confirm_subscription().expect_call("fair_acquire").reply(head());
    it.expect_timeout_within(TimeoutReason::Silence, 2_400..=3_000);
}

#[test]
fn a_spin_lock_does_not_subscribe() {
    let pacing = Pacing::Spin(SpinBackoff::CONSTANT);
    let mut spec = job_spec(60_000);
    spec.targets.pacing = pacing;
    let it = acquire_with(spec);
    it.expect_call(ACQUIRE).reply(busy(50_000)).expect_no_subscription_request();
}
