//! A redLock whose nodes' clocks, or last tokens, differ by more than a node accepts.

use edgelatch_proto::error::{AcquireError, RefusalKind};
use edgelatch_proto::machine::{AcquireQuorum, MultiGrant};
use edgelatch_proto::protocol::reply::Code;
use edgelatch_proto::timing::WaitPolicy;

use crate::language::*;
use crate::red_lock::{three_nodes, voters};

const RAISE: &str = "lock_raise";
const RELEASE: &str = "lock_release";
/// The nodes' time at the start, as a token.
const NOW: u64 = SERVER_START * 1000;
/// A token that a node accepts at the start: half a minute ahead.
const AHEAD: u64 = NOW + 30_000_000;
/// A token that no node accepts at the start: an hour ahead.
const FAR_AHEAD: u64 = NOW + 3_600_000_000;

/// Checks that the nodes accept no common token.
fn assert_cannot_agree(outcome: Result<MultiGrant, AcquireError>) {
    let Err(AcquireError::Refused(refusal)) = outcome else { panic!("{outcome:?}") };
    assert_eq!(refusal.kind(), RefusalKind::TokenRange);
}

/// Checks that every node is released, whatever its reply was.
fn expect_all_released(it: Conversation<AcquireQuorum>) -> Conversation<AcquireQuorum> {
    let it = it.expect_calls(&[(0, RELEASE), (1, RELEASE), (2, RELEASE)]);
    (0..3).fold(it, |it, node| it.reply_from(node, Code::Done))
}

#[test]
fn a_node_that_rejects_a_token_does_not_count_as_agreeing() {
    let it =
        three_nodes(WaitPolicy::Once).reply_from(0, granted(NOW)).reply_from(1, granted(AHEAD));
    let it = it.advance_to_timeout().expect_calls(&[(0, RAISE)]).reply_from(0, Code::TokenAhead);
    assert!(!it.is_done());
    assert_eq!(voters(&it.reply_from(2, granted(AHEAD)).expect_outcome().unwrap()), [1, 2]);
}

#[test]
fn a_node_that_rejected_a_token_is_released_and_not_raised_again() {
    let it =
        three_nodes(WaitPolicy::Once).reply_from(0, granted(NOW)).reply_from(1, granted(AHEAD));
    let it = it.advance_to_timeout().expect_calls(&[(0, RAISE)]).reply_from(0, Code::TokenAhead);
    let it = it.reply_from(2, busy(4_000)).expect_calls(&[(0, RELEASE), (1, RELEASE)]);
    let it = it.reply_from(0, Code::Done).reply_from(1, Code::Done);
    assert_eq!(it.expect_done(), Err(AcquireError::Busy { remaining: Some(ms(4_000)) }));
    assert_eq!(it.count(RAISE), 1);
}

#[test]
fn a_majority_that_rejects_a_token_ends_the_wait() {
    let it = three_nodes(up_to(30_000)).reply_from(0, granted(NOW)).reply_from(1, granted(AHEAD));
    let it = it.advance_to_timeout().expect_calls(&[(0, RAISE)]).reply_from(2, granted(NOW + 1));
    let it = it.advance_to_timeout().expect_calls(&[(2, RAISE)]).reply_from(0, Code::TokenAhead);
    let it = it.reply_from(2, Code::TokenAhead);
    assert_cannot_agree(expect_all_released(it).expect_done());
}

#[test]
fn a_node_whose_token_is_far_ahead_is_outvoted_by_those_that_agree() {
    let it =
        three_nodes(WaitPolicy::Once).reply_from(0, granted(FAR_AHEAD)).reply_from(1, granted(NOW));
    let it = it.advance_to_timeout();
    assert!(!it.is_done() && it.count(RAISE) == 0, "{it}");
    let multi_grant = it.reply_from(2, granted(NOW)).expect_done().unwrap();
    assert_eq!((multi_grant.token.as_u64(), voters(&multi_grant)), (NOW, vec![1, 2]));
}

#[test]
fn the_largest_token_that_a_majority_accepts_is_stored() {
    let it = three_nodes(WaitPolicy::Once)
        .reply_from(0, granted(NOW))
        .reply_from(1, granted(FAR_AHEAD))
        .reply_from(2, granted(AHEAD))
        .expect_calls(&[(0, RAISE)]);
    assert_eq!(it.arg_of(0, RAISED_TOKEN), AHEAD.to_string());
    let multi_grant = it.reply_from(0, granted(AHEAD)).expect_done().unwrap();
    assert_eq!((multi_grant.token.as_u64(), voters(&multi_grant)), (AHEAD, vec![0, 2]));
}

/// After clocks were set back, tokens continue above the last ones.
#[test]
fn a_token_far_ahead_that_a_majority_stores_already_is_a_hold() {
    let it = three_nodes(WaitPolicy::Once).reply_from(0, granted(FAR_AHEAD));
    let it = it.reply_from(2, granted(FAR_AHEAD)).advance_to_timeout();
    let multi_grant = it.expect_done().unwrap();
    assert_eq!((multi_grant.token.as_u64(), voters(&multi_grant)), (FAR_AHEAD, vec![0, 2]));
}

#[test]
fn nodes_that_cannot_agree_on_a_token_end_the_wait() {
    let it = three_nodes(up_to(30_000))
        .reply_from(0, granted(FAR_AHEAD))
        .reply_from(1, granted(2 * FAR_AHEAD))
        .reply_from(2, granted(NOW));
    assert_eq!(it.count(RAISE), 0);
    assert_cannot_agree(expect_all_released(it).expect_done());
}

#[test]
fn the_machine_keeps_its_grants_while_a_busy_node_may_complete_a_majority() {
    let it = three_nodes(up_to(30_000))
        .reply_from(0, granted(FAR_AHEAD))
        .reply_from(1, granted(NOW))
        .reply_from(2, busy(20_000))
        .advance_to_timeout()
        .expect_calls(&[(2, "lock_acquire")])
        .reply_from(2, granted(AHEAD))
        .expect_calls(&[(1, RAISE)]);
    // The second node accepts the token of the third.
    assert_eq!(voters(&it.reply_from(1, granted(AHEAD)).expect_done().unwrap()), [1, 2]);
}
