//! Acquiring a multi-lock: every part or none. While a part is refused, the machine keeps the
//! parts before it, releases those after it, and retries only that one.

use std::collections::BTreeSet;

use edgelatch_proto::error::{AcquireError, FailureKind, RefusalKind};
use edgelatch_proto::machine::{AcquireAll, MultiGrant, TimeoutReason};
use edgelatch_proto::protocol::reply::Code;
use edgelatch_proto::timing::WaitPolicy;

use crate::language::*;

const ACQUIRE: &str = "lock_acquire";
const RELEASE: &str = "lock_release";
const ACQUIRE_BOTH: [(usize, &str); 2] = [(0, ACQUIRE), (1, ACQUIRE)];
const ACQUIRE_ALL: [(usize, &str); 3] = [(0, ACQUIRE), (1, ACQUIRE), (2, ACQUIRE)];

/// The first and the second part are granted; the third is refused.
fn granted_two_of_three(wait_policy: WaitPolicy) -> Conversation<AcquireAll> {
    multi_lock(3, wait_policy)
        .expect_calls(&ACQUIRE_ALL)
        .reply_from(0, granted(10))
        .reply_from(1, granted(11))
        .reply_from(2, busy(20_000))
}

/// Checks that every part counts, and returns their tokens.
pub(crate) fn tokens(multi_grant: &MultiGrant) -> Vec<u64> {
    assert!(multi_grant.parts.iter().all(|part| part.counts));
    multi_grant.parts.iter().map(|part| part.grant.token.as_u64()).collect()
}

#[test]
fn free_parts_are_acquired_by_one_concurrent_request_each() {
    let multi_grant = multi_lock(3, WaitPolicy::Once)
        .expect_calls(&ACQUIRE_ALL)
        .reply_from(2, granted(12))
        .reply_from(0, granted(10))
        .reply_from(1, granted(11))
        .expect_done()
        .unwrap();
    assert_eq!((tokens(&multi_grant), multi_grant.token.as_u64()), (vec![10, 11, 12], 10));
    let owners: BTreeSet<_> = multi_grant.parts.iter().map(|part| part.grant.owner).collect();
    assert_eq!(owners.len(), 3, "a Redis behind two gateways must not count as two parts");
}

#[test]
fn each_lease_counts_from_its_own_request() {
    let it = multi_lock(2, WaitPolicy::Once).reply_from(0, granted(10)).advance(2_000);
    let it = it.reply_from(1, granted(11));
    for part in &it.expect_outcome().unwrap().parts {
        assert_eq!(part.grant.lease.remaining(it.now()), ms(TRUSTED_MS - 2_000));
    }
}

#[test]
fn a_refused_try_releases_its_parts_and_reports_when_the_first_refused_one_is_free() {
    let it = multi_lock(3, WaitPolicy::Once)
        .reply_from(0, granted(10))
        .reply_from(1, busy(7_000))
        .reply_from(2, busy(9_000))
        .expect_calls(&[(0, ACQUIRE), (0, RELEASE), (1, ACQUIRE), (2, ACQUIRE)]);
    assert_eq!(it.arg_of(1, LAST_TRY), "1");
    // A part that refused its last try needs no release.
    let outcome = it.reply_from(0, Code::Done).expect_done();
    assert_eq!(outcome, Err(AcquireError::Busy { remaining: Some(ms(7_000)) }));
}

#[test]
fn parts_before_the_first_refused_one_are_kept_and_later_ones_released() {
    let it = multi_lock(3, up_to(30_000))
        .expect_calls(&ACQUIRE_ALL)
        .reply_from(0, granted(10))
        .reply_from(1, busy(20_000))
        .reply_from(2, granted(12))
        .expect_calls(&[(2, RELEASE)])
        .reply_from(2, Code::Done)
        .expect_timeout(TimeoutReason::BackOff)
        .advance_to_timeout();
    // The machine retries only the first refused part until it is granted.
    let it = it.expect_calls(&[(1, ACQUIRE)]).reply_from(1, busy(19_000)).advance_to_timeout();
    let it = it.expect_calls(&[(1, ACQUIRE)]).reply_from(1, granted(11));
    let multi_grant = it.expect_calls(&[(2, ACQUIRE)]).reply_from(2, granted(14)).expect_done();
    assert_eq!(tokens(&multi_grant.unwrap()), [10, 11, 14]);
}

#[test]
fn a_released_part_is_acquired_under_a_new_owner() {
    let it = multi_lock(2, up_to(30_000));
    let first = it.arg_of(1, OWNER).to_owned();
    let it = it.reply_from(0, busy(5_000)).reply_from(1, granted(12));
    assert_eq!(it.arg_of(1, OWNER), first, "the release is of the owner that was granted");
    let it = it.reply_from(1, Code::Done).advance_to_timeout().reply_from(0, granted(10));
    assert_ne!(it.arg_of(1, OWNER), first);
}

#[test]
fn a_refused_part_is_retried_under_its_owner_and_bound() {
    let it = multi_lock(2, up_to(30_000));
    assert_eq!((it.arg_of(0, LAST_TRY), it.arg_of(1, LAST_TRY)), ("0", "1"));
    let owner = it.arg_of(0, OWNER).to_owned();
    let it = it.reply_from(0, busy(5_000)).reply_from(1, busy(5_000)).advance_to_timeout();
    assert_eq!(it.arg_of(0, OWNER), owner);
    let bound = (SERVER_START + 30_000 + HORIZON_MS).to_string();
    assert_eq!((it.arg_of(0, NOT_AFTER), it.arg_of(1, NOT_AFTER)), (&*bound, &*bound));
}

/// S94.
#[test]
fn an_unanswered_part_is_undone_before_it_is_retried() {
    let it = multi_lock(2, up_to(30_000)).expect_calls(&ACQUIRE_BOTH);
    let first = it.arg_of(1, OWNER).to_owned();
    let it = it.reply_from(0, granted(10)).fail_from(1, FailureKind::Broken);
    let it = it.expect_calls(&[(1, RELEASE)]);
    assert_eq!(it.arg_of(1, OWNER), first);
    // The pause ends before the release is confirmed: the machine makes no other call to that
    // gateway.
    let it =
        it.advance_and_wake(60).expect_timeout(TimeoutReason::ReplyDue).reply_from(1, Code::No);
    let it = it.expect_calls(&[(1, ACQUIRE)]);
    assert_ne!(it.arg_of(1, OWNER), first);
    assert_eq!(tokens(&it.reply_from(1, granted(11)).expect_done().unwrap()), [10, 11]);
}

#[test]
fn parts_kept_for_too_long_are_released_and_the_wait_continues_without_them() {
    let mut it = granted_two_of_three(up_to(30_000));
    while it.elapsed_ms() < 1_000 {
        it = it.advance_to_timeout().reply_from(2, busy(20_000));
    }
    assert_eq!(it.elapsed_ms(), 1_000, "woken when granted parts may be kept no longer");
    assert_eq!(it.count(RELEASE), 2);
    let it = it.reply_from(0, Code::Done).reply_from(1, Code::Done).advance_to_timeout();
    let before = it.calls().len();
    let it = it.reply_from(2, granted(12));
    assert_eq!(it.calls().len() - before, 2, "a retry of the other two parts: the machine {it}");
    let it = it.reply_from(0, granted(20)).reply_from(1, granted(21));
    assert_eq!(tokens(&it.expect_outcome().unwrap()), [20, 21, 12]);
}

#[test]
fn a_kept_part_is_extended_after_a_third_of_its_lease_and_acquired_again_once_lost() {
    let mut spec = multi_lock_spec(vec![plain_part(0), plain_part(1)], up_to(60_000));
    spec.targets.keep_time = ms(60_000);
    let mut it = multi_lock_with(spec).reply_from(0, granted(10)).reply_from(1, busy(-1));
    let third_ms = LEASE_MS / 3;
    while it.elapsed_ms() < third_ms {
        let before = it.calls().len();
        it = it.advance_to_timeout().reply_from(1, busy(-1));
        assert!(it.elapsed_ms() >= third_ms || it.calls().len() == before + 1);
    }
    // A third of its lease has passed: the machine extends the first part by an acquisition for the
    // same owner, and the reply says that the part is lost.
    let it = it.reply_from(0, Code::Lost);
    let it = it.reply_from(0, Code::No).reply_from(1, Code::No);
    let before = it.calls().len();
    let it = it.advance_to_timeout();
    assert_eq!(it.scripts()[before..], [ACQUIRE]);
    let it = it.reply_from(0, granted(20)).reply_from(1, granted(21));
    assert_eq!(tokens(&it.expect_outcome().unwrap()), [20, 21]);
}

#[test]
fn a_wait_ends_with_a_last_try_of_every_missing_part() {
    let mut it = multi_lock(3, up_to(400))
        .reply_from(0, granted(10))
        .reply_from(1, busy(60_000))
        .reply_from(2, busy(60_000))
        .expect_calls(&ACQUIRE_ALL);
    while it.timeout_reason() != Some(TimeoutReason::WaitOver) {
        it = it.advance_to_timeout().expect_calls(&[(1, ACQUIRE)]).reply_from(1, busy(60_000));
    }
    let it = it.advance_to_timeout().expect_calls(&[(1, ACQUIRE), (2, ACQUIRE)]);
    assert_eq!((it.elapsed_ms(), it.arg_of(1, LAST_TRY), it.arg_of(2, LAST_TRY)), (400, "1", "1"));
    let it = it.reply_from(1, busy(59_600)).reply_from(2, granted(12));
    let it = it.expect_calls(&[(0, RELEASE), (2, RELEASE)]);
    let it = it.reply_from(0, Code::Done).reply_from(2, Code::Done);
    assert_eq!(it.expect_done(), Err(AcquireError::Busy { remaining: Some(ms(59_600)) }));
}

/// S94.
#[test]
fn a_cancelled_wait_releases_every_part_and_undoes_calls_in_flight() {
    let it = granted_two_of_three(up_to(30_000)).advance_to_timeout().expect_calls(&[(2, ACQUIRE)]);
    let it = it.cancel().expect_calls(&[(0, RELEASE), (1, RELEASE), (2, RELEASE)]);
    let it = it.reply_from(0, Code::Done).reply_from(1, Code::Done);
    let outcome = it.reply_from(2, Code::No).expect_done();
    assert_eq!(outcome, Err(AcquireError::Cancelled { held_at_most: None }));
}

#[test]
fn an_unconfirmed_undo_reports_how_long_a_hold_may_exist() {
    let it = granted_two_of_three(WaitPolicy::Once).reply_from(1, Code::Done);
    let it = it.fail_until_done(&[0], FailureKind::Broken);
    let held_at_most = held_at_most(HORIZON_MS + LEASE_MS, ms(it.elapsed_ms()));
    let unknown = AcquireError::Unknown { held_at_most, cause: FailureKind::Broken };
    assert_eq!(it.expect_outcome(), Err(unknown));
}

#[test]
fn only_parts_with_a_known_clock_have_a_bound() {
    let spec = multi_lock_spec(vec![plain_part(0), plain_part(1)], WaitPolicy::Once);
    let clocks = vec![None, Some(known_clock())];
    let it = Conversation::new(AcquireAll::new(spec, entropy(), clocks, START));
    assert_eq!(
        (it.arg_of(0, NOT_AFTER), it.arg_of(0, MIN_RETENTION)),
        ("", &*UNBOUNDED_MS.to_string())
    );
    assert_eq!(it.arg_of(1, NOT_AFTER), (SERVER_START + HORIZON_MS).to_string());
}

#[test]
fn a_part_whose_request_was_late_or_lacked_a_bound_is_retried_at_once() {
    let it = multi_lock(2, WaitPolicy::Once).reply_from(0, granted(10)).advance_and_wake(500);
    let it = it.reply_from(1, Code::Late).reply_from(1, Code::No);
    assert_eq!(it.arg_of(1, NOT_AFTER), (SERVER_START + 500 + HORIZON_MS).to_string());
    let it = it.reply_from(1, granted(11));
    assert_eq!(tokens(&it.expect_outcome().unwrap()), [10, 11]);

    let spec = multi_lock_spec(vec![plain_part(0)], WaitPolicy::Once);
    let it = Conversation::new(AcquireAll::new(spec, entropy(), vec![], START));
    let it = it.expect_call(ACQUIRE).reply(Code::BoundRequired).expect_call(ACQUIRE);
    assert_eq!(it.arg(NOT_AFTER), (SERVER_START + HORIZON_MS).to_string());
}

#[test]
fn a_part_refused_for_keys_in_several_slots_is_not_undone() {
    let it = multi_lock(2, up_to(30_000))
        .expect_calls(&ACQUIRE_BOTH)
        .reply_from(0, granted(10))
        .refuse_from(1, "CROSSSLOT Keys in request don't hash to the same slot")
        .expect_calls(&[(0, RELEASE)]);
    let outcome = it.reply_from(0, Code::Done).expect_done();
    let Err(AcquireError::Refused(refusal)) = outcome else { panic!("{outcome:?}") };
    assert_eq!((refusal.kind(), refusal.code()), (RefusalKind::Other, "CROSSSLOT"));
}

#[test]
fn a_part_that_a_loading_redis_refused_is_retried() {
    let it = multi_lock(2, up_to(30_000)).reply_from(0, granted(10));
    let it = it.refuse_from(1, "LOADING soon").advance_to_timeout().reply_from(1, granted(11));
    assert_eq!(tokens(&it.expect_outcome().unwrap()), [10, 11]);
}

#[test]
fn a_part_whose_token_is_out_of_range_is_undone() {
    let it = multi_lock(2, WaitPolicy::Once).expect_calls(&ACQUIRE_BOTH);
    let it = it.reply_from(1, Code::TokenRange).reply_from(0, granted(42));
    // The script wrote no tombstone, so the release keeps a copy from being granted.
    let it = it.expect_calls(&[(0, RELEASE), (1, RELEASE)]);
    let outcome = it.reply_from(0, Code::Done).reply_from(1, Code::No).expect_done();
    let Err(AcquireError::Refused(refusal)) = outcome else { panic!("{outcome:?}") };
    assert_eq!(refusal.kind(), RefusalKind::TokenRange);
}
