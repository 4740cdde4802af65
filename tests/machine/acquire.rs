//! What an acquisition makes of each answer.

use std::time::Duration;

use edgelatch::error::{AcquireError, FailureKind, RefusalKind};
use edgelatch::machine::Wake;
use edgelatch::protocol::reply::Code;
use edgelatch::timing::Patience;

use super::given::{ATTEMPT, acquiring, acquiring_with, spec, up_to, with_budget};
use crate::virtual_time::{SERVER_START, already_yours, busy, granted, ms, says};

/// Places of arguments, see `src/protocol/scripts/`.
const REQUEST: usize = 0;
const NOT_AFTER: usize = 1;
const KEEP: usize = 2;
const OWNER: usize = 4;
const LAST: usize = 6;

#[test]
fn a_try_is_one_call_that_says_it_is_the_last() {
    let tried = acquiring(spec(Patience::Once)).asks("lock_acquire");
    assert_eq!(tried.args(0)[LAST], "1");
    let error = tried.hears(busy(3_000)).ends().unwrap_err();
    assert_eq!(error, AcquireError::Busy { remaining: Some(ms(3_000)) });
}

#[test]
fn the_first_of_several_tries_does_not_say_it_is_the_last() {
    let waiting = acquiring(spec(up_to(10_000))).asks("lock_acquire");
    assert_eq!(waiting.args(0)[LAST], "0");
}

#[test]
fn a_holder_without_an_end_is_told_as_one() {
    let error = acquiring(spec(Patience::Once)).asks("lock_acquire").hears(busy(-1)).ends().unwrap_err();
    assert_eq!(error, AcquireError::Busy { remaining: None });
}

#[test]
fn a_grant_ends_it_with_the_token_and_a_lease_that_counts_from_the_sending() {
    let asked = acquiring(spec(Patience::Once)).asks("lock_acquire").travels(2_000);
    let now = asked.now();
    let grant = asked.hears(granted(42)).ends().unwrap();
    assert_eq!(grant.token.as_u64(), 42);
    // 30 s, less 1 % and 2 ms for drift, less the way.
    assert_eq!(grant.lease.remaining(now), ms(30_000 - 302 - 2_000));
}

#[test]
fn the_lease_counts_on_the_larger_of_two_clocks() {
    for (monotonic, wall) in [(2_000, 9_000), (9_000, 2_000), (9_000, 0), (0, 9_000)] {
        let asked = acquiring(spec(Patience::Once)).asks("lock_acquire").clocks(monotonic, wall);
        let now = asked.now();
        let grant = asked.hears(granted(42)).ends().unwrap();
        assert_eq!(grant.lease.remaining(now), ms(30_000 - 302 - 9_000), "{monotonic} {wall}");
    }
}

#[test]
fn a_grant_that_comes_when_the_host_has_slept_through_half_the_lease_is_given_back() {
    // The monotonic clock stood still.
    let slept = acquiring(spec(Patience::Once)).asks("lock_acquire").clocks(0, 15_000);
    let error = slept.hears(granted(42)).asks("lock_release").hears(says(Code::Done)).ends().unwrap_err();
    assert_eq!(error, AcquireError::TooSlow);
}

#[test]
fn a_grant_with_just_half_of_the_lease_left_is_kept() {
    let slow = acquiring(spec(Patience::Once)).asks("lock_acquire").travels(30_000 / 2 - 302);
    assert!(slow.hears(granted(42)).ends().is_ok());
}

#[test]
fn a_waiter_gives_a_late_grant_back_and_goes_on_under_a_new_owner() {
    let waiting = acquiring(spec(up_to(60_000))).asks("lock_acquire").travels(20_000).hears(granted(42));
    let waiting = waiting.asks("lock_release").hears(says(Code::Done)).asks("lock_acquire");
    assert_eq!(waiting.args(0)[OWNER], waiting.args(1)[OWNER]);
    assert_ne!(waiting.args(0)[OWNER], waiting.args(2)[OWNER]);
    assert_eq!(waiting.hears(granted(43)).ends().unwrap().token.as_u64(), 43);
}

#[test]
fn already_yours_is_a_grant() {
    let grant = acquiring(spec(Patience::Once)).asks("lock_acquire").fails(FailureKind::Broken).wakes();
    let grant = grant.asks("lock_acquire").hears(already_yours(42)).ends().unwrap();
    assert_eq!(grant.token.as_u64(), 42);
}

#[test]
fn an_attempt_is_repeated_under_the_same_request() {
    let tried = acquiring(spec(Patience::Once)).asks("lock_acquire").waits_for(Wake::ReplyDue, ATTEMPT);
    let tried = tried.wakes().waits(Wake::BackOff).wakes().asks("lock_acquire");
    assert_eq!(tried.args(0), tried.args(1));
}

#[test]
fn tries_of_one_wait_have_their_own_requests_and_one_owner_and_bound() {
    let waiting = acquiring(spec(up_to(60_000))).asks("lock_acquire").hears(busy(-1)).wakes().asks("lock_acquire");
    assert_ne!(waiting.args(0)[REQUEST], waiting.args(1)[REQUEST]);
    for same in [OWNER, NOT_AFTER, KEEP] {
        assert_eq!(waiting.args(0)[same], waiting.args(1)[same]);
    }
}

#[test]
fn the_bound_is_the_wait_and_a_horizon_in_the_server_s_time() {
    let waiting = acquiring(spec(up_to(60_000))).asks("lock_acquire");
    assert_eq!(waiting.args(0)[NOT_AFTER], (SERVER_START + 60_000 + 90_000).to_string());
    assert_eq!(waiting.args(0)[KEEP], "90000");
}

#[test]
fn a_client_that_has_not_seen_the_clock_sets_no_bound_and_is_remembered_for_longer() {
    let first = acquiring_with(spec(up_to(60_000)), None).asks("lock_acquire");
    let first = first.hears(busy(-1)).wakes().asks("lock_acquire").cancelled().asks("lock_release");
    // Begun without a bound, it stays without one, its abandon too.
    for call in 0..3 {
        assert_eq!((first.args(call)[NOT_AFTER].as_str(), first.args(call)[KEEP].as_str()), ("", "600000"));
    }
}

#[test]
fn the_first_reply_brings_the_clock_to_the_next_owner() {
    let first = acquiring_with(spec(up_to(60_000)), None).asks("lock_acquire").hears(says(Code::Lost));
    let anew = first.asks("lock_release").hears(says(Code::No)).asks("lock_acquire");
    assert_eq!(anew.args(2)[NOT_AFTER], (SERVER_START + 60_000 + 90_000).to_string());
}

#[test]
fn the_reply_to_another_call_changes_nothing() {
    let waiting = acquiring(spec(up_to(60_000))).asks("lock_acquire");
    let first = waiting.newest();
    let waiting = waiting.fails(FailureKind::Broken).wakes().asks("lock_acquire");
    let waiting = waiting.hears_of(first, granted(42)).waits(Wake::ReplyDue);
    assert_eq!(waiting.hears(already_yours(42)).ends().unwrap().token.as_u64(), 42);
}

#[test]
fn a_reply_that_comes_when_its_attempt_was_given_up_changes_nothing() {
    let waiting = acquiring(spec(up_to(60_000))).asks("lock_acquire").wakes().waits(Wake::BackOff);
    let late = waiting.newest();
    let waiting = waiting.hears_of(late, granted(42)).waits(Wake::BackOff).wakes().asks("lock_acquire");
    // It was granted, so asking again finds it.
    assert!(waiting.hears(already_yours(42)).ends().is_ok());
}

#[test]
fn gone_at_the_last_try_is_busy() {
    // An attempt of which nothing was heard has found the lock taken and written the tombstone.
    let tried = acquiring(spec(Patience::Once)).asks("lock_acquire").fails(FailureKind::Broken).wakes();
    let error = tried.asks("lock_acquire").hears(says(Code::Gone)).ends().unwrap_err();
    assert_eq!(error, AcquireError::Busy { remaining: None });
}

#[test]
fn gone_before_the_last_try_needs_no_abandon() {
    let anew = acquiring(spec(up_to(60_000))).asks("lock_acquire").hears(says(Code::Gone)).asks("lock_acquire");
    assert_ne!(anew.args(0)[OWNER], anew.args(1)[OWNER]);
}

#[test]
fn a_hold_that_was_lost_before_it_was_heard_of_is_abandoned_for_a_new_owner() {
    let anew = acquiring(spec(up_to(60_000))).asks("lock_acquire").hears(says(Code::Lost)).asks("lock_release");
    let anew = anew.hears(says(Code::No)).asks("lock_acquire");
    assert_ne!(anew.args(0)[OWNER], anew.args(2)[OWNER]);
}

#[test]
fn lost_at_a_try_without_a_wait_is_too_slow() {
    let lost = acquiring(spec(Patience::Once)).asks("lock_acquire").hears(says(Code::Lost)).asks("lock_release");
    assert_eq!(lost.hears(says(Code::No)).ends().unwrap_err(), AcquireError::TooSlow);
}

#[test]
fn late_by_a_clock_that_does_not_hold_any_more_is_asked_again_by_the_new_one() {
    // Redis' clock was set forward by an hour.
    let late = acquiring(spec(Patience::Once)).asks("lock_acquire").travels(3_600_000).hears(says(Code::Late));
    let anew = late.asks("lock_release").hears(says(Code::No)).asks("lock_acquire");
    assert_eq!(anew.args(2)[NOT_AFTER], (SERVER_START + 3_600_000 + 90_000).to_string());
    assert_ne!(anew.args(0)[OWNER], anew.args(2)[OWNER]);
    // Once: what is late again is too slow.
    let late = anew.travels(3_600_000).hears(says(Code::Late)).asks("lock_release");
    assert_eq!(late.hears(says(Code::No)).ends().unwrap_err(), AcquireError::TooSlow);
}

#[test]
fn a_refusal_that_does_not_pass_ends_it_at_once() {
    for (error, kind) in [
        ("WRONGTYPE Operation against a key", RefusalKind::WrongType),
        ("NOPERM this user has no permissions", RefusalKind::Unauthorized),
        ("OOM command not allowed", RefusalKind::OutOfMemory),
    ] {
        let refused = acquiring(spec(up_to(60_000))).asks("lock_acquire").refused(error).ends();
        assert!(matches!(refused, Err(AcquireError::Refused(refusal)) if refusal.kind() == kind), "{error}");
    }
}

#[test]
fn a_refusal_after_a_try_that_may_be_granted_later_is_abandoned_first() {
    let refused = acquiring(spec(up_to(60_000))).asks("lock_acquire").hears(busy(-1)).wakes().asks("lock_acquire");
    let refused = refused.refused("NOPERM no").asks("lock_release").hears(says(Code::No)).ends();
    assert!(matches!(refused, Err(AcquireError::Refused(_))));
}

#[test]
fn a_refusal_that_may_come_from_the_middle_of_the_script_is_abandoned() {
    let refused = acquiring(spec(Patience::Once)).asks("lock_acquire").refused("ERR something").asks("lock_release");
    assert!(matches!(refused.hears(says(Code::Done)).ends(), Err(AcquireError::Refused(_))));
}

#[test]
fn a_server_that_is_not_ready_is_asked_again() {
    let waiting = acquiring(spec(up_to(60_000))).asks("lock_acquire").refused("LOADING Redis is loading");
    let waiting = waiting.waits(Wake::BackOff).wakes().asks("lock_acquire");
    assert!(waiting.hears(granted(42)).ends().is_ok());
}

#[test]
fn a_token_out_of_range_is_a_refusal() {
    let refused = acquiring(spec(Patience::Once)).asks("lock_acquire").hears(says(Code::TokenRange)).ends();
    assert!(matches!(refused, Err(AcquireError::Refused(refusal)) if refusal.kind() == RefusalKind::TokenRange));
}

#[test]
fn a_grant_without_a_token_is_given_back() {
    let odd = acquiring(spec(Patience::Once)).asks("lock_acquire").hears(granted(0)).asks("lock_release");
    let error = odd.hears(says(Code::Done)).ends().unwrap_err();
    assert_eq!(error, AcquireError::Unreachable(FailureKind::Garbled { status: 200 }));
}

#[test]
fn the_attempts_of_the_only_try_are_three() {
    let mut tried = acquiring(spec(Patience::Once)).asks("lock_acquire");
    for _ in 0..2 {
        tried = tried.fails(FailureKind::NotSent).waits(Wake::BackOff).wakes().asks("lock_acquire");
    }
    // None of them left, so there is nothing to undo.
    assert_eq!(tried.fails(FailureKind::NotSent).ends().unwrap_err(), AcquireError::Unreachable(FailureKind::NotSent));
}

#[test]
fn a_small_budget_leaves_fewer_attempts_to_the_only_try() {
    let tried = acquiring(with_budget(Patience::Once, 3)).asks("lock_acquire").fails(FailureKind::Broken).wakes();
    let tried = tried.asks("lock_acquire").fails(FailureKind::Broken).asks("lock_release");
    let error = tried.hears(says(Code::No)).ends().unwrap_err();
    assert_eq!(error, AcquireError::Unreachable(FailureKind::Broken));
}

#[test]
fn nothing_is_believed_for_longer_than_the_lease() {
    let grant = acquiring(spec(Patience::Once)).asks("lock_acquire").hears(granted(42)).ends().unwrap();
    let end = grant.lease.expires_at();
    assert_eq!(grant.lease.remaining(end), Duration::ZERO);
    assert_eq!(grant.lease.time(), edgelatch::timing::LeaseTime::DEFAULT);
}
