//! Histories of refusals: acquisitions that the client reported as busy (I10). Another acquisition
//! must explain each of them: it holds, or may hold, at some moment of the refused call.

use super::history_builder::HistoryBuilder;
use test_support::history::{AcquireResult, Mode, NEVER};

const BUSY: AcquireResult = AcquireResult::Busy;

#[test]
fn a_refusal_without_a_holder_is_rejected() {
    let mut builder = HistoryBuilder::default();
    builder.hold_exclusively(1, (0, 10), 1, 100).released((20, 30));
    builder.acquire(2, Mode::Exclusive, (31, 40), BUSY);
    builder.assert_rejected("I10 1 was refused without another holder");
}

/// A hold whose release has an unknown outcome explains refusals until its bound, 90.
#[test]
fn a_holder_explains_a_refusal_also_during_its_release() {
    let mut builder = HistoryBuilder::default();
    builder.hold_exclusively(1, (0, 10), 1, 100).released((20, 30));
    builder.acquire(2, Mode::Exclusive, (30, 40), BUSY);
    builder.assert_accepted();
    let mut builder = HistoryBuilder::default();
    builder.hold_exclusively(1, (0, 10), 1, 100).release_unknown((20, 30), 90);
    builder.acquire(2, Mode::Exclusive, (80, 85), BUSY);
    builder.assert_accepted();
    builder.acquire(3, Mode::Exclusive, (95, 99), BUSY);
    builder.assert_rejected("I10 2");
}

/// A failed acquisition may have held, and have been undone, before its reply at 50.
#[test]
fn an_undone_acquisition_explains_refusals_during_its_call() {
    let mut builder = HistoryBuilder::default();
    builder.acquire(1, Mode::Exclusive, (0, 50), AcquireResult::Failed);
    builder.acquire(2, Mode::Exclusive, (20, 30), BUSY);
    builder.assert_accepted();
    builder.acquire(3, Mode::Exclusive, (51, 60), BUSY);
    builder.assert_rejected("I10 2");
}

#[test]
fn an_unknown_acquisition_explains_refusals_until_its_bound() {
    let mut builder = HistoryBuilder::default();
    builder.acquire(1, Mode::Exclusive, (0, 10), AcquireResult::Unknown { ends_by: 60 });
    builder.acquire(2, Mode::Exclusive, (55, 59), BUSY);
    builder.assert_accepted();
    builder.acquire(3, Mode::Exclusive, (61, 69), BUSY);
    builder.assert_rejected("I10 2");
}

#[test]
fn an_acquisition_without_a_result_explains_refusals_for_ever() {
    let mut builder = HistoryBuilder::default();
    builder.acquire(1, Mode::Exclusive, (0, NEVER), AcquireResult::NoResponse);
    builder.acquire(2, Mode::Exclusive, (5_000, 5_010), BUSY);
    builder.assert_accepted();
}

#[test]
fn a_reader_does_not_explain_the_refusal_of_a_reader() {
    let mut builder = HistoryBuilder::default();
    builder.hold_as(1, Mode::Shared, (0, 10), 1, 100);
    builder.acquire(2, Mode::Shared, (20, 30), BUSY);
    builder.assert_rejected("I10 1");
    // A writer is a reason: it may have held and released, although its result is a refusal.
    builder.acquire(3, Mode::Exclusive, (15, 35), BUSY);
    builder.assert_accepted();
}

/// Where there is a queue, any earlier acquisition explains a refusal, even that of a reader by a
/// reader: it may have left a waiter behind.
#[test]
fn a_waiter_explains_a_refusal_where_there_is_a_queue() {
    let mut builder = HistoryBuilder::default();
    builder.hold_as(1, Mode::Shared, (0, 10), 1, 100);
    builder.acquire(2, Mode::Shared, (20, 30), BUSY);
    builder.history.assumptions.queues = true;
    builder.assert_accepted();
}

/// The refused acquisition of both permits may have held them for a moment, so it explains the
/// refusal of one permit beside it. Nothing explains the last refusal.
#[test]
fn a_refusal_of_available_permits_is_rejected() {
    let mut builder = HistoryBuilder::with_permits(2);
    builder.hold_as(1, Mode::Permits(1), (0, 10), 1, 100).released((50, 60));
    builder.acquire(2, Mode::Permits(2), (20, 30), BUSY);
    builder.assert_accepted();
    builder.acquire(3, Mode::Permits(1), (21, 31), BUSY);
    builder.assert_accepted();
    builder.acquire(4, Mode::Permits(1), (70, 80), BUSY);
    builder.assert_rejected("I10 3");
}

#[test]
fn missing_permits_explain_refusals_before_they_are_set_up() {
    let mut builder = HistoryBuilder::with_permits(2);
    builder.history.assumptions.permits = Some((2, 50));
    builder.acquire(1, Mode::Permits(1), (40, 45), BUSY);
    builder.assert_accepted();
    builder.acquire(1, Mode::Permits(1), (60, 65), BUSY);
    builder.assert_rejected("I10 1");
}
