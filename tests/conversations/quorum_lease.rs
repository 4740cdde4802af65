//! Keeping a hold of several parts, which lasts while a quorum of them does.

use edgelatch_proto::error::{FailureKind, LossReason};
use edgelatch_proto::machine::{LeaseState, QuorumLease, TimeoutReason};
use edgelatch_proto::protocol::reply::Code;
use edgelatch_proto::timing::LeaseTime;

use crate::language::*;

const RENEW: &str = "lock_renew";
const EXPIRED: LeaseState = LeaseState::Lost(LossReason::Expired);
const GONE: LeaseState = LeaseState::Lost(LossReason::Gone);

/// A hold of parts with leases of `seconds`; `quorum` of them make the hold.
fn quorum_lease(seconds: &[u64], renews: bool, quorum: usize) -> Conversation<QuorumLease> {
    let part = |seconds: &u64| auto_renewal_machine(lease(seconds * 1_000), renews);
    Conversation::new(QuorumLease::new(seconds.iter().map(part), quorum))
}

#[test]
fn a_hold_is_lost_with_the_part_that_leaves_fewer_than_the_quorum() {
    for (quorum, lost_after_seconds) in [(3, 10), (2, 20), (1, 40)] {
        let mut it = quorum_lease(&[20, 40, 10], false, quorum);
        for part in 0..3 - quorum {
            it = it.expect_timeout(TimeoutReason::LeaseEnds).advance_to_timeout();
            assert_eq!(it.machine().state(), LeaseState::Held, "{part} of {quorum}");
        }
        let it = it.expect_timeout(TimeoutReason::LeaseEnds).advance_to_timeout();
        assert_eq!(it.machine().state(), EXPIRED);
        // The allowance for drift ends the lease up to 2 % early.
        let lost_after_ms = lost_after_seconds * 980..lost_after_seconds * 1_000;
        assert!(lost_after_ms.contains(&it.elapsed_ms()), "{quorum}");
        assert_eq!(it.expect_done(), Some(LossReason::Expired));
    }
}

#[test]
fn a_part_with_an_unconfirmed_renewal_makes_the_hold_unknown() {
    let it = quorum_lease(&[30, 30], true, 2);
    assert_eq!(it.machine().state(), LeaseState::Held);
    let it = it.advance_to_timeout().expect_calls(&[(0, RENEW), (1, RENEW)]);
    assert_eq!(it.machine().state(), LeaseState::Held);
    let it = it.reply_from(0, renewed());
    assert_eq!(it.machine().state(), LeaseState::Renewed);
    let it = it.fail_from(1, FailureKind::Broken);
    assert_eq!(it.machine().state(), LeaseState::Unknown);
    let it = it.advance_to_timeout().expect_calls(&[(1, RENEW)]).reply_from(1, renewed());
    assert_eq!(it.machine().state(), LeaseState::Renewed);
}

#[test]
fn a_loss_has_the_reason_of_its_parts_and_later_replies_change_nothing() {
    let it = quorum_lease(&[30, 30, 30], true, 2).advance_to_timeout();
    let it = it.expect_calls(&[(0, RENEW), (1, RENEW), (2, RENEW)]).reply_from(1, Code::Lost);
    assert!(!it.is_done());
    let it = it.reply_from(2, Code::Lost);
    assert_eq!(it.machine().state(), GONE);
    let it = it.reply_from(0, renewed());
    assert_eq!(it.machine().state(), GONE);
    assert_eq!(it.expect_done(), Some(LossReason::Gone));
}

#[test]
fn the_reason_of_a_loss_stays_despite_later_losses_of_parts() {
    let part = || auto_renewal_machine(LeaseTime::DEFAULT, true);
    let it = Conversation::new(QuorumLease::new([part(), part()], 2)).advance_to_timeout();
    assert_eq!(it.elapsed_ms(), 10_000);
    let it = it.expect_calls(&[(0, RENEW), (1, RENEW)]).reply_from(0, Code::Lost);
    assert_eq!(it.machine().state(), GONE);
    let it = it.advance_and_wake(30_000);
    assert_eq!(it.expect_done(), Some(LossReason::Gone));
    assert_eq!(it.machine().state(), GONE);
}

#[test]
fn a_reply_of_one_part_reveals_that_the_lease_of_another_has_ended() {
    let it = quorum_lease(&[30, 15], true, 2).advance_and_wake(5_000).advance_and_wake(5_000);
    assert!(it.calls().len() >= 2 && !it.is_done(), "the machine {it}");
    // 15.5 s have passed, and the second part was not renewed.
    let it = it.advance(5_500).reply_from(0, renewed());
    assert_eq!(it.machine().state(), EXPIRED);
}
