//! Grants that have to be with replicas.

use edgelatch::LockName;
use edgelatch::error::{AcquireError, FailureKind, RefusalKind};
use edgelatch::machine::{
    Acquire, AcquireSpec, Entropy, Gather, GatherSpec, Majority, MajoritySpec, Wake,
};
use edgelatch::protocol::calls::{LockCalls, Target};
use edgelatch::protocol::reply::Code;
use edgelatch::protocol::script::Publish;
use edgelatch::timing::{AttemptTime, LeaseTime, Patience, Replicas};

use crate::support::fixtures::up_to;
use crate::support::virtual_time::{
    START, Talk, already_yours, busy, granted, known_clock, ms, says, talk,
};

const ACQUIRE: &str = "lock_acquire";
const RELEASE: &str = "lock_release";

fn lock(name: &str) -> LockCalls {
    LockCalls::new(LockName::parse(name).unwrap(), Publish::Plain)
}

fn replicas(number: u8) -> Option<Replicas> {
    Some(Replicas::new(number).unwrap())
}

fn spec(patience: Patience) -> AcquireSpec {
    let spec = AcquireSpec::new(Target::Lock(lock("job")), patience);
    AcquireSpec { replicas: replicas(2), ..spec }
}

fn machine(spec: AcquireSpec) -> Talk<Acquire> {
    talk(Acquire::new(spec, Entropy::new([7; 32]), Some(known_clock()), START)).asks(ACQUIRE)
}

/// A lock that is to be with two replicas.
fn acquiring(patience: Patience) -> Talk<Acquire> {
    machine(spec(patience))
}

#[test]
fn a_grant_counts_when_as_many_replicas_have_it_as_were_asked_for() {
    for acknowledged in [2, 3] {
        let it = acquiring(Patience::Once);
        assert_eq!(it.awaits(), [Some((2, 1_000))]);
        let grant = it.hears_replicated(0, granted(42), Some(acknowledged)).ends().unwrap();
        assert_eq!(grant.token.as_u64(), 42);
    }
}

#[test]
fn a_grant_that_too_few_replicas_have_is_undone_and_reported_within_any_wait() {
    for patience in [Patience::Once, up_to(60_000), Patience::UntilCancelled] {
        for acknowledged in [0, 1] {
            let it = acquiring(patience).hears_replicated(0, granted(42), Some(acknowledged));
            let it = it.asks(RELEASE);
            // What undoes it waits for nobody.
            assert_eq!(it.awaits(), [Some((2, 1_000)), None]);
            let error = it.hears(says(Code::Done)).ends().unwrap_err();
            assert_eq!(error, AcquireError::NotReplicated { acknowledged });
        }
    }
}

#[test]
fn a_grant_that_could_not_be_undone_may_still_be_there() {
    let it = acquiring(Patience::Once).hears_replicated(0, granted(42), Some(0)).asks(RELEASE);
    let it = it.fails(FailureKind::Broken).wakes().asks(RELEASE).fails(FailureKind::Broken);
    let error = it.wakes().asks(RELEASE).fails(FailureKind::Broken).ends().unwrap_err();
    assert!(matches!(error, AcquireError::Unknown { .. }), "{error:?}");
}

#[test]
fn a_gateway_that_will_not_wait_is_told_of_and_nothing_is_held() {
    let it = acquiring(up_to(60_000)).hears_replicated(0, granted(42), None).asks(RELEASE);
    let Err(AcquireError::Refused(refusal)) = it.hears(says(Code::Done)).ends() else {
        panic!("not refused")
    };
    assert_eq!(refusal.kind(), RefusalKind::Unsupported);
}

#[test]
fn what_is_no_grant_does_not_look_at_replicas() {
    let it = acquiring(up_to(60_000)).hears_replicated(0, busy(30_000), Some(0));
    let it = it.waits(Wake::BackOff).wakes().asks(ACQUIRE);
    assert_eq!(it.awaits(), [Some((2, 1_000)); 2]);
    it.hears_replicated(0, granted(42), Some(2)).ends().unwrap();
    let it = acquiring(Patience::Once).hears_replicated(0, busy(7_000), None);
    assert_eq!(it.ends().unwrap_err(), AcquireError::Busy { remaining: Some(ms(7_000)) });
}

#[test]
fn a_grant_whose_answer_was_lost_counts_by_the_replicas_of_its_repetition() {
    let it = acquiring(Patience::Once).fails(FailureKind::Broken).wakes().asks(ACQUIRE);
    it.hears_replicated(0, already_yours(42), Some(2)).ends().unwrap();
    let it = acquiring(Patience::Once).fails(FailureKind::Broken).wakes().asks(ACQUIRE);
    let it = it.hears_replicated(0, already_yours(42), Some(1)).asks(RELEASE);
    let error = it.hears(says(Code::Done)).ends().unwrap_err();
    assert_eq!(error, AcquireError::NotReplicated { acknowledged: 1 });
}

#[test]
fn redis_waits_for_half_of_an_attempt_at_the_most() {
    for (attempt, lease, within) in [(60_000, 30_000, 1_000), (700, 30_000, 350), (5_000, 300, 50)]
    {
        let attempt = AttemptTime::new(ms(attempt)).unwrap();
        let lease = LeaseTime::new(ms(lease)).unwrap();
        let it = machine(AcquireSpec { attempt, lease, ..spec(Patience::Once) });
        assert_eq!(it.awaits(), [Some((2, within))]);
    }
}

#[test]
fn of_several_parts_each_has_to_be_with_replicas() {
    let gathering = |patience| {
        let spec = GatherSpec {
            parts: ["a", "b", "c"].map(|name| Target::Lock(lock(name))).into(),
            lease: LeaseTime::DEFAULT,
            patience,
            budget: None,
            attempt: AttemptTime::DEFAULT,
            keeps: ms(1_000),
            replicas: replicas(1),
            pacing: Vec::new(),
            newest: Vec::new(),
            is_crowded: false,
        };
        let clocks = vec![Some(known_clock()); 3];
        talk(Gather::new(spec, Entropy::new([7; 32]), clocks, START))
            .asks_of(&[(0, ACQUIRE), (1, ACQUIRE), (2, ACQUIRE)])
            .hears_replicated(0, granted(1), Some(1))
            .hears_replicated(1, granted(2), Some(1))
    };
    let it = gathering(Patience::Once);
    assert_eq!(it.awaits(), [Some((1, 1_000)); 3]);
    it.hears_replicated(2, granted(3), Some(1)).ends().unwrap();
    for patience in [Patience::Once, up_to(60_000)] {
        let it = gathering(patience).hears_replicated(2, granted(3), Some(0)).asks_of(&[
            (0, RELEASE),
            (1, RELEASE),
            (2, RELEASE),
        ]);
        assert_eq!(it.awaits()[3..], [None; 3]);
        let it = it.hears_from(0, says(Code::Done)).hears_from(1, says(Code::Done));
        let error = it.hears_from(2, says(Code::Done)).ends().unwrap_err();
        assert_eq!(error, AcquireError::NotReplicated { acknowledged: 0 });
    }
}

#[test]
fn a_node_whose_grant_is_not_with_its_replicas_has_no_vote() {
    let asking = || {
        let spec = MajoritySpec {
            parts: vec![lock("job"); 3],
            lease: LeaseTime::DEFAULT,
            patience: Patience::Once,
            budget: None,
            attempt: AttemptTime::DEFAULT,
            keeps: ms(1_000),
            replicas: replicas(1),
            is_crowded: false,
        };
        let clocks = vec![Some(known_clock()); 3];
        talk(Majority::new(spec, Entropy::new([7; 32]), clocks, START))
            .asks_of(&[(0, ACQUIRE), (1, ACQUIRE), (2, ACQUIRE)])
            .hears_replicated(0, granted(5), Some(0))
    };
    let it = asking().hears_replicated(1, granted(5), Some(1));
    let gathered = it.hears_replicated(2, granted(5), Some(1)).ends().unwrap();
    let counts: Vec<bool> = gathered.parts.iter().map(|part| part.counts).collect();
    assert_eq!(counts, [false, true, true]);
    let it =
        asking().hears_replicated(1, granted(5), Some(0)).hears_replicated(2, granted(5), Some(1));
    let it = it.asks_of(&[(0, RELEASE), (1, RELEASE), (2, RELEASE)]);
    let it = it.hears_from(0, says(Code::Done)).hears_from(1, says(Code::Done));
    let error = it.hears_from(2, says(Code::Done)).ends().unwrap_err();
    assert_eq!(error, AcquireError::NotReplicated { acknowledged: 0 });
}

/// A majority of three nodes that store different tokens, each with its replica: the smaller one is raised.
fn raising() -> Talk<Majority> {
    let spec = MajoritySpec { replicas: replicas(1), ..crate::red_lock::spec(3, Patience::Once) };
    talk(crate::red_lock::machine(spec))
        .asks_of(&[(0, ACQUIRE), (1, ACQUIRE), (2, ACQUIRE)])
        .hears_replicated(0, granted(5), Some(1))
        .hears_replicated(1, granted(9), Some(1))
        .asks_of(&[(0, "lock_raise")])
}

#[test]
fn a_raised_token_counts_when_it_is_with_the_replicas_too() {
    // Or a failover of the raised node would bring back the smaller token, and the next majority might hand out less than this one.
    let it = raising();
    assert_eq!(it.awaits()[3], Some((1, 500)));
    let gathered = it.hears_replicated(0, granted(9), Some(1)).ends().unwrap();
    assert_eq!(gathered.token.as_u64(), 9);

    let it = raising().hears_replicated(0, granted(9), Some(0));
    let it = it.hears_replicated(2, granted(9), Some(1));
    let gathered = it.outcome().cloned().unwrap().unwrap();
    let counts: Vec<bool> = gathered.parts.iter().map(|part| part.counts).collect();
    assert_eq!(counts, [false, true, true]);
}
