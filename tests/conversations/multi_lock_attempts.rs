//! The number of attempts that a multi-lock and a redLock spend on their calls, and the effect of a
//! budget.

use edgelatch_proto::error::{AcquireError, FailureKind};
use edgelatch_proto::machine::{AcquireAll, AcquireAllSpec, AcquireQuorumSpec, Machine};
use edgelatch_proto::protocol::reply::Code;
use edgelatch_proto::timing::WaitPolicy;

use crate::language::*;

const ACQUIRE: &str = "lock_acquire";
const RELEASE: &str = "lock_release";

/// Returns the number of attempts to acquire a part whose calls all fail, and the number of
/// attempts to release it, with this budget.
fn attempts_at_failing_part(requests: Option<u32>) -> (usize, usize) {
    let spec = multi_lock_spec(vec![plain_part(0), plain_part(1)], WaitPolicy::Once);
    let it = multi_lock_with(AcquireAllSpec { budget: requests.and_then(budget), ..spec });
    let it = it.reply_from(0, busy(4_000)).fail_until_done(&[1], FailureKind::Broken);
    let outcome = it.expect_outcome();
    assert!(matches!(outcome, Err(AcquireError::Unknown { .. })), "{outcome:?}");
    (it.count(ACQUIRE) - 1, it.count(RELEASE))
}

#[test]
fn a_last_try_has_two_attempts_and_its_undo_three_within_the_budget() {
    assert_eq!(attempts_at_failing_part(None), (2, 3));
    assert_eq!(attempts_at_failing_part(Some(40)), (2, 3));
    for requests in 3..=12 {
        let (acquires, releases) = attempts_at_failing_part(Some(requests));
        assert!((1..=2).contains(&acquires) && (1..=3).contains(&releases), "{requests}");
        // Six calls are reserved for each of the two parts, whatever the budget is. The other part
        // has used one.
        assert!(1 + acquires + releases <= requests.max(12) as usize, "{requests}");
    }
}

#[test]
fn a_final_release_of_a_part_is_sent_three_times_at_most() {
    let it = multi_lock(2, up_to(30_000)).reply_from(0, granted(10)).cancel();
    assert_eq!(it.fail_until_done(&[0, 1], FailureKind::Broken).count(RELEASE), 6);
    let it = red_lock(3, up_to(30_000)).cancel();
    assert_eq!(it.fail_until_done(&[0, 1, 2], FailureKind::Broken).count(RELEASE), 9);
}

#[test]
fn an_undo_during_a_wait_is_sent_at_most_twice() {
    let it = multi_lock(2, up_to(60_000)).reply_from(0, busy(-1)).reply_from(1, granted(11));
    let it = it.fail_from(1, FailureKind::Broken).advance_to_timeout().advance_and_wake(600);
    // After the second failure even a long time brings no third attempt.
    let it = it.fail_from(1, FailureKind::Broken).advance_and_wake(3_000);
    assert_eq!(it.scripts(), [ACQUIRE, ACQUIRE, RELEASE, ACQUIRE, RELEASE]);
}

#[test]
fn a_budget_lasts_for_the_whole_wait_and_most_of_it_is_used() {
    /// Returns the times of the retries of a waiter that is refused for a minute, in milliseconds.
    fn retries_ms<M: Machine>(mut it: Conversation<M>, gateways: usize) -> Vec<u64> {
        let mut times = Vec::new();
        while it.elapsed_ms() < 60_000 {
            it = (0..gateways).fold(it, |it, gateway| it.reply_from(gateway, busy(-1)));
            it = it.advance_to_timeout();
            times.push(it.elapsed_ms());
        }
        times
    }
    let budget = budget(60);
    let spec = multi_lock_spec(vec![plain_part(0), plain_part(1)], up_to(60_000));
    let multi_lock = retries_ms(multi_lock_with(AcquireAllSpec { budget, ..spec }), 2);
    let spec = red_lock_spec(3, up_to(60_000));
    let red_lock = retries_ms(red_lock_with(AcquireQuorumSpec { budget, ..spec }), 3);
    for times in [multi_lock, red_lock] {
        // A refusal costs one call. Six calls are reserved for each part, and eight for each node.
        assert!((60 - 24..60).contains(&times.len()), "{times:?}");
        // No time without retries is left at the end.
        assert!(times.iter().rev().nth(1).is_some_and(|last| *last > 50_000), "{times:?}");
    }
}

#[test]
fn an_acquisition_whose_hold_was_lost_is_too_slow() {
    let it = multi_lock(2, WaitPolicy::Once).reply_from(1, busy(4_000));
    let it = it.reply_from(0, Code::Lost).reply_from(0, Code::No);
    assert_eq!(it.expect_outcome(), Err(AcquireError::TooSlow));
}

/// A copy of the refused attempt may be granted later.
#[test]
fn a_part_is_undone_if_a_loading_redis_refused_one_of_its_attempts() {
    let it = multi_lock(1, WaitPolicy::Once).expect_call(ACQUIRE).refuse("LOADING soon");
    let it = it.advance_to_timeout().expect_call(ACQUIRE).fail(FailureKind::NotSent);
    let outcome = it.expect_call(RELEASE).reply(Code::Done).expect_done();
    assert_eq!(outcome, Err(AcquireError::Unreachable(FailureKind::NotSent)));
}

#[test]
fn a_refusal_of_an_ended_owner_reports_no_remaining_time() {
    let it = multi_lock(1, WaitPolicy::Once).reply_from(0, ScriptReply::new(Code::Gone, 1, 5_000));
    assert_eq!(it.expect_outcome(), Err(AcquireError::Busy { remaining: None }));
}

#[test]
fn a_reply_that_requires_a_bound_that_was_sent_is_garbled() {
    let garbled = Err(AcquireError::Unreachable(FailureKind::Garbled { status: 200 }));
    // A part that has a bound from the beginning.
    let it = multi_lock(1, WaitPolicy::Once).expect_call(ACQUIRE).reply(Code::BoundRequired);
    assert_eq!(it.expect_call(RELEASE).reply(Code::No).expect_done(), garbled);
    // A part that got a bound when Redis required it.
    let spec = multi_lock_spec(vec![plain_part(0)], WaitPolicy::Once);
    let it = Conversation::new(AcquireAll::new(spec, entropy(), vec![], START));
    let it = it.expect_call(ACQUIRE).reply(Code::BoundRequired);
    let it = it.expect_call(ACQUIRE).reply(Code::BoundRequired);
    assert_eq!(it.expect_call(RELEASE).reply(Code::No).expect_done(), garbled);
}

#[test]
fn a_wait_cancelled_during_its_releases_ends_as_cancelled() {
    let it = multi_lock(2, WaitPolicy::Once).reply_from(0, granted(10)).reply_from(1, busy(900));
    let it = it.cancel().reply_from(0, Code::Done);
    assert_eq!(it.expect_outcome(), Err(AcquireError::Cancelled { held_at_most: None }));
}
