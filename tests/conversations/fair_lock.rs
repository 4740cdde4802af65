//! Waiting in the queue of a fair lock, and handing the place over to the waiter's next owner.

use edgelatch_proto::error::{AcquireError, FailureKind};
use edgelatch_proto::machine::{Acquire, AcquireSpec, TimeoutReason};
use edgelatch_proto::protocol::reply::Code;
use edgelatch_proto::timing::WaitPolicy;

use crate::language::*;

const ACQUIRE: &str = "fair_acquire";
const RELEASE: &str = "fair_release";

fn fair_acquire(wait_policy: WaitPolicy) -> Conversation<Acquire> {
    acquire_with(AcquireSpec::new(fair_lock("invoice:42"), wait_policy))
}

/// The reply to the second in the queue: its next try is due within 3,333 ms.
fn second() -> ScriptReply {
    queued(1, 3_333).with_ms(25_000)
}

#[test]
fn a_queued_waiter_retries_before_its_time_is_over() {
    let mut it = fair_acquire(up_to(60_000));
    for within in [3_333, 1_000, 40] {
        it = it.expect_call(ACQUIRE).reply(queued(2, within).with_ms(25_000));
        it = it
            .expect_timeout_within(TimeoutReason::BackOff, within * 4 / 5..=within)
            .advance_to_timeout();
    }
    let it = it.expect_call(ACQUIRE);
    let numbers: Vec<&str> = it.calls().iter().map(|call| call.arg(FAIR_SEND_NUMBER)).collect();
    assert_eq!(numbers, ["1", "2", "3", "4"], "each try has a number above the last one's");
}

#[test]
fn a_wait_that_outlasts_its_owner_keeps_its_place() {
    let mut it = fair_acquire(WaitPolicy::UntilCancelled).expect_call(ACQUIRE).reply(second());
    let first = it.newest_call().script.clone();
    while it.elapsed_ms() < ROUND_MS {
        it = it.advance_to_timeout().expect_call(ACQUIRE).reply(second());
    }
    // The new owner names the previous one; the machine releases nothing.
    let last = &it.newest_call().script;
    assert_ne!(last.keys()[0], first.keys()[0]);
    assert_eq!(last.keys().len(), first.keys().len() + 1);
    assert_eq!(last.keys().last(), first.keys().first());
    assert!(it.calls().iter().all(|call| call.name() == ACQUIRE));
    // The reply to the last call confirms the takeover, so later calls do not name the previous
    // owner.
    let it = it.advance_to_timeout().expect_call(ACQUIRE);
    assert_eq!(it.newest_call().script.keys().len(), first.keys().len());
}

#[test]
fn a_release_names_both_owners_while_the_takeover_is_unconfirmed() {
    let mut it = fair_acquire(WaitPolicy::UntilCancelled).expect_call(ACQUIRE).reply(second());
    let first = it.newest_call().script.clone();
    while it.elapsed_ms() < ROUND_MS {
        it = it.advance_to_timeout().expect_call(ACQUIRE);
        if it.newest_call().script.keys()[0] == first.keys()[0] {
            it = it.reply(second());
        }
    }
    let it = it.fail(FailureKind::Broken).advance_to_timeout().expect_call(ACQUIRE);
    assert_eq!(it.newest_call().script.keys().last(), first.keys().first());
    let it = it.cancel().expect_call(RELEASE);
    assert!(it.newest_call().script.keys().contains(&first.keys()[0]));
    let outcome = it.reply(Code::No).expect_done();
    assert_eq!(outcome, Err(AcquireError::Cancelled { held_at_most: None }));
}

#[test]
fn a_late_try_keeps_its_place_under_a_new_owner() {
    let it = fair_acquire(up_to(60_000)).expect_call(ACQUIRE).reply(Code::Late);
    let it = it.expect_call(ACQUIRE);
    let [first, second] = it.calls() else { panic!("two calls") };
    assert_ne!(first.script.keys()[0], second.script.keys()[0]);
    assert_eq!(second.script.keys().last(), first.script.keys().first());
}

#[test]
fn a_place_whose_takeover_stays_unconfirmed_is_abandoned() {
    let mut it = fair_acquire(WaitPolicy::UntilCancelled).expect_call(ACQUIRE).reply(second());
    let first = it.newest_call().script.keys()[0].clone();
    let mut second_owner = None;
    loop {
        it = it.advance_to_timeout();
        if it.elapsed_ms() >= 2 * ROUND_MS {
            break;
        }
        it = it.expect_call(ACQUIRE);
        let owner = it.newest_call().script.keys()[0].clone();
        if owner == first {
            it = it.reply(second());
        } else {
            // No reply confirms that the second owner has taken over the place.
            second_owner = Some(owner);
            it = it.fail(FailureKind::Broken);
        }
    }
    let it = it.expect_call(RELEASE);
    let both = it.newest_call().script.keys().to_vec();
    assert!(both.contains(&first) && both.contains(&second_owner.unwrap()));
    let it = it.reply(Code::No).expect_call(ACQUIRE);
    let third = it.newest_call().script.keys();
    assert!(!both.contains(&third[0]) && !third.contains(&first));
}

#[test]
fn a_waiter_that_was_restored_to_its_place_allows_for_more_clock_skew() {
    // A restored place shows that a clock is further ahead than assumed, so the next try allows for
    // more skew. Of the arguments after request id and bound, two then differ between the tries:
    // the skew, and the number of the try, which always differs.
    let different = |is_restored: u8| {
        let it = fair_acquire(up_to(60_000)).expect_call(ACQUIRE);
        let refusal = ScriptReply::new(Code::No, format!("1,3333,{is_restored}"), 25_000);
        let it = it.reply(refusal).advance_to_timeout().expect_call(ACQUIRE);
        let [first, second] = it.calls() else { panic!("two calls") };
        let (first, second) = (&first.script.args()[2..], &second.script.args()[2..]);
        first.iter().zip(second).filter(|(one, other)| one != other).count()
    };
    assert_eq!((different(0), different(1)), (1, 2));
}
