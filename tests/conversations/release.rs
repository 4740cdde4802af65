//! Releasing a hold.

use edgelatch_proto::error::{FailureKind, ReleaseError};
use edgelatch_proto::machine::{Release, Released};
use edgelatch_proto::protocol::reply::Code;
use edgelatch_proto::timing::{AttemptTime, LeaseTime};

use crate::language::*;

const RELEASE: &str = "lock_release";

/// Releases a hold with a lease of 30 s whose renewal to `renewed_lease` was requested.
fn release(renewed_lease: LeaseTime) -> Conversation<Release> {
    let (grant, attempt) = (grant(LeaseTime::DEFAULT), AttemptTime::DEFAULT);
    let outstanding = renew_on_demand_machine(renewed_lease).outstanding();
    Conversation::new(Release::new(&target(), &grant, outstanding, attempt, Some(known_clock())))
}

#[test]
fn one_request_ends_a_hold_under_the_bound_of_its_acquisition() {
    let it = release(LeaseTime::DEFAULT).expect_call(RELEASE).reply(Code::Done);
    assert_eq!(it.expect_done(), Ok(Released::Released));
    assert_eq!(it.calls()[0].arg(NOT_AFTER), (SERVER_START + HORIZON_MS).to_string());
}

#[test]
fn a_release_of_a_missing_hold_reports_it_as_lost() {
    let it = release(LeaseTime::DEFAULT).expect_call(RELEASE).reply(Code::No);
    assert_eq!(it.expect_done(), Ok(Released::WasLost));
}

/// S12.
#[test]
fn a_release_repeated_under_its_request_id_returns_the_recorded_result() {
    let it = release(LeaseTime::DEFAULT).fail_attempts(RELEASE, 1, FailureKind::Broken);
    let it = it.advance_to_timeout().expect_call(RELEASE).reply(Code::Done);
    assert_eq!(it.expect_done(), Ok(Released::Released));
    assert_eq!(it.calls()[0].script, it.calls()[1].script);
}

/// S14.
#[test]
fn a_release_is_unknown_after_five_unanswered_attempts() {
    let it = release(lease(60_000)).fail_attempts(RELEASE, 5, FailureKind::TimedOut);
    assert!(it.elapsed_ms() > 800, "the attempts outlast a short outage of the gateway");
    // `held_at_most` combines the latest bound with the longest lease: the acquisition has the
    // bound, 90 s after the start, and the renewal the lease, 60 s.
    let held_at_most = held_at_most(HORIZON_MS + 60_000, ms(it.elapsed_ms()));
    let unknown = ReleaseError::Unknown { held_at_most, cause: FailureKind::TimedOut };
    assert_eq!(it.expect_done(), Err(unknown));
}

#[test]
fn a_refusal_after_an_unanswered_attempt_leaves_the_outcome_unknown() {
    let it = release(LeaseTime::DEFAULT).fail_attempts(RELEASE, 1, FailureKind::Broken);
    let it = it.advance_to_timeout().expect_call(RELEASE).refuse("WRONGPASS no");
    let outcome = it.expect_done();
    assert!(matches!(outcome, Err(ReleaseError::Unknown { .. })), "{outcome:?}");
}

/// S59.
#[test]
fn cancelling_does_not_stop_a_release() {
    let it = release(LeaseTime::DEFAULT).expect_call(RELEASE).cancel().reply(Code::Done);
    assert_eq!(it.expect_done(), Ok(Released::Released));
}
