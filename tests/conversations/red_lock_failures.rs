//! A redLock with nodes that are silent, refuse, or are too young to vote: their Redis was
//! restarted recently and may have forgotten holds.

use edgelatch_proto::error::{AcquireError, FailureKind, RefusalKind};
use edgelatch_proto::machine::{AcquireQuorum, TimeoutReason};
use edgelatch_proto::protocol::reply::Code;
use edgelatch_proto::timing::WaitPolicy;

use crate::language::*;
use crate::red_lock::{three_nodes, voters};

const ACQUIRE: &str = "lock_acquire";
const RELEASE: &str = "lock_release";
/// A permanent refusal.
const UNAUTHORIZED: &str = "WRONGPASS no";

fn five_nodes(wait_policy: WaitPolicy) -> Conversation<AcquireQuorum> {
    let all = [0, 1, 2, 3, 4].map(|node| (node, ACQUIRE));
    red_lock(5, wait_policy).expect_calls(&all)
}

/// The reply of a node that does not vote for `ms`.
fn too_young(ms: i64) -> ScriptReply {
    ScriptReply::new(Code::TooYoung, 0, ms)
}

#[test]
fn if_the_lowest_node_is_silent_the_next_one_decides() {
    let it = three_nodes(up_to(30_000))
        .fail_from(0, FailureKind::Broken)
        .reply_from(1, granted(5))
        .reply_from(2, busy(20_000));
    // The granted node is kept; the silent one, which may have granted, is released.
    let it = it.expect_calls(&[(0, RELEASE)]).reply_from(0, Code::No).advance_to_timeout();
    let it = it.expect_calls(&[(0, ACQUIRE), (2, ACQUIRE)]);
    let it = it.reply_from(2, granted(5)).advance_to_timeout();
    assert_eq!(voters(&it.expect_done().unwrap()), [1, 2]);
}

#[test]
fn a_majority_of_silent_nodes_is_reported_as_unreachable() {
    let it = three_nodes(WaitPolicy::Once).reply_from(2, busy(900));
    let it = it.fail_until_done(&[0, 1], FailureKind::NotSent);
    assert_eq!(it.expect_outcome(), Err(AcquireError::Unreachable(FailureKind::NotSent)));
}

#[test]
fn two_busy_nodes_and_a_silent_one_are_reported_as_busy() {
    let it = three_nodes(WaitPolicy::Once).reply_from(0, busy(900)).reply_from(1, busy(4_000));
    let it = it.fail_until_done(&[2], FailureKind::NotSent);
    assert_eq!(it.expect_outcome(), Err(AcquireError::Busy { remaining: Some(ms(4_000)) }));
}

#[test]
fn every_called_node_is_undone_and_one_silent_node_does_not_make_the_end_unknown() {
    let it = three_nodes(up_to(30_000)).reply_from(0, granted(5)).cancel();
    let it = it.expect_calls(&[(0, RELEASE), (1, RELEASE), (2, RELEASE)]);
    let it = it.reply_from(0, Code::Done).reply_from(1, Code::No);
    let it = it.fail_until_done(&[2], FailureKind::Broken);
    assert_eq!(it.expect_outcome(), Err(AcquireError::Cancelled { held_at_most: None }));

    let it = three_nodes(up_to(30_000)).reply_from(0, granted(5)).cancel();
    let it = it.reply_from(0, Code::Done).fail_until_done(&[1, 2], FailureKind::Broken);
    let held_at_most = Some(held_at_most(30_000 + HORIZON_MS + LEASE_MS, ms(it.elapsed_ms())));
    assert_eq!(it.expect_outcome(), Err(AcquireError::Cancelled { held_at_most }));
}

#[test]
fn a_minority_of_permanent_refusals_is_tolerated_and_a_majority_is_not() {
    let it =
        three_nodes(WaitPolicy::Once).refuse_from(1, "WRONGTYPE other").reply_from(0, granted(5));
    assert_eq!(voters(&it.reply_from(2, granted(5)).expect_done().unwrap()), [0, 2]);
    let it = three_nodes(up_to(30_000))
        .refuse_from(1, "WRONGTYPE other")
        .refuse_from(2, "WRONGPASS bad")
        .reply_from(0, granted(5))
        .expect_calls(&[(0, RELEASE)])
        .reply_from(0, Code::Done);
    let outcome = it.expect_done();
    let Err(AcquireError::Refused(refusal)) = outcome else { panic!("{outcome:?}") };
    assert_eq!(refusal.kind(), RefusalKind::WrongType);
}

#[test]
fn two_permanent_refusals_of_five_are_tolerated_and_a_third_ends_the_wait() {
    let two_refuse = |wait_policy| {
        five_nodes(wait_policy).refuse_from(0, UNAUTHORIZED).refuse_from(1, UNAUTHORIZED)
    };
    let it = two_refuse(up_to(30_000)).reply_from(2, busy(9_000));
    let it = it.reply_from(3, busy(9_000)).reply_from(4, busy(9_000));
    assert!(
        !it.is_done() && it.timeout_reason() != Some(TimeoutReason::ReplyDue),
        "the machine {it}"
    );
    let it = two_refuse(up_to(30_000)).refuse_from(2, UNAUTHORIZED);
    let outcome = it.reply_from(3, busy(9_000)).reply_from(4, busy(9_000)).expect_outcome();
    assert!(matches!(outcome, Err(AcquireError::Refused(_))), "{outcome:?}");
    // In a single try the replies of the other nodes count while they may be a majority.
    let it = two_refuse(WaitPolicy::Once).reply_from(2, busy(7_000));
    let it = it.reply_from(3, busy(8_000)).reply_from(4, busy(9_000));
    assert_eq!(it.expect_outcome(), Err(AcquireError::Busy { remaining: Some(ms(9_000)) }));
}

#[test]
fn a_node_that_is_too_young_counts_as_refused() {
    let it = three_nodes(WaitPolicy::Once)
        .reply_from(0, too_young(3_000))
        .reply_from(1, too_young(3_000));
    let it = it.reply_from(2, granted(5)).reply_from(2, Code::Done);
    assert_eq!(it.expect_outcome(), Err(AcquireError::Busy { remaining: Some(ms(3_000)) }));
}

#[test]
fn a_node_that_is_too_young_is_not_waited_for() {
    // Other clients may acquire a majority without it, and release it long before this node votes.
    let it = three_nodes(up_to(30_000))
        .reply_from(0, too_young(3_600_000))
        .reply_from(1, busy(20_000))
        .reply_from(2, busy(20_000));
    let it = it.expect_calls(&[(0, RELEASE)]).reply_from(0, Code::No).advance_to_timeout();
    let it = it.expect_calls(&[(1, ACQUIRE)]).reply_from(1, granted(5));
    let it = it.expect_calls(&[(0, ACQUIRE), (2, ACQUIRE)]).reply_from(2, granted(5));
    assert_eq!(voters(&it.advance_to_timeout().expect_outcome().unwrap()), [1, 2]);
    // If no other client holds the lock, the machine retries all nodes soon.
    let it = three_nodes(up_to(30_000))
        .reply_from(0, too_young(60_000))
        .reply_from(1, too_young(60_000));
    let it = it.fail_from(2, FailureKind::NotSent);
    assert!(it.timeout_ms() <= 2_000, "the machine {it}");
}
