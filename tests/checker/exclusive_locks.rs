//! Histories of exclusive locks: certain periods do not overlap (I1), tokens rise (I2), and a hold
//! does not end early without a loss of data (I3, I4). The end of the proven lease, the sending of
//! a release and a possible loss of data each end the certain period of a hold.

use super::history_builder::HistoryBuilder;
use test_support::history::{AcquireResult, Mode};

#[test]
fn two_certain_exclusive_holds_at_a_time_are_rejected() {
    let mut builder = HistoryBuilder::default();
    builder.hold_exclusively(1, (0, 10), 1, 100);
    builder.hold_exclusively(2, (20, 50), 2, 150);
    builder.assert_rejected("I1 0 and 1 both hold at 50");
}

#[test]
fn a_lease_may_expire_without_a_release() {
    let mut builder = HistoryBuilder::default();
    builder.hold_exclusively(1, (0, 10), 1, 100);
    builder.hold_exclusively(2, (20, 120), 2, 200);
    builder.assert_accepted();
}

/// The second observation extends the certain period from 100 to 150.
#[test]
fn a_hold_observed_as_valid_lasted_until_then() {
    let mut builder = HistoryBuilder::default();
    builder.hold_exclusively(1, (0, 10), 1, 100).lease_observed(150, 0);
    builder.hold_exclusively(2, (20, 120), 2, 200);
    builder.assert_rejected("I1");
}

/// The first hold is certain until 30, when its release was sent, although it may exist until 150.
#[test]
fn a_hold_whose_release_was_sent_excludes_no_other() {
    let mut builder = HistoryBuilder::default();
    builder.hold_exclusively(1, (0, 10), 1, 100).release_unknown((30, 90), 150);
    builder.hold_exclusively(2, (20, 40), 2, 100);
    builder.assert_accepted();
}

/// The first hold is certain until 30, when its release was sent.
#[test]
fn an_unanswered_release_ends_the_certain_period_of_a_hold() {
    let mut builder = HistoryBuilder::default();
    builder.hold_exclusively(1, (0, 10), 1, 100).release_unanswered(30);
    builder.hold_exclusively(2, (20, 40), 2, 100);
    builder.acquire(3, Mode::Exclusive, (500, 510), AcquireResult::Busy);
    builder.assert_accepted();
}

/// Redis found the first hold when it was released, so its certain period ends at 300, when that
/// release was sent, and not at 100.
#[test]
fn a_released_hold_existed_until_its_release_even_beyond_its_lease() {
    let mut builder = HistoryBuilder::default();
    builder.hold_exclusively(1, (0, 10), 1, 100).released((300, 310));
    builder.hold_exclusively(2, (120, 130), 2, 200).released((140, 150));
    builder.assert_rejected("I1");
    let mut builder = HistoryBuilder::default();
    builder.hold_exclusively(1, (0, 10), 1, 100).released((300, 310));
    builder.hold_exclusively(2, (120, 301), 2, 400);
    builder.assert_accepted();
}

#[test]
fn a_token_that_is_older_than_one_before_is_rejected() {
    let mut builder = HistoryBuilder::default();
    builder.hold_exclusively(1, (0, 10), 7, 100).released((20, 30));
    builder.hold_exclusively(2, (40, 50), 6, 100).released((60, 70));
    builder.assert_rejected("I2 token 7 of 0 is older");
}

#[test]
fn a_token_that_is_handed_out_twice_is_rejected() {
    let mut builder = HistoryBuilder::default();
    builder.hold_exclusively(1, (0, 10), 7, 100).released((20, 30));
    builder.hold_exclusively(2, (40, 50), 7, 100).released((60, 70));
    builder.assert_rejected("I2 token 7 of 1 was handed out before");
}

#[test]
fn replies_may_arrive_in_another_order_than_the_grants() {
    let mut builder = HistoryBuilder::default();
    // The second grant, with the earlier reply.
    builder.hold_exclusively(1, (0, 40), 2, 100).released((50, 60));
    builder.hold_exclusively(2, (5, 90), 1, 5).was_lost((91, 92));
    builder.assert_accepted();
}

/// The certain periods, 10 to 50 and 90 to 95, do not overlap. But by its token the second grant
/// came first, so its hold lasted from before 10 to 95.
#[test]
fn grants_that_conflict_in_the_order_of_their_tokens_are_rejected() {
    let mut builder = HistoryBuilder::default();
    builder.hold_exclusively(1, (0, 10), 3, 100).released((50, 60));
    builder.hold_exclusively(2, (0, 90), 2, 200).released((95, 99));
    builder.assert_rejected("I1 0 was granted with no room for it");
}

#[test]
fn a_loss_without_a_reason_is_rejected() {
    let mut builder = HistoryBuilder::default();
    builder.hold_exclusively(1, (0, 10), 1, 100).gone_at(50);
    builder.assert_rejected("I3 0 is gone at 50");
    builder.lose_data(20, 30);
    builder.assert_accepted();
    let mut builder = HistoryBuilder::default();
    builder.hold_exclusively(1, (0, 10), 1, 100).lease_observed(40, 50).was_lost((40, 50));
    builder.assert_rejected("I4 0 was lost");
    builder.lose_data(45, 45);
    builder.assert_accepted();
}

#[test]
fn a_lease_that_had_run_out_may_be_lost() {
    let mut builder = HistoryBuilder::default();
    builder.hold_exclusively(1, (0, 10), 1, 100).gone_at(120).was_lost((130, 140));
    builder.assert_accepted();
}

#[test]
fn a_hold_that_is_gone_is_not_released() {
    let mut builder = HistoryBuilder::default();
    builder.hold_exclusively(1, (0, 10), 1, 30).gone_at(50).released((60, 70));
    builder.assert_rejected("I4 0 is released after it was gone");
    builder.history.assumptions.releasable_after_expiry = true;
    builder.assert_accepted();
    builder.hold_exclusively(2, (40, 45), 2, 48);
    builder.assert_rejected("I1");
}

/// The loss ends the certain period of the first hold at 40, before the second grant.
#[test]
fn a_hold_that_redis_may_have_lost_excludes_no_later_holder() {
    let mut builder = HistoryBuilder::default();
    builder.hold_exclusively(1, (0, 10), 1, 100);
    builder.hold_exclusively(2, (46, 50), 2, 150);
    builder.assert_rejected("I1 0 and 1");
    builder.lose_data(40, 45);
    builder.assert_accepted();
    // A hold after the loss still excludes other clients.
    builder.hold_exclusively(3, (55, 60), 3, 150);
    builder.assert_rejected("I1 1 and 2");
}

/// Redis replied at 90 that the first hold existed, and its release found it at 95. Without a loss
/// it existed since 10, through the second hold. With a loss before these replies, they prove
/// nothing about the time before it.
#[test]
fn a_lost_hold_may_have_come_back() {
    let mut builder = HistoryBuilder::default();
    builder.hold_exclusively(1, (0, 10), 1, 30).record_held(90, 85).released((95, 99));
    builder.hold_exclusively(2, (40, 50), 2, 55);
    builder.assert_rejected("I1");
    // The replica that took over still stored the first hold, although it had expired.
    builder.lose_data(60, 70);
    builder.assert_accepted();
}

/// A loss of data does not suspend I2; only `tokens_until` does.
#[test]
fn an_older_token_is_refused_after_a_loss_too() {
    let mut builder = HistoryBuilder::default();
    builder.hold_exclusively(1, (0, 10), 7, 100);
    builder.lose_data(20, 30);
    builder.hold_exclusively(2, (40, 50), 6, 100);
    builder.assert_rejected("I2");
    builder.history.assumptions.tokens_until = Some(20);
    builder.assert_accepted();
}

#[test]
fn an_unanswered_acquisition_may_or_may_not_have_been_granted() {
    let mut builder = HistoryBuilder::default();
    builder.acquire(1, Mode::Exclusive, (0, 10), AcquireResult::Unknown { ends_by: 60 });
    builder.hold_exclusively(2, (20, 30), 2, 100);
    builder.assert_accepted();
    let mut builder = HistoryBuilder::default();
    builder.acquire(1, Mode::Exclusive, (0, 10), AcquireResult::Unknown { ends_by: 60 });
    builder.acquire(2, Mode::Exclusive, (20, 30), AcquireResult::Busy);
    builder.assert_accepted();
}
