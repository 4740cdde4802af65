//! Ending somebody else's hold.

use edgelatch::error::{FailureKind, RequestError};
use edgelatch::machine::{ForceRelease, Wake};
use edgelatch::protocol::reply::{Code, ServerClock};
use edgelatch::timing::AttemptTime;

use super::given::{ATTEMPT, ENTROPY, calls};
use crate::virtual_time::{Conversation, SERVER_START, START, conversation, known_clock, says};

const NOT_AFTER: usize = 1;

fn forcing(clock: Option<ServerClock>) -> Conversation<ForceRelease> {
    conversation(ForceRelease::new(calls(), AttemptTime::DEFAULT, ENTROPY, clock, START)).asks("lock_force_release")
}

#[test]
fn it_tells_whether_there_was_a_hold() {
    assert_eq!(forcing(Some(known_clock())).hears(says(Code::Done)).ends(), Ok(true));
    assert_eq!(forcing(Some(known_clock())).hears(says(Code::No)).ends(), Ok(false));
}

#[test]
fn a_client_that_has_not_seen_the_clock_learns_it_first() {
    let learning = forcing(None);
    assert_eq!(learning.args(0)[NOT_AFTER], "");
    // Without a bound the script does nothing but tell the time.
    let asked = learning.hears(says(Code::BoundRequired)).asks("lock_force_release");
    assert_eq!(asked.args(1)[NOT_AFTER], (SERVER_START + 90_000).to_string());
    assert_ne!(asked.args(0)[0], asked.args(1)[0], "another request");
    assert_eq!(asked.hears(says(Code::Done)).ends(), Ok(true));
}

#[test]
fn an_attempt_without_an_answer_is_repeated_under_the_same_request() {
    let asked = forcing(Some(known_clock())).waits_for(Wake::ReplyDue, ATTEMPT).wakes().waits(Wake::BackOff).wakes();
    let asked = asked.asks("lock_force_release");
    assert_eq!(asked.args(0), asked.args(1));
}

#[test]
fn late_is_proof_that_it_was_not_done_so_it_is_asked_for_anew() {
    let late = forcing(Some(known_clock())).travels(100_000).hears(says(Code::Late)).asks("lock_force_release");
    assert_eq!(late.args(1)[NOT_AFTER], (SERVER_START + 190_000).to_string());
    assert_ne!(late.args(0)[0], late.args(1)[0]);
}

#[test]
fn it_ends_though_every_answer_is_late() {
    let mut late = forcing(None).hears(says(Code::BoundRequired)).asks("lock_force_release");
    late = late.hears(says(Code::Late)).asks("lock_force_release").hears(says(Code::Late));
    assert!(matches!(late.ends(), Err(RequestError::Unreachable(_))));
}

#[test]
fn three_attempts_without_an_answer_leave_it_unreachable() {
    let mut silent = forcing(Some(known_clock()));
    for _ in 0..2 {
        silent = silent.fails(FailureKind::Broken).wakes().asks("lock_force_release");
    }
    assert_eq!(silent.fails(FailureKind::Broken).ends(), Err(RequestError::Unreachable(FailureKind::Broken)));
}

#[test]
fn a_refusal_ends_it() {
    assert!(matches!(forcing(Some(known_clock())).refused("WRONGTYPE x").ends(), Err(RequestError::Refused(_))));
}
