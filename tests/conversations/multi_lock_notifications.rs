//! How the waiter of a multi-lock or redLock uses its subscription and the messages.

use edgelatch_proto::machine::{Machine, TimeoutReason};

use crate::language::*;

const CHANNEL: &str = "redisson_lock__channel:{job}";
const ACQUIRE: &str = "lock_acquire";

/// Checks that a waiter for the part at gateway 0 retries at a random time after a message, skips
/// that retry when another client acquires, and has its own grant published. `refused` returns the
/// waiter after its first refusal.
fn check_spread_retries<M: Machine>(refused: impl Fn() -> Conversation<M>) {
    let waiting = || {
        let it = refused().confirm_subscription().expect_calls(&[(0, ACQUIRE)]);
        it.advance(10).reply_from(0, busy(50_000)).expect_timeout(TimeoutReason::Silence)
    };
    let it = waiting().notify_within(20).expect_timeout_within(TimeoutReason::Notification, ..=20);
    let it = it.advance_to_timeout().expect_calls(&[(0, ACQUIRE)]);
    // Redis publishes the grant on this channel.
    assert_eq!(it.arg_of(0, GRANT_CHANNEL), CHANNEL);
    // A message while a try is in flight schedules a retry as well.
    it.notify_within(20).reply_from(0, busy(50_000)).expect_timeout(TimeoutReason::Notification);
    let it = waiting().notify_within(20).notify_acquired(Some(ms(300)));
    it.expect_timeout_in(TimeoutReason::Silence, 300);
    let it = waiting().notify_within(20).notify_acquired(None);
    let it = it.expect_timeout_within(TimeoutReason::Silence, 7_000..);
    it.notify().expect_calls(&[(0, ACQUIRE)]);
}

#[test]
fn multi_locks_and_red_locks_spread_their_retries_and_publish_grants() {
    check_spread_retries(|| {
        let it = multi_lock_with(multi_lock_spec(vec![lock("job")], up_to(60_000)));
        it.expect_calls(&[(0, ACQUIRE)]).reply_from(0, busy(50_000))
    });
    check_spread_retries(|| {
        let it = red_lock(3, up_to(60_000));
        let it = it.expect_calls(&[(0, ACQUIRE), (1, ACQUIRE), (2, ACQUIRE)]);
        (0..3).fold(it, |it, node| it.reply_from(node, busy(50_000)))
    });
}

#[test]
fn a_multi_lock_that_waits_for_the_end_of_a_lease_retries_when_its_subscription_ends() {
    let refused = || multi_lock(2, up_to(60_000)).reply_from(1, busy(3)).reply_from(0, busy(3));
    let it = refused().confirm_subscription().reply_from(0, busy(3_000));
    assert_eq!((it.count(ACQUIRE), it.timeout_reason()), (3, Some(TimeoutReason::HolderExpires)));
    assert_eq!(it.end_subscription().count(ACQUIRE), 4);
    // A waiter without a subscription has lost nothing.
    let it = refused().end_subscription();
    assert_eq!((it.count(ACQUIRE), it.timeout_reason()), (2, Some(TimeoutReason::HolderExpires)));
}

#[test]
fn a_multi_lock_subscribes_at_the_part_that_it_waits_for() {
    // The first wait is shorter than the time for which a waiter trusts a silent subscription.
    for wait_ms in [5_000, 60_000] {
        let it = multi_lock(2, up_to(wait_ms)).expect_calls(&[(0, ACQUIRE), (1, ACQUIRE)]);
        let it = it.reply_from(0, granted(5)).reply_from(1, busy(50_000));
        let it = it.expect_subscription_request(1, "redisson_lock__channel:{b}");
        let it = it.confirm_subscription().expect_calls(&[(1, ACQUIRE)]);
        let it = it.reply_from(1, busy(50_000)).notify().expect_calls(&[(1, ACQUIRE)]);
        assert!(!it.is_done());
    }
}
