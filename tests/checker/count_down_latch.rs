//! Histories of count-down latches (I6): which counts are possible, by some order of the calls. A
//! latch is open, with a count of 0, before it is set.

use super::history_builder::HistoryBuilder;
use test_support::history::LatchOperation;

/// Returns the history of a latch that was set to three.
fn latch_of_three() -> HistoryBuilder {
    let mut builder = HistoryBuilder::default();
    builder.call_latch((0, 10), LatchOperation::Set(3, true));
    builder
}

#[test]
fn a_latch_is_counted_down_once_by_each() {
    let mut builder = latch_of_three();
    builder.call_latch((20, 30), LatchOperation::CountDown(2));
    builder.call_latch((40, 50), LatchOperation::CountDown(1));
    builder.assert_accepted();
    builder.call_latch((60, 70), LatchOperation::CountDown(1));
    builder.assert_rejected("I6 at 70");
}

#[test]
fn concurrent_calls_may_take_effect_in_any_order() {
    let mut builder = latch_of_three();
    builder.call_latch((20, 60), LatchOperation::CountDown(0));
    builder.call_latch((30, 50), LatchOperation::CountDown(1));
    builder.call_latch((25, 40), LatchOperation::CountDown(2));
    builder.assert_accepted();
}

#[test]
fn a_completed_call_is_visible_to_later_ones() {
    let mut builder = latch_of_three();
    builder.call_latch((20, 30), LatchOperation::CountDown(2));
    builder.call_latch((40, 50), LatchOperation::Read(3));
    builder.assert_rejected("I6 at 50");
}

#[test]
fn a_count_never_rises() {
    let mut builder = latch_of_three();
    builder.call_latch((20, 30), LatchOperation::CountDown(2));
    builder.call_latch((25, 35), LatchOperation::Read(3));
    builder.assert_accepted();
    builder.call_latch((36, 40), LatchOperation::Read(3));
    builder.assert_rejected("I6 at 40");
}

/// The unanswered call may take effect after the read of 3, and makes the next count 1. Two calls
/// cannot reduce 3 to 0.
#[test]
fn an_unanswered_operation_took_effect_at_most_once() {
    let mut builder = latch_of_three();
    builder.call_latch_unanswered(20, LatchOperation::UnconfirmedCountDown);
    builder.call_latch((40, 50), LatchOperation::Read(3));
    builder.call_latch((60, 70), LatchOperation::CountDown(1));
    builder.assert_accepted();
    builder.call_latch((80, 90), LatchOperation::Read(0));
    builder.assert_rejected("I6 at 90");
}

#[test]
fn a_call_that_was_not_executed_is_not_counted() {
    let mut builder = latch_of_three();
    builder.call_latch((20, 30), LatchOperation::Ignored);
    builder.call_latch((40, 50), LatchOperation::Read(2));
    builder.assert_rejected("I6 at 50");
}

#[test]
fn a_closed_latch_is_not_closed_again() {
    let mut builder = latch_of_three();
    builder.call_latch((20, 30), LatchOperation::Set(5, false));
    builder.assert_accepted();
    builder.call_latch((40, 50), LatchOperation::Set(5, true));
    builder.assert_rejected("I6 at 50");
}

/// A wait that ends at an open latch is recorded as a read of 0, one that ends in vain as
/// [`LatchOperation::Closed`]. In the last history the unanswered call may have closed the latch.
#[test]
fn no_wait_ends_at_a_closed_latch_or_lasts_at_an_open_one() {
    let mut builder = latch_of_three();
    builder.call_latch((20, 30), LatchOperation::Closed);
    builder.assert_accepted();
    builder.call_latch((40, 50), LatchOperation::Read(0));
    builder.assert_rejected("I6 at 50");
    let mut builder = HistoryBuilder::default();
    builder.call_latch((0, 10), LatchOperation::Closed);
    builder.assert_rejected("I6 at 10");
    builder.call_latch_unanswered(5, LatchOperation::UnconfirmedSet(1));
    builder.assert_accepted();
}

/// Calls before the loss, with replies before it, are still checked.
#[test]
fn nothing_is_checked_of_a_latch_that_was_lost() {
    let mut builder = latch_of_three();
    builder.lose_data(40, 45);
    builder.call_latch((50, 60), LatchOperation::Read(0));
    builder.assert_accepted();
    builder.call_latch((20, 30), LatchOperation::Read(1));
    builder.assert_rejected("I6 at 30");
}
