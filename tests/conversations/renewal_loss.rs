//! Losing a hold, and ending its renewals.

use edgelatch_proto::error::{FailureKind, LossReason};
use edgelatch_proto::machine::{Lease, LeaseState, Renewal, TimeoutReason};
use edgelatch_proto::protocol::reply::Code;
use edgelatch_proto::timing::LeaseTime;

use crate::language::*;

const RENEW: &str = "lock_renew";

#[test]
fn a_lease_for_a_fixed_time_is_not_renewed() {
    let it = Conversation::new(auto_renewal_machine(LeaseTime::DEFAULT, false))
        .expect_timeout_in(TimeoutReason::LeaseEnds, TRUSTED_MS)
        .advance_to_timeout();
    assert_eq!(it.expect_done(), Some(LossReason::Expired));
}

#[test]
fn a_hold_that_redis_does_not_store_is_lost_at_once() {
    let it = renewal().advance_to_timeout().expect_call(RENEW).reply(Code::Lost);
    assert_eq!(it.expect_done(), Some(LossReason::Gone));
    assert_eq!(it.machine().state(), LeaseState::Lost(LossReason::Gone));
}

/// S9.
#[test]
fn an_unanswered_renewal_is_retried_until_the_lease_expires() {
    let mut it = renewal().advance_to_timeout();
    while it.machine().state() != LeaseState::Lost(LossReason::Expired) {
        it = it.expect_call(RENEW).fail(FailureKind::Broken);
        assert_eq!(it.machine().state(), LeaseState::Unknown);
        it = it.advance_to_timeout();
    }
    assert!(it.calls().len() > 3, "{}", it.calls().len());
    assert_eq!(it.elapsed_ms(), TRUSTED_MS, "when the holder stops relying on the lease");
    assert_eq!(it.expect_done(), Some(LossReason::Expired));
}

#[test]
fn a_late_renewal_is_no_loss() {
    let it = renewal().advance_to_timeout().expect_call(RENEW).reply(Code::Late);
    assert_eq!(it.machine().state(), LeaseState::Unknown);
    let it = it.advance_to_timeout().expect_call(RENEW).reply(granted(TOKEN));
    assert_eq!(it.machine().state(), LeaseState::Renewed);
}

/// S22, S24.
#[test]
fn a_host_that_slept_finds_its_lease_lost() {
    // The host slept for ten minutes, in which its monotonic clock stood still.
    let it = renewal().advance_host_clocks(0, 600_000).wake();
    assert_eq!(it.expect_done(), Some(LossReason::Expired));
}

#[test]
fn a_loss_is_reported_although_another_renewal_was_adopted_meanwhile() {
    let it = renewal().advance_to_timeout().expect_call(RENEW);
    let adopted = Lease::confirmed(LeaseTime::DEFAULT, it.now());
    let it = it.update(|renewal| renewal.adopt(adopted));
    assert_eq!(it.reply(Code::Lost).expect_done(), Some(LossReason::Gone));
}

/// S80.
#[test]
fn a_release_ends_a_renewal_at_once() {
    let it = renewal().advance_to_timeout().expect_call(RENEW).cancel();
    assert_eq!(it.expect_done(), None);
}

#[test]
fn a_stopped_renewal_sends_no_call() {
    let it = renewal().update(Renewal::stop_renewing);
    let it = it.expect_timeout_in(TimeoutReason::LeaseEnds, TRUSTED_MS).advance_to_timeout();
    assert_eq!(it.expect_done(), Some(LossReason::Expired));
    assert!(it.calls().is_empty());
}

#[test]
fn a_stopped_renewal_awaits_no_reply_and_keeps_a_known_loss() {
    let it = renewal().advance_to_timeout().expect_call(RENEW).update(Renewal::stop_renewing);
    let it = it.expect_timeout(TimeoutReason::LeaseEnds).advance_to_timeout();
    assert_eq!(it.expect_done(), Some(LossReason::Expired));
    // A lost hold has no lease to watch.
    let it = renewal().advance_to_timeout().expect_call(RENEW).reply(Code::Lost);
    let it = it.update(Renewal::stop_renewing);
    assert_eq!(it.expect_done(), Some(LossReason::Gone));
}
