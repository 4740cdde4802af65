//! Taking several parts, all or none.

use edgelatch::LockName;
use edgelatch::error::{AcquireError, FailureKind, RefusalKind};
use edgelatch::machine::{Entropy, Gather, GatherSpec, Gathered, Wake};
use edgelatch::protocol::calls::{FairCalls, FairSettings, LockCalls, Target};
use edgelatch::protocol::reply::Code;
use edgelatch::protocol::script::Publish;
use edgelatch::timing::Patience;

use crate::support::conversation::held_at_most;
use crate::support::fixtures::up_to;
use crate::support::virtual_time::{
    SERVER_START, START, Says, Talk, busy, granted, known_clock, ms, says, talk,
};

const NOT_AFTER: usize = 2;
const OWNER: usize = 5;
const LAST: usize = 7;
const FAIR_LAST: usize = 12;
const ACQUIRE: &str = "lock_acquire";
const RELEASE: &str = "lock_release";

fn name(place: usize) -> LockName {
    LockName::parse(["a", "b", "c", "d"][place]).unwrap()
}

pub(crate) fn plain(place: usize) -> Target {
    Target::Lock(LockCalls::new(name(place), Publish::Plain))
}

pub(crate) fn fair(place: usize) -> Target {
    Target::Fair(FairCalls::new(name(place), FairSettings::default(), Publish::Plain))
}

pub(crate) fn spec(parts: Vec<Target>, patience: Patience) -> GatherSpec {
    GatherSpec::new(parts, patience)
}

pub(crate) fn machine(spec: GatherSpec) -> Gather {
    let clocks = vec![Some(known_clock()); spec.parts.len()];
    Gather::new(spec, Entropy::new([7; 32]), clocks, START)
}

pub(crate) fn gathering(count: usize, patience: Patience) -> Talk<Gather> {
    talk(machine(spec((0..count).map(plain).collect(), patience)))
}

/// The first and the second part are granted, the third is not.
fn keeps_two(patience: Patience) -> Talk<Gather> {
    gathering(3, patience)
        .asks_of(&[(0, ACQUIRE), (1, ACQUIRE), (2, ACQUIRE)])
        .hears_from(0, granted(10))
        .hears_from(1, granted(11))
        .hears_from(2, busy(20_000))
}

/// What it ended with, whatever was asked before.
#[track_caller]
pub(crate) fn end(it: &Talk<Gather>) -> Result<Gathered, AcquireError> {
    it.outcome().cloned().unwrap_or_else(|| panic!("after {:?}: {:?}", it.scripts(), it.why()))
}

pub(crate) fn tokens(gathered: &Gathered) -> Vec<u64> {
    assert!(gathered.parts.iter().all(|part| part.counts));
    gathered.parts.iter().map(|part| part.grant.token.as_u64()).collect()
}

#[test]
fn free_parts_are_taken_by_one_request_each_side_by_side() {
    let gathered = gathering(3, Patience::Once)
        .asks_of(&[(0, ACQUIRE), (1, ACQUIRE), (2, ACQUIRE)])
        .hears_from(2, granted(12))
        .hears_from(0, granted(10))
        .hears_from(1, granted(11))
        .ends()
        .unwrap();
    assert_eq!((tokens(&gathered), gathered.token.as_u64()), (vec![10, 11, 12], 10));
    let owners: std::collections::BTreeSet<_> =
        gathered.parts.iter().map(|part| part.grant.owner).collect();
    assert_eq!(owners.len(), 3, "a Redis behind two gateways must not count twice");
}

#[test]
fn each_lease_counts_from_its_own_request() {
    let it = gathering(2, Patience::Once).hears_from(0, granted(10)).travels(2_000);
    let now = it.now();
    let gathered = end(&it.hears_from(1, granted(11))).unwrap();
    for part in &gathered.parts {
        assert_eq!(part.grant.lease.remaining(now), ms(30_000 - 302 - 2_000));
    }
}

#[test]
fn a_refused_try_releases_what_it_got_and_tells_when_the_first_refused_is_free() {
    let it = gathering(3, Patience::Once)
        .hears_from(0, granted(10))
        .hears_from(1, busy(7_000))
        .hears_from(2, busy(9_000));
    let it = it.asks_of(&[(0, ACQUIRE), (0, RELEASE), (1, ACQUIRE), (2, ACQUIRE)]);
    assert_eq!(it.arg_at(1, LAST), "1");
    let outcome = it.hears_from(0, says(Code::Done)).ends();
    // What was refused at its last try has ended by itself.
    assert_eq!(outcome.unwrap_err(), AcquireError::Busy { remaining: Some(ms(7_000)) });
}

#[test]
fn what_comes_before_the_first_refused_part_is_kept_and_what_comes_after_is_let_go() {
    let it = gathering(3, up_to(30_000))
        .asks_of(&[(0, ACQUIRE), (1, ACQUIRE), (2, ACQUIRE)])
        .hears_from(0, granted(10))
        .hears_from(1, busy(20_000))
        .hears_from(2, granted(12))
        .asks_of(&[(2, RELEASE)])
        .hears_from(2, says(Code::Done))
        .waits(Wake::BackOff);
    // Only the one that is waited for is asked for, until it is granted.
    let it = it.wakes().asks_of(&[(1, ACQUIRE)]).hears_from(1, busy(19_000)).wakes();
    let it = it.asks_of(&[(1, ACQUIRE)]).hears_from(1, granted(11)).asks_of(&[(2, ACQUIRE)]);
    let gathered = it.hears_from(2, granted(14)).ends().unwrap();
    assert_eq!(tokens(&gathered), [10, 11, 14]);
}

#[test]
fn a_part_that_was_let_go_is_asked_for_under_a_new_owner() {
    let it = gathering(2, up_to(30_000));
    let first = it.arg_at(1, OWNER).to_owned();
    let it = it.hears_from(0, busy(5_000)).hears_from(1, granted(12));
    assert_eq!(it.arg_at(1, OWNER), first, "the release is of the owner that was granted");
    let it = it.hears_from(1, says(Code::Done)).wakes().hears_from(0, granted(10));
    assert_ne!(it.arg_at(1, OWNER), first);
}

#[test]
fn what_is_waited_for_is_asked_again_under_its_owner_and_bound() {
    let it = gathering(2, up_to(30_000));
    assert_eq!((it.arg_at(0, LAST), it.arg_at(1, LAST)), ("0", "1"));
    let owner = it.arg_at(0, OWNER).to_owned();
    let it = it.hears_from(0, busy(5_000)).hears_from(1, busy(5_000)).wakes();
    assert_eq!(it.arg_at(0, OWNER), owner);
    let bound = (SERVER_START + 30_000 + 90_000).to_string();
    assert_eq!((it.arg_at(0, NOT_AFTER), it.arg_at(1, NOT_AFTER)), (&*bound, &*bound));
}

/// S94.
#[test]
fn a_part_without_an_answer_is_undone_before_it_is_asked_again() {
    let it = gathering(2, up_to(30_000));
    let first = it.arg_at(1, OWNER).to_owned();
    let it = it
        .asks_of(&[(0, ACQUIRE), (1, ACQUIRE)])
        .hears_from(0, granted(10))
        .fails_at(1, FailureKind::Broken)
        .asks_of(&[(1, RELEASE)]);
    assert_eq!(it.arg_at(1, OWNER), first);
    // The pause is over before the end is confirmed: nothing else is asked of it.
    let it = it.passes(60).waits(Wake::ReplyDue).hears_from(1, says(Code::No));
    let it = it.asks_of(&[(1, ACQUIRE)]);
    assert_ne!(it.arg_at(1, OWNER), first);
    assert_eq!(tokens(&it.hears_from(1, granted(11)).ends().unwrap()), [10, 11]);
}

#[test]
fn what_was_kept_for_too_long_is_let_go_and_the_wait_goes_on_with_empty_hands() {
    let mut it = keeps_two(up_to(30_000));
    while it.elapsed_ms() < 1_000 {
        it = it.wakes().hears_from(2, busy(20_000));
    }
    assert_eq!(it.elapsed_ms(), 1_000, "woken when patience ends");
    assert_eq!(it.scripts().iter().filter(|script| **script == RELEASE).count(), 2);
    let it = it.hears_from(0, says(Code::Done)).hears_from(1, says(Code::Done)).wakes();
    let count = it.count();
    let it = it.hears_from(2, granted(12));
    assert_eq!(it.count() - count, 2, "all others again: {:?} {:?}", it.scripts(), it.why());
    let it = it.hears_from(0, granted(20)).hears_from(1, granted(21));
    assert_eq!(tokens(&end(&it).unwrap()), [20, 21, 12]);
}

#[test]
fn parts_that_are_kept_for_long_are_extended_and_a_loss_among_them_is_waited_for() {
    let (parts, keeps) = ((0..2).map(plain).collect(), ms(60_000));
    let mut it = talk(machine(GatherSpec { keeps, ..spec(parts, up_to(60_000)) }))
        .hears_from(0, granted(10))
        .hears_from(1, busy(-1));
    let polls = |it: &Talk<Gather>| it.scripts().len();
    while it.elapsed_ms() < 10_000 {
        let before = polls(&it);
        it = it.wakes().hears_from(1, busy(-1));
        assert!(it.elapsed_ms() >= 10_000 || polls(&it) == before + 1);
    }
    // A third of its lease is over: it is renewed by the same request, and is not there any more.
    let it = it.hears_from(0, says(Code::Lost));
    let it = it.hears_from(0, says(Code::No)).hears_from(1, says(Code::No));
    let count = it.count();
    let it = it.wakes();
    assert_eq!((it.count(), it.scripts()[count]), (count + 1, ACQUIRE));
    let it = it.hears_from(0, granted(20)).hears_from(1, granted(21));
    assert_eq!(tokens(&end(&it).unwrap()), [20, 21]);
}

#[test]
fn a_wait_that_is_over_ends_with_one_last_try_at_all_that_is_missing() {
    let mut it = gathering(3, up_to(400))
        .hears_from(0, granted(10))
        .hears_from(1, busy(60_000))
        .hears_from(2, busy(60_000))
        .asks_of(&[(0, ACQUIRE), (1, ACQUIRE), (2, ACQUIRE)]);
    while it.why() != Some(Wake::WaitOver) {
        it = it.wakes().asks_of(&[(1, ACQUIRE)]).hears_from(1, busy(60_000));
    }
    let it = it.wakes().asks_of(&[(1, ACQUIRE), (2, ACQUIRE)]);
    assert_eq!((it.elapsed_ms(), it.arg_at(1, LAST), it.arg_at(2, LAST)), (400, "1", "1"));
    let it = it.hears_from(1, busy(59_600)).hears_from(2, granted(12));
    let it = it.asks_of(&[(0, RELEASE), (2, RELEASE)]);
    let it = it.hears_from(0, says(Code::Done)).hears_from(2, says(Code::Done));
    assert_eq!(it.ends().unwrap_err(), AcquireError::Busy { remaining: Some(ms(59_600)) });
}

/// S94.
#[test]
fn a_cancelled_wait_lets_everything_go_also_what_is_under_way() {
    let it = keeps_two(up_to(30_000)).wakes().asks_of(&[(2, ACQUIRE)]).cancelled().asks_of(&[
        (0, RELEASE),
        (1, RELEASE),
        (2, RELEASE),
    ]);
    let it = it.hears_from(0, says(Code::Done)).hears_from(1, says(Code::Done));
    let outcome = it.hears_from(2, says(Code::No)).ends();
    assert_eq!(outcome.unwrap_err(), AcquireError::Cancelled { held_at_most: None });
}

#[test]
fn an_undoing_that_is_not_confirmed_is_told_with_its_end() {
    let it = keeps_two(Patience::Once).hears_from(1, says(Code::Done));
    let it = it.unheard(&[0], FailureKind::Broken);
    let held_at_most = held_at_most(90_000 + 30_000, ms(it.elapsed_ms()));
    let unknown = AcquireError::Unknown { held_at_most, cause: FailureKind::Broken };
    assert_eq!(it.outcome(), Some(&Err(unknown)));
}

#[test]
fn a_part_whose_clock_is_not_known_is_not_bounded_and_the_others_are() {
    let parts = (0..2).map(plain).collect();
    let clocks = vec![None, Some(known_clock())];
    let it = Gather::new(spec(parts, Patience::Once), Entropy::new([7; 32]), clocks, START);
    let it = talk(it);
    assert_eq!((it.arg_at(0, NOT_AFTER), it.arg_at(0, 3)), ("", "600000"));
    assert_eq!(it.arg_at(1, NOT_AFTER), (SERVER_START + 90_000).to_string());
}

#[test]
fn a_part_that_comes_late_or_needs_a_bound_is_asked_once_more_at_once() {
    let it = gathering(2, Patience::Once).hears_from(0, granted(10)).passes(500);
    let it = it.hears_from(1, says(Code::Late)).hears_from(1, says(Code::No));
    assert_eq!(it.arg_at(1, NOT_AFTER), (SERVER_START + 500 + 90_000).to_string());
    assert_eq!(tokens(&end(&it.hears_from(1, granted(11))).unwrap()), [10, 11]);

    let parts = (0..1).map(plain).collect();
    let it = Gather::new(spec(parts, Patience::Once), Entropy::new([7; 32]), vec![], START);
    let it = talk(it).asks(ACQUIRE).hears(says(Code::BoundRequired)).asks(ACQUIRE);
    assert_eq!(it.arg_at(0, NOT_AFTER), (SERVER_START + 90_000).to_string());
}

#[test]
fn keys_in_several_slots_are_a_refusal_and_nothing_is_to_be_undone_there() {
    let it = gathering(2, up_to(30_000))
        .asks_of(&[(0, ACQUIRE), (1, ACQUIRE)])
        .hears_from(0, granted(10))
        .refused_by(1, "CROSSSLOT Keys in request don't hash to the same slot")
        .asks_of(&[(0, RELEASE)]);
    let outcome = it.hears_from(0, says(Code::Done)).ends();
    let Err(AcquireError::Refused(refusal)) = outcome else { panic!("{outcome:?}") };
    assert_eq!((refusal.kind(), refusal.code()), (RefusalKind::Other, "CROSSSLOT"));
}

#[test]
fn a_redis_that_is_not_ready_is_waited_for() {
    let it = gathering(2, up_to(30_000));
    let it = it.hears_from(0, granted(10)).refused_by(1, "LOADING soon").wakes();
    assert_eq!(tokens(&end(&it.hears_from(1, granted(11))).unwrap()), [10, 11]);
}

/// A fair lock's refusal: the place, and when it wants to hear of the waiter again.
fn queued(place: u32, after: u32) -> Says {
    Says(Code::No, format!("{place},{after},0"), 20_000)
}

#[test]
fn only_what_is_waited_for_stands_in_a_queue() {
    let it = talk(machine(spec(vec![fair(0), fair(1), plain(2)], up_to(30_000))));
    assert_eq!((it.arg_at(0, FAIR_LAST), it.arg_at(1, FAIR_LAST)), ("0", "1"));
    // The first is granted, the second is not: it joins its queue at once, under a new owner.
    let it = it.hears_from(0, granted(10)).hears_from(2, granted(12));
    let turned_away = it.arg_at(1, OWNER).to_owned();
    let it = it
        .asks_of(&[(0, "fair_acquire"), (1, "fair_acquire"), (2, ACQUIRE)])
        .hears_from(1, queued(0, 900))
        .asks_of(&[(1, "fair_acquire"), (2, RELEASE)]);
    assert_eq!(it.arg_at(1, FAIR_LAST), "0");
    assert_ne!(it.arg_at(1, OWNER), turned_away);
    let it = it.hears_from(2, says(Code::Done)).hears_from(1, queued(1, 900));
    assert!((720..=900).contains(&it.wait_ms()), "as the queue has told: {}", it.wait_ms());
}

#[test]
fn who_is_next_in_a_queue_notices_when_it_is_its_turn() {
    // Without being told to hurry: at the pace of a lock that is held, and no later than the queue wants to hear of it.
    let parts = vec![fair(0), plain(1)];
    let mut it = talk(machine(spec(parts, up_to(60_000)))).hears_from(1, busy(50));
    let mut step = 50;
    for _ in 0..8 {
        it = it.hears_from(0, queued(0, 800));
        assert!((10..=step.min(800)).contains(&it.wait_ms()), "{} within {step}", it.wait_ms());
        it = it.wakes();
        step *= 2;
    }
}

#[test]
fn a_place_in_a_queue_is_kept_when_a_poll_is_not_answered() {
    let it = talk(machine(spec(vec![fair(0), plain(1)], up_to(30_000))));
    let it = it.hears_from(0, queued(0, 100)).hears_from(1, busy(50)).wakes();
    let owner = it.arg_at(0, OWNER).to_owned();
    let it = it.fails_at(0, FailureKind::Broken).wakes();
    assert_eq!((it.scripts().last(), it.arg_at(0, OWNER)), (Some(&"fair_acquire"), &*owner));
    assert!(it.scripts().iter().all(|script| !script.ends_with("release")));
}

#[test]
fn a_long_wait_in_a_queue_goes_on_under_a_new_owner_who_takes_over_the_seat() {
    let mut it = talk(machine(spec(vec![fair(0), plain(1)], Patience::UntilCancelled)))
        .hears_from(0, queued(0, 60_000))
        .hears_from(1, busy(50));
    let owner = it.arg_at(0, OWNER).to_owned();
    while it.elapsed_ms() < 600_000 {
        it = it.wakes();
        if it.elapsed_ms() < 600_000 {
            it = it.hears_from(0, queued(0, 60_000));
        }
    }
    assert_ne!(it.arg_at(0, OWNER), owner);
    assert_eq!(it.arg_at(0, 15), owner, "the previous owner");
    let it = it.cancelled();
    assert_eq!((it.scripts().last(), it.arg_at(0, 10)), (Some(&"fair_release"), &*owner));
}

#[test]
fn a_part_whose_token_is_out_of_range_is_undone() {
    // The script wrote no tombstone, so a copy is kept from being granted.
    let asked = gathering(2, Patience::Once).asks_of(&[(0, ACQUIRE), (1, ACQUIRE)]);
    let refused = asked.hears_from(1, says(Code::TokenRange)).hears_from(0, granted(42));
    let undone = refused.asks_of(&[(0, RELEASE), (1, RELEASE)]);
    let outcome = undone.hears_from(0, says(Code::Done)).hears_from(1, says(Code::No)).ends();
    let Err(AcquireError::Refused(refusal)) = outcome else { panic!("{outcome:?}") };
    assert_eq!(refusal.kind(), RefusalKind::TokenRange);
}
