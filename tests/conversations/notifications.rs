//! What those who wait do with what they hear.

use std::time::Duration;

use edgelatch::machine::{
    Acquire, AcquireSpec, Awaiting, Entropy, Gather, Input, Pacing, SpinBackoff, Wake,
};
use edgelatch::name::LockName;
use edgelatch::protocol::calls::{CountDownLatchCalls, FairCalls, FairSettings, LockCalls, Target};
use edgelatch::protocol::reply::Code;
use edgelatch::protocol::script::Publish;
use edgelatch::timing::{AttemptTime, Patience, RequestBudget};

use crate::support::fixtures::up_to;
use crate::support::virtual_time::{START, Says, Talk, busy, granted, known_clock, says, talk};
use crate::{multi_lock, red_lock};

const CHANNEL: &str = "redisson_lock__channel:{job}";
const ACQUIRE: &str = "lock_acquire";
/// Nobody else is told the same.
const NOTIFIED: Input = within(0);

/// Others are, and it is to ask within this time.
const fn within(ms: u64) -> Input {
    Input::Notified { within: Duration::from_millis(ms) }
}

fn name() -> LockName {
    LockName::parse("job").unwrap()
}

fn acquire(spec: AcquireSpec) -> Talk<Acquire> {
    talk(Acquire::new(spec, Entropy::new([7; 32]), Some(known_clock()), START))
}

fn lock(patience: Patience) -> Talk<Acquire> {
    let target = Target::Lock(LockCalls::new(name(), Publish::Plain));
    acquire(AcquireSpec::new(target, patience))
}

const INSPECT: &str = "latch_inspect";
const CLOSED: Code = Code::Done;
const OPEN: Code = Code::No;

fn latch(wait_ms: u64, budget: Option<RequestBudget>) -> Talk<Awaiting> {
    let calls = CountDownLatchCalls::new(name(), Publish::Plain);
    let (attempt, entropy) = (AttemptTime::DEFAULT, Entropy::new([7; 32]));
    talk(Awaiting::new(calls, up_to(wait_ms), budget, attempt, entropy, START))
}

/// Told, without an answer to a call.
fn told<M: edgelatch::machine::Machine>(mut it: Talk<M>, input: Input) -> Talk<M> {
    it.tell(input);
    it
}

/// S72, S74, S75.
#[test]
fn who_is_refused_listens_and_asks_in_its_own_time_until_it_hears() {
    let it = lock(up_to(60_000)).asks(ACQUIRE).hears(busy(50_000)).listens_to(0, CHANNEL);
    let it = it.waits(Wake::BackOff);
    assert!(it.wait_ms() <= 50);
    // Subscribed: what was published before was not heard.
    let it = told(it, Input::Listening).asks(ACQUIRE).hears(busy(50_000)).waits(Wake::Silence);
    assert!((7_500..=10_000).contains(&it.wait_ms()), "{}", it.wait_ms());
    let it = told(it, NOTIFIED).asks(ACQUIRE).hears(busy(3_000)).waits(Wake::HolderExpires);
    assert_eq!(it.wait_ms(), 3_001);
    let it = it.wakes().asks(ACQUIRE).hears(busy(50_000)).waits(Wake::Silence);
    assert!(told(it, NOTIFIED).asks(ACQUIRE).hears(granted(5)).ends().is_ok());
}

/// S76.
#[test]
fn what_is_published_while_a_try_is_under_way_is_followed_by_another() {
    let it = told(lock(up_to(60_000)).asks(ACQUIRE).hears(busy(50_000)), Input::Listening);
    let it = told(told(it.asks(ACQUIRE), NOTIFIED), NOTIFIED).hears(busy(50_000));
    let it = it.wakes().asks(ACQUIRE).hears(busy(50_000)).waits(Wake::Silence);
    assert!(it.wait_ms() >= 7_500);
}

#[test]
fn who_waits_for_less_than_it_trusts_a_silence_hears_all_the_same() {
    for wait in [500, 7_000] {
        let hearing = || {
            let it = told(lock(up_to(wait)).asks(ACQUIRE).hears(busy(50_000)), Input::Listening);
            it.asks(ACQUIRE).hears(busy(50_000)).waits(Wake::WaitOver)
        };
        assert!(told(hearing(), NOTIFIED).asks(ACQUIRE).hears(granted(5)).ends().is_ok());
        assert!(told(hearing(), within(5)).waits(Wake::Turn).wait_ms() <= 5);
        let lease = Duration::from_millis(200);
        assert_eq!(
            told(hearing(), Input::Taken { lease: Some(lease) })
                .waits(Wake::HolderExpires)
                .wait_ms(),
            201
        );
        let it = told(hearing(), Input::Deaf).waits(Wake::BackOff);
        assert!(it.wait_ms() <= 100, "{}", it.wait_ms());
        let it = latch(wait, None).asks(INSPECT).hears(says(CLOSED));
        let it = told(it, Input::Listening).asks(INSPECT).hears(says(CLOSED));
        let it = told(it.waits(Wake::WaitOver), NOTIFIED).asks(INSPECT).hears(says(OPEN));
        assert_eq!(it.ends(), Ok(()));
    }
}

/// S27.
#[test]
fn who_hears_no_more_asks_in_its_own_time() {
    let it = told(lock(up_to(60_000)).asks(ACQUIRE).hears(busy(50_000)), Input::Listening);
    let it = it.asks(ACQUIRE).hears(busy(50_000)).waits(Wake::Silence);
    let it = told(it, Input::Deaf).waits(Wake::BackOff);
    assert!(it.wait_ms() <= 2_000);
    // Said once more it changes nothing.
    let wait = it.wait_ms();
    let it = told(it, Input::Deaf).waits(Wake::BackOff);
    assert_eq!(it.wait_ms(), wait);
    it.wakes().asks(ACQUIRE).hears(busy(50_000)).waits(Wake::BackOff);
}

#[test]
fn who_joins_those_who_hear_asks_nobody() {
    let it = lock(up_to(60_000)).asks(ACQUIRE).hears(busy(50_000)).waits(Wake::BackOff);
    let it = told(it.passes(5), Input::Hearing).waits(Wake::Silence);
    assert!((7_500..=10_000).contains(&it.wait_ms()), "{}", it.wait_ms());
    let it = lock(up_to(60_000)).asks(ACQUIRE).hears(busy(3_000)).waits(Wake::BackOff);
    let it = told(it.passes(5), Input::Hearing).waits(Wake::HolderExpires);
    assert_eq!(it.wait_ms(), 2_996);
    // Said to one who hears already it changes nothing.
    let it = told(it, Input::Hearing).waits(Wake::HolderExpires);
    told(it, NOTIFIED).asks(ACQUIRE);
}

/// One that hears, whose tries take 10 ms, and that has just been refused.
fn hearing() -> Talk<Acquire> {
    let it = told(lock(up_to(60_000)).asks(ACQUIRE).hears(busy(50_000)), Input::Listening);
    it.asks(ACQUIRE).travels(10).hears(busy(50_000)).waits(Wake::Silence)
}

#[test]
fn of_many_who_are_woken_each_waits_for_its_turn() {
    for ms in [1, 20, 500] {
        let it = told(hearing(), within(ms)).waits(Wake::Turn);
        assert!(it.wait_ms() <= ms);
        let turn = it.wait_ms();
        // Told again, it has the same turn.
        let it = told(it, within(ms)).waits(Wake::Turn);
        assert_eq!(it.wait_ms(), turn);
        it.wakes().asks(ACQUIRE);
    }
    assert_eq!(
        told(hearing(), NOTIFIED).asks(ACQUIRE).elapsed_ms(),
        10,
        "who is alone asks at once"
    );
}

/// S75.
#[test]
fn who_hears_that_another_has_it_lets_its_turn_pass() {
    let lease = Duration::from_secs(3);
    let it = told(hearing(), within(180)).waits(Wake::Turn);
    let it = told(it, Input::Taken { lease: Some(lease) }).waits(Wake::HolderExpires);
    assert_eq!(it.wait_ms(), 3_001, "until the end of the new lease");
    let lease = Duration::from_secs(600);
    let it = told(told(it, within(180)), Input::Taken { lease: Some(lease) });
    let it = it.waits(Wake::Silence);
    // It is as ready for the next as before.
    told(it, NOTIFIED).asks(ACQUIRE);
}

/// S75.
#[test]
fn messages_without_end_cause_no_tries_without_end() {
    let flood = |mut it: Talk<Acquire>| {
        let (begun, mut tries) = (it.elapsed_ms(), 0);
        while it.elapsed_ms() < begun + 10_000 {
            it = told(it, NOTIFIED);
            it = it.passes(1);
            if it.asks_now() {
                tries += 1;
                it = it.asks(ACQUIRE).hears(busy(50_000));
            }
        }
        (it, tries)
    };
    let (it, tries) = flood(hearing());
    assert!((200..=221).contains(&tries), "{tries}");
    // After a while in which nobody publishes, it asks at once.
    let (it, at) = (it.passes(2_000), 12_000);
    assert!(told(it, NOTIFIED).asks(ACQUIRE).elapsed_ms() >= at);
    // What another takes in between has cost nothing.
    let mut it = hearing();
    for _ in 0..100 {
        it = told(told(it, within(5)), Input::Taken { lease: None });
    }
    told(it, NOTIFIED).asks(ACQUIRE);
}

/// S75.
#[test]
fn a_latch_is_asked_no_more_often_than_a_lock() {
    let mut it = told(latch(60_000, None).asks(INSPECT).hears(says(CLOSED)), Input::Listening);
    it = it.asks(INSPECT).hears(says(CLOSED));
    for _ in 0..20 {
        it = told(it, NOTIFIED).asks(INSPECT).hears(says(CLOSED));
    }
    let it = told(it, NOTIFIED).waits(Wake::Turn);
    assert_eq!(it.wait_ms(), 50);
    it.wakes().asks(INSPECT).hears(says(OPEN)).ends().unwrap();
}

#[test]
fn what_is_taken_while_a_try_is_under_way_is_not_asked_for_again() {
    let lease = Duration::from_secs(600);
    let it = told(hearing(), NOTIFIED).asks(ACQUIRE);
    let it = told(told(it, within(60)), Input::Taken { lease: Some(lease) });
    it.hears(busy(50_000)).waits(Wake::Silence);
    let it = told(told(hearing(), NOTIFIED).asks(ACQUIRE), within(60));
    it.hears(busy(50_000)).waits(Wake::Turn);
}

#[test]
fn a_turn_is_kept_whatever_becomes_of_the_stream_and_not_beyond_the_wait() {
    let it = told(hearing(), within(180)).waits(Wake::Turn);
    let turn = it.wait_ms();
    let it = told(it, Input::Deaf).waits(Wake::Turn);
    assert_eq!(it.wait_ms(), turn);
    it.wakes().asks(ACQUIRE).hears(busy(50_000)).waits(Wake::BackOff);
    let it = told(lock(up_to(1_000)).asks(ACQUIRE).hears(busy(50_000)), Input::Listening);
    let it = it.asks(ACQUIRE).travels(998).hears(busy(50_000)).waits(Wake::WaitOver);
    let it = told(it, within(18000)).waits(Wake::Turn);
    assert_eq!(it.wait_ms(), 2);
}

#[test]
fn a_grant_is_told_to_others_by_one_who_has_waited() {
    let it = lock(up_to(60_000)).asks(ACQUIRE);
    assert_eq!(it.arg_at(0, 12), "", "nobody is known to wait");
    let it = it.hears(busy(3_000)).wakes().asks(ACQUIRE);
    assert_eq!(it.arg_at(0, 12), CHANNEL);
    assert_eq!((it.arg_at(0, 9), it.arg_at(0, 10), it.arg_at(0, 11)), ("x", "", ""));
}

#[test]
fn a_gateway_that_fails_is_asked_again_soon_whoever_listens() {
    let it = told(lock(up_to(60_000)).asks(ACQUIRE).hears(busy(50_000)), Input::Listening);
    let it = it.asks(ACQUIRE).fails(edgelatch::error::FailureKind::Broken).waits(Wake::BackOff);
    assert!(it.wait_ms() <= 2_000);
}

#[test]
fn the_last_try_stays_at_the_end_of_the_wait() {
    let target = Target::Lock(LockCalls::new(name(), Publish::Plain));
    let budget = RequestBudget::new(3).ok();
    let spec = AcquireSpec { budget, ..AcquireSpec::new(target, up_to(20_000)) };
    let it = acquire(spec).asks(ACQUIRE).hears(busy(50_000)).waits(Wake::LastTry);
    let it = told(told(it, Input::Listening), NOTIFIED).waits(Wake::LastTry);
    assert_eq!(it.wait_ms(), 20_000);
    let it = it.wakes().asks(ACQUIRE);
    assert_eq!(it.arg_at(0, 7), "1", "the last");
}

#[test]
fn of_several_locks_the_one_that_is_taken_is_listened_to() {
    let member = |name: &str| edgelatch::protocol::calls::Member {
        name: LockName::parse(name).unwrap(),
        fenced: false,
    };
    let several = LockCalls::of_several(member("{t}a"), vec![member("{t}b")], Publish::Plain);
    let spec = AcquireSpec::new(Target::Lock(several), up_to(60_000));
    let second = Says(Code::No, "2".into(), 9_000);
    let it = acquire(spec).asks(ACQUIRE).hears(second).listens_to(0, "redisson_lock__channel:{t}b");
    let first = Says(Code::No, "1".into(), 9_000);
    it.wakes().asks(ACQUIRE).hears(first).listens_to(0, "redisson_lock__channel:{t}a");
}

#[test]
fn a_fair_waiter_is_heard_of_as_often_as_its_queue_wants() {
    let fair = FairCalls::new(name(), FairSettings::default(), Publish::Plain);
    let it = acquire(AcquireSpec::new(Target::Fair(fair), up_to(60_000))).asks("fair_acquire");
    let it = it.hears(Says(Code::No, "0,3000".into(), 50_000)).waits(Wake::BackOff);
    assert!(it.wait_ms() <= 50, "who is next notices soon");
    let it = told(it, Input::Listening).asks("fair_acquire");
    let it = it.hears(Says(Code::No, "0,3000".into(), 50_000)).waits(Wake::Silence);
    assert!((2_400..=3_000).contains(&it.wait_ms()), "{}", it.wait_ms());
}

#[test]
fn a_spin_lock_does_not_listen() {
    let target = Target::Lock(LockCalls::new(name(), Publish::Plain));
    let pacing = Pacing::Spin(SpinBackoff::CONSTANT);
    let spec = AcquireSpec { pacing, ..AcquireSpec::new(target, up_to(60_000)) };
    let it = acquire(spec).asks(ACQUIRE).hears(busy(50_000));
    assert!(!it.is_listening());
}

#[test]
fn a_latch_is_listened_to_as_well() {
    let it = latch(60_000, None).asks(INSPECT).hears(says(CLOSED));
    let it = it.listens_to(0, "redisson_countdownlatch__channel__{job}");
    let it = told(it, Input::Listening).asks(INSPECT).hears(says(CLOSED));
    let it = it.waits(Wake::Silence);
    assert_eq!(told(it, NOTIFIED).asks(INSPECT).hears(says(OPEN)).ends(), Ok(()));
    // The last question stays at the end of the wait.
    let it = latch(60_000, RequestBudget::new(3).ok()).asks(INSPECT).hears(says(CLOSED));
    let it = told(it, Input::Listening).asks(INSPECT).hears(says(CLOSED));
    let it = told(it, NOTIFIED).waits(Wake::LastTry);
    assert_eq!(it.wait_ms(), 60_000);
}

/// One that has been told that it may be worth to ask for the part at this place takes its turn, lets it pass, and tells others.
fn takes_turns<M: edgelatch::machine::Machine>(asks: impl Fn() -> Talk<M>, place: usize) {
    let refused = || {
        let it = told(asks(), Input::Listening).asks_of(&[(place, ACQUIRE)]);
        it.travels(10).hears_from(place, busy(50_000)).waits(Wake::Silence)
    };
    let it = told(refused(), within(20)).waits(Wake::Turn);
    assert!(it.wait_ms() <= 20);
    let it = it.wakes().asks_of(&[(place, ACQUIRE)]);
    assert_eq!(it.arg_at(place, 12), CHANNEL);
    // Told while it asks, it takes a turn as well.
    told(it, within(20)).hears_from(place, busy(50_000)).waits(Wake::Turn);
    let lease = Some(Duration::from_millis(300));
    let it = told(told(refused(), within(20)), Input::Taken { lease }).waits(Wake::Silence);
    assert_eq!(it.wait_ms(), 300);
    let it = told(told(refused(), within(20)), Input::Taken { lease: None }).waits(Wake::Silence);
    assert!(it.wait_ms() >= 7_000);
    told(it, NOTIFIED).asks_of(&[(place, ACQUIRE)]);
}

#[test]
fn several_parts_and_nodes_take_turns_and_tell_others() {
    let target = || Target::Lock(LockCalls::new(name(), Publish::Plain));
    let alone = || {
        let it = talk(multi_lock::machine(multi_lock::spec(vec![target()], up_to(60_000))));
        it.asks_of(&[(0, ACQUIRE)]).hears_from(0, busy(50_000))
    };
    takes_turns(alone, 0);
    let voting = || {
        let it = talk(red_lock::machine(red_lock::spec(3, up_to(60_000))));
        let it = it.asks_of(&[(0, ACQUIRE), (1, ACQUIRE), (2, ACQUIRE)]);
        (0..3).fold(it, |it, node| it.hears_from(node, busy(50_000)))
    };
    takes_turns(voting, 0);
}

#[test]
fn several_parts_listen_where_the_one_is_that_they_wait_for() {
    for wait in [5_000, 60_000] {
        let targets = vec![multi_lock::plain(0), multi_lock::plain(1)];
        let it: Talk<Gather> = talk(multi_lock::machine(multi_lock::spec(targets, up_to(wait))));
        let it = it.asks_of(&[(0, ACQUIRE), (1, ACQUIRE)]).hears_from(0, granted(5));
        let it = it.hears_from(1, busy(50_000));
        assert_eq!(it.listens_at(), Some(1));
        let it = told(it, Input::Listening).asks_of(&[(1, ACQUIRE)]).hears_from(1, busy(50_000));
        let it = told(it, NOTIFIED).asks_of(&[(1, ACQUIRE)]);
        assert!(!it.is_over());
    }
}

#[test]
fn who_does_not_hear_yet_keeps_to_its_pause_whoever_has_it() {
    let it = lock(up_to(60_000)).asks(ACQUIRE).hears(busy(50_000)).waits(Wake::BackOff);
    let pause = it.wait_ms();
    let it = told(it, Input::Taken { lease: Some(Duration::from_millis(1)) });
    assert_eq!(it.waits(Wake::BackOff).wait_ms(), pause);
}
