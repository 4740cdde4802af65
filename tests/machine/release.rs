//! Ending a hold.

use edgelatch::error::{FailureKind, ReleaseError};
use edgelatch::machine::{Release, Released};
use edgelatch::timing::{AttemptTime, LeaseTime};

use crate::conversation::*;

fn release(longest: LeaseTime) -> Conversation<Release> {
    let grant = grant(LeaseTime::DEFAULT);
    Conversation::new(Release::new(&calls(), &grant, longest, AttemptTime::DEFAULT, entropy()))
}

#[test]
fn one_request_ends_a_hold_under_the_bound_of_its_acquisition() {
    let mut it = release(LeaseTime::DEFAULT);
    let outcome = it.asks("lock_release").hears(1, "0", 0).done();
    assert_eq!(outcome, Ok(Released::Released));
    assert_eq!(it.asked[0].args()[1], (SERVER_MS + 90_000).to_string());
}

#[test]
fn a_hold_that_was_not_there_is_said_to_have_been_lost() {
    let outcome = release(LeaseTime::DEFAULT).asks("lock_release").hears(0, "0", 0).done();
    assert_eq!(outcome, Ok(Released::WasLost));
}

#[test]
fn asked_again_under_its_request_id_it_takes_the_recorded_verdict() {
    let mut it = release(LeaseTime::DEFAULT);
    it.asks("lock_release").fails(FailureKind::Broken);
    it.sleeps();
    assert_eq!(it.asks("lock_release").hears(1, "0", 0).done(), Ok(Released::Released));
    assert_eq!(it.asked[0], it.asked[1]);
}

#[test]
fn five_attempts_without_an_answer_leave_it_unknown_until_every_copy_has_run_out() {
    let mut it = release(lease(60_000));
    for attempt in 1..=5 {
        it.asks("lock_release").fails(FailureKind::TimedOut);
        if attempt < 5 {
            it.sleeps();
        }
    }
    // A copy of the acquisition can still come 90 s after it was sent, and extends by a lease then.
    let held_at_most = ms(60_000 + 90_000) - it.now.since(start());
    let unknown = ReleaseError::Unknown { held_at_most, cause: FailureKind::TimedOut };
    assert_eq!(it.done(), Err(unknown));
}

#[test]
fn a_refusal_after_an_attempt_that_was_not_heard_of_proves_nothing() {
    let mut it = release(LeaseTime::DEFAULT);
    it.asks("lock_release").fails(FailureKind::Broken);
    it.sleeps();
    let outcome = it.asks("lock_release").is_refused("WRONGPASS no").done();
    assert!(matches!(outcome, Err(ReleaseError::Unknown { .. })), "{outcome:?}");
}

#[test]
fn cancelling_does_not_stop_it() {
    let mut it = release(LeaseTime::DEFAULT);
    let outcome = it.asks("lock_release").is_cancelled().hears(1, "0", 0).done();
    assert_eq!(outcome, Ok(Released::Released));
}
