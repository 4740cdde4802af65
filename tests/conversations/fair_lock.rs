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
fn second_in_queue() -> ScriptReply {
    queued(1, 3_333).with_ms(25_000)
}

/// An endless wait that is the second in the queue.
fn queued_wait() -> Conversation<Acquire> {
    fair_acquire(WaitPolicy::UntilCancelled).expect_call(ACQUIRE).reply(second_in_queue())
}

/// The latch of the newest call's owner: the key that records the owner's grant or end.
fn latch(it: &Conversation<Acquire>) -> String {
    it.newest_call().script.keys()[0].clone()
}

/// The latch of the previous owner, the tenth key of the newest call, if the call names that owner.
fn previous_latch(it: &Conversation<Acquire>) -> Option<String> {
    it.newest_call().script.keys().get(9).cloned()
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
    let numbers: Vec<&str> = it.calls().iter().map(|call| call.arg(FAIR_TRY_NUMBER)).collect();
    assert_eq!(numbers, ["1", "2", "3", "4"], "each try has a number above the last one's");
}

#[test]
fn a_wait_that_outlasts_its_owner_keeps_its_place() {
    let mut it = queued_wait();
    let first = latch(&it);
    assert_eq!(previous_latch(&it), None);
    while it.elapsed_ms() < ROUND_MS {
        it = it.advance_to_timeout().expect_call(ACQUIRE).reply(second_in_queue());
    }
    // The call of the new owner names the previous one; the machine releases nothing.
    assert_ne!(latch(&it), first);
    assert_eq!(previous_latch(&it), Some(first));
    assert!(it.calls().iter().all(|call| call.name() == ACQUIRE));
    // The reply to the last call confirms the takeover, so later calls do not name the previous
    // owner.
    let it = it.advance_to_timeout().expect_call(ACQUIRE);
    assert_eq!(previous_latch(&it), None);
}

/// Returns a wait whose second owner has sent a request to take over the place of the first one,
/// and the latch of the first owner.
fn unconfirmed_takeover() -> (Conversation<Acquire>, String) {
    let mut it = queued_wait();
    let first = latch(&it);
    while it.elapsed_ms() < ROUND_MS {
        it = it.advance_to_timeout().expect_call(ACQUIRE);
        if latch(&it) == first {
            it = it.reply(second_in_queue());
        }
    }
    assert_eq!(previous_latch(&it).as_ref(), Some(&first));
    (it, first)
}

#[test]
fn a_release_names_both_owners_while_the_takeover_is_unconfirmed() {
    let (it, first) = unconfirmed_takeover();
    let it = it.fail(FailureKind::Broken).advance_to_timeout().expect_call(ACQUIRE);
    assert_eq!(previous_latch(&it).as_ref(), Some(&first));
    let it = it.cancel().expect_call(RELEASE);
    assert!(it.newest_call().script.keys().contains(&first));
    let outcome = it.reply(Code::No).expect_done();
    assert_eq!(outcome, Err(AcquireError::Cancelled { held_at_most: None }));
}

#[test]
fn a_code_of_another_script_does_not_confirm_a_takeover() {
    let (it, first) = unconfirmed_takeover();
    let it = it.reply(Code::TooYoung).expect_call(RELEASE);
    assert!(it.newest_call().script.keys().contains(&first));
}

#[test]
fn a_late_try_keeps_its_place_under_a_new_owner() {
    let it = fair_acquire(up_to(60_000)).expect_call(ACQUIRE);
    let first = latch(&it);
    let it = it.reply(Code::Late).expect_call(ACQUIRE);
    assert_ne!(latch(&it), first);
    assert_eq!(previous_latch(&it), Some(first));
}

#[test]
fn a_place_whose_takeover_stays_unconfirmed_is_released() {
    let mut it = queued_wait();
    let first = latch(&it);
    let mut second = None;
    loop {
        it = it.advance_to_timeout();
        if it.elapsed_ms() >= 2 * ROUND_MS {
            break;
        }
        it = it.expect_call(ACQUIRE);
        if latch(&it) == first {
            it = it.reply(second_in_queue());
        } else {
            // No reply confirms that the second owner has taken over the place.
            second = Some(latch(&it));
            it = it.fail(FailureKind::Broken);
        }
    }
    let it = it.expect_call(RELEASE);
    let released = it.newest_call().script.keys().to_vec();
    assert!(released.contains(&first) && released.contains(&second.unwrap()));
    let it = it.reply(Code::No).expect_call(ACQUIRE);
    assert!(!released.contains(&latch(&it)), "a third owner");
    assert!(!it.newest_call().script.keys().contains(&first));
}

#[test]
fn a_waiter_that_was_restored_to_its_place_allows_for_more_clock_skew() {
    // A restored place shows that a clock is further ahead than assumed, so the next try allows for
    // more skew. Of the arguments after request id and bound, two then differ between the tries:
    // the skew, and the number of the try, which always differs.
    let count_changed_arguments = |is_restored: u8| {
        let it = fair_acquire(up_to(60_000)).expect_call(ACQUIRE);
        let refusal = ScriptReply::new(Code::No, format!("1,3333,{is_restored}"), 25_000);
        let it = it.reply(refusal).advance_to_timeout().expect_call(ACQUIRE);
        let [first, second] = it.calls() else { panic!("two calls") };
        let (first, second) = (&first.script.args()[2..], &second.script.args()[2..]);
        first.iter().zip(second).filter(|(before, after)| before != after).count()
    };
    assert_eq!(count_changed_arguments(0), 1);
    assert_eq!(count_changed_arguments(1), 2);
}
