//! Asking for a lock's state, and renewing on demand.

use edgelatch::error::{FailureKind, LossReason, RefusalKind, RequestError};
use edgelatch::machine::{LockState, PermitsState, Question, Renew, SemaphoreState, number};
use edgelatch::timing::{AttemptTime, LeaseTime};

use crate::support::conversation::*;

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

#[test]
fn a_refusal_after_a_question_that_was_not_heard_of_is_told_as_one() {
    let unheard = FailureKind::RefusedLater(RefusalKind::Unauthorized);
    let mut it = inspect();
    it.asks("lock_inspect").fails(FailureKind::Broken);
    it.sleeps();
    let outcome = it.asks("lock_inspect").is_refused("WRONGPASS no").done();
    assert_eq!(outcome, Err(RequestError::Unreachable(unheard)));
    // One that has not left has done nothing.
    let mut it = inspect();
    it.asks("lock_inspect").fails(FailureKind::NotSent);
    it.sleeps();
    let outcome = it.asks("lock_inspect").is_refused("WRONGPASS no").done();
    assert!(matches!(outcome, Err(RequestError::Refused(_))), "{outcome:?}");
}

#[test]
fn a_reply_may_be_a_number_and_is_none_else() {
    let answered = |value: &str| inspect().asks("lock_inspect").hears(1, value, 0).done().unwrap();
    for told in [-1, 0, 7, i64::MAX] {
        assert_eq!(number(&answered(&told.to_string())), Ok(told));
    }
    for value in ["", "x", "1.5", "9223372036854775808"] {
        assert!(matches!(number(&answered(value)), Err(RequestError::Unreachable(_))), "{value}");
    }
}

#[test]
fn of_permits_it_is_told_how_many_there_are_and_whether_these_are_held() {
    for held in [1, 0] {
        let value = format!("9,2,{held},3,5");
        let reply = inspect().asks("lock_inspect").hears(1, &value, 700).done().unwrap();
        let (available, acquired, total, are_held) = (3, 2, 5, held == 1);
        let remaining = Some(ms(700));
        let state = PermitsState { available, acquired, total, remaining, are_held };
        assert_eq!(PermitsState::read(&reply), Ok(state));
        let state = SemaphoreState { available: 3, leases: 2, held: 5 };
        assert_eq!(SemaphoreState::read(&reply), Ok(state));
    }
}
