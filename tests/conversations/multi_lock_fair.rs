//! Fair locks among the parts of a multi-lock: in which queues the waiter waits, and how it keeps
//! its place.

use edgelatch_proto::error::FailureKind;
use edgelatch_proto::machine::AcquireAll;
use edgelatch_proto::protocol::calls::Target;
use edgelatch_proto::protocol::reply::Code;
use edgelatch_proto::timing::WaitPolicy;

use crate::language::*;

const ACQUIRE: &str = "fair_acquire";
const RELEASE: &str = "fair_release";

fn multi_lock_of(parts: Vec<Target>, wait_policy: WaitPolicy) -> Conversation<AcquireAll> {
    multi_lock_with(multi_lock_spec(parts, wait_policy))
}

#[test]
fn only_a_waiting_acquisition_is_queued() {
    let it = multi_lock_of(vec![fair_part(0), fair_part(1), plain_part(2)], up_to(30_000));
    assert_eq!((it.arg_of(0, FAIR_LAST_TRY), it.arg_of(1, FAIR_LAST_TRY)), ("0", "1"));
    // The first part is granted, the second is refused: the machine joins the second's queue at
    // once, under a new owner.
    let it = it.reply_from(0, granted(10)).reply_from(2, granted(12));
    let refused = it.arg_of(1, OWNER).to_owned();
    let it = it
        .expect_calls(&[(0, ACQUIRE), (1, ACQUIRE), (2, "lock_acquire")])
        .reply_from(1, queued(0, 900))
        .expect_calls(&[(1, ACQUIRE), (2, "lock_release")]);
    assert_eq!(it.arg_of(1, FAIR_LAST_TRY), "0");
    assert_ne!(it.arg_of(1, OWNER), refused);
    let it = it.reply_from(2, Code::Done).reply_from(1, queued(1, 900));
    // A waiter in a queue retries within the last fifth of the time that the queue allows.
    assert!((720..=900).contains(&it.timeout_ms()), "the machine {it}");
}

#[test]
fn the_head_of_a_queue_backs_off_and_polls_as_often_as_the_queue_requires() {
    // Without notifications the head backs off as a waiter without a queue does, but retries within
    // the 800 ms that the queue allows.
    let mut it =
        multi_lock_of(vec![fair_part(0), plain_part(1)], up_to(60_000)).reply_from(1, busy(50));
    let mut step_ms = 50;
    for _ in 0..8 {
        it = it.reply_from(0, queued(0, 800));
        let pause_ms = it.timeout_ms();
        assert!((10..=step_ms.min(800)).contains(&pause_ms), "{pause_ms} within {step_ms}");
        it = it.advance_to_timeout();
        step_ms *= 2;
    }
}

#[test]
fn a_place_in_a_queue_is_kept_when_a_poll_has_no_reply() {
    let it = multi_lock_of(vec![fair_part(0), plain_part(1)], up_to(30_000));
    let it = it.reply_from(0, queued(0, 100)).reply_from(1, busy(50)).advance_to_timeout();
    let owner = it.arg_of(0, OWNER).to_owned();
    let it = it.fail_from(0, FailureKind::Broken).advance_to_timeout();
    assert_eq!((it.newest_call().name(), it.arg_of(0, OWNER)), (ACQUIRE, &*owner));
    assert!(it.scripts().iter().all(|script| !script.ends_with("release")));
}

#[test]
fn a_long_wait_in_a_queue_continues_under_a_new_owner_in_the_same_place() {
    let mut it = multi_lock_of(vec![fair_part(0), plain_part(1)], WaitPolicy::UntilCancelled)
        .reply_from(0, queued(0, 60_000))
        .reply_from(1, busy(50));
    let owner = it.arg_of(0, OWNER).to_owned();
    while it.elapsed_ms() < ROUND_MS {
        it = it.advance_to_timeout();
        if it.elapsed_ms() < ROUND_MS {
            it = it.reply_from(0, queued(0, 60_000));
        }
    }
    assert_ne!(it.arg_of(0, OWNER), owner);
    assert_eq!(it.arg_of(0, FAIR_PREVIOUS_OWNER), owner);
    let it = it.cancel();
    assert_eq!(
        (it.newest_call().name(), it.arg_of(0, FAIR_RELEASE_PREVIOUS_OWNER)),
        (RELEASE, &*owner)
    );
}

#[test]
fn a_late_waiter_keeps_its_place_in_the_queue_once() {
    let it = multi_lock_of(vec![fair_part(0)], up_to(60_000)).expect_call(ACQUIRE);
    let first = it.arg(OWNER).to_owned();
    let it = it.reply(Code::Late).expect_call(ACQUIRE);
    assert_ne!(it.arg(OWNER), first);
    // After a second late reply the machine releases both owners.
    it.reply(Code::Late).expect_calls(&[(0, RELEASE)]);
    // The last try has no place in the queue: the machine undoes it first.
    let it = multi_lock_of(vec![fair_part(0)], WaitPolicy::Once).expect_call(ACQUIRE);
    it.reply(Code::Late).expect_call(RELEASE);
}
