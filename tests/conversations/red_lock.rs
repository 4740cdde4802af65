//! Acquiring a redLock: a majority of nodes that store one token. Without a majority, the client
//! that holds the lowest node keeps its nodes and retries the others; every other client releases
//! its nodes and waits for the lowest one.
//!
//! While replies are due, the machine decides at the end of a grace: the timeout after the reply
//! that makes the majority.

use edgelatch_proto::error::AcquireError;
use edgelatch_proto::machine::{AcquireQuorum, AcquireQuorumSpec, MultiGrant, TimeoutReason};
use edgelatch_proto::protocol::reply::{Code, ServerClock};
use edgelatch_proto::timing::WaitPolicy;

use crate::language::*;

const ACQUIRE: &str = "lock_acquire";
const RAISE: &str = "lock_raise";
const RELEASE: &str = "lock_release";
const ACQUIRE_ALL: [(usize, &str); 3] = [(0, ACQUIRE), (1, ACQUIRE), (2, ACQUIRE)];

/// A redLock of three nodes; the machine has called each.
pub(crate) fn three_nodes(wait_policy: WaitPolicy) -> Conversation<AcquireQuorum> {
    red_lock(3, wait_policy).expect_calls(&ACQUIRE_ALL)
}

/// Returns the nodes that count. Each must store the token.
pub(crate) fn voters(multi_grant: &MultiGrant) -> Vec<usize> {
    let voters = multi_grant.parts.iter().enumerate().filter(|(_, part)| part.counts);
    voters
        .map(|(node, part)| {
            assert_eq!(part.grant.token, multi_grant.token, "stored by node {node}");
            node
        })
        .collect()
}

#[test]
fn a_majority_that_stores_the_proposed_token_is_a_hold_in_one_round_trip() {
    let it = three_nodes(WaitPolicy::Once);
    let proposal = it.arg_of(0, PROPOSED_TOKEN).to_owned();
    // A token is Redis' time in microseconds; the proposal is 1 ms ahead of the known clock.
    assert_eq!(proposal, ((SERVER_START + 1) * 1000).to_string());
    assert_eq!(
        (it.arg_of(1, PROPOSED_TOKEN), it.arg_of(2, PROPOSED_TOKEN)),
        (&*proposal, &*proposal)
    );
    let token = proposal.parse().unwrap();
    let it = it.reply_from(2, granted(token)).reply_from(0, granted(token));
    let multi_grant = it.advance_to_timeout().expect_done().unwrap();
    assert_eq!((multi_grant.token.as_u64(), voters(&multi_grant)), (token, vec![0, 2]));
    // The silent node may still grant, so its part has the data for a release.
    assert_eq!(multi_grant.parts.len(), 3);
}

/// A redLock of five nodes; the first three have granted it, 40 ms after the requests.
fn majority_after_40_ms(wait_policy: WaitPolicy) -> Conversation<AcquireQuorum> {
    let all = [0, 1, 2, 3, 4].map(|node| (node, ACQUIRE));
    let it = red_lock(5, wait_policy).expect_calls(&all).advance(40);
    (0..3).fold(it, |it, node| it.reply_from(node, granted(5)))
}

#[test]
fn nodes_that_grant_while_the_machine_waits_for_them_count() {
    let it = majority_after_40_ms(WaitPolicy::Once).advance(20).reply_from(3, granted(5));
    let it = it.advance(15).reply_from(4, granted(5));
    assert_eq!(it.elapsed_ms(), 75);
    assert_eq!(voters(&it.expect_done().unwrap()), [0, 1, 2, 3, 4]);
}

#[test]
fn a_silent_node_is_waited_for_as_long_again_as_the_majority_took_and_at_least_10_ms() {
    let it = majority_after_40_ms(WaitPolicy::Once).expect_timeout(TimeoutReason::ReplyDue);
    let it = it.advance(20).reply_from(3, busy(4_000)).advance_to_timeout();
    assert_eq!(it.elapsed_ms(), 80);
    assert_eq!(voters(&it.expect_done().unwrap()), [0, 1, 2]);
    let it = three_nodes(WaitPolicy::Once).reply_from(0, granted(5)).reply_from(1, granted(5));
    assert_eq!(it.timeout_ms(), 10);
}

#[test]
fn a_node_is_not_waited_for_when_the_leases_of_the_majority_would_become_too_short() {
    let spec = red_lock_spec(3, up_to(30_000));
    let it = red_lock_with(AcquireQuorumSpec { lease: lease(200), ..spec });
    let it = it.reply_from(0, granted(5)).reply_from(1, busy(-1)).reply_from(2, busy(-1));
    let it = it.advance_to_timeout();
    // The lease of the first node suffices until half of it is left, less 4 ms for drift.
    let left = 96 - it.elapsed_ms();
    let it = it.advance(left - 3).reply_from(1, granted(5));
    assert_eq!(it.timeout_ms(), 3);
    assert_eq!(voters(&it.advance_to_timeout().expect_outcome().unwrap()), [0, 1]);
}

#[test]
fn a_cancellation_while_a_node_is_waited_for_releases_all() {
    let it = majority_after_40_ms(up_to(30_000)).cancel();
    let it = (0..5).fold(it, |it, node| it.reply_from(node, Code::Done));
    assert_eq!(it.expect_outcome(), Err(AcquireError::Cancelled { held_at_most: None }));
}

#[test]
fn half_of_an_even_number_of_nodes_is_no_majority() {
    let four = [(0, ACQUIRE), (1, ACQUIRE), (2, ACQUIRE), (3, ACQUIRE)];
    let it = red_lock(4, WaitPolicy::Once).expect_calls(&four);
    let it = it.reply_from(0, granted(5)).reply_from(1, granted(5));
    assert!(!it.is_done());
    let it = it.reply_from(2, busy(4_000)).reply_from(3, busy(4_000));
    let it = it.expect_calls(&[(0, RELEASE), (1, RELEASE)]);
    let it = it.reply_from(0, Code::Done).reply_from(1, Code::Done);
    assert_eq!(it.expect_done(), Err(AcquireError::Busy { remaining: Some(ms(4_000)) }));
}

#[test]
fn the_proposed_token_is_of_the_clock_that_is_ahead_and_empty_without_a_clock() {
    let proposal = |clocks| {
        let machine =
            AcquireQuorum::new(red_lock_spec(3, WaitPolicy::Once), entropy(), clocks, START);
        Conversation::new(machine).arg_of(0, PROPOSED_TOKEN).to_owned()
    };
    let ahead = ServerClock::new(SERVER_START + 700, START);
    let clocks = vec![Some(known_clock()), None, Some(ahead)];
    assert_eq!(proposal(clocks), ((SERVER_START + 701) * 1000).to_string());
    assert_eq!(proposal(vec![]), "");
}

#[test]
fn owners_of_different_nodes_are_different() {
    let it = three_nodes(WaitPolicy::Once);
    assert_ne!(it.arg_of(0, OWNER), it.arg_of(1, OWNER));
    assert_ne!(it.arg_of(1, OWNER), it.arg_of(2, OWNER));
}

#[test]
fn a_node_is_waited_for_a_tenth_of_the_lease_and_a_second_at_most() {
    assert_eq!(three_nodes(WaitPolicy::Once).timeout_ms(), 1_000);
    let spec = red_lock_spec(3, WaitPolicy::Once);
    let it = red_lock_with(AcquireQuorumSpec { lease: lease(2_000), ..spec });
    assert_eq!(it.timeout_ms(), 200);
}

#[test]
fn the_largest_of_different_tokens_is_stored_before_it_is_returned() {
    let it = three_nodes(WaitPolicy::Once).reply_from(0, granted(5)).reply_from(1, granted(9));
    let it = it.advance_to_timeout().expect_calls(&[(0, RAISE)]);
    assert_eq!(it.arg_of(0, RAISED_TOKEN), "9");
    let it = it.reply_from(0, granted(9)).advance_to_timeout();
    let multi_grant = it.expect_done().unwrap();
    assert_eq!((multi_grant.token.as_u64(), voters(&multi_grant)), (9, vec![0, 1]));
}

#[test]
fn a_larger_stored_token_is_not_a_confirmation_but_the_next_token_to_store() {
    let it = three_nodes(WaitPolicy::Once)
        .reply_from(0, granted(5))
        .reply_from(1, granted(9))
        .advance_to_timeout()
        .expect_calls(&[(0, RAISE)])
        .reply_from(0, granted(12))
        .advance_to_timeout()
        .expect_calls(&[(1, RAISE)]);
    assert_eq!(it.arg_of(1, RAISED_TOKEN), "12");
    let it = it.reply_from(1, granted(12)).advance_to_timeout();
    assert_eq!(it.expect_done().unwrap().token.as_u64(), 12);
}

#[test]
fn a_node_with_the_largest_token_completes_a_majority_before_a_raise_is_confirmed() {
    let it = three_nodes(WaitPolicy::Once).reply_from(0, granted(5)).reply_from(1, granted(9));
    let it = it.advance_to_timeout().expect_calls(&[(0, RAISE)]);
    let it = it.reply_from(2, granted(9)).advance_to_timeout();
    assert_eq!(voters(&it.expect_outcome().unwrap()), [1, 2]);
}

#[test]
fn a_node_that_lost_its_hold_before_the_raise_does_not_count() {
    let it = three_nodes(WaitPolicy::Once)
        .reply_from(0, granted(5))
        .reply_from(1, granted(9))
        .advance_to_timeout()
        .expect_calls(&[(0, RAISE)])
        .reply_from(0, Code::Lost)
        .reply_from(2, busy(4_000))
        .expect_calls(&[(0, RELEASE), (1, RELEASE)])
        .reply_from(0, Code::No)
        .reply_from(1, Code::Done);
    assert_eq!(it.expect_done(), Err(AcquireError::Busy { remaining: Some(ms(4_000)) }));
}

#[test]
fn a_token_in_the_reply_of_a_loss_was_not_stored() {
    let it = three_nodes(WaitPolicy::Once).reply_from(0, granted(5)).reply_from(1, granted(9));
    let it = it.advance_to_timeout().expect_calls(&[(0, RAISE)]);
    let it = it.reply_from(0, ScriptReply::new(Code::Lost, 9, 30_000));
    assert!(!it.is_done());
    it.reply_from(2, busy(4_000)).expect_calls(&[(0, RELEASE), (1, RELEASE)]);
}

#[test]
fn the_holder_of_the_lowest_node_keeps_it_and_retries_the_others() {
    let it = three_nodes(up_to(30_000))
        .reply_from(0, granted(5))
        .reply_from(1, busy(20_000))
        .reply_from(2, busy(20_000))
        .expect_timeout(TimeoutReason::BackOff)
        .advance_to_timeout()
        .expect_calls(&[(1, ACQUIRE), (2, ACQUIRE)])
        .reply_from(1, granted(5))
        .advance_to_timeout();
    assert_eq!(voters(&it.expect_done().unwrap()), [0, 1]);
}

#[test]
fn every_other_client_releases_and_waits_for_the_lowest_node_alone() {
    let it = three_nodes(up_to(30_000));
    assert_eq!((it.arg_of(0, LAST_TRY), it.arg_of(1, LAST_TRY)), ("0", "1"));
    let it = it
        .reply_from(0, busy(20_000))
        .reply_from(1, granted(5))
        .reply_from(2, busy(20_000))
        .expect_calls(&[(1, RELEASE)])
        .reply_from(1, Code::Done)
        .advance_to_timeout()
        .expect_calls(&[(0, ACQUIRE)])
        .reply_from(0, busy(19_000))
        .advance_to_timeout()
        .expect_calls(&[(0, ACQUIRE)])
        .reply_from(0, granted(7))
        .expect_calls(&[(1, ACQUIRE), (2, ACQUIRE)]);
    let it = it.reply_from(2, granted(7)).advance_to_timeout();
    assert_eq!(voters(&it.expect_done().unwrap()), [0, 2]);
}

#[test]
fn nodes_kept_for_too_long_are_released() {
    let mut it = three_nodes(up_to(30_000))
        .reply_from(0, granted(5))
        .reply_from(1, busy(-1))
        .reply_from(2, busy(-1));
    while it.count(RELEASE) == 0 {
        it = it.advance_to_timeout().reply_from(1, busy(-1)).reply_from(2, busy(-1));
        assert!(it.elapsed_ms() <= 1_000, "woken when a granted node may be kept no longer");
    }
    let it = it.reply_from(0, Code::Done);
    let before = it.calls().len();
    assert_eq!(it.advance_to_timeout().calls().len() - before, 3, "a retry of all nodes");
}

#[test]
fn a_waiter_for_the_lowest_node_retries_all_nodes_once_more_when_its_wait_is_over() {
    let refused = |it| (0..3).fold(it, |it: Conversation<_>, node| it.reply_from(node, busy(-1)));
    let mut it = refused(three_nodes(up_to(10_000))).advance_to_timeout();
    while it.elapsed_ms() < 10_000 {
        it = it.expect_calls(&[(0, ACQUIRE)]).reply_from(0, busy(-1)).advance_to_timeout();
    }
    let it = it.expect_calls(&ACQUIRE_ALL);
    assert_eq!([0, 1, 2].map(|node| it.arg_of(node, LAST_TRY)), ["1"; 3]);
    assert_eq!(refused(it).expect_done(), Err(AcquireError::Busy { remaining: None }));
}
