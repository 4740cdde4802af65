//! Keeping a hold of several parts.

use edgelatch::error::{FailureKind, LossReason};
use edgelatch::machine::{Keeping, LeaseState, Renewal, Wake};
use edgelatch::protocol::reply::Code;
use edgelatch::timing::AttemptTime;

use crate::support::conversation::{clock, entropy, grant, lease, target};
use crate::support::virtual_time::{Says, Talk, says, talk};

const RENEW: &str = "lock_renew";

/// A hold of parts with these leases, in seconds, that stands while so many of them do.
fn keeps(leases: &[u64], renews: bool, quorum: usize) -> Talk<Keeping> {
    let part = |seconds: &u64| {
        let grant = grant(lease(seconds * 1_000));
        Renewal::new(target(), grant, renews, AttemptTime::DEFAULT, entropy(), clock())
    };
    talk(Keeping::new(leases.iter().map(part), quorum))
}

fn renewed() -> Says {
    Says(Code::Done, "0".into(), 30_000)
}

const LOST: LeaseState = LeaseState::Lost(LossReason::Expired);

#[test]
fn it_is_lost_with_the_part_by_which_fewer_than_the_quorum_are_left() {
    for (quorum, seconds) in [(3, 10), (2, 20), (1, 40)] {
        let mut it = keeps(&[20, 40, 10], false, quorum);
        for part in 0..3 - quorum {
            it = it.waits(Wake::LeaseEnds).wakes();
            assert_eq!(it.machine().state(), LeaseState::Held, "{part} of {quorum}");
        }
        let it = it.waits(Wake::LeaseEnds).wakes();
        assert_eq!(it.machine().state(), LOST);
        assert!((seconds * 980..seconds * 1_000).contains(&it.elapsed_ms()), "{quorum}");
        assert_eq!(it.ends(), Some(LossReason::Expired));
    }
}

#[test]
fn what_is_not_known_of_one_part_is_not_known_of_the_whole() {
    let both = [(0, RENEW), (1, RENEW)];
    let it = keeps(&[30, 30], true, 2);
    assert_eq!(it.machine().state(), LeaseState::Held);
    let it = it.wakes().asks_of(&both);
    assert_eq!(it.machine().state(), LeaseState::Held);
    let it = it.hears_from(0, renewed());
    assert_eq!(it.machine().state(), LeaseState::Renewed);
    let it = it.fails_at(1, FailureKind::Broken);
    assert_eq!(it.machine().state(), LeaseState::Unknown);
    let it = it.wakes().asks_of(&[(1, RENEW)]).hears_from(1, renewed());
    assert_eq!(it.machine().state(), LeaseState::Renewed);
}

#[test]
fn the_reason_is_that_of_the_parts_and_later_news_change_nothing() {
    let it = keeps(&[30, 30, 30], true, 2).wakes();
    let it = it.asks_of(&[(0, RENEW), (1, RENEW), (2, RENEW)]).hears_from(1, says(Code::Lost));
    assert!(!it.is_over());
    let it = it.hears_from(2, says(Code::Lost));
    assert_eq!(it.machine().state(), LeaseState::Lost(LossReason::Gone));
    let it = it.hears_from(0, renewed());
    assert_eq!(it.machine().state(), LeaseState::Lost(LossReason::Gone));
    assert_eq!(it.ends(), Some(LossReason::Gone));
}

#[test]
fn with_the_news_of_one_part_time_has_passed_for_the_others_too() {
    let it = keeps(&[30, 15], true, 2).passes(5_000).passes(5_000);
    assert!(it.scripts().len() >= 2 && !it.is_over());
    let it = it.travels(5_500).hears_from(0, renewed());
    assert_eq!(it.machine().state(), LOST);
}
