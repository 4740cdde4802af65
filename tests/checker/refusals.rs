//! Histories of refusals: an acquisition that was refused because another client held.

use super::history_builder::Past;
use test_support::history::{NEVER, Share, Told};

const BUSY: Told = Told::Busy;

#[test]
fn a_refusal_without_a_holder_is_refused() {
    let mut past = Past::default();
    past.has(1, (0, 10), 1, 100).released((20, 30));
    past.asks(2, Share::Alone, (31, 40), BUSY);
    past.fails("I10 1 was told that somebody else has it");
}

#[test]
fn a_holder_is_a_reason_and_so_is_one_whose_release_is_under_way() {
    let mut past = Past::default();
    past.has(1, (0, 10), 1, 100).released((20, 30));
    past.asks(2, Share::Alone, (30, 40), BUSY);
    past.passes();
    let mut past = Past::default();
    past.has(1, (0, 10), 1, 100).perhaps_released((20, 30), 90);
    past.asks(2, Share::Alone, (80, 85), BUSY);
    past.passes();
    past.asks(3, Share::Alone, (95, 99), BUSY);
    past.fails("I10 2");
}

#[test]
fn an_acquisition_that_was_given_back_is_a_reason_while_it_lasts() {
    let mut past = Past::default();
    past.asks(1, Share::Alone, (0, 50), Told::Not);
    past.asks(2, Share::Alone, (20, 30), BUSY);
    past.passes();
    past.asks(3, Share::Alone, (51, 60), BUSY);
    past.fails("I10 2");
}

#[test]
fn an_unknown_acquisition_is_a_reason_until_its_bound() {
    let mut past = Past::default();
    past.asks(1, Share::Alone, (0, 10), Told::Unknown { over: 60 });
    past.asks(2, Share::Alone, (55, 59), BUSY);
    past.passes();
    past.asks(3, Share::Alone, (61, 69), BUSY);
    past.fails("I10 2");
}

#[test]
fn who_never_came_back_is_a_reason_for_ever() {
    let mut past = Past::default();
    past.asks(1, Share::Alone, (0, NEVER), Told::Nothing);
    past.asks(2, Share::Alone, (5_000, 5_010), BUSY);
    past.passes();
}

#[test]
fn a_reader_is_no_reason_for_a_reader() {
    let mut past = Past::default();
    past.holds(1, Share::Beside, (0, 10), 1, 100);
    past.asks(2, Share::Beside, (20, 30), BUSY);
    past.fails("I10 1");
    // A writer is a reason: it may have held and released, although its result is a refusal.
    past.asks(3, Share::Alone, (15, 35), BUSY);
    past.passes();
}

#[test]
fn who_waits_is_a_reason_where_there_is_a_queue() {
    let mut past = Past::default();
    past.holds(1, Share::Beside, (0, 10), 1, 100);
    past.asks(2, Share::Beside, (20, 30), BUSY);
    past.history.ground.queues = true;
    past.passes();
}

#[test]
fn permits_that_are_there_are_not_refused() {
    let mut past = Past::with_permits(2);
    past.holds(1, Share::Some(1), (0, 10), 1, 100).released((50, 60));
    past.asks(2, Share::Some(2), (20, 30), BUSY);
    past.passes();
    past.asks(3, Share::Some(1), (21, 31), BUSY);
    past.passes();
    past.asks(4, Share::Some(1), (70, 80), BUSY);
    past.fails("I10 3");
}

#[test]
fn no_permits_are_a_reason_before_they_are_brought() {
    let mut past = Past::with_permits(2);
    past.history.ground.permits = Some((2, 50));
    past.asks(1, Share::Some(1), (40, 45), BUSY);
    past.passes();
    past.asks(1, Share::Some(1), (60, 65), BUSY);
    past.fails("I10 1");
}
