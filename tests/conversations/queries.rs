//! Queries of an object's state.

use edgelatch_proto::error::{FailureKind, RefusalKind, RequestError};
use edgelatch_proto::machine::{LockState, PermitsState, Query, SemaphoreState, parse_number};
use edgelatch_proto::protocol::reply::{Code, Reply};

use crate::language::*;

const INSPECT: &str = "lock_inspect";

fn inspect() -> Conversation<Query> {
    Conversation::new(inspect_machine())
}

/// The reply of a query that succeeds, with this value and time.
fn state(code: Code, value: &str, ms: i64) -> Reply {
    inspect().expect_call(INSPECT).reply(ScriptReply::new(code, value, ms)).expect_done().unwrap()
}

#[test]
fn the_state_of_a_held_lock_has_its_count_token_and_remaining_time() {
    // The value: the last token, the hold count, and 1 if the owner of the query holds the lock.
    let state = LockState::read(&state(Code::Done, "77,2,1", 500));
    let held = LockState {
        is_locked: true,
        hold_count: 2,
        remaining: Some(ms(500)),
        last_token: 77,
        is_held: true,
    };
    assert_eq!(state, Ok(held));
}

#[test]
fn a_free_lock_has_neither_remaining_time_nor_holder() {
    let state = LockState::read(&state(Code::No, "77,0,0", -2)).unwrap();
    assert!(!state.is_locked && state.remaining.is_none() && !state.is_held);
}

#[test]
fn a_state_without_three_numbers_is_rejected() {
    for value in ["", "1,2", "x,1,0", "1,,0"] {
        let state = LockState::read(&state(Code::Done, value, 5));
        assert!(matches!(state, Err(RequestError::Unreachable(_))), "{value}");
    }
}

#[test]
fn the_states_of_permits_and_of_a_semaphore_have_their_numbers() {
    // The value for permits: last token, held permits, 1 if the queried permits are held, available
    // permits, and permits in all. For a semaphore the second number is that of the leases, and the
    // last that of their permits.
    for held in [1, 0] {
        let reply = state(Code::Done, &format!("9,2,{held},3,5"), 700);
        let (available, acquired, total, are_held) = (3, 2, 5, held == 1);
        let remaining = Some(ms(700));
        let permits = PermitsState { available, acquired, total, remaining, are_held };
        assert_eq!(PermitsState::read(&reply), Ok(permits));
        let semaphore = SemaphoreState { available: 3, leases: 2, held: 5 };
        assert_eq!(SemaphoreState::read(&reply), Ok(semaphore));
    }
}

#[test]
fn a_numeric_reply_must_be_a_number() {
    for value in [-1, 0, 7, i64::MAX] {
        assert_eq!(parse_number(&state(Code::Done, &value.to_string(), 0)), Ok(value));
    }
    for value in ["", "x", "1.5", "9223372036854775808"] {
        let number = parse_number(&state(Code::Done, value, 0));
        assert!(matches!(number, Err(RequestError::Unreachable(_))), "{value}");
    }
}

#[test]
fn a_query_is_sent_three_times_at_most() {
    let it = inspect().fail_attempts(INSPECT, 3, FailureKind::TimedOut);
    assert_eq!(it.expect_done(), Err(RequestError::Unreachable(FailureKind::TimedOut)));
}

#[test]
fn a_refusal_after_an_unanswered_query_leaves_the_outcome_unknown() {
    let refused_after = |kind| {
        let it = inspect().fail_attempts(INSPECT, 1, kind).advance_to_timeout();
        it.expect_call(INSPECT).refuse("WRONGPASS no").expect_done()
    };
    let unconfirmed = FailureKind::RefusedLater(RefusalKind::Unauthorized);
    let outcome = refused_after(FailureKind::Broken);
    assert_eq!(outcome, Err(RequestError::Unreachable(unconfirmed)));
    // A request that was never sent has done nothing.
    let outcome = refused_after(FailureKind::NotSent);
    assert!(matches!(outcome, Err(RequestError::Refused(_))), "{outcome:?}");
}
