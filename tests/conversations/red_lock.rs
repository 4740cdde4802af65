//! Taking a majority of nodes.

use edgelatch::LockName;
use edgelatch::error::{AcquireError, FailureKind, RefusalKind};
use edgelatch::machine::{Entropy, Gathered, Majority, MajoritySpec, Wake};
use edgelatch::protocol::calls::LockCalls;
use edgelatch::protocol::reply::{Code, ServerClock};
use edgelatch::protocol::script::Publish;
use edgelatch::timing::{LeaseTime, Patience};

use crate::support::conversation::held_at_most;
use crate::support::fixtures::up_to;
use crate::support::virtual_time::{
    SERVER_START, START, Says, Talk, busy, granted, known_clock, ms, says, talk,
};

const OWNER: usize = 5;
const RAISED_TO: usize = 6;
const LAST: usize = 7;
const PROPOSAL: usize = 10;
const ACQUIRE: &str = "lock_acquire";
const RAISE: &str = "lock_raise";
const RELEASE: &str = "lock_release";
const ALL: [(usize, &str); 3] = [(0, ACQUIRE), (1, ACQUIRE), (2, ACQUIRE)];

pub(crate) fn spec(count: usize, patience: Patience) -> MajoritySpec {
    let node = LockCalls::new(LockName::parse("job").unwrap(), Publish::Plain);
    MajoritySpec::new(vec![node; count], patience)
}

pub(crate) fn machine(spec: MajoritySpec) -> Majority {
    let clocks = vec![Some(known_clock()); spec.parts.len()];
    Majority::new(spec, Entropy::new([7; 32]), clocks, START)
}

fn three(patience: Patience) -> Talk<Majority> {
    talk(machine(spec(3, patience))).asks_of(&ALL)
}

fn voters(gathered: &Gathered) -> Vec<usize> {
    let parts = gathered.parts.iter().enumerate();
    let voters = parts.filter(|(_, part)| part.counts);
    voters
        .map(|(place, part)| {
            assert_eq!(part.grant.token, gathered.token, "of a node that counts");
            place
        })
        .collect()
}

#[track_caller]
fn end(it: &Talk<Majority>) -> Result<Gathered, AcquireError> {
    it.outcome().cloned().unwrap_or_else(|| panic!("after {:?}: {:?}", it.scripts(), it.why()))
}

#[test]
fn a_majority_that_stores_the_proposed_token_is_a_hold_in_one_round_trip() {
    let it = three(Patience::Once);
    let proposal = it.arg_at(0, PROPOSAL).to_owned();
    assert_eq!(proposal, ((SERVER_START + 1) * 1000).to_string());
    assert_eq!((it.arg_at(1, PROPOSAL), it.arg_at(2, PROPOSAL)), (&*proposal, &*proposal));
    let token = proposal.parse().unwrap();
    let gathered = it.hears_from(2, granted(token)).hears_from(0, granted(token)).ends().unwrap();
    assert_eq!((gathered.token.as_u64(), voters(&gathered)), (token, vec![0, 2]));
    // The silent one may be granted late: it has what releases it.
    assert_eq!(gathered.parts.len(), 3);
}

#[test]
fn half_of_an_even_number_is_no_majority() {
    let four = [(0, ACQUIRE), (1, ACQUIRE), (2, ACQUIRE), (3, ACQUIRE)];
    let it = talk(machine(spec(4, Patience::Once))).asks_of(&four);
    let it = it.hears_from(0, granted(5)).hears_from(1, granted(5));
    assert!(!it.is_over());
    let it = it.hears_from(2, busy(4_000)).hears_from(3, busy(4_000));
    let it = it.asks_of(&[(0, RELEASE), (1, RELEASE)]);
    let it = it.hears_from(0, says(Code::Done)).hears_from(1, says(Code::Done));
    assert_eq!(it.ends().unwrap_err(), AcquireError::Busy { remaining: Some(ms(4_000)) });
}

#[test]
fn the_proposal_is_of_the_clock_that_is_ahead_and_there_is_none_without_a_clock() {
    let ahead = ServerClock::new(SERVER_START + 700, START);
    let clocks = vec![Some(known_clock()), None, Some(ahead)];
    let it = talk(Majority::new(spec(3, Patience::Once), Entropy::new([7; 32]), clocks, START));
    assert_eq!(it.arg_at(0, PROPOSAL), ((SERVER_START + 701) * 1000).to_string());
    let it = talk(Majority::new(spec(3, Patience::Once), Entropy::new([7; 32]), vec![], START));
    assert_eq!(it.arg_at(0, PROPOSAL), "");
}

#[test]
fn where_tokens_differ_the_largest_is_stored_before_it_is_handed_out() {
    let it = three(Patience::Once)
        .hears_from(0, granted(5))
        .hears_from(1, granted(9))
        .asks_of(&[(0, RAISE)]);
    assert_eq!(it.arg_at(0, RAISED_TO), "9");
    let gathered = it.hears_from(0, granted(9)).ends().unwrap();
    assert_eq!((gathered.token.as_u64(), voters(&gathered)), (9, vec![0, 1]));
}

#[test]
fn a_larger_token_that_is_stored_is_no_confirmation_but_a_new_aim() {
    let it = three(Patience::Once)
        .hears_from(0, granted(5))
        .hears_from(1, granted(9))
        .asks_of(&[(0, RAISE)])
        .hears_from(0, granted(12))
        .asks_of(&[(1, RAISE)]);
    assert_eq!(it.arg_at(1, RAISED_TO), "12");
    assert_eq!(it.hears_from(1, granted(12)).ends().unwrap().token.as_u64(), 12);
}

#[test]
fn a_node_that_answers_while_others_are_raised_may_confirm() {
    let it = three(Patience::Once).hears_from(0, granted(5)).hears_from(1, granted(9));
    let gathered = end(&it.hears_from(2, granted(9))).unwrap();
    assert_eq!(voters(&gathered), [1, 2]);
}

#[test]
fn a_node_that_was_lost_when_it_was_to_be_raised_does_not_count() {
    let it = three(Patience::Once)
        .hears_from(0, granted(5))
        .hears_from(1, granted(9))
        .asks_of(&[(0, RAISE)])
        .hears_from(0, says(Code::Lost))
        .hears_from(2, busy(4_000));
    let it = it.asks_of(&[(0, RELEASE), (1, RELEASE)]);
    let it = it.hears_from(0, says(Code::No)).hears_from(1, says(Code::Done));
    assert_eq!(it.ends().unwrap_err(), AcquireError::Busy { remaining: Some(ms(4_000)) });
}

#[test]
fn the_holder_of_the_lowest_node_keeps_it_and_asks_for_the_others_again() {
    let it = three(up_to(30_000))
        .hears_from(0, granted(5))
        .hears_from(1, busy(20_000))
        .hears_from(2, busy(20_000))
        .waits(Wake::BackOff)
        .wakes()
        .asks_of(&[(1, ACQUIRE), (2, ACQUIRE)]);
    let it = it.hears_from(1, granted(5));
    assert_eq!(voters(&it.ends().unwrap()), [0, 1]);
}

#[test]
fn all_others_let_go_and_wait_for_the_lowest_node_alone() {
    let it = three(up_to(30_000));
    assert_eq!((it.arg_at(0, LAST), it.arg_at(1, LAST)), ("0", "1"));
    let it = it
        .hears_from(0, busy(20_000))
        .hears_from(1, granted(5))
        .hears_from(2, busy(20_000))
        .asks_of(&[(1, RELEASE)])
        .hears_from(1, says(Code::Done))
        .wakes()
        .asks_of(&[(0, ACQUIRE)])
        .hears_from(0, busy(19_000))
        .wakes()
        .asks_of(&[(0, ACQUIRE)])
        .hears_from(0, granted(7))
        .asks_of(&[(1, ACQUIRE), (2, ACQUIRE)]);
    assert_eq!(voters(&it.hears_from(2, granted(7)).ends().unwrap()), [0, 2]);
}

#[test]
fn where_the_lowest_node_is_silent_the_next_one_decides() {
    let it = three(up_to(30_000))
        .fails_at(0, FailureKind::Broken)
        .hears_from(1, granted(5))
        .hears_from(2, busy(20_000));
    // What is held is kept; what may have been granted to nobody's knowledge is undone.
    let it = it.asks_of(&[(0, RELEASE)]).hears_from(0, says(Code::No)).wakes();
    let it = it.asks_of(&[(0, ACQUIRE), (2, ACQUIRE)]);
    assert_eq!(voters(&it.hears_from(2, granted(5)).ends().unwrap()), [1, 2]);
}

#[test]
fn what_was_kept_for_too_long_is_let_go() {
    let mut it = three(up_to(30_000))
        .hears_from(0, granted(5))
        .hears_from(1, busy(-1))
        .hears_from(2, busy(-1));
    while !it.scripts().contains(&RELEASE) {
        it = it.wakes().hears_from(1, busy(-1)).hears_from(2, busy(-1));
        assert!(it.elapsed_ms() <= 1_000, "woken when patience ends");
    }
    let it = it.hears_from(0, says(Code::Done));
    let count = it.count();
    assert_eq!(it.wakes().count() - count, 3, "all again");
}

#[test]
fn a_node_gets_a_tenth_of_the_lease_and_a_second_at_the_most() {
    assert_eq!(three(Patience::Once).wait_ms(), 1_000);
    let lease = LeaseTime::new(ms(2_000)).unwrap();
    assert_eq!(talk(machine(MajoritySpec { lease, ..spec(3, Patience::Once) })).wait_ms(), 200);
}

#[test]
fn a_minority_that_says_no_for_good_is_borne_and_a_majority_is_not() {
    let it = three(Patience::Once).refused_by(1, "WRONGTYPE other").hears_from(0, granted(5));
    assert_eq!(voters(&it.hears_from(2, granted(5)).ends().unwrap()), [0, 2]);
    let it = three(up_to(30_000))
        .refused_by(1, "WRONGTYPE other")
        .refused_by(2, "WRONGPASS bad")
        .hears_from(0, granted(5))
        .asks_of(&[(0, RELEASE)])
        .hears_from(0, says(Code::Done));
    let outcome = it.ends();
    let Err(AcquireError::Refused(refusal)) = outcome else { panic!("{outcome:?}") };
    assert_eq!(refusal.kind(), RefusalKind::WrongType);
}

#[test]
fn a_node_that_is_too_young_counts_as_refused() {
    let young = || young(3_000);
    let it = three(Patience::Once).hears_from(0, young()).hears_from(1, young());
    let it = it.hears_from(2, granted(5)).hears_from(2, says(Code::Done));
    assert_eq!(end(&it).unwrap_err(), AcquireError::Busy { remaining: Some(ms(3_000)) });
}

/// What a node answers that does not vote for so long.
fn young(ms: i64) -> Says {
    Says(Code::TooYoung, "0".into(), ms)
}

#[test]
fn nobody_waits_for_a_node_that_is_too_young() {
    // Others may have a majority without it, and release it long before this node votes.
    let it = three(up_to(30_000))
        .hears_from(0, young(3_600_000))
        .hears_from(1, busy(20_000))
        .hears_from(2, busy(20_000));
    let it = it.asks_of(&[(0, RELEASE)]).hears_from(0, says(Code::No)).wakes();
    let it = it.asks_of(&[(1, ACQUIRE)]).hears_from(1, granted(5));
    let it = it.asks_of(&[(0, ACQUIRE), (2, ACQUIRE)]).hears_from(2, granted(5));
    assert_eq!(voters(&end(&it).unwrap()), [1, 2]);
    // If nobody else has it, all are asked again.
    let it = three(up_to(30_000)).hears_from(0, young(60_000)).hears_from(1, young(60_000));
    let it = it.fails_at(2, FailureKind::NotSent);
    assert!(it.wait_ms() <= 2_000);
}

#[test]
fn too_many_silent_nodes_are_no_busy_lock() {
    let it = three(Patience::Once).hears_from(2, busy(900)).unheard(&[0, 1], FailureKind::NotSent);
    assert_eq!(end(&it).unwrap_err(), AcquireError::Unreachable(FailureKind::NotSent));
}

#[test]
fn everything_that_was_asked_is_undone_and_one_silent_node_does_not_make_the_end_unknown() {
    let it = three(up_to(30_000)).hears_from(0, granted(5)).cancelled();
    let it = it.asks_of(&[(0, RELEASE), (1, RELEASE), (2, RELEASE)]);
    let it = it.hears_from(0, says(Code::Done)).hears_from(1, says(Code::No));
    let it = it.unheard(&[2], FailureKind::Broken);
    assert_eq!(end(&it).unwrap_err(), AcquireError::Cancelled { held_at_most: None });

    let it = three(up_to(30_000)).hears_from(0, granted(5)).cancelled();
    let it = it.hears_from(0, says(Code::Done)).unheard(&[1, 2], FailureKind::Broken);
    let held_at_most = Some(held_at_most(30_000 + 90_000 + 30_000, ms(it.elapsed_ms())));
    assert_eq!(end(&it).unwrap_err(), AcquireError::Cancelled { held_at_most });
}

#[test]
fn owners_of_different_nodes_are_different() {
    let it = three(Patience::Once);
    assert!(
        it.arg_at(0, OWNER) != it.arg_at(1, OWNER) && it.arg_at(1, OWNER) != it.arg_at(2, OWNER)
    );
}

fn five(patience: Patience) -> Talk<Majority> {
    let all: Vec<(usize, &str)> = (0..5).map(|place| (place, ACQUIRE)).collect();
    talk(machine(spec(5, patience))).asks_of(&all)
}

const NEVER: &str = "WRONGPASS no";

#[test]
fn two_of_five_may_refuse_for_good_and_a_third_ends_it() {
    let it = five(up_to(30_000)).refused_by(0, NEVER).refused_by(1, NEVER);
    let it = it.hears_from(2, busy(9_000)).hears_from(3, busy(9_000)).hears_from(4, busy(9_000));
    assert!(!it.is_over() && it.why() != Some(Wake::ReplyDue), "it waits: {:?}", it.why());
    let it = five(up_to(30_000)).refused_by(0, NEVER).refused_by(1, NEVER).refused_by(2, NEVER);
    let it = it.hears_from(3, busy(9_000)).hears_from(4, busy(9_000));
    assert!(matches!(end(&it), Err(AcquireError::Refused(_))), "{:?}", it.outcome());
    // Asked once, what the others say counts while they may be a majority.
    let it = five(Patience::Once).refused_by(0, NEVER).refused_by(1, NEVER);
    let it = it.hears_from(2, busy(7_000)).hears_from(3, busy(8_000)).hears_from(4, busy(9_000));
    assert_eq!(end(&it), Err(AcquireError::Busy { remaining: Some(ms(9_000)) }));
}

#[test]
fn two_that_are_busy_outweigh_one_that_is_silent() {
    let it = three(Patience::Once).hears_from(0, busy(900)).hears_from(1, busy(4_000));
    let it = it.unheard(&[2], FailureKind::NotSent);
    assert_eq!(end(&it), Err(AcquireError::Busy { remaining: Some(ms(4_000)) }));
}

#[test]
fn who_waits_for_the_lowest_node_asks_all_once_more_when_its_wait_is_over() {
    let refused = |it: Talk<Majority>| (0..3).fold(it, |it, place| it.hears_from(place, busy(-1)));
    let mut it = refused(three(up_to(10_000))).wakes();
    while it.elapsed_ms() < 10_000 {
        it = it.asks_of(&[(0, ACQUIRE)]).hears_from(0, busy(-1)).wakes();
    }
    let it = it.asks_of(&ALL);
    assert_eq!([0, 1, 2].map(|place| it.arg_at(place, LAST)), ["1"; 3]);
    assert_eq!(refused(it).ends(), Err(AcquireError::Busy { remaining: None }));
}

#[test]
fn a_token_that_comes_with_a_loss_was_not_stored() {
    let it = three(Patience::Once).hears_from(0, granted(5)).hears_from(1, granted(9));
    let it = it.asks_of(&[(0, RAISE)]).hears_from(0, Says(Code::Lost, "9".into(), 30_000));
    assert!(!it.is_over());
    it.hears_from(2, busy(4_000)).asks_of(&[(0, RELEASE), (1, RELEASE)]);
}
