//! Giving a wait up, at each of its moments.

use edgelatch::error::{AcquireError, FailureKind};
use edgelatch::timing::Patience;

use crate::support::conversation::*;

const CANCELLED: AcquireError = AcquireError::Cancelled { held_at_most: None };

/// S59.
#[test]
fn before_anything_was_sent_nothing_is_sent() {
    let outcome = acquire(Patience::UntilCancelled).is_cancelled().done();
    assert_eq!(outcome.unwrap_err(), CANCELLED);
}

/// S59.
#[test]
fn while_a_request_is_under_way_it_is_undone() {
    let mut it = acquire(up_to(30_000));
    it.asks("lock_acquire").is_cancelled();
    let outcome = it.asks("lock_release").hears(0, "0", 0).done();
    assert_eq!(outcome.unwrap_err(), CANCELLED);
}

/// S59, S81.
#[test]
fn a_grant_that_comes_after_the_cancelling_is_not_taken() {
    let mut it = acquire(up_to(30_000));
    it.asks("lock_acquire").is_cancelled().hears(1, TOKEN, 30_000);
    let outcome = it.asks("lock_release").hears(1, "0", 0).done();
    assert_eq!(outcome.unwrap_err(), CANCELLED);
}

/// S8.
#[test]
fn between_two_tries_a_late_copy_of_the_first_is_barred() {
    let mut it = acquire(up_to(30_000));
    it.asks("lock_acquire").hears(0, "1", 20_000).is_cancelled();
    let outcome = it.asks("lock_release").hears(0, "0", 0).done();
    assert_eq!(outcome.unwrap_err(), CANCELLED);
}

#[test]
fn after_a_redis_that_was_not_ready_a_late_copy_is_barred() {
    let mut it = acquire(up_to(30_000));
    it.asks("lock_acquire").is_refused("LOADING Redis is loading the dataset in memory");
    let outcome = it.is_cancelled().asks("lock_release").hears(0, "0", 0).done();
    assert_eq!(outcome.unwrap_err(), CANCELLED);
}

/// S59.
#[test]
fn while_it_undoes_it_goes_on_undoing_and_does_not_ask_again() {
    let mut it = acquire(up_to(30_000));
    it.asks("lock_acquire").hears(-3, TOKEN, 0);
    it.asks("lock_release").is_cancelled().fails(FailureKind::Broken);
    it.sleeps();
    let outcome = it.asks("lock_release").hears(0, "0", 0).done();
    assert_eq!(outcome.unwrap_err(), CANCELLED);
}

/// S59.
#[test]
fn an_undoing_that_is_not_confirmed_says_for_how_long_a_hold_may_be_there() {
    let mut it = acquire(up_to(30_000));
    it.asks("lock_acquire").is_cancelled();
    for attempt in 1..=3 {
        it.asks("lock_release").fails(FailureKind::TimedOut);
        if attempt < 3 {
            it.sleeps();
        }
    }
    let held_at_most = Some(held_at_most(30_000 + 90_000 + 30_000, it.now.since(start())));
    assert_eq!(it.done().unwrap_err(), AcquireError::Cancelled { held_at_most });
}

/// S81.
#[test]
fn after_the_end_it_changes_nothing() {
    let mut it = acquire(Patience::Once);
    it.asks("lock_acquire").hears(1, TOKEN, 30_000).is_cancelled().done().unwrap();
}
