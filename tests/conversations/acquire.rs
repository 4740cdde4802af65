//! Acquiring a lock: grants, waits, and the bound of each request.
//!
//! `S` with a number names a scenario of `docs/reliability.md`. The glossary of `CONTRIBUTING.md`
//! explains owner, bound and tombstone; a try sends one request, in up to three attempts.

use edgelatch_proto::error::AcquireError;
use edgelatch_proto::machine::{AcquireSpec, TimeoutReason};
use edgelatch_proto::protocol::reply::Code;
use edgelatch_proto::timing::WaitPolicy;

use crate::language::*;

const ACQUIRE: &str = "lock_acquire";
const RELEASE: &str = "lock_release";

#[test]
fn one_request_acquires_a_free_lock() {
    let it = acquire(WaitPolicy::Once).expect_call(ACQUIRE).advance(20).reply(granted(TOKEN));
    assert_eq!(it.expect_done().unwrap().token.as_u64(), TOKEN);
    assert_eq!(it.calls().len(), 1);
}

/// S21.
#[test]
fn the_lease_counts_from_the_sending_less_the_drift() {
    let it = acquire(WaitPolicy::Once).expect_call(ACQUIRE).advance(2_000).reply(granted(TOKEN));
    let lease = it.expect_done().unwrap().lease;
    assert_eq!(lease.remaining(it.now()), ms(TRUSTED_MS - 2_000));
}

/// S22, S23.
#[test]
fn a_lease_expires_by_the_clock_that_advanced_more() {
    // By how many milliseconds each clock advanced.
    for (monotonic, wall) in [(2_000, 9_000), (9_000, 2_000), (9_000, 0), (0, 9_000)] {
        let it =
            acquire(WaitPolicy::Once).expect_call(ACQUIRE).advance_host_clocks(monotonic, wall);
        let it = it.reply(granted(TOKEN));
        let lease = it.expect_done().unwrap().lease;
        assert_eq!(lease.remaining(it.now()), ms(TRUSTED_MS - 9_000), "{monotonic} {wall}");
    }
}

#[test]
fn a_single_refused_try_is_one_request_marked_as_the_last() {
    let it = acquire(WaitPolicy::Once).expect_call(ACQUIRE).reply(busy(12_000));
    assert_eq!(it.arg(LAST_TRY), "1");
    assert_eq!(it.expect_done(), Err(AcquireError::Busy { remaining: Some(ms(12_000)) }));
    assert_eq!(it.calls().len(), 1);
}

/// S70.
#[test]
fn a_refusal_by_a_hold_without_an_end_reports_no_remaining_time() {
    let it = acquire(WaitPolicy::Once).expect_call(ACQUIRE).reply(busy(-1));
    assert_eq!(it.expect_done(), Err(AcquireError::Busy { remaining: None }));
}

/// S16.
#[test]
fn a_waiter_pauses_and_retries_under_the_same_owner_and_bound() {
    let it = acquire(up_to(30_000)).expect_call(ACQUIRE).reply(busy(20_000));
    assert_eq!(it.arg(LAST_TRY), "0");
    // Without a budget the first back-off step is at most 50 ms.
    let it = it.expect_timeout_within(TimeoutReason::BackOff, ..=50).advance_to_timeout();
    let it = it.expect_call(ACQUIRE).reply(granted(TOKEN));
    it.expect_done().unwrap();
    let [first, second] = it.calls() else { panic!("two calls") };
    assert_eq!(first.arg(OWNER), second.arg(OWNER));
    assert_eq!(first.arg(NOT_AFTER), second.arg(NOT_AFTER));
    assert_ne!(first.arg(REQUEST_ID), second.arg(REQUEST_ID), "each request has an id of its own");
}

#[test]
fn a_waiter_wakes_when_the_holder_expires() {
    let it = acquire(up_to(30_000)).expect_call(ACQUIRE).reply(busy(3));
    // Redis counts in whole milliseconds, so the waiter adds one.
    it.expect_timeout_in(TimeoutReason::HolderExpires, 4);
}

#[test]
fn a_wait_ends_with_a_last_try_at_its_deadline() {
    let mut it = acquire(up_to(400)).expect_call(ACQUIRE).reply(busy(60_000));
    while it.timeout_reason() != Some(TimeoutReason::WaitOver) {
        it = it.advance_to_timeout().expect_call(ACQUIRE).reply(busy(60_000));
    }
    let it = it.advance_to_timeout().expect_call(ACQUIRE);
    assert_eq!((it.elapsed_ms(), it.arg(LAST_TRY)), (400, "1"));
    let outcome = it.reply(busy(59_000)).expect_done();
    assert_eq!(outcome, Err(AcquireError::Busy { remaining: Some(ms(59_000)) }));
}

#[test]
fn a_wait_that_only_ends_by_cancelling_never_makes_a_last_try() {
    let budget = budget(1_000);
    let spec = AcquireSpec { budget, ..acquire_spec(WaitPolicy::UntilCancelled) };
    let mut it = acquire_with(spec).expect_call(ACQUIRE);
    for _ in 0..50 {
        assert_eq!(it.arg(LAST_TRY), "0");
        it = it.reply(busy(-1)).advance_to_timeout().expect_call(ACQUIRE);
    }
    it.cancel().expect_call(RELEASE).reply(Code::No).expect_done().unwrap_err();
}

#[test]
fn a_long_wait_continues_under_a_new_owner_before_its_bound() {
    let mut it = acquire(WaitPolicy::UntilCancelled);
    while it.elapsed_ms() < ROUND_MS {
        it = it.expect_call(ACQUIRE).reply(busy(-1)).advance_to_timeout();
    }
    let it = it.expect_call(RELEASE).reply(Code::No).expect_call(ACQUIRE);
    assert!(it.arg(OWNER).ends_with(":2"), "the second owner of the machine");
    assert_ne!(it.arg(NOT_AFTER), it.calls()[0].arg(NOT_AFTER));
}

#[test]
fn the_bound_is_the_server_time_plus_the_wait_plus_ninety_seconds() {
    let it = acquire(up_to(30_000)).expect_call(ACQUIRE);
    assert_eq!(it.arg(NOT_AFTER), (SERVER_START + 30_000 + HORIZON_MS).to_string());
    assert_eq!(it.arg(MIN_RETENTION), HORIZON_MS.to_string());
}

#[test]
fn a_request_before_the_clock_is_known_has_no_bound_and_is_kept_for_ten_minutes() {
    let it = acquire_without_clock(acquire_spec(up_to(30_000))).expect_call(ACQUIRE);
    let it = it.reply(busy(1_000));
    assert_eq!((it.arg(NOT_AFTER), it.arg(MIN_RETENTION)), ("", &*UNBOUNDED_MS.to_string()));
    let it = it.advance_to_timeout().expect_call(ACQUIRE);
    assert_eq!(it.arg(NOT_AFTER), "", "an owner without a bound stays without one");
}

#[test]
fn a_request_is_resent_with_a_bound_if_redis_requires_one() {
    let spec = AcquireSpec { budget: budget(4), ..acquire_spec(up_to(30_000)) };
    let it = acquire_without_clock(spec).expect_call(ACQUIRE);
    assert_eq!(it.arg(NOT_AFTER), "", "no bound is known");
    let it = it.reply(Code::BoundRequired).expect_call(ACQUIRE);
    assert_eq!(it.arg(NOT_AFTER), (SERVER_START + 30_000 + HORIZON_MS).to_string());
    it.reply(granted(TOKEN)).expect_done().unwrap();
}

#[test]
fn a_waiter_whose_owner_has_ended_continues_under_a_new_one_and_undoes_nothing() {
    let it = acquire(up_to(30_000)).expect_call(ACQUIRE).reply(Code::Gone).expect_call(ACQUIRE);
    assert_ne!(it.calls()[0].arg(OWNER), it.calls()[1].arg(OWNER));
    it.reply(granted(TOKEN)).expect_done().unwrap();
    let outcome = acquire(WaitPolicy::Once).expect_call(ACQUIRE).reply(Code::Gone).expect_done();
    assert_eq!(outcome, Err(AcquireError::Busy { remaining: None }));
}

#[test]
fn the_last_try_after_an_ended_owner_is_made_under_a_new_one() {
    let budgeted = AcquireSpec { budget: budget(3), ..acquire_spec(up_to(30_000)) };
    // Only the last try is left when the wait is over, or when the budget is nearly spent.
    for (spec, passed_ms) in [(acquire_spec(up_to(1_000)), 1_000), (budgeted, 0)] {
        let it = acquire_with(spec).expect_call(ACQUIRE).advance(passed_ms).reply(Code::Gone);
        let it = it.expect_call(ACQUIRE);
        assert_ne!(it.calls()[0].arg(OWNER), it.calls()[1].arg(OWNER));
        assert_eq!((it.calls()[0].arg(LAST_TRY), it.arg(LAST_TRY)), ("0", "1"));
        let outcome = it.reply(busy(7_000)).expect_done();
        assert_eq!(outcome, Err(AcquireError::Busy { remaining: Some(ms(7_000)) }));
    }
}

/// S19.
#[test]
fn a_grant_with_less_than_half_of_the_lease_left_is_given_back() {
    let spec = AcquireSpec { lease: lease(1_000), ..acquire_spec(WaitPolicy::Once) };
    let it = acquire_with(spec).expect_call(ACQUIRE).advance(trusted_ms(1_000) - 499);
    let it = it.reply(granted(TOKEN).with_ms(1_000)).expect_call(RELEASE);
    assert_eq!(it.reply(Code::Done).expect_done(), Err(AcquireError::TooSlow));
}

/// S20.
#[test]
fn a_grant_with_half_of_the_lease_left_is_accepted() {
    let spec = AcquireSpec { lease: lease(1_000), ..acquire_spec(WaitPolicy::Once) };
    let it = acquire_with(spec).expect_call(ACQUIRE).advance(trusted_ms(1_000) - 500);
    it.reply(granted(TOKEN).with_ms(1_000)).expect_done().unwrap();
}

/// S20.
#[test]
fn a_waiter_whose_grant_was_too_late_retries_under_a_new_owner() {
    let spec = AcquireSpec { lease: lease(1_000), ..acquire_spec(up_to(30_000)) };
    let it = acquire_with(spec).expect_call(ACQUIRE).advance(600);
    let it = it.reply(granted(TOKEN).with_ms(1_000)).expect_call(RELEASE).reply(Code::Done);
    let it = it.expect_call(ACQUIRE).reply(granted(TOKEN).with_ms(1_000));
    it.expect_done().unwrap();
    assert_ne!(it.arg(OWNER), it.calls()[0].arg(OWNER));
}

/// S20.
#[test]
fn a_try_that_arrived_after_its_bound_is_undone_and_repeated_with_a_new_bound() {
    let it = acquire(WaitPolicy::Once).expect_call(ACQUIRE).advance(500).reply(Code::Late);
    let it = it.expect_call(RELEASE).reply(Code::No).expect_call(ACQUIRE);
    assert_eq!(it.arg(NOT_AFTER), (SERVER_START + 500 + HORIZON_MS).to_string());
    let it = it.reply(Code::Late).expect_call(RELEASE);
    assert_eq!(it.reply(Code::No).expect_done(), Err(AcquireError::TooSlow));
}
