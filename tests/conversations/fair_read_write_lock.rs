//! Waiting in the queue of a fair read-write lock, stealing it, and losing it to a steal.

use edgelatch_proto::error::{AcquireError, LossReason};
use edgelatch_proto::machine::{
    Acquire, AcquireSpec, FairReadWriteState, Renewal, RenewalOnDemand, TimeoutReason,
};
use edgelatch_proto::name::ClientId;
use edgelatch_proto::protocol::calls::{
    FairMode, FairReadWriteCalls, FairReadWriteSettings, Target,
};
use edgelatch_proto::protocol::reply::Code;
use edgelatch_proto::protocol::script::Publish;
use edgelatch_proto::timing::{AttemptTime, LeaseTime, WaitPolicy};

use crate::language::*;

const ACQUIRE: &str = "fair_rw_acquire";
const RENEW: &str = "fair_rw_renew";
const RELEASE: &str = "fair_rw_release";

fn target(mode: FairMode) -> Target {
    let (settings, id) = (FairReadWriteSettings::default(), ClientId::parse("tab 7").unwrap());
    Target::FairReadWrite(FairReadWriteCalls::new(
        lock_name("shelf"),
        mode,
        settings,
        id,
        Publish::Plain,
    ))
}

fn spec(mode: FairMode, wait_policy: WaitPolicy) -> AcquireSpec {
    AcquireSpec::new(target(mode), wait_policy)
}

fn acquire(mode: FairMode, wait_policy: WaitPolicy) -> Conversation<Acquire> {
    acquire_with(spec(mode, wait_policy))
}

/// The renewals of an exclusive hold with the default lease.
fn renewal() -> Conversation<Renewal> {
    let it = acquire(FairMode::Exclusive, WaitPolicy::Once).expect_call(ACQUIRE);
    let grant = it.reply(granted(TOKEN)).expect_done().unwrap();
    let (target, attempt) = (target(FairMode::Exclusive), AttemptTime::DEFAULT);
    Conversation::new(Renewal::new(target, grant, true, attempt, entropy(), Some(known_clock())))
}

/// The latch of the newest call's owner, which is also the name of its channel.
fn latch(it: &Conversation<Acquire>) -> String {
    it.newest_call().script.keys()[0].clone()
}

/// The latch of the previous owner, if the newest call names it.
fn previous_latch(it: &Conversation<Acquire>) -> Option<String> {
    it.newest_call().script.keys().get(8).cloned()
}

#[test]
fn a_waiter_polls_with_rising_numbers_before_its_time_is_over() {
    for mode in [FairMode::Shared, FairMode::Exclusive] {
        let mut it = acquire(mode, up_to(60_000));
        for within in [3_333, 1_000, 40] {
            it = it.expect_call(ACQUIRE).reply(queued(2, within));
            it = it
                .expect_timeout_within(TimeoutReason::BackOff, within * 4 / 5..=within)
                .advance_to_timeout();
        }
        let it = it.expect_call(ACQUIRE);
        let numbers: Vec<&str> = it.calls().iter().map(|call| call.arg(FAIR_RW_SEND)).collect();
        assert_eq!(numbers, ["1", "2", "3", "4"]);
        let first = &it.calls()[0];
        let same_bound = |call: &Call| call.arg(NOT_AFTER) == first.arg(NOT_AFTER);
        assert!(it.calls().iter().all(same_bound), "one bound for all requests of an owner");
        assert!(!first.arg(NOT_AFTER).is_empty());
        assert!(first.arg(OWNER).ends_with("|tab 7"), "{}", first.arg(OWNER));
    }
}

#[test]
fn a_queue_that_is_being_cleaned_is_not_polled_more_often_than_every_20_ms() {
    for place in [0, 2] {
        let it = acquire(FairMode::Exclusive, up_to(60_000)).expect_call(ACQUIRE);
        it.reply(queued(place, 1)).expect_timeout_in(TimeoutReason::BackOff, 20);
    }
}

#[test]
fn a_message_on_the_owner_s_own_channel_wakes_its_waiter_at_once() {
    let it = acquire(FairMode::Shared, up_to(60_000)).expect_call(ACQUIRE).reply(queued(3, 3_333));
    let channel = latch(&it);
    let it = it.expect_subscription_request(0, &channel).confirm_subscription();
    let it = it.expect_call(ACQUIRE).reply(queued(3, 3_333));
    let it = it.expect_timeout_within(TimeoutReason::Silence, 2_666..=3_333).notify();
    let outcome = it.expect_call(ACQUIRE).reply(granted(TOKEN)).expect_done();
    assert_eq!(outcome.unwrap().token.as_u64(), TOKEN);
}

#[test]
fn a_try_that_does_not_wait_ends_its_owner_by_itself() {
    for mode in [FairMode::Shared, FairMode::Exclusive] {
        let it = acquire(mode, WaitPolicy::Once).expect_call(ACQUIRE);
        assert_eq!(it.arg(FAIR_RW_KIND), "last");
        let outcome = it.reply(queued(0, 0)).expect_done();
        assert!(matches!(outcome, Err(AcquireError::Busy { remaining: Some(_) })), "{outcome:?}");
    }
}

#[test]
fn the_last_try_of_a_wait_ends_its_owner_by_itself() {
    let mut it = acquire(FairMode::Exclusive, up_to(5_000));
    while it.elapsed_ms() < 5_000 {
        it = it.expect_call(ACQUIRE);
        assert_eq!(it.arg(FAIR_RW_KIND), "wait");
        it = it.reply(queued(1, 3_333)).advance_to_timeout();
    }
    let it = it.expect_call(ACQUIRE);
    assert_eq!(it.arg(FAIR_RW_KIND), "last");
    assert!(it.reply(queued(1, 0)).expect_done().is_err());
}

#[test]
fn a_cancelled_waiter_is_abandoned() {
    let it = acquire(FairMode::Shared, WaitPolicy::UntilCancelled).expect_call(ACQUIRE);
    let it = it.reply(queued(1, 3_333)).cancel().expect_call(RELEASE);
    let outcome = it.reply(Code::No).expect_done();
    assert_eq!(outcome, Err(AcquireError::Cancelled { held_at_most: None }));
}

#[test]
fn a_wait_that_outlasts_its_owner_is_taken_over_before_its_bound() {
    let wait = acquire(FairMode::Exclusive, WaitPolicy::UntilCancelled);
    let mut it = wait.expect_call(ACQUIRE).reply(queued(1, 3_333));
    let (first, member) = (latch(&it), it.arg(OWNER).to_owned());
    let bound: u64 = it.arg(NOT_AFTER).parse().unwrap();
    while it.elapsed_ms() < ROUND_MS {
        it = it.advance_to_timeout().expect_call(ACQUIRE);
        if latch(&it) == first {
            it = it.reply(queued(1, 3_333));
        }
    }
    let now = SERVER_START + it.elapsed_ms();
    assert!(now + 10_000 < bound, "{now} is well before {bound}");
    assert_eq!(previous_latch(&it).as_ref(), Some(&first));
    assert_eq!(it.arg(FAIR_RW_PREVIOUS), member);
    // Neither owner is confirmed to have the place, so both are abandoned.
    let it = it.cancel().expect_call(RELEASE);
    assert_eq!(previous_latch(&it).as_ref(), Some(&first));
    assert!(it.reply(Code::No).expect_done().is_err());
}

/// The script writes no tombstone, so a copy could still join the queue.
#[test]
fn a_full_queue_is_an_error_of_its_own_and_the_owner_is_abandoned() {
    let full = "LIMIT too many wait for the lock";
    let it = acquire(FairMode::Shared, up_to(30_000)).expect_call(ACQUIRE).refuse(full);
    assert_eq!(it.expect_call(RELEASE).reply(Code::No).expect_done(), Err(AcquireError::QueueFull));
    let it = acquire_with(AcquireSpec::new(fair_lock("job"), up_to(30_000)));
    let it = it.expect_call("fair_acquire").refuse(full).expect_call("fair_release");
    assert_eq!(it.reply(Code::No).expect_done(), Err(AcquireError::QueueFull));
}

#[test]
fn a_steal_by_a_client_without_redis_clock_is_sent_again_with_a_bound() {
    let it = acquire_without_clock(spec(FairMode::Steal, WaitPolicy::Once)).expect_call(ACQUIRE);
    assert_eq!((it.arg(FAIR_RW_KIND), it.arg(NOT_AFTER)), ("steal", ""));
    let first = latch(&it);
    let it = it.reply(Code::BoundRequired).expect_call(ACQUIRE);
    assert_eq!(it.arg(FAIR_RW_KIND), "steal");
    assert!(!it.arg(NOT_AFTER).is_empty());
    assert_ne!(latch(&it), first);
    assert!(it.reply(granted(TOKEN)).expect_done().is_ok());
}

#[test]
fn a_renewal_tells_a_steal_from_any_other_loss() {
    for (value, reason) in [("1", LossReason::Stolen), ("0", LossReason::Gone)] {
        let lost = ScriptReply::new(Code::Lost, value, 0);
        let it = renewal().advance_to_timeout().expect_call(RENEW).reply(lost.clone());
        assert_eq!(it.expect_done(), Some(reason));

        let it = acquire(FairMode::Shared, WaitPolicy::Once).expect_call(ACQUIRE);
        let grant = it.reply(granted(TOKEN)).expect_done().unwrap();
        let (target, attempt) = (target(FairMode::Shared), AttemptTime::DEFAULT);
        let clock = Some(known_clock());
        let lease = LeaseTime::DEFAULT;
        let renew = RenewalOnDemand::new(&target, &grant, lease, attempt, entropy(), clock, START);
        let outcome = Conversation::new(renew).expect_call(RENEW).reply(lost).expect_done();
        assert_eq!(outcome.unwrap_err().to_string(), reason.to_string());
    }
    // The value of another kind's loss has another meaning.
    let lost = ScriptReply::new(Code::Lost, 1, 0);
    let it = Conversation::new(auto_renewal_machine(LeaseTime::DEFAULT, true));
    let it = it.advance_to_timeout().expect_call("lock_renew").reply(lost);
    assert_eq!(it.expect_done(), Some(LossReason::Gone));
}

#[test]
fn a_state_is_read_with_its_mode_and_its_waiters() {
    let read = |code, value: &str, ms| {
        let machine = inspect_machine();
        let it = Conversation::new(machine).expect_call("lock_inspect");
        let reply = it.reply(ScriptReply::new(code, value, ms)).expect_done().unwrap();
        FairReadWriteState::read(&reply)
    };
    let state = read(Code::Done, "77,3,0,1,5,2,0", 500).unwrap();
    assert_eq!((state.holders, state.is_exclusive, state.last_token), (3, false, 77));
    assert_eq!((state.waiters, state.exclusive_waiters, state.remaining), (5, 2, Some(ms(500))));
    assert!(read(Code::Done, "77,1,0,2,0,0,0", 500).unwrap().is_exclusive);
    let free = read(Code::No, "0,0,0,0,0,0,0", -2).unwrap();
    assert_eq!((free.holders, free.is_exclusive, free.remaining), (0, false, None));
    assert!(read(Code::Done, "77,1,0", 5).is_err());
}
