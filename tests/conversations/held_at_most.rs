//! For how long something may be held of which nobody can tell: what the machines say when they cannot.

use std::time::Duration;

use edgelatch::LockName;
use edgelatch::error::{AcquireError, FailureKind, ReleaseError};
use edgelatch::machine::{Acquire, AcquireSpec, Release, Renew};
use edgelatch::protocol::calls::{
    BatchSize, FairCalls, FairSettings, GroupCalls, PermitCalls, Target,
};
use edgelatch::protocol::reply::ServerClock;
use edgelatch::protocol::script::Publish;
use edgelatch::timing::{AttemptTime, LeaseTime, Patience, PeerSkew};

use crate::support::conversation::*;

/// What a wait is told that is called off when nobody answers any more.
fn called_off(it: &mut Conversation<Acquire>, release: &str) -> Duration {
    it.is_cancelled();
    for attempt in 1..=3 {
        it.asks(release).fails(FailureKind::Broken);
        if attempt < 3 {
            it.sleeps();
        }
    }
    match it.done() {
        Err(AcquireError::Cancelled { held_at_most: Some(time) }) => time,
        other => panic!("{other:?}"),
    }
}

fn name() -> LockName {
    LockName::parse("invoice:42").unwrap()
}

fn passed(it: &Conversation<Acquire>) -> Duration {
    it.now.since(start())
}

#[test]
fn of_a_wait_without_an_end_it_reckons_with_the_end_of_its_round() {
    let mut it = acquire(Patience::UntilCancelled);
    it.asks("lock_acquire");
    let told = called_off(&mut it, "lock_release");
    assert_eq!(told, held_at_most(600_000 + 90_000 + 30_000, passed(&it)));
}

#[test]
fn without_a_bound_it_reckons_with_ten_minutes_from_now() {
    let mut it = Conversation::new(Acquire::new(spec(up_to(30_000)), entropy(), None, start()));
    it.asks("lock_acquire");
    assert_eq!(called_off(&mut it, "lock_release"), held_at_most(600_000 + 30_000, ms(0)));
}

#[test]
fn what_allows_for_the_clocks_of_redissons_clients_lasts_longer() {
    let skew = PeerSkew::new(ms(3_000)).unwrap();
    let group = GroupCalls::new(name(), ["A"], skew, Publish::Plain).unwrap();
    let permits = PermitCalls::new(name(), Publish::Plain, BatchSize::new(1).unwrap(), skew);
    let targets = [("group", Target::Group(group)), ("permits", Target::Permits(permits))];
    for (kind, target) in targets {
        let spec = AcquireSpec::new(target, up_to(30_000));
        let mut it = Conversation::new(Acquire::new(spec, entropy(), clock(), start()));
        it.asks(&format!("{kind}_acquire"));
        let told = called_off(&mut it, &format!("{kind}_release"));
        assert_eq!(told, held_at_most(30_000 + 90_000 + 30_000 + 2 * 3_000, passed(&it)));
    }
}

#[test]
fn it_rests_on_the_clock_that_was_heard_last() {
    let mut it = acquire(up_to(30_000));
    it.asks("lock_acquire").after(2_000).hears(0, "1", -1);
    let heard = it.now;
    it.sleeps();
    it.asks("lock_acquire");
    let told = called_off(&mut it, "lock_release");
    let left = 30_000 + 90_000 + 30_000 - 2_000;
    assert_eq!(told, held_at_most(left, it.now.since(heard)));
}

#[test]
fn an_owner_whose_seat_may_not_have_been_taken_over_is_reckoned_with() {
    // The first owner has no bound; that of the second is 95 s away.
    let target = Target::Fair(FairCalls::new(name(), FairSettings::default(), Publish::Plain));
    let spec = AcquireSpec::new(target, up_to(605_000));
    let mut it = Conversation::new(Acquire::new(spec, entropy(), None, start()));
    it.asks("fair_acquire").hears(0, "1,3333,0", -1);
    it.after(600_000).sleeps();
    it.asks("fair_acquire");
    assert!(it.asked.last().unwrap().args()[1].parse::<u64>().is_ok(), "it has a bound");
    assert_eq!(called_off(&mut it, "fair_release"), held_at_most(600_000 + 30_000, ms(0)));
}

#[test]
fn a_release_reckons_with_the_renewals() {
    let (grant, attempt) = (grant(LeaseTime::DEFAULT), AttemptTime::DEFAULT);
    // An hour later: the bound of the acquisition is over, and that of the renewal is 6 s away.
    let now = start() + Duration::from_secs(3600);
    let clock = Some(ServerClock::new(SERVER_MS + 3_600_000, now));
    let renew = Renew::new(&target(), &grant, lease(60_000), attempt, entropy(), clock, now);
    let release = Release::new(&target(), &grant, renew.reach(), attempt, clock);
    let mut it = Conversation::new(release);
    it.now = now;
    for attempt in 1..=5 {
        it.asks("lock_release").fails(FailureKind::Broken);
        if attempt < 5 {
            it.sleeps();
        }
    }
    let held_at_most = held_at_most(6_000 + 60_000, it.now.since(now));
    assert_eq!(it.done(), Err(ReleaseError::Unknown { held_at_most, cause: FailureKind::Broken }));
}
