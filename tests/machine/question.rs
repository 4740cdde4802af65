//! Asking for a lock's state, and renewing on demand.

use edgelatch::error::{FailureKind, LossReason, RequestError};
use edgelatch::machine::{LockState, Question, Renew};
use edgelatch::timing::{AttemptTime, LeaseTime};

use crate::conversation::*;

fn inspect() -> Conversation<Question> {
    let inspect = |request| target().inspect(request, None);
    Conversation::new(Question::new(inspect, AttemptTime::DEFAULT, entropy()))
}

fn renew() -> Conversation<Renew> {
    let (grant, attempt) = (grant(LeaseTime::DEFAULT), AttemptTime::DEFAULT);
    let renew = Renew::new(&target(), &grant, lease(60_000), attempt, entropy(), clock(), start());
    Conversation::new(renew)
}

#[test]
fn a_held_lock_is_told_with_its_count_its_token_and_its_remaining_time() {
    let outcome = inspect().asks("lock_inspect").hears(1, "77,2,1", 500).done();
    let state = LockState {
        is_locked: true,
        hold_count: 2,
        remaining: Some(ms(500)),
        last_token: 77,
        is_held: true,
    };
    assert_eq!(outcome.and_then(|reply| LockState::read(&reply)), Ok(state));
}

#[test]
fn a_free_lock_has_neither_end_nor_holder() {
    let state = inspect().asks("lock_inspect").hears(0, "77,0,0", -2).done().unwrap();
    let state = LockState::read(&state).unwrap();
    assert!(!state.is_locked && state.remaining.is_none() && !state.is_held);
}

#[test]
fn a_state_that_is_no_three_numbers_is_not_believed() {
    for value in ["", "1,2", "x,1,0", "1,,0"] {
        let outcome = inspect().asks("lock_inspect").hears(1, value, 5).done();
        let state = LockState::read(&outcome.unwrap());
        assert!(matches!(state, Err(RequestError::Unreachable(_))), "{value}");
    }
}

#[test]
fn a_question_is_asked_three_times() {
    let mut it = inspect();
    for attempt in 1..=3 {
        it.asks("lock_inspect").fails(FailureKind::TimedOut);
        if attempt < 3 {
            it.sleeps();
        }
    }
    assert_eq!(it.done(), Err(RequestError::Unreachable(FailureKind::TimedOut)));
}

#[test]
fn a_renewal_on_demand_counts_from_its_sending() {
    let mut it = renew();
    let lease = it.asks("lock_renew").after(100).hears(1, TOKEN, 60_000).done().unwrap();
    assert_eq!(lease.lease.remaining(it.now), ms(60_000 - 602 - 100));
    assert_eq!(lease.token.as_u64().to_string(), TOKEN);
}

#[test]
fn a_renewal_on_demand_tells_of_a_loss() {
    let outcome = renew().asks("lock_renew").hears(-3, "0", 0).done();
    assert_eq!(outcome, Err(RequestError::Lost(LossReason::Gone)));
}

#[test]
fn a_renewal_on_demand_is_asked_once() {
    let outcome = renew().asks("lock_renew").fails(FailureKind::Broken).done();
    assert_eq!(outcome, Err(RequestError::Unreachable(FailureKind::Broken)));
}
