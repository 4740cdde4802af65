//! Histories of shared holds: readers and writers (I1, I2), permits (I1), and acquisitions of one
//! owner, which are one grant with a hold count (I5).

use super::history_builder::HistoryBuilder;
use test_support::history::Mode;

const READS: Mode = Mode::Shared;
const WRITES: Mode = Mode::Exclusive;

#[test]
fn readers_share_a_token_and_a_writer_beside_them_is_rejected() {
    let mut builder = HistoryBuilder::default();
    builder.hold_as(1, READS, (0, 10), 1, 100);
    builder.hold_as(2, READS, (20, 30), 1, 100);
    builder.assert_accepted();
    builder.hold_as(3, WRITES, (40, 50), 2, 150);
    builder.assert_rejected("I1");
}

/// Two readers have the token 1. A writer with the token 2 cannot have held between them.
#[test]
fn readers_have_a_new_token_after_each_writer() {
    let mut builder = HistoryBuilder::default();
    builder.hold_as(1, READS, (0, 10), 1, 100).released((20, 30));
    builder.hold_as(2, READS, (40, 50), 1, 100).released((60, 70));
    builder.assert_accepted();
    builder.hold_as(3, WRITES, (31, 32), 2, 100).released((33, 34));
    builder.assert_rejected("I2 token 2 of 2 is older");
}

#[test]
fn a_writer_s_token_is_unique() {
    let mut builder = HistoryBuilder::default();
    builder.hold_as(1, WRITES, (0, 10), 1, 100).released((20, 30));
    builder.hold_as(2, READS, (25, 50), 1, 100);
    builder.assert_rejected("I2 token 1");
}

#[test]
fn more_permits_than_there_are_is_rejected() {
    let mut builder = HistoryBuilder::with_permits(3);
    builder.hold_as(1, Mode::Permits(2), (0, 10), 1, 100);
    builder.hold_as(2, Mode::Permits(1), (20, 30), 2, 100);
    builder.assert_accepted();
    builder.hold_as(3, Mode::Permits(1), (40, 50), 3, 150);
    builder.assert_rejected("I1 4 permits are held at 50");
}

/// The certain periods, 10 to 50 and 90 to 95, do not overlap. But by its token the second grant
/// came first, and had the only permit from before 10 to 95.
#[test]
fn permits_that_cannot_have_been_returned_in_time_are_rejected() {
    let mut builder = HistoryBuilder::with_permits(1);
    builder.hold_as(1, Mode::Permits(1), (0, 10), 3, 100).released((50, 60));
    builder.hold_as(2, Mode::Permits(1), (0, 90), 2, 200).released((95, 99));
    builder.assert_rejected("I1 0 was granted with no room");
}

/// A release that leaves another acquisition of the owner does not end its hold.
#[test]
fn reentrant_acquisitions_of_one_owner_share_a_grant() {
    let mut builder = HistoryBuilder::default();
    builder.hold_exclusively(1, (0, 10), 1, 100).with_hold_count(1).released((60, 70));
    builder.hold_exclusively(1, (20, 21), 1, 100).with_hold_count(2).released_in_part((30, 31));
    builder.assert_accepted();
    builder.hold_exclusively(2, (40, 50), 2, 150);
    builder.assert_rejected("I1");
}

#[test]
fn two_grants_of_one_owner_at_a_time_are_rejected() {
    let mut builder = HistoryBuilder::default();
    builder.hold_exclusively(1, (0, 10), 1, 100);
    builder.hold_exclusively(1, (20, 21), 2, 100);
    builder.assert_rejected("I5 1 and 0 are two grants");
}

#[test]
fn a_wrong_hold_count_is_rejected() {
    let mut builder = HistoryBuilder::default();
    builder.hold_exclusively(1, (0, 10), 1, 100).with_hold_count(1);
    builder.hold_exclusively(1, (20, 21), 1, 100).with_hold_count(3);
    builder.assert_rejected("I5 1 is one of 3, not 2 to 2");
    let mut builder = HistoryBuilder::default();
    builder.hold_exclusively(1, (0, 10), 1, 100).with_hold_count(1);
    builder.hold_exclusively(1, (20, 21), 1, 100).with_hold_count(1);
    builder.assert_rejected("I5 1 is one of 1");
}
