//! Asking for a lock's state, and renewing on demand.

use std::time::Duration;

use edgelatch::error::{FailureKind, LossReason, RequestError};
use edgelatch::machine::{Inspect, LockState, Renew, Wake};
use edgelatch::protocol::reply::Code;
use edgelatch::timing::{AttemptTime, LeaseTime};

use super::given::{ATTEMPT, ENTROPY, calls, grant};
use crate::virtual_time::{Conversation, SERVER_START, START, Says, conversation, granted, known_clock, ms, says};

fn inspecting() -> Conversation<Inspect> {
    let owner = grant().owner;
    conversation(Inspect::new(&calls(), Some(&owner), AttemptTime::DEFAULT, ENTROPY)).asks("lock_inspect")
}

fn renewing(lease_ms: u64) -> Conversation<Renew> {
    let (lease, clock) = (LeaseTime::new(ms(lease_ms)).unwrap(), Some(known_clock()));
    let renew = Renew::new(&calls(), &grant(), lease, AttemptTime::DEFAULT, ENTROPY, clock, START);
    conversation(renew).asks("lock_renew")
}

#[test]
fn a_state_is_read_from_one_answer() {
    let state = inspecting().hears(Says(Code::Done, "17,2,1".into(), 900)).ends().unwrap();
    let remaining = Some(ms(900));
    assert_eq!(state, LockState { is_locked: true, hold_count: 2, remaining, last_token: 17, is_held: true });
}

#[test]
fn a_free_lock_and_a_hold_without_an_end_remain_for_no_time_that_is_known() {
    let free = inspecting().hears(Says(Code::No, "17,0,0".into(), -2)).ends().unwrap();
    assert!(!free.is_locked && free.remaining.is_none() && !free.is_held);
    let endless = inspecting().hears(Says(Code::Done, "0,1,0".into(), -1)).ends().unwrap();
    assert!(endless.is_locked && endless.remaining.is_none());
}

#[test]
fn an_answer_of_another_shape_is_no_answer() {
    for value in ["", "1", "1,2", "1,2,x", "1,2,3,4", "1,,0"] {
        let odd = inspecting().hears(Says(Code::Done, value.into(), 0)).ends();
        assert_eq!(odd, Err(RequestError::Unreachable(FailureKind::Garbled { status: 200 })), "{value}");
    }
}

#[test]
fn a_question_is_asked_three_times() {
    let mut silent = inspecting();
    for _ in 0..2 {
        silent = silent.waits_for(Wake::ReplyDue, ATTEMPT).wakes().wakes().asks("lock_inspect");
    }
    assert_eq!(silent.wakes().ends(), Err(RequestError::Unreachable(FailureKind::TimedOut)));
}

#[test]
fn a_renewal_on_demand_counts_from_its_sending() {
    let renewed = renewing(60_000).travels(3_000);
    let now = renewed.now();
    let lease = renewed.hears(granted(42)).ends().unwrap();
    assert_eq!(lease.remaining(now), ms(60_000 - 602 - 3_000));
}

#[test]
fn a_renewal_on_demand_has_one_attempt_and_a_bound_made_for_it() {
    let renewing = renewing(60_000).waits_for(Wake::ReplyDue, ATTEMPT);
    assert_eq!(renewing.args(0)[1], (SERVER_START + ATTEMPT + 1_000).to_string());
    assert_eq!(renewing.wakes().ends(), Err(RequestError::Unreachable(FailureKind::TimedOut)));
}

#[test]
fn a_renewal_of_a_hold_that_is_gone_is_lost() {
    assert_eq!(renewing(60_000).hears(says(Code::Lost)).ends(), Err(RequestError::Lost(LossReason::Gone)));
}

#[test]
fn an_attempt_at_a_short_lease_is_short() {
    let short = renewing(300).waits_for(Wake::ReplyDue, 100);
    let now = short.now();
    assert_ne!(short.hears(granted(42)).ends().unwrap().remaining(now), Duration::ZERO);
}
