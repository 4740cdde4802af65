//! The promises hold in all schedules, and are found broken when a rule is taken away.

use super::schedule::{ALL_RULES, Rules, Seen, play};
use crate::support::script_model::Latches;

const SCHEDULES: u64 = 600;

#[test]
fn no_schedule_breaks_a_promise_between_ours_and_java_s() {
    let mut all = Seen::default();
    for rules in [ALL_RULES, Rules { skew: 0, ..ALL_RULES }, Rules { pad: 0, skew: 0, ..ALL_RULES }]
    {
        for seed in 0..SCHEDULES {
            let seen =
                play(rules, seed).unwrap_or_else(|broken| panic!("{rules:?} {seed}: {broken}"));
            all.grants += seen.grants;
            all.java_grants += seen.java_grants;
            all.refusals += seen.refusals;
            all.losses += seen.losses;
            all.late_copies += seen.late_copies;
        }
    }
    let least = u32::try_from(SCHEDULES).unwrap();
    for count in [all.grants, all.java_grants, all.refusals, all.losses, all.late_copies] {
        assert!(count > least / 4, "{all:?}");
    }
}

/// In some schedule the promise is broken of which these are the words.
fn assert_bites(rules: Rules, words: &str) {
    let mut broken = (0..20_000).filter_map(|seed| play(rules, seed).err());
    let found = broken.by_ref().take(40).find(|broken| broken.contains(words));
    assert!(found.is_some(), "{rules:?}: nothing says `{words}`");
}

fn without(rule: &'static str) -> Rules {
    Rules { without: Some(rule), ..ALL_RULES }
}

#[test]
fn java_s_clocks_are_trusted_no_further_than_they_may_be_off() {
    assert_bites(without("a clock of Java's may be behind"), "from a holder of Java's");
    assert_bites(without("a clock of Java's may be ahead"), "Java took");
    assert_bites(Rules { pad: 0, ..ALL_RULES }, "from a holder of Java's");
    assert_bites(Rules { skew: 2_500, ..ALL_RULES }, "Java took");
}

#[test]
fn a_late_unlock_of_java_s_bites_when_earlier_owners_leave_something_behind() {
    assert_bites(without("what earlier owners left goes"), "Java took");
}

#[test]
fn a_release_bites_when_it_does_not_look_whose_a_value_is() {
    assert_bites(without("a release leaves others' values alone"), "Release of");
}

#[test]
fn a_loss_must_be_told_to_a_repeat_and_to_a_renewal() {
    assert_bites(without("a repeat needs all values"), "believes in");
    assert_bites(without("a renewal needs all values"), "believes in");
}

#[test]
fn values_are_granted_twice_without_latches() {
    assert_bites(Rules { latches: Latches::Off, ..ALL_RULES }, "after its end");
}
