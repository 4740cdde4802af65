//! Each rule, left out, is missed: the schedules find what it is for.

use super::observer::{PLAN, Plan, Sights};
use super::schedule::Network;
use super::schedules::run;
use super::steps::Kind;
use crate::support::script_model::Latches;
use crate::support::script_model::holds::rules;

/// Schedules until one goes wrong in this way.
fn misses(plan: Plan, seeds: u64, wrong: &[&str]) {
    let mut others = Vec::new();
    for seed in 0..seeds {
        match run(plan, seed, &mut Sights::default()) {
            Err(found) if wrong.iter().any(|wrong| found.contains(wrong)) => return,
            Err(found) => others.push(found),
            Ok(()) => {}
        }
    }
    panic!("{:?} is not missed in {seeds} schedules: {others:?}", plan.without);
}

/// What the rule is for, of both kinds of semaphore.
fn both_miss(plan: Plan, wrong: &[&str]) {
    for kind in [Kind::Semaphore, Kind::Permits] {
        misses(Plan { kind, ..plan }, 400, wrong);
    }
}

const MISCOUNTED: &str = "are not";
const GHOST: &str = "what has ended is in the set";
const AFTER_ITS_END: &str = "granted after its end";
const TWICE: &str = "granted twice";
const TAKEN: &str = "a hold that is believed in is not in the set";

#[test]
fn without_latches_an_owner_is_granted_after_its_end() {
    both_miss(Plan { latches: Latches::Off, ..PLAN }, &[AFTER_ITS_END, GHOST, TWICE]);
}

#[test]
fn without_the_tombstone_of_a_last_try_its_copy_is_granted() {
    let plan = Plan { without: Some(rules::LAST_TRY), ..PLAN };
    both_miss(plan, &[AFTER_ITS_END, GHOST]);
}

#[test]
fn a_repeat_that_does_not_extend_leaves_a_client_to_believe_too_long() {
    let network = Network { lost: 40, ..PLAN.network };
    let plan =
        Plan { without: Some(rules::REPEAT_EXTENDS), network, endless: 0, java: None, ..PLAN };
    misses(Plan { kind: Kind::Permits, ..plan }, 2_000, &[TAKEN]);
    misses(plan, 2_000, &[TAKEN]);
}

#[test]
fn a_renewal_of_what_is_not_there_makes_permits() {
    both_miss(
        Plan { without: Some(rules::ALL_ARE_THERE), endless: 0, ..PLAN },
        &[MISCOUNTED, GHOST],
    );
}

#[test]
fn giving_back_what_is_not_held_makes_permits() {
    both_miss(Plan { without: Some(rules::SET), ..PLAN }, &[MISCOUNTED]);
}

#[test]
fn what_runs_out_without_being_given_back_is_gone() {
    both_miss(Plan { without: Some(rules::EVICTED), endless: 0, ..PLAN }, &[MISCOUNTED]);
}

#[test]
fn what_is_held_without_a_latch_is_paid_for_twice() {
    let plan = Plan { without: Some(rules::HELD_WITHOUT_LATCH), evicts: true, ..PLAN };
    both_miss(plan, &[MISCOUNTED]);
}

#[test]
fn without_a_bound_a_hold_without_an_end_comes_back_after_ten_minutes() {
    let network = Network { lost: 30, doubled: 60, longest: 2_000_000, late: 40 };
    let plan = Plan { without: Some(rules::BOUND), endless: 10, network, ..PLAN };
    both_miss(plan, &[AFTER_ITS_END, GHOST]);
}

/// S93.
#[test]
fn without_an_allowance_java_s_clock_takes_what_is_held() {
    let plan = Plan { kind: Kind::Permits, skew: 0, endless: 0, ..PLAN };
    misses(plan, 400, &[TAKEN, "a permit of Java's was taken"]);
}
