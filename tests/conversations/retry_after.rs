//! What a gateway that wants to be left alone gets, and what it does not.

use std::time::Duration;

use edgelatch::error::{AcquireError, FailureKind, LossReason};
use edgelatch::machine::{Acquire, Awaiting, Input, LeaseState, Machine, Release, Renewal, Wake};
use edgelatch::name::LockName;
use edgelatch::protocol::calls::CountDownLatchCalls;
use edgelatch::protocol::reply::Code;
use edgelatch::protocol::script::Publish;
use edgelatch::timing::{AttemptTime, LeaseTime, Patience};

use crate::multi_lock::gathering;
use crate::support::conversation::*;
use crate::support::virtual_time::says;

/// Turned away, with a wish of so many seconds.
fn away(seconds: u64) -> FailureKind {
    let retry_after = Some(Duration::from_secs(seconds));
    FailureKind::Gateway { status: 429, retry_after }
}

/// As long as a wish can be.
const FOR_EVER: u64 = u64::MAX;

/// How long `it` pauses when what it asks is turned away.
fn pause<M: Machine + Clone>(
    it: &mut Conversation<M>,
    script: &str,
    seconds: u64,
    why: Wake,
) -> Duration
where
    M::Outcome: std::fmt::Debug,
{
    it.asks(script).fails(away(seconds)).waits(why)
}

/// S47.
#[test]
fn a_wait_leaves_a_gateway_alone_for_as_long_as_it_wants() {
    let mut lock = acquire(up_to(30_000));
    assert_eq!(pause(&mut lock, "lock_acquire", 5, Wake::RetryAfter), ms(5_000));
    lock.sleeps();
    // It names no time, or none to speak of: the usual pause.
    assert!(pause(&mut lock, "lock_acquire", 0, Wake::BackOff) <= ms(100));

    let calls = CountDownLatchCalls::new(LockName::parse("gate").unwrap(), Publish::Plain);
    let machine =
        Awaiting::new(calls, up_to(30_000), None, AttemptTime::DEFAULT, entropy(), start());
    let mut latch = Conversation::new(machine);
    assert_eq!(pause(&mut latch, "latch_inspect", 5, Wake::RetryAfter), ms(5_000));
}

/// S47.
#[test]
fn of_several_the_one_that_is_waited_for_is_left_alone() {
    let it = gathering(2, up_to(30_000)).asks_of(&[(0, "lock_acquire"), (1, "lock_acquire")]);
    let it = it.fails_at(0, away(7)).fails_at(1, away(9));
    // Either may have been granted all the same.
    let it = it.asks_of(&[(0, "lock_release"), (1, "lock_release")]);
    let it = it.hears_from(0, says(Code::Done)).hears_from(1, says(Code::Done));
    assert_eq!(it.waits(Wake::RetryAfter).wait_ms(), 7_000);
}

/// S47.
#[test]
fn a_wait_that_ends_first_has_its_last_try_then() {
    let mut it = acquire(up_to(3_000));
    assert_eq!(pause(&mut it, "lock_acquire", FOR_EVER, Wake::RetryAfter), ms(3_000));
    it.sleeps();
    assert!(it.asks("lock_acquire").hears(1, TOKEN, 30_000).done().is_ok());
}

/// S47.
#[test]
fn a_wait_without_an_end_asks_once_a_minute_at_the_least() {
    let mut it = acquire(Patience::UntilCancelled);
    for _ in 0..3 {
        assert_eq!(pause(&mut it, "lock_acquire", FOR_EVER, Wake::RetryAfter), ms(60_000));
        it.sleeps();
    }
}

/// S47.
#[test]
fn nothing_that_is_heard_makes_it_ask_sooner() {
    let mut it = acquire(up_to(30_000));
    it.asks("lock_acquire").hears(0, "0", 20_000);
    it.sleeps();
    it.asks("lock_acquire").fails(away(5));
    for input in [Input::Listening, Input::Notified { within: Duration::ZERO }, Input::Deaf] {
        it.machine.handle(input, it.now);
        assert_eq!(it.waits(Wake::RetryAfter), ms(5_000));
    }
    it.is_cancelled();
    it.asks("lock_release");
}

/// S47.
#[test]
fn what_everything_hangs_on_waits_no_longer_than_for_an_answer() {
    let attempt = ms(5_000);
    let mut tried: Conversation<Acquire> = acquire(Patience::Once);
    for _ in 0..2 {
        assert_eq!(pause(&mut tried, "lock_acquire", FOR_EVER, Wake::BackOff), attempt);
        tried.sleeps();
    }
    tried.asks("lock_acquire").fails(away(FOR_EVER));
    tried.asks("lock_release").hears(1, "0", 0);
    assert_eq!(tried.done(), Err(AcquireError::Unreachable(away(FOR_EVER))));

    let grant = grant(LeaseTime::DEFAULT);
    let (reach, time) = (grant.reach(), AttemptTime::DEFAULT);
    let mut release = Conversation::new(Release::new(&target(), &grant, reach, time, clock()));
    assert_eq!(pause(&mut release, "lock_release", FOR_EVER, Wake::BackOff), attempt);
}

/// S47.
#[test]
fn a_renewal_is_asked_for_again_in_half_of_what_is_left() {
    let grant = grant(LeaseTime::DEFAULT);
    let machine = Renewal::new(target(), grant, true, AttemptTime::DEFAULT, entropy(), clock());
    let mut it = Conversation::new(machine);
    it.sleeps();
    assert_eq!(pause(&mut it, "lock_renew", 5, Wake::RenewalDue), ms(5_000));
    it.sleeps();
    let mut asked = 0;
    while it.machine.state() != LeaseState::Lost(LossReason::Expired) {
        let left = it.machine.lease().remaining(it.now);
        it.asks("lock_renew").fails(away(FOR_EVER));
        asked += 1;
        let failed_at = it.now;
        it.sleeps();
        // Or after the usual pause, at the end.
        assert!(it.now.since(failed_at) <= (left / 2).max(ms(2_000)), "{left:?}");
    }
    assert!(asked > 4, "{asked}");
    assert_eq!(it.done(), Some(LossReason::Expired));
}
