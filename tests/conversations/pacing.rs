//! How a refused try is followed by the next: a spin lock's own pace, and a queue's.

use edgelatch::LockName;
use edgelatch::error::AcquireError;
use edgelatch::machine::{Acquire, AcquireSpec, Entropy, GatherSpec, Pacing, SpinBackoff, Wake};
use edgelatch::protocol::calls::{FairCalls, FairSettings, Target};
use edgelatch::protocol::script::Publish;
use edgelatch::timing::Patience;

use crate::multi_lock;
use crate::support::conversation::*;
use crate::support::virtual_time::{self, talk};

fn spins(policy: SpinBackoff, wait: u64) -> Conversation<Acquire> {
    let spec = AcquireSpec { pacing: Pacing::Spin(policy), ..spec(up_to(wait)) };
    Conversation::new(Acquire::new(spec, entropy(), clock(), start()))
}

fn queues(patience: Patience) -> Conversation<Acquire> {
    let name = LockName::parse("invoice:42").unwrap();
    let calls = FairCalls::new(name, FairSettings::default(), Publish::Plain);
    let spec = AcquireSpec::new(Target::Fair(calls), patience);
    Conversation::new(Acquire::new(spec, entropy(), clock(), start()))
}

/// Whoever polls asks so much later than a release, in the mean of all times at which it may come, measured in the step of that time.
#[test]
fn a_release_is_found_out_within_half_a_step() {
    let (mut late, mut waited) = (0.0, 0.0);
    for seed in 0..100 {
        let spec = spec(Patience::UntilCancelled);
        let machine = Acquire::new(spec, Entropy::new([seed; 32]), clock(), start());
        let mut it = Conversation::new(machine);
        for step in [50, 100, 200, 400, 800, 1_600, 2_000, 2_000, 2_000] {
            it.asks("lock_acquire").hears(0, "1", 30_000);
            let pause = it.waits(Wake::BackOff).as_secs_f64();
            // A release comes at any time of it alike.
            late += pause * (pause / 2.0) / ms(step).as_secs_f64();
            waited += pause;
            it.sleeps();
        }
    }
    let mean = late / waited;
    assert!(mean > 0.2 && mean < 0.5, "{mean} steps");
}

#[test]
fn a_spin_lock_keeps_its_own_pace_whatever_is_known_of_the_holder() {
    let mut it = spins(SpinBackoff::CONSTANT, 10_000);
    for _ in 0..5 {
        it.asks("lock_acquire").hears(0, "1", 3);
        assert_eq!(it.waits(Wake::BackOff), ms(64));
        it.sleeps();
    }
}

#[test]
fn a_spin_lock_s_wait_is_not_overrun_by_a_pause() {
    let mut it = spins(SpinBackoff::Constant(ms(30_000)), 2_000);
    it.asks("lock_acquire").hears(0, "1", 60_000);
    assert_eq!(it.waits(Wake::WaitOver), ms(2_000));
    it.sleeps();
    it.asks("lock_acquire");
    assert_eq!(it.arg(7), "1", "the last try");
    let outcome = it.hears(0, "1", 58_000).done();
    assert!(matches!(outcome, Err(AcquireError::Busy { .. })), "{outcome:?}");
}

#[test]
fn a_spin_lock_s_pauses_are_within_their_range() {
    for bad in [
        SpinBackoff::Constant(ms(0)),
        SpinBackoff::Constant(ms(60_001)),
        SpinBackoff::Exponential { first: ms(2), max: ms(1), factor: 2 },
        SpinBackoff::Exponential { first: ms(1), max: ms(1), factor: 0 },
    ] {
        assert_eq!(bad.check().unwrap_err().option(), "backoff");
    }
    assert!(SpinBackoff::default().check().is_ok() && SpinBackoff::CONSTANT.check().is_ok());
}

#[test]
fn who_queues_comes_back_before_the_time_that_it_was_told_is_over() {
    let mut it = queues(up_to(60_000));
    for told in [3_333, 1_000, 40] {
        it.asks("fair_acquire").hears(0, &format!("2,{told},0"), 25_000);
        let pause = it.waits(Wake::BackOff);
        assert!(pause >= ms(told * 4 / 5) && pause <= ms(told), "{pause:?} of {told}");
        it.sleeps();
    }
    let numbers: Vec<&str> = it.asked.iter().map(|call| call.args()[9].as_str()).collect();
    assert_eq!(numbers, ["1", "2", "3"], "each try has a number above the last one's");
}

#[test]
fn a_wait_that_outlasts_its_bound_takes_its_seat_along() {
    let mut it = queues(Patience::UntilCancelled);
    it.asks("fair_acquire").hears(0, "1,3333,0", 25_000);
    let first = it.asked[0].clone();
    while it.now.since(start()) < ms(600_000) {
        it.sleeps();
        it.asks("fair_acquire").hears(0, "1,3333,0", 25_000);
    }
    // Under a new owner, which names the one before; nothing is abandoned.
    let last = it.asked.last().unwrap().clone();
    assert_ne!(last.keys()[0], first.keys()[0]);
    assert_eq!(last.keys().len(), first.keys().len() + 1);
    assert_eq!(last.keys().last(), first.keys().first());
    assert!(it.asked.iter().all(|call| call.script().name == "fair_acquire"));
    // Once it was answered, the one before is no longer named.
    it.sleeps();
    it.asks("fair_acquire");
    assert_eq!(it.asked.last().unwrap().keys().len(), first.keys().len());
}

#[test]
fn while_the_seat_may_not_have_been_handed_over_both_owners_are_named() {
    let mut it = queues(Patience::UntilCancelled);
    it.asks("fair_acquire").hears(0, "1,3333,0", 25_000);
    let first = it.asked[0].clone();
    while it.now.since(start()) < ms(600_000) {
        it.sleeps();
        it.asks("fair_acquire");
        if it.asked.last().unwrap().keys()[0] == first.keys()[0] {
            it.hears(0, "1,3333,0", 25_000);
        }
    }
    it.fails(edgelatch::error::FailureKind::Broken);
    it.sleeps();
    it.asks("fair_acquire");
    assert_eq!(it.asked.last().unwrap().keys().last(), first.keys().first());
    it.is_cancelled();
    it.asks("fair_release");
    assert!(it.asked.last().unwrap().keys().contains(&first.keys()[0]));
    let outcome = it.hears(0, "0", 0).done();
    assert_eq!(outcome, Err(AcquireError::Cancelled { held_at_most: None }));
}

#[test]
fn a_try_that_comes_late_goes_on_with_the_seat_under_a_new_bound() {
    let mut it = queues(up_to(60_000));
    it.asks("fair_acquire").hears(-1, "0", 0);
    it.asks("fair_acquire");
    let (first, second) = (&it.asked[0], &it.asked[1]);
    assert_ne!(first.keys()[0], second.keys()[0]);
    assert_eq!(second.keys().last(), first.keys().first());
}

#[test]
fn a_seat_of_which_it_is_not_known_who_has_it_is_given_up() {
    let mut it = queues(Patience::UntilCancelled);
    it.asks("fair_acquire").hears(0, "1,3333,0", 25_000);
    let first = it.asked[0].keys()[0].clone();
    let mut second = None;
    while it.now.since(start()) < ms(1_200_000) {
        it.sleeps();
        if it.now.since(start()) >= ms(1_200_000) {
            break;
        }
        it.asks("fair_acquire");
        if it.asked.last().unwrap().keys()[0] == first {
            it.hears(0, "1,3333,0", 25_000);
        } else {
            second = Some(it.asked.last().unwrap().keys()[0].clone());
            it.fails(edgelatch::error::FailureKind::Broken);
        }
    }
    it.asks("fair_release");
    let both = it.asked.last().unwrap().keys().to_vec();
    assert!(both.contains(&first) && both.contains(&second.unwrap()));
    it.hears(0, "0", 0);
    it.asks("fair_acquire");
    let third = it.asked.last().unwrap().keys();
    assert!(!both.contains(&third[0]) && !third.contains(&first));
}

#[test]
fn a_spin_lock_among_several_is_waited_for_at_its_own_pace() {
    let parts = vec![multi_lock::plain(0), multi_lock::plain(1)];
    let pacing = vec![Pacing::Jittered, Pacing::Spin(SpinBackoff::CONSTANT)];
    let mut it =
        talk(multi_lock::machine(GatherSpec { pacing, ..multi_lock::spec(parts, up_to(60_000)) }));
    it = it.hears_from(0, virtual_time::granted(10));
    for _ in 0..5 {
        // Whatever is known of the holder.
        it = it.hears_from(1, virtual_time::busy(3));
        assert_eq!((it.wait_ms(), it.why()), (64, Some(Wake::BackOff)));
        it = it.wakes();
    }
    // The other is waited for as always.
    let parts = vec![multi_lock::plain(0), multi_lock::plain(1)];
    let pacing = vec![Pacing::Jittered, Pacing::Spin(SpinBackoff::CONSTANT)];
    let it =
        talk(multi_lock::machine(GatherSpec { pacing, ..multi_lock::spec(parts, up_to(60_000)) }));
    let it = it.hears_from(1, virtual_time::busy(3)).hears_from(0, virtual_time::busy(3));
    assert_eq!((it.wait_ms(), it.why()), (4, Some(Wake::HolderExpires)));
}

#[test]
fn the_tries_of_a_spin_lock_are_spread_over_its_wait_when_they_are_counted() {
    let budget = budget(12);
    let pacing = Pacing::Spin(SpinBackoff::CONSTANT);
    let spec = AcquireSpec { pacing, budget, ..spec(up_to(30_000)) };
    let mut it = Conversation::new(Acquire::new(spec, entropy(), clock(), start()));
    for tries in 1..8 {
        it.asks("lock_acquire").hears(0, "1", 60_000);
        it.sleeps();
        let passed = it.now.since(start());
        assert!(passed >= ms(2_000) * tries && passed <= ms(4_000) * tries, "{tries}: {passed:?}");
    }
}

#[test]
fn whoever_had_to_be_brought_back_to_its_seat_allows_for_more() {
    // How many words of the second try differ from the first's, but for its request and bound: its number does.
    let differ_after = |refusal: &str| {
        let mut it = queues(up_to(60_000));
        it.asks("fair_acquire").hears(0, refusal, 25_000);
        it.sleeps();
        it.asks("fair_acquire");
        let [first, second] = [0, 1].map(|call: usize| it.asked[call].args()[2..].to_vec());
        first.iter().zip(&second).filter(|(one, other)| one != other).count()
    };
    assert_eq!((differ_after("1,3333,0"), differ_after("1,3333,1")), (1, 2));
}
