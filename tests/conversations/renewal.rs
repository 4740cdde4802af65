//! Periodic renewals of a hold and renewals on demand: when they are due, and how long the lease
//! lasts after each.

use edgelatch_proto::error::{FailureKind, LossReason, RequestError};
use edgelatch_proto::machine::{Grant, Lease, LeaseState, Renewal, TimeoutReason};
use edgelatch_proto::protocol::reply::Code;
use edgelatch_proto::time::Instant;
use edgelatch_proto::timing::{AttemptTime, LeaseTime};

use crate::language::*;

const RENEW: &str = "lock_renew";

/// How far the host's wall clock is set back, in milliseconds: to zero.
const WALL_STEP_MS: i64 = 9_000_000;

/// S9.
#[test]
fn a_renewal_is_due_a_third_of_the_lease_after_the_sending() {
    let it = renewal().expect_timeout_in(TimeoutReason::RenewalDue, 10_000).advance_to_timeout();
    let it = it.expect_call(RENEW).advance(50).reply(granted(TOKEN));
    assert_eq!(it.machine().state(), LeaseState::Renewed);
    assert_eq!(it.machine().lease().remaining(it.now()), ms(TRUSTED_MS - 50));
    // The next renewal counts from the sending of the request too.
    it.expect_timeout_in(TimeoutReason::RenewalDue, 9_950);
}

/// S9.
#[test]
fn an_unanswered_renewal_leaves_time_for_another() {
    let (attempt, grant) = (AttemptTime::new(ms(60_000)).unwrap(), grant(lease(6_000)));
    let clock = Some(known_clock());
    let mut it = Conversation::new(Renewal::new(target(), grant, true, attempt, entropy(), clock));
    for _ in 0..3 {
        it = it.advance_to_timeout().expect_call(RENEW).expect_timeout(TimeoutReason::ReplyDue);
        let left = it.machine().lease().remaining(it.now());
        assert!(ms(it.timeout_ms()) * 2 <= left, "{left:?}");
        it = it.advance_to_timeout();
    }
}

/// S9. A pause of the back-off grows up to two seconds, but a short lease may end before.
#[test]
fn a_failed_renewal_is_retried_within_half_of_the_rest_of_the_lease() {
    for lease_ms in [100, 1_000, 3_000, 10_000] {
        let mut it = Conversation::new(auto_renewal_machine(lease(lease_ms), true));
        let mut left = lease(lease_ms).get();
        // The shortest pause is 10 ms.
        while left > ms(20) {
            it = it.advance_to_timeout().expect_call(RENEW).fail(FailureKind::Broken);
            left = it.machine().lease().remaining(it.now());
            assert!(ms(it.timeout_ms()) <= (left / 2).max(ms(10)), "{lease_ms}: {left:?}");
        }
    }
}

/// Returns the renewals of a hold that was requested `sent_ms` after the start, and the time of the
/// request.
fn renewal_after(sent_ms: u64, lease: LeaseTime) -> (Conversation<Renewal>, Instant) {
    let sent_at = START + ms(sent_ms);
    let grant = Grant { lease: Lease::confirmed(lease, sent_at), ..grant(lease) };
    let (attempt, clock) = (AttemptTime::DEFAULT, Some(known_clock()));
    let machine = Renewal::new(target(), grant, true, attempt, entropy(), clock);
    (Conversation::new_after(machine, sent_ms), sent_at)
}

#[test]
fn leases_of_about_the_same_age_are_renewed_at_the_same_time_and_stay_in_step() {
    // A renewal is due at a multiple of 2.5 s, a quarter of the interval of renewals.
    for (sent_ms, due_ms) in [(0, 10_000), (1, 10_000), (2_499, 10_000), (2_500, 12_500)] {
        let (mut it, _) = renewal_after(sent_ms, LeaseTime::DEFAULT);
        for round in 0..3 {
            it = it.advance_to_timeout();
            assert_eq!(it.elapsed_ms(), due_ms + 10_000 * round, "{sent_ms}");
            // The delay of the reply does not matter.
            it = it.expect_call(RENEW).advance(700).reply(granted(TOKEN));
        }
    }
}

#[test]
fn a_renewal_is_due_a_quarter_to_a_third_of_the_lease_after_the_sending() {
    for lease in [100, 101, 3_000, 29_999, 30_000, 86_400_000].map(lease) {
        for sent_ms in (0..20_000).step_by(37) {
            let (it, sent_at) = renewal_after(sent_ms, lease);
            let it = it.expect_timeout(TimeoutReason::RenewalDue);
            let due = sent_at + ms(it.timeout_ms());
            let third = lease.get() / 3;
            let after = due.max_elapsed(sent_at);
            assert!(
                after <= third && after + third / 4 + ms(1) > third,
                "{lease:?} {sent_ms} {after:?}"
            );
        }
    }
}

#[test]
fn a_gateway_that_takes_three_seconds_renews_in_time() {
    let mut it = renewal();
    for _ in 0..5 {
        it = it.advance_to_timeout().expect_call(RENEW).advance(3_000).reply(granted(TOKEN));
        assert_eq!(it.machine().state(), LeaseState::Renewed);
    }
}

#[test]
fn each_renewal_has_a_bound_of_its_own() {
    let it = renewal().advance_to_timeout().expect_call(RENEW);
    // One attempt, and a second.
    assert_eq!(it.arg(NOT_AFTER), (SERVER_START + 10_000 + ATTEMPT_MS + 1_000).to_string());
}

/// S23.
#[test]
fn a_wall_clock_that_is_set_back_changes_nothing() {
    renewal().advance_host_clocks(10_000, -WALL_STEP_MS).wake().expect_call(RENEW);
}

/// S10, S28.
#[test]
fn a_renewal_on_demand_is_adopted_and_never_shortens_the_lease() {
    let it = renewal().advance(5_000);
    let now = it.now();
    let it = it.update(|renewal| renewal.adopt(Lease::confirmed(LeaseTime::DEFAULT, now)));
    assert_eq!(it.machine().lease().remaining(now), ms(TRUSTED_MS));
    let it = it.update(|renewal| renewal.adopt(Lease::confirmed(lease(100), now)));
    assert_eq!(it.machine().lease().remaining(now), ms(TRUSTED_MS));
    // The machine does not renew more often either.
    it.expect_timeout_in(TimeoutReason::RenewalDue, 10_000);
}

/// The client takes the state of the hold from the machine after each input, so that state must not
/// be older than a renewal on demand.
#[test]
fn an_adopted_renewal_on_demand_makes_the_state_renewed() {
    let it = renewal().advance(5_000);
    let now = it.now();
    let it = it.update(|renewal| renewal.adopt(Lease::confirmed(LeaseTime::DEFAULT, now)));
    assert_eq!(it.machine().state(), LeaseState::Renewed);
    let it = it.advance_to_timeout().expect_call(RENEW).fail(FailureKind::Broken);
    assert_eq!(it.machine().state(), LeaseState::Unknown);
    let now = it.now();
    let it = it.update(|renewal| renewal.adopt(Lease::confirmed(LeaseTime::DEFAULT, now)));
    assert_eq!(it.machine().state(), LeaseState::Renewed);
}

/// The client has the machine adopt the lease of its own record of the hold before each input. That
/// lease may be the one from before the step.
#[test]
fn a_lease_from_before_a_step_back_of_the_clock_changes_nothing_when_adopted() {
    let it = renewal();
    let before = it.machine().lease();
    let it = it.advance_host_clocks(10_000, -WALL_STEP_MS).wake();
    let it = it.expect_call(RENEW).reply(granted(TOKEN));
    let renewed = it.machine().lease();
    let it = it.update(|renewal| renewal.adopt(before));
    assert_eq!(it.machine().lease(), renewed);
    assert_eq!(before.extended_by(&renewed), renewed, "in either order");
    it.expect_timeout_in(TimeoutReason::RenewalDue, 10_000);
}

#[test]
fn a_hold_renewed_to_a_fixed_end_is_not_renewed_any_more() {
    let machine = auto_renewal_machine(LeaseTime::DEFAULT, true).with_end(Some(START + ms(44_000)));
    let it = Conversation::new(machine).advance_to_timeout().expect_call(RENEW);
    assert_eq!(it.arg(RENEWED_LEASE), "30000");
    let it = it.reply(granted(TOKEN)).advance_to_timeout().expect_call(RENEW);
    // 20 s have passed, so 24 s are left.
    assert_eq!(it.arg(RENEWED_LEASE), "24000");
    let it = it.reply(granted(TOKEN).with_ms(24_000));
    assert_eq!(it.machine().lease().remaining(it.now()), ms(trusted_ms(24_000)));
    let it =
        it.expect_timeout_in(TimeoutReason::LeaseEnds, trusted_ms(24_000)).advance_to_timeout();
    assert_eq!(it.expect_done(), Some(LossReason::Expired));
}

#[test]
fn an_end_later_than_the_longest_lease_does_not_stop_renewals() {
    let in_two_days = Some(START + ms(48 * 60 * 60 * 1000));
    let machine = auto_renewal_machine(LeaseTime::DEFAULT, true).with_end(in_two_days);
    let it = Conversation::new(machine).advance_to_timeout().expect_call(RENEW);
    assert_eq!(it.arg(RENEWED_LEASE), "30000");
}

#[test]
fn a_renewal_on_demand_counts_from_its_sending() {
    let it =
        Conversation::new(renew_on_demand_machine(lease(60_000))).expect_call(RENEW).advance(100);
    let it = it.reply(granted(TOKEN).with_ms(60_000));
    let renewed = it.expect_done().unwrap();
    assert_eq!(renewed.lease.remaining(it.now()), ms(trusted_ms(60_000) - 100));
    assert_eq!(renewed.token.as_u64(), TOKEN);
}

#[test]
fn a_renewal_on_demand_reports_a_loss() {
    let it = Conversation::new(renew_on_demand_machine(lease(60_000))).expect_call(RENEW);
    assert_eq!(it.reply(Code::Lost).expect_done(), Err(RequestError::Lost(LossReason::Gone)));
}

#[test]
fn a_renewal_on_demand_that_reaches_redis_too_late_is_reported_as_late() {
    let it = Conversation::new(renew_on_demand_machine(lease(60_000))).expect_call(RENEW);
    let late = RequestError::Unreachable(FailureKind::TimedOut);
    assert_eq!(it.reply(Code::Late).expect_done(), Err(late));
}

#[test]
fn a_renewal_on_demand_is_sent_once() {
    let it = Conversation::new(renew_on_demand_machine(lease(60_000))).expect_call(RENEW);
    let unreachable = RequestError::Unreachable(FailureKind::Broken);
    assert_eq!(it.fail(FailureKind::Broken).expect_done(), Err(unreachable));
}
