//! What is done once, at the example of ending somebody else's hold.

use edgelatch::error::{FailureKind, RequestError};
use edgelatch::machine::Once;
use edgelatch::protocol::reply::{Code, ServerClock};
use edgelatch::timing::AttemptTime;

use crate::support::conversation::*;

fn force_release(clock: Option<ServerClock>) -> Conversation<Once> {
    let call = target().force_release();
    Conversation::new(Once::new(call, AttemptTime::DEFAULT, entropy(), clock, start()))
}

/// One whose three attempts were not heard of: it cancels.
fn not_heard_of() -> Conversation<Once> {
    let mut it = force_release(clock());
    for attempt in 1..=3 {
        it.asks("lock_force_release").fails(FailureKind::Broken);
        if attempt < 3 {
            it.sleeps();
        }
    }
    it.asks("cancel");
    it
}

fn code(
    outcome: Result<edgelatch::protocol::reply::Reply, RequestError>,
) -> Result<Code, RequestError> {
    outcome.map(|reply| reply.code)
}

#[test]
fn it_answers_what_the_script_did() {
    let outcome = force_release(clock()).asks("lock_force_release").hears(1, "0", 0).done();
    assert_eq!(code(outcome), Ok(Code::Done));
    let outcome = force_release(clock()).asks("lock_force_release").hears(0, "0", 0).done();
    assert_eq!(code(outcome), Ok(Code::No));
}

#[test]
fn without_the_clock_the_first_request_only_learns_it() {
    let mut it = force_release(None);
    it.asks("lock_force_release");
    assert_eq!(it.arg(2), "");
    it.hears(-4, "0", 0).asks("lock_force_release");
    assert_eq!(it.arg(2), (SERVER_MS + 3 * 5_000 + 5_000).to_string());
    assert_ne!(it.asked[0].request, it.asked[1].request);
    assert_eq!(code(it.hears(1, "0", 0).done()), Ok(Code::Done));
}

#[test]
fn one_that_came_late_was_not_done_and_is_asked_anew() {
    let mut it = force_release(clock());
    it.asks("lock_force_release").hears(-1, "0", 0);
    assert_eq!(code(it.asks("lock_force_release").hears(1, "0", 0).done()), Ok(Code::Done));
}

#[test]
fn it_does_not_ask_anew_for_ever() {
    let mut it = force_release(None);
    for _ in 0..3 {
        it.asks("lock_force_release").hears(-1, "0", 0);
    }
    assert_eq!(it.done(), Err(RequestError::NotDone(FailureKind::TimedOut)));
}

#[test]
fn what_was_not_heard_of_is_cancelled_under_its_own_id_and_bound() {
    let it = not_heard_of();
    let (asked, cancel) = (&it.asked[0], &it.asked[3]);
    assert_eq!(asked.request, cancel.request);
    assert_eq!(
        (asked.keys()[0].clone(), &asked.args()[..3]),
        (cancel.keys()[0].clone(), &cancel.args()[..3])
    );
}

#[test]
fn a_cancelled_request_was_not_done() {
    let outcome = not_heard_of().hears(-2, "0", 0).done();
    assert_eq!(outcome, Err(RequestError::NotDone(FailureKind::Broken)));
}

#[test]
fn a_request_that_was_done_before_it_was_cancelled_has_its_answer() {
    assert_eq!(code(not_heard_of().hears(1, "0", 1).done()), Ok(Code::Done));
}

#[test]
fn what_can_be_told_no_more_is_unknown() {
    let outcome = not_heard_of().hears(-5, "0", 0).done();
    assert_eq!(outcome, Err(RequestError::Unreachable(FailureKind::Broken)));
}

#[test]
fn without_an_answer_to_the_cancelling_it_is_unknown() {
    let mut it = not_heard_of();
    it.fails(FailureKind::TimedOut);
    for _ in 0..2 {
        it.sleeps();
        it.asks("cancel").fails(FailureKind::TimedOut);
    }
    assert_eq!(it.done(), Err(RequestError::Unreachable(FailureKind::Broken)));
}

#[test]
fn a_request_without_a_bound_is_never_done_so_nothing_is_cancelled() {
    let mut it = force_release(None);
    for attempt in 1..=3 {
        it.asks("lock_force_release").fails(FailureKind::TimedOut);
        if attempt < 3 {
            it.sleeps();
        }
    }
    assert_eq!(it.done(), Err(RequestError::NotDone(FailureKind::TimedOut)));
}

#[test]
fn a_refusal_after_an_attempt_that_was_not_heard_of_proves_nothing() {
    let mut it = force_release(clock());
    it.asks("lock_force_release").fails(FailureKind::Broken);
    it.sleeps();
    it.asks("lock_force_release").is_refused("WRONGPASS no");
    assert_eq!(it.asked[0], it.asked[1]);
    let outcome = it.asks("cancel").is_refused("WRONGPASS no").done();
    assert!(matches!(outcome, Err(RequestError::Unreachable(_))), "{outcome:?}");
}

/// S66, S67.
#[test]
fn what_is_refused_for_now_is_cancelled_since_a_copy_may_be_done_a_little_later() {
    for error in ["LOADING Redis is loading the dataset in memory", "OOM command not allowed"] {
        let refused = || {
            let mut it = force_release(clock());
            it.asks("lock_force_release").is_refused(error);
            while it.is_waiting() {
                it.sleeps();
                it.asks("lock_force_release").is_refused(error);
            }
            it.asks("cancel");
            it
        };
        let outcome = refused().hears(-2, "0", 0).done();
        assert!(matches!(outcome, Err(RequestError::Refused(_))), "{outcome:?}");
        // A copy was quicker.
        assert_eq!(code(refused().hears(1, "0", 1).done()), Ok(Code::Done));
        let mut it = refused();
        it.fails(FailureKind::Broken);
        for _ in 0..2 {
            it.sleeps();
            it.asks("cancel").fails(FailureKind::Broken);
        }
        let outcome = it.done();
        assert!(matches!(outcome, Err(RequestError::Unreachable(_))), "{outcome:?}");
    }
}

#[test]
fn a_refusal_at_once_is_told() {
    let outcome =
        force_release(clock()).asks("lock_force_release").is_refused("WRONGPASS no").done();
    assert!(matches!(outcome, Err(RequestError::Refused(_))), "{outcome:?}");
}

#[test]
fn an_answer_that_no_cancelling_gives_proves_nothing() {
    // Late; and that a bound is required of what has one.
    for number in [-1, -4] {
        let outcome = not_heard_of().hears(number, "0", 0).done();
        assert_eq!(outcome, Err(RequestError::Unreachable(FailureKind::Broken)), "{number}");
    }
}

#[test]
fn what_has_not_left_is_not_cancelled() {
    let mut it = force_release(clock());
    for attempt in 1..=3 {
        it.asks("lock_force_release").fails(FailureKind::NotSent);
        if attempt < 3 {
            it.sleeps();
        }
    }
    assert_eq!(code(it.done()), Err(RequestError::Unreachable(FailureKind::NotSent)));
}

#[test]
fn what_no_such_script_says_is_no_answer() {
    for said in [-2, -5] {
        let outcome = force_release(clock()).asks("lock_force_release").hears(said, "0", 0).done();
        let garbled = RequestError::Unreachable(FailureKind::Garbled { status: 200 });
        assert_eq!(code(outcome), Err(garbled), "{said}");
    }
}
