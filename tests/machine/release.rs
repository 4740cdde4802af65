//! Ending a hold.

use edgelatch::error::{FailureKind, RefusalKind, ReleaseError};
use edgelatch::machine::{Release, Released, Wake};
use edgelatch::protocol::reply::Code;
use edgelatch::timing::{AttemptTime, LeaseTime};

use super::given::{ATTEMPT, ENTROPY, calls, grant};
use crate::virtual_time::{Conversation, conversation, ms, says};

fn releasing(longest: LeaseTime) -> Conversation<Release> {
    conversation(Release::new(&calls(), &grant(), longest, AttemptTime::DEFAULT, ENTROPY)).asks("lock_release")
}

#[test]
fn a_release_is_one_call() {
    assert_eq!(releasing(LeaseTime::DEFAULT).hears(says(Code::Done)).ends(), Ok(Released::Released));
}

#[test]
fn a_hold_that_had_ended_before_was_lost() {
    assert_eq!(releasing(LeaseTime::DEFAULT).hears(says(Code::No)).ends(), Ok(Released::WasLost));
}

#[test]
fn a_release_of_which_nothing_was_heard_is_asked_for_its_verdict() {
    let asked = releasing(LeaseTime::DEFAULT).waits_for(Wake::ReplyDue, ATTEMPT).wakes().waits(Wake::BackOff);
    let asked = asked.wakes().asks("lock_release");
    assert_eq!(asked.args(0), asked.args(1), "the same request");
    assert_eq!(asked.hears(says(Code::Done)).ends(), Ok(Released::Released));
}

#[test]
fn five_attempts_without_an_answer_leave_it_unknown_until_no_copy_can_extend_the_hold() {
    // The grant's request left at the start: a copy of it may be under way for 90 s, and extend the hold by 30 s.
    assert_eq!(unknown_after(0), ms(90_000 + 30_000));
    assert_eq!(unknown_after(50_000), ms(40_000 + 30_000));
    // Then it is a renewal that may come last: within the time for its attempt, and a second.
    assert_eq!(unknown_after(500_000), ms(ATTEMPT + 1_000 + 30_000));
}

/// For how long a hold may be left when the release is given up so long after the grant.
fn unknown_after(held_ms: u64) -> std::time::Duration {
    let mut silent = releasing(LeaseTime::DEFAULT).travels(held_ms);
    let begun = silent.server_ms();
    for _ in 0..4 {
        silent = silent.fails(FailureKind::Broken).waits(Wake::BackOff).wakes().asks("lock_release");
    }
    let tried_for = ms(silent.server_ms() - begun);
    let error = silent.fails(FailureKind::Broken).ends().unwrap_err();
    let ReleaseError::Unknown { held_at_most, cause: FailureKind::Broken } = error else { panic!("{error:?}") };
    // The pauses between the attempts count as well while a copy of the acquisition decides.
    if held_at_most > ms(ATTEMPT + 1_000 + 30_000) { held_at_most + tried_for } else { held_at_most }
}

#[test]
fn a_hold_that_was_prolonged_for_longer_may_be_left_for_longer() {
    let longest = LeaseTime::new(ms(600_000)).unwrap();
    let mut silent = releasing(longest);
    while !silent.is_over() {
        silent = silent.wakes();
    }
    let Some(Err(ReleaseError::Unknown { held_at_most, .. })) = silent.outcome() else { panic!("not unknown") };
    assert!(*held_at_most >= ms(600_000), "{held_at_most:?}");
}

#[test]
fn a_refusal_ends_it() {
    let refused = releasing(LeaseTime::DEFAULT).refused("NOPERM no").ends();
    assert!(matches!(refused, Err(ReleaseError::Refused(refusal)) if refusal.kind() == RefusalKind::Unauthorized));
}

#[test]
fn a_refusal_after_an_attempt_that_may_have_been_done_is_no_clear_no() {
    let refused = releasing(LeaseTime::DEFAULT).fails(FailureKind::Broken).wakes().asks("lock_release");
    let refused = refused.refused("NOPERM no").ends();
    let kind = FailureKind::RefusedLater(RefusalKind::Unauthorized);
    assert!(matches!(refused, Err(ReleaseError::Unknown { cause, .. }) if cause == kind));
}

#[test]
fn a_server_that_is_not_ready_is_asked_again() {
    let asked = releasing(LeaseTime::DEFAULT).refused("READONLY replica").waits(Wake::BackOff).wakes();
    assert_eq!(asked.asks("lock_release").hears(says(Code::Done)).ends(), Ok(Released::Released));
}

#[test]
fn a_release_that_has_begun_is_not_cancelled() {
    let going_on = releasing(LeaseTime::DEFAULT).cancelled().waits(Wake::ReplyDue);
    assert_eq!(going_on.hears(says(Code::Done)).ends(), Ok(Released::Released));
}

#[test]
fn an_answer_that_its_script_cannot_give_leaves_it_unknown() {
    let odd = releasing(LeaseTime::DEFAULT).hears(says(Code::AlreadyYours)).ends();
    assert!(matches!(odd, Err(ReleaseError::Unknown { cause: FailureKind::Garbled { .. }, .. })));
}
