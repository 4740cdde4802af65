//! Histories of exclusive locks: who held, with which token, and how the hold ended.

use super::history_builder::Past;
use test_support::history::{Share, Told};

#[test]
fn two_who_are_certain_at_a_time_are_refused() {
    let mut past = Past::default();
    past.has(1, (0, 10), 1, 100);
    past.has(2, (20, 50), 2, 150);
    past.fails("I1 0 and 1 both hold at 50");
}

#[test]
fn a_lease_ends_by_its_holder_s_clock_without_a_word() {
    let mut past = Past::default();
    past.has(1, (0, 10), 1, 100);
    past.has(2, (20, 120), 2, 200);
    past.passes();
}

#[test]
fn what_was_seen_to_be_valid_was_held_until_then() {
    let mut past = Past::default();
    past.has(1, (0, 10), 1, 100).seen(150, 0);
    past.has(2, (20, 120), 2, 200);
    past.fails("I1");
}

#[test]
fn who_has_asked_to_release_excludes_nobody() {
    let mut past = Past::default();
    past.has(1, (0, 10), 1, 100).perhaps_released((30, 90), 150);
    past.has(2, (20, 40), 2, 100);
    past.passes();
}

#[test]
fn a_release_of_which_nobody_heard_ends_what_is_certain() {
    let mut past = Past::default();
    past.has(1, (0, 10), 1, 100).perhaps_ends(30);
    past.has(2, (20, 40), 2, 100);
    past.asks(3, Share::Alone, (500, 510), Told::Busy);
    past.passes();
}

#[test]
fn what_was_released_was_there_until_then_whatever_its_lease() {
    let mut past = Past::default();
    past.has(1, (0, 10), 1, 100).released((300, 310));
    past.has(2, (120, 130), 2, 200).released((140, 150));
    past.fails("I1");
    let mut past = Past::default();
    past.has(1, (0, 10), 1, 100).released((300, 310));
    past.has(2, (120, 301), 2, 400);
    past.passes();
}

#[test]
fn a_token_that_is_older_than_one_before_is_refused() {
    let mut past = Past::default();
    past.has(1, (0, 10), 7, 100).released((20, 30));
    past.has(2, (40, 50), 6, 100).released((60, 70));
    past.fails("I2 token 7 of 0 is older");
}

#[test]
fn a_token_that_is_handed_out_twice_is_refused() {
    let mut past = Past::default();
    past.has(1, (0, 10), 7, 100).released((20, 30));
    past.has(2, (40, 50), 7, 100).released((60, 70));
    past.fails("I2 token 7 of 1 was handed out before");
}

#[test]
fn answers_may_come_in_another_order_than_the_grants() {
    let mut past = Past::default();
    // The second grant, with the earlier reply.
    past.has(1, (0, 40), 2, 100).released((50, 60));
    past.has(2, (5, 90), 1, 5).was_lost((91, 92));
    past.passes();
}

/// No two holders are certain at the same time, but no order allows all three holds.
#[test]
fn grants_that_find_no_room_by_the_order_of_their_tokens_are_refused() {
    let mut past = Past::default();
    past.has(1, (0, 10), 3, 100).released((50, 60));
    past.has(2, (0, 90), 2, 200).released((95, 99));
    past.fails("I1 0 was granted with no room for it");
}

#[test]
fn a_loss_without_a_reason_is_refused() {
    let mut past = Past::default();
    past.has(1, (0, 10), 1, 100).gone(50);
    past.fails("I3 0 is gone at 50");
    past.loses(20, 30);
    past.passes();
    let mut past = Past::default();
    past.has(1, (0, 10), 1, 100).seen(40, 50).was_lost((40, 50));
    past.fails("I4 0 was lost");
    past.loses(45, 45);
    past.passes();
}

#[test]
fn a_lease_that_had_run_out_may_be_lost() {
    let mut past = Past::default();
    past.has(1, (0, 10), 1, 100).gone(120).was_lost((130, 140));
    past.passes();
}

#[test]
fn what_is_gone_is_not_released_any_more() {
    let mut past = Past::default();
    past.has(1, (0, 10), 1, 30).gone(50).released((60, 70));
    past.fails("I4 0 is released after it was gone");
    past.history.ground.lingers = true;
    past.passes();
    past.has(2, (40, 45), 2, 48);
    past.fails("I1");
}

#[test]
fn what_redis_may_have_lost_excludes_nobody_after_that() {
    let mut past = Past::default();
    past.has(1, (0, 10), 1, 100);
    past.has(2, (46, 50), 2, 150);
    past.fails("I1 0 and 1");
    past.loses(40, 45);
    past.passes();
    // A hold after the loss still excludes other clients.
    past.has(3, (55, 60), 3, 150);
    past.fails("I1 1 and 2");
}

#[test]
fn what_was_lost_may_have_come_back() {
    let mut past = Past::default();
    past.has(1, (0, 10), 1, 30).stood(90, 85).released((95, 99));
    past.has(2, (40, 50), 2, 55);
    past.fails("I1");
    // The replica that took over still stored the first hold, although it had expired.
    past.loses(60, 70);
    past.passes();
}

#[test]
fn an_older_token_is_refused_after_a_loss_too() {
    let mut past = Past::default();
    past.has(1, (0, 10), 7, 100);
    past.loses(20, 30);
    past.has(2, (40, 50), 6, 100);
    past.fails("I2");
    past.history.ground.tokens_until = Some(20);
    past.passes();
}

#[test]
fn an_acquisition_of_which_nobody_heard_may_have_been_granted_or_not() {
    let mut past = Past::default();
    past.asks(1, Share::Alone, (0, 10), Told::Unknown { over: 60 });
    past.has(2, (20, 30), 2, 100);
    past.passes();
    let mut past = Past::default();
    past.asks(1, Share::Alone, (0, 10), Told::Unknown { over: 60 });
    past.asks(2, Share::Alone, (20, 30), Told::Busy);
    past.passes();
}
