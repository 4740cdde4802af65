//! Histories of count-down latches: which counts are possible, and in which order.

use super::history_builder::Past;
use test_support::history::Act;

/// A latch that was set to three.
fn of_three() -> Past {
    let mut past = Past::default();
    past.counts((0, 10), Act::Set(3, true));
    past
}

#[test]
fn a_latch_is_counted_down_once_by_each() {
    let mut past = of_three();
    past.counts((20, 30), Act::Down(2));
    past.counts((40, 50), Act::Down(1));
    past.passes();
    past.counts((60, 70), Act::Down(1));
    past.fails("I6 at 70");
}

#[test]
fn what_was_asked_at_the_same_time_has_any_order() {
    let mut past = of_three();
    past.counts((20, 60), Act::Down(0));
    past.counts((30, 50), Act::Down(1));
    past.counts((25, 40), Act::Down(2));
    past.passes();
}

#[test]
fn what_was_done_before_is_seen_afterwards() {
    let mut past = of_three();
    past.counts((20, 30), Act::Down(2));
    past.counts((40, 50), Act::Read(3));
    past.fails("I6 at 50");
}

#[test]
fn a_count_never_rises() {
    let mut past = of_three();
    past.counts((20, 30), Act::Down(2));
    past.counts((25, 35), Act::Read(3));
    past.passes();
    past.counts((36, 40), Act::Read(3));
    past.fails("I6 at 40");
}

#[test]
fn what_nobody_heard_of_may_have_been_done_or_not_but_once() {
    let mut past = of_three();
    past.perhaps_counts(20, Act::PerhapsDown);
    past.counts((40, 50), Act::Read(3));
    past.counts((60, 70), Act::Down(1));
    past.passes();
    past.counts((80, 90), Act::Read(0));
    past.fails("I6 at 90");
}

#[test]
fn what_was_not_done_is_not_counted() {
    let mut past = of_three();
    past.counts((20, 30), Act::Nothing);
    past.counts((40, 50), Act::Read(2));
    past.fails("I6 at 50");
}

#[test]
fn a_closed_latch_is_not_closed_again() {
    let mut past = of_three();
    past.counts((20, 30), Act::Set(5, false));
    past.passes();
    past.counts((40, 50), Act::Set(5, true));
    past.fails("I6 at 50");
}

#[test]
fn nobody_passes_a_closed_latch_or_is_kept_by_an_open_one() {
    let mut past = of_three();
    past.counts((20, 30), Act::Closed);
    past.passes();
    past.counts((40, 50), Act::Read(0));
    past.fails("I6 at 50");
    let mut past = Past::default();
    past.counts((0, 10), Act::Closed);
    past.fails("I6 at 10");
    past.perhaps_counts(5, Act::PerhapsSet(1));
    past.passes();
}

#[test]
fn nothing_is_said_of_a_latch_that_was_lost() {
    let mut past = of_three();
    past.loses(40, 45);
    past.counts((50, 60), Act::Read(0));
    past.passes();
    past.counts((20, 30), Act::Read(1));
    past.fails("I6 at 30");
}
