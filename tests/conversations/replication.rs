//! Grants that count only once replicas have acknowledged them.

use edgelatch_proto::error::{AcquireError, FailureKind, RefusalKind};
use edgelatch_proto::machine::{
    Acquire, AcquireAll, AcquireAllSpec, AcquireQuorum, AcquireQuorumSpec, AcquireSpec, Machine,
    MultiGrant, TimeoutReason,
};
use edgelatch_proto::protocol::reply::Code;
use edgelatch_proto::timing::{AttemptTime, Replicas, WaitPolicy};

use crate::language::*;

const ACQUIRE: &str = "lock_acquire";
const RELEASE: &str = "lock_release";
const ACQUIRE_ALL: [(usize, &str); 3] = [(0, ACQUIRE), (1, ACQUIRE), (2, ACQUIRE)];

fn replicas(number: u8) -> Option<Replicas> {
    Some(Replicas::new(number).unwrap())
}

/// An acquisition that two replicas must acknowledge.
fn replicated_spec(wait_policy: WaitPolicy) -> AcquireSpec {
    AcquireSpec { replicas: replicas(2), ..acquire_spec(wait_policy) }
}

fn acquiring(wait_policy: WaitPolicy) -> Conversation<Acquire> {
    acquire_with(replicated_spec(wait_policy)).expect_call(ACQUIRE)
}

/// Returns, for each call, how many replicas Redis waits for, and for how many milliseconds at
/// most.
fn replica_waits<M: Machine>(it: &Conversation<M>) -> Vec<Option<(u8, u128)>> {
    let waits = it.calls().iter().map(|call| call.script.replicas());
    waits.map(|wait| wait.map(|(replicas, within)| (replicas.get(), within.as_millis()))).collect()
}

/// Returns which parts count.
fn counts(multi_grant: &MultiGrant) -> Vec<bool> {
    multi_grant.parts.iter().map(|part| part.counts).collect()
}

#[test]
fn a_grant_counts_when_the_requested_number_of_replicas_has_it() {
    for acknowledged in [2, 3] {
        let it = acquiring(WaitPolicy::Once);
        assert_eq!(replica_waits(&it), [Some((2, 1_000))]);
        let grant = it.reply(granted(42).acknowledged_by(acknowledged)).expect_done().unwrap();
        assert_eq!(grant.token.as_u64(), 42);
    }
}

#[test]
fn a_grant_that_too_few_replicas_have_is_undone_and_ends_any_wait() {
    for wait_policy in [WaitPolicy::Once, up_to(60_000), WaitPolicy::UntilCancelled] {
        for acknowledged in [0, 1] {
            let it = acquiring(wait_policy).reply(granted(42).acknowledged_by(acknowledged));
            let it = it.expect_call(RELEASE);
            // The release waits for no replica.
            assert_eq!(replica_waits(&it), [Some((2, 1_000)), None]);
            let outcome = it.reply(Code::Done).expect_done();
            assert_eq!(outcome, Err(AcquireError::NotReplicated { acknowledged }));
        }
    }
}

#[test]
fn a_grant_that_could_not_be_undone_may_still_exist() {
    let it = acquiring(WaitPolicy::Once).reply(granted(42).acknowledged_by(0));
    let outcome = it.fail_attempts(RELEASE, 3, FailureKind::Broken).expect_done();
    assert!(matches!(outcome, Err(AcquireError::Unknown { .. })), "{outcome:?}");
}

#[test]
fn a_grant_without_a_replica_count_is_undone_and_reported_as_unsupported() {
    let it = acquiring(up_to(60_000)).reply(granted(42)).expect_call(RELEASE);
    let outcome = it.reply(Code::Done).expect_done();
    let Err(AcquireError::Refused(refusal)) = outcome else { panic!("{outcome:?}") };
    assert_eq!(refusal.kind(), RefusalKind::Unsupported);
}

#[test]
fn a_reply_without_a_grant_ignores_the_replica_count() {
    let it = acquiring(up_to(60_000)).reply(busy(30_000).acknowledged_by(0));
    let it = it.expect_timeout(TimeoutReason::BackOff).advance_to_timeout().expect_call(ACQUIRE);
    assert_eq!(replica_waits(&it), [Some((2, 1_000)); 2]);
    it.reply(granted(42).acknowledged_by(2)).expect_done().unwrap();
    let outcome = acquiring(WaitPolicy::Once).reply(busy(7_000)).expect_done();
    assert_eq!(outcome, Err(AcquireError::Busy { remaining: Some(ms(7_000)) }));
}

#[test]
fn a_grant_whose_reply_was_lost_counts_by_the_replicas_of_its_repetition() {
    let repeated = || {
        let it = acquiring(WaitPolicy::Once).fail(FailureKind::Broken);
        it.advance_to_timeout().expect_call(ACQUIRE)
    };
    repeated().reply(already_yours(42).acknowledged_by(2)).expect_done().unwrap();
    let it = repeated().reply(already_yours(42).acknowledged_by(1)).expect_call(RELEASE);
    let outcome = it.reply(Code::Done).expect_done();
    assert_eq!(outcome, Err(AcquireError::NotReplicated { acknowledged: 1 }));
}

#[test]
fn redis_waits_for_replicas_for_half_of_an_attempt_at_most() {
    // It waits no longer than a second, and an attempt takes no longer than a third of the lease.
    for (attempt_ms, lease_ms, within_ms) in
        [(60_000, 30_000, 1_000), (700, 30_000, 350), (5_000, 300, 50)]
    {
        let (attempt_time, lease) = (AttemptTime::new(ms(attempt_ms)).unwrap(), lease(lease_ms));
        let it =
            acquire_with(AcquireSpec { attempt_time, lease, ..replicated_spec(WaitPolicy::Once) });
        assert_eq!(replica_waits(&it.expect_call(ACQUIRE)), [Some((2, within_ms))]);
    }
}

/// A multi-lock with one replica to acknowledge each part; the first two parts are granted.
fn replicated_multi_lock(wait_policy: WaitPolicy) -> Conversation<AcquireAll> {
    let spec = multi_lock_spec(vec![plain_part(0), plain_part(1), plain_part(2)], wait_policy);
    multi_lock_with(AcquireAllSpec { replicas: replicas(1), ..spec })
        .expect_calls(&ACQUIRE_ALL)
        .reply_from(0, granted(1).acknowledged_by(1))
        .reply_from(1, granted(2).acknowledged_by(1))
}

#[test]
fn each_of_several_parts_needs_its_replicas() {
    let it = replicated_multi_lock(WaitPolicy::Once);
    assert_eq!(replica_waits(&it), [Some((1, 1_000)); 3]);
    it.reply_from(2, granted(3).acknowledged_by(1)).expect_done().unwrap();
    for wait_policy in [WaitPolicy::Once, up_to(60_000)] {
        let it = replicated_multi_lock(wait_policy).reply_from(2, granted(3).acknowledged_by(0));
        let it = it.expect_calls(&[(0, RELEASE), (1, RELEASE), (2, RELEASE)]);
        assert_eq!(replica_waits(&it)[3..], [None; 3]);
        let it = (0..3).fold(it, |it, gateway| it.reply_from(gateway, Code::Done));
        assert_eq!(it.expect_done(), Err(AcquireError::NotReplicated { acknowledged: 0 }));
    }
}

/// A redLock with one replica to acknowledge the grant of each node.
fn replicated_red_lock() -> Conversation<AcquireQuorum> {
    let spec = red_lock_spec(3, WaitPolicy::Once);
    red_lock_with(AcquireQuorumSpec { replicas: replicas(1), ..spec }).expect_calls(&ACQUIRE_ALL)
}

#[test]
fn a_node_whose_replicas_do_not_have_its_grant_has_no_vote() {
    let first_unreplicated = || replicated_red_lock().reply_from(0, granted(5).acknowledged_by(0));
    let it = first_unreplicated().reply_from(1, granted(5).acknowledged_by(1));
    let multi_grant = it.reply_from(2, granted(5).acknowledged_by(1)).expect_done().unwrap();
    assert_eq!(counts(&multi_grant), [false, true, true]);
    let it = first_unreplicated().reply_from(1, granted(5).acknowledged_by(0));
    let it = it.reply_from(2, granted(5).acknowledged_by(1));
    let it = it.expect_calls(&[(0, RELEASE), (1, RELEASE), (2, RELEASE)]);
    let it = (0..3).fold(it, |it, node| it.reply_from(node, Code::Done));
    assert_eq!(it.expect_done(), Err(AcquireError::NotReplicated { acknowledged: 0 }));
}

#[test]
fn a_raised_token_counts_only_once_its_replicas_have_it() {
    // Otherwise a failover of the raised node would restore the smaller token, and the next
    // majority might grant a token below this one.
    let raising = || {
        replicated_red_lock()
            .reply_from(0, granted(5).acknowledged_by(1))
            .reply_from(1, granted(9).acknowledged_by(1))
            .advance_to_timeout()
            .expect_calls(&[(0, "lock_raise")])
    };
    let it = raising();
    assert_eq!(replica_waits(&it)[3], Some((1, 500)));
    let it = it.reply_from(0, granted(9).acknowledged_by(1)).advance_to_timeout();
    let multi_grant = it.expect_done().unwrap();
    assert_eq!(multi_grant.token.as_u64(), 9);

    let it = raising().reply_from(0, granted(9).acknowledged_by(0));
    let it = it.reply_from(2, granted(9).acknowledged_by(1));
    assert_eq!(counts(&it.expect_outcome().unwrap()), [false, true, true]);
}
