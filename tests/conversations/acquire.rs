//! Taking a lock.

use std::time::Duration;

use edgelatch::error::{AcquireError, FailureKind, RefusalKind};
use edgelatch::machine::{Acquire, AcquireSpec, Wake};
use edgelatch::timing::Patience;

use crate::support::conversation::*;

const OWNER: usize = 5;
const NOT_AFTER: usize = 2;
const KEEP: usize = 3;
const LAST: usize = 7;

#[test]
fn one_request_takes_a_free_lock() {
    let mut it = acquire(Patience::Once);
    let grant = it.asks("lock_acquire").after(20).hears(1, TOKEN, 30_000).done().unwrap();
    assert_eq!(it.asked.len(), 1);
    assert_eq!(grant.token.to_string(), TOKEN);
}

/// S21.
#[test]
fn the_lease_counts_from_the_sending_less_the_drift() {
    let mut it = acquire(Patience::Once);
    let grant = it.asks("lock_acquire").after(2_000).hears(1, TOKEN, 30_000).done().unwrap();
    assert_eq!(grant.lease.remaining(it.now), ms(30_000 - 300 - 2 - 2_000));
}

#[test]
fn a_try_that_is_refused_is_one_request_and_says_that_it_is_the_last() {
    let mut it = acquire(Patience::Once);
    let outcome = it.asks("lock_acquire").hears(0, "1", 12_000).done();
    assert_eq!(it.arg(LAST), "1");
    assert_eq!(outcome.unwrap_err(), AcquireError::Busy { remaining: Some(ms(12_000)) });
    assert_eq!(it.asked.len(), 1);
}

/// S70.
#[test]
fn a_holder_without_an_end_has_no_remaining_time() {
    let outcome = acquire(Patience::Once).asks("lock_acquire").hears(0, "1", -1).done();
    assert_eq!(outcome.unwrap_err(), AcquireError::Busy { remaining: None });
}

/// S16.
#[test]
fn a_waiter_pauses_and_asks_again_under_the_same_owner_and_bound() {
    let mut it = acquire(up_to(30_000));
    it.asks("lock_acquire").hears(0, "1", 20_000);
    assert_eq!(it.arg(LAST), "0");
    assert!(it.waits(Wake::BackOff) <= ms(1_600), "a step within the budget's stretch");
    it.sleeps();
    it.asks("lock_acquire").hears(1, TOKEN, 30_000).done().unwrap();
    let [first, second] = it.asked.as_slice() else { panic!("two calls") };
    assert_eq!(first.args()[OWNER - 1], second.args()[OWNER - 1]);
    assert_eq!(first.args()[NOT_AFTER - 1], second.args()[NOT_AFTER - 1]);
    assert_ne!(first.args()[0], second.args()[0], "each request has an id of its own");
}

#[test]
fn the_bound_is_known_server_time_and_the_wait_and_ninety_seconds() {
    let mut it = acquire(up_to(30_000));
    it.asks("lock_acquire");
    assert_eq!(it.arg(NOT_AFTER), (SERVER_MS + 30_000 + 90_000).to_string());
    assert_eq!(it.arg(KEEP), "90000");
}

#[test]
fn a_first_request_has_no_bound_and_is_kept_for_ten_minutes() {
    let mut it = Conversation::new(Acquire::new(spec(up_to(30_000)), entropy(), None, start()));
    it.asks("lock_acquire").hears(0, "1", 1_000);
    assert_eq!((it.arg(NOT_AFTER), it.arg(KEEP)), ("", "600000"));
    it.sleeps();
    it.asks("lock_acquire");
    assert_eq!(it.arg(NOT_AFTER), "", "what began without a bound stays without");
}

#[test]
fn a_waiter_wakes_when_the_holder_expires() {
    let mut it = acquire(up_to(30_000));
    it.asks("lock_acquire").hears(0, "1", 3);
    assert_eq!(it.waits(Wake::HolderExpires), ms(4));
}

#[test]
fn a_wait_that_is_over_ends_with_a_last_try_at_its_end() {
    let mut it = acquire(up_to(400));
    it.asks("lock_acquire").hears(0, "1", 60_000);
    while it.sleeps() != Wake::WaitOver {
        it.asks("lock_acquire").hears(0, "1", 60_000);
    }
    assert_eq!(it.now.since(start()), ms(400));
    let outcome = it.asks("lock_acquire").hears(0, "1", 59_000).done();
    assert_eq!(it.arg(LAST), "1");
    assert_eq!(outcome.unwrap_err(), AcquireError::Busy { remaining: Some(ms(59_000)) });
}

/// S1.
#[test]
fn an_attempt_without_an_answer_is_repeated_for_the_same_owner() {
    let mut it = acquire(Patience::Once);
    it.asks("lock_acquire").fails(FailureKind::Broken);
    assert_eq!(it.sleeps(), Wake::BackOff);
    let grant = it.asks("lock_acquire").after(5).hears(2, TOKEN, 29_000).done().unwrap();
    assert_eq!(it.asked[0].keys(), it.asked[1].keys());
    assert_eq!(it.asked[0].args()[1..], it.asked[1].args()[1..]);
    assert_eq!(grant.lease.remaining(it.now), ms(30_000 - 302 - 5), "from the answered attempt");
}

/// A gateway that hands out the answer to the first attempt as that to the second must not make the lease longer than it is.
#[test]
fn each_attempt_has_a_request_id_of_its_own() {
    let mut it = acquire(Patience::Once);
    it.asks("lock_acquire").fails(FailureKind::TimedOut);
    it.sleeps();
    it.asks("lock_acquire");
    assert_ne!(it.asked[0].request, it.asked[1].request);
    assert_ne!(it.asked[0].args()[0], it.asked[1].args()[0]);
}

#[test]
fn a_hanging_gateway_is_given_its_time_and_then_asked_again() {
    let mut it = acquire(Patience::Once);
    it.asks("lock_acquire");
    assert_eq!(it.waits(Wake::ReplyDue), ms(5_000));
    assert_eq!(it.sleeps(), Wake::ReplyDue);
    it.waits(Wake::BackOff);
}

/// S79.
#[test]
fn what_was_never_heard_of_is_undone_before_it_is_reported() {
    let mut it = acquire(Patience::Once);
    for _ in 0..2 {
        it.asks("lock_acquire").fails(FailureKind::Broken);
        it.sleeps();
    }
    it.asks("lock_acquire").fails(FailureKind::TimedOut);
    let outcome = it.asks("lock_release").hears(0, "0", 0).done();
    assert_eq!(it.arg(OWNER), it.asked[0].args()[OWNER - 1]);
    assert_eq!(it.arg(NOT_AFTER), it.asked[0].args()[NOT_AFTER - 1]);
    assert_eq!(outcome.unwrap_err(), AcquireError::Unreachable(FailureKind::TimedOut));
}

/// S2.
#[test]
fn what_cannot_be_undone_is_unknown_and_has_an_end() {
    let mut it = acquire(Patience::Once);
    for script in ["lock_acquire", "lock_release"] {
        for attempt in 1..=3 {
            it.asks(script).fails(FailureKind::Broken);
            if attempt < 3 {
                it.sleeps();
            }
        }
    }
    let held_at_most = held_at_most(90_000 + 30_000, it.now.since(start()));
    let unknown = AcquireError::Unknown { held_at_most, cause: FailureKind::Broken };
    assert_eq!(it.done().unwrap_err(), unknown);
}

#[test]
fn a_request_that_never_left_needs_no_undoing() {
    let mut it = acquire(Patience::Once);
    for _ in 0..2 {
        it.asks("lock_acquire").fails(FailureKind::NotSent);
        it.sleeps();
    }
    let outcome = it.asks("lock_acquire").fails(FailureKind::NotSent).done();
    assert_eq!(outcome.unwrap_err(), AcquireError::Unreachable(FailureKind::NotSent));
}

/// S19.
#[test]
fn a_grant_with_less_than_half_of_the_lease_left_is_given_back() {
    let spec = AcquireSpec { lease: lease(1_000), ..spec(Patience::Once) };
    let mut it = Conversation::new(Acquire::new(spec, entropy(), clock(), start()));
    it.asks("lock_acquire").after(489).hears(1, TOKEN, 1_000);
    let outcome = it.asks("lock_release").hears(1, "0", 0).done();
    assert_eq!(outcome.unwrap_err(), AcquireError::TooSlow);
}

/// S20.
#[test]
fn half_of_the_lease_is_enough() {
    let spec = AcquireSpec { lease: lease(1_000), ..spec(Patience::Once) };
    let mut it = Conversation::new(Acquire::new(spec, entropy(), clock(), start()));
    it.asks("lock_acquire").after(488).hears(1, TOKEN, 1_000).done().unwrap();
}

/// S20.
#[test]
fn a_waiter_whose_grant_came_too_late_asks_again_under_a_new_owner() {
    let spec = AcquireSpec { lease: lease(1_000), ..spec(up_to(30_000)) };
    let mut it = Conversation::new(Acquire::new(spec, entropy(), clock(), start()));
    it.asks("lock_acquire").after(600).hears(1, TOKEN, 1_000);
    it.asks("lock_release").hears(1, "0", 0);
    it.asks("lock_acquire").hears(1, TOKEN, 1_000).done().unwrap();
    assert_ne!(it.arg(OWNER), it.asked[0].args()[OWNER - 1]);
}

#[test]
fn lost_while_unheard_of_is_abandoned_and_asked_anew() {
    let mut it = acquire(up_to(30_000));
    it.asks("lock_acquire").fails(FailureKind::Broken);
    it.sleeps();
    it.asks("lock_acquire").hears(-3, TOKEN, 0);
    it.asks("lock_release").hears(0, "0", 0);
    it.asks("lock_acquire").hears(1, TOKEN, 30_000).done().unwrap();
    assert!(it.arg(OWNER).ends_with(":2"));
}

#[test]
fn gone_after_a_last_try_means_that_its_first_execution_was_refused() {
    let mut it = acquire(Patience::Once);
    it.asks("lock_acquire").fails(FailureKind::Broken);
    it.sleeps();
    let outcome = it.asks("lock_acquire").hears(-2, "0", 0).done();
    assert_eq!(outcome.unwrap_err(), AcquireError::Busy { remaining: None });
    assert_eq!(it.asked.len(), 2, "the tombstone is there, so nothing is left to undo");
}

/// S20.
#[test]
fn a_try_that_comes_late_is_undone_and_made_once_more_by_the_new_clock() {
    let mut it = acquire(Patience::Once);
    it.asks("lock_acquire").after(500).hears(-1, "0", 0);
    it.asks("lock_release").hears(0, "0", 0);
    it.asks("lock_acquire");
    assert_eq!(it.arg(NOT_AFTER), (SERVER_MS + 500 + 90_000).to_string());
    it.hears(-1, "0", 0);
    let outcome = it.asks("lock_release").hears(0, "0", 0).done();
    assert_eq!(outcome.unwrap_err(), AcquireError::TooSlow);
}

#[test]
fn a_long_wait_goes_on_under_a_new_owner_before_its_bound() {
    let mut it = acquire(Patience::UntilCancelled);
    while it.now.since(start()) < Duration::from_secs(600) {
        it.asks("lock_acquire").hears(0, "1", -1);
        it.sleeps();
    }
    it.asks("lock_release").hears(0, "0", 0);
    it.asks("lock_acquire");
    assert!(it.arg(OWNER).ends_with(":2"));
    assert_ne!(it.arg(NOT_AFTER), it.asked[0].args()[NOT_AFTER - 1]);
}

/// S67.
#[test]
fn a_clear_no_ends_the_wait_at_once() {
    let mut it = acquire(up_to(30_000));
    let outcome = it.asks("lock_acquire").is_refused("WRONGPASS invalid token").done();
    let Err(AcquireError::Refused(refusal)) = outcome else { panic!("{outcome:?}") };
    assert_eq!((refusal.kind(), refusal.code()), (RefusalKind::Unauthorized, "WRONGPASS"));
    assert_eq!(it.asked.len(), 1, "nothing was done, so nothing is undone");
}

/// S67.
#[test]
fn a_script_that_may_have_stopped_half_way_is_undone() {
    let mut it = acquire(Patience::Once);
    it.asks("lock_acquire").is_refused("ERR The user executing the script can't run this command");
    let outcome = it.asks("lock_release").hears(1, "0", 0).done();
    assert!(matches!(outcome, Err(AcquireError::Refused(_))), "{outcome:?}");
}

#[test]
fn what_was_refused_for_now_is_undone_since_a_copy_may_be_granted_later() {
    let mut it = acquire(Patience::Once);
    it.asks("lock_acquire").is_refused("OOM command not allowed when used memory > 'maxmemory'.");
    let outcome = it.asks("lock_release").hears(0, "0", 0).done();
    let Err(AcquireError::Refused(refusal)) = outcome else { panic!("{outcome:?}") };
    assert_eq!(refusal.kind(), RefusalKind::OutOfMemory);
}

/// S67.
#[test]
fn a_redis_that_is_not_ready_is_asked_again() {
    let mut it = acquire(up_to(30_000));
    it.asks("lock_acquire").is_refused("LOADING Redis is loading the dataset in memory");
    it.sleeps();
    it.asks("lock_acquire").hears(1, TOKEN, 30_000).done().unwrap();
}

#[test]
fn a_token_out_of_range_is_a_refusal() {
    let mut it = acquire(Patience::Once);
    it.asks("lock_acquire").hears(-6, "0", 0);
    // The script wrote no tombstone, so a copy is kept from being granted.
    let outcome = it.asks("lock_release").hears(0, "0", 0).done();
    let Err(AcquireError::Refused(refusal)) = outcome else { panic!("{outcome:?}") };
    assert_eq!(refusal.kind(), RefusalKind::TokenRange);
}

#[test]
fn a_grant_without_a_token_is_not_believed() {
    for value in ["0", "x", "", "9007199254740992"] {
        let mut it = acquire(Patience::Once);
        it.asks("lock_acquire").hears(1, value, 30_000);
        let outcome = it.asks("lock_release").hears(1, "0", 0).done();
        assert!(matches!(outcome, Err(AcquireError::Unreachable(_))), "{value}: {outcome:?}");
    }
}

#[test]
fn an_answer_that_no_acquisition_gives_is_undone() {
    // Nothing, unknown, superseded, the script failed; and that a bound is required of what has one.
    for code in [3, -4, -5, -7, -11] {
        let mut it = acquire(Patience::Once);
        it.asks("lock_acquire").hears(code, "0", 0);
        let outcome = it.asks("lock_release").hears(0, "0", 0).done();
        assert!(matches!(outcome, Err(AcquireError::Unreachable(_))), "{code}: {outcome:?}");
    }
}

#[test]
fn an_owner_that_has_ended_goes_on_under_another_and_leaves_nothing_to_undo() {
    let mut it = acquire(up_to(30_000));
    it.asks("lock_acquire").hears(-2, "0", 0).asks("lock_acquire");
    assert_ne!(it.asked[0].args()[4], it.asked[1].args()[4], "the owner");
    it.hears(1, TOKEN, 30_000).done().unwrap();
    let outcome = acquire(Patience::Once).asks("lock_acquire").hears(-2, "0", 0).done();
    assert_eq!(outcome, Err(AcquireError::Busy { remaining: None }));
}

#[test]
fn a_bound_that_is_asked_for_is_given() {
    let spec = AcquireSpec { budget: budget(4), ..spec(up_to(30_000)) };
    let mut it = Conversation::new(Acquire::new(spec, entropy(), None, start()));
    it.asks("lock_acquire");
    assert_eq!(it.arg(2), "", "no bound is known");
    it.hears(-4, "0", 0).asks("lock_acquire");
    // A minute and a half after the wait.
    assert_eq!(it.arg(2), (SERVER_MS + 30_000 + 90_000).to_string());
    it.hears(1, TOKEN, 30_000).done().unwrap();
}
