//! Ending somebody else's hold.

use edgelatch::error::{FailureKind, RequestError};
use edgelatch::machine::ForceRelease;
use edgelatch::protocol::reply::ServerClock;
use edgelatch::timing::AttemptTime;

use crate::conversation::*;

fn force_release(clock: Option<ServerClock>) -> Conversation<ForceRelease> {
    let attempt = AttemptTime::DEFAULT;
    Conversation::new(ForceRelease::new(calls(), attempt, entropy(), clock, start()))
}

#[test]
fn it_answers_whether_there_was_a_hold() {
    let outcome = force_release(clock()).asks("lock_force_release").hears(1, "0", 0).done();
    assert_eq!(outcome, Ok(true));
    let outcome = force_release(clock()).asks("lock_force_release").hears(0, "0", 0).done();
    assert_eq!(outcome, Ok(false));
}

#[test]
fn without_the_clock_the_first_request_only_learns_it() {
    let mut it = force_release(None);
    it.asks("lock_force_release");
    assert_eq!(it.arg(2), "");
    it.hears(-4, "0", 0).asks("lock_force_release");
    assert_eq!(it.arg(2), (SERVER_MS + 3 * 5_000 + 90_000).to_string());
    assert_ne!(it.asked[0].request, it.asked[1].request);
    assert_eq!(it.hears(1, "0", 0).done(), Ok(true));
}

#[test]
fn one_that_came_late_was_not_done_and_is_asked_anew() {
    let mut it = force_release(clock());
    it.asks("lock_force_release").hears(-1, "0", 0);
    assert_eq!(it.asks("lock_force_release").hears(1, "0", 0).done(), Ok(true));
}

#[test]
fn it_does_not_ask_anew_for_ever() {
    let mut it = force_release(None);
    for _ in 0..3 {
        it.asks("lock_force_release").hears(-1, "0", 0);
    }
    assert!(matches!(it.done(), Err(RequestError::Unreachable(_))));
}

#[test]
fn a_refusal_after_an_attempt_that_was_not_heard_of_proves_nothing() {
    let mut it = force_release(clock());
    it.asks("lock_force_release").fails(FailureKind::Broken);
    it.sleeps();
    let outcome = it.asks("lock_force_release").is_refused("WRONGPASS no").done();
    assert!(matches!(outcome, Err(RequestError::Unreachable(_))), "{outcome:?}");
    assert_eq!(it.asked[0], it.asked[1]);
}
