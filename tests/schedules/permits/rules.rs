//! The semaphores without one of their rules: a schedule must miscount permits, grant an owner that
//! has ended, or take a valid hold.

use super::super::runner::{Network, Plan, assert_violated};
use super::{KINDS, Kind, NETWORK, PermitSchedule, Settings, plan};
use test_support::script_model::Latches;
use test_support::script_model::holds::rules;

const MISCOUNTED: &str = "do not add up to";
const STORED_AFTER_END: &str = "has ended but is still stored";
const GRANTED_AFTER_END: &str = "granted after its end";
const GRANTED_TWICE: &str = "granted twice";
const LOST: &str = "is not stored";

/// Checks that a schedule with this plan breaks an invariant, with one of the `expected` messages.
fn assert_needed(seeds: u64, plan: &Plan<Settings>, expected: &[&str]) {
    let missing = format!("{:?}, {:?}", plan.without, plan.settings);
    assert_violated::<PermitSchedule>(&missing, seeds, |_| plan.clone(), expected);
}

/// Checks that a schedule of each kind of semaphore breaks an invariant with the changed plan, with
/// one of the `expected` messages.
fn assert_both_need(change: impl Fn(Plan<Settings>) -> Plan<Settings>, expected: &[&str]) {
    for kind in KINDS {
        assert_needed(400, &change(plan(kind)), expected);
    }
}

/// Gives all holds a lease time, so that they can expire.
fn with_lease_times(plan: Plan<Settings>) -> Plan<Settings> {
    plan.with(|plan| plan.settings.endless_of_ten = 0)
}

#[test]
fn without_latches_an_owner_is_granted_after_its_end() {
    let change = |plan| Plan { latches: Latches::Off, ..plan };
    assert_both_need(change, &[GRANTED_AFTER_END, STORED_AFTER_END, GRANTED_TWICE]);
}

#[test]
fn without_the_tombstone_of_a_last_try_its_copy_is_granted() {
    assert_both_need(|plan| plan.without(rules::LAST_TRY), &[GRANTED_AFTER_END, STORED_AFTER_END]);
}

#[test]
fn a_repeat_that_does_not_extend_makes_a_client_trust_its_hold_too_long() {
    for kind in KINDS {
        let plan = with_lease_times(plan(kind)).without(rules::REPEAT_EXTENDS).with(|plan| {
            plan.network = Network { loss_percent: 40, reply_loss_percent: 40, ..NETWORK };
            plan.settings.max_java_skew = None;
        });
        assert_needed(2_000, &plan, &[LOST]);
    }
}

#[test]
fn without_a_check_of_the_set_a_renewal_adds_permits() {
    let change = |plan| with_lease_times(plan).without(rules::ALL_ARE_THERE);
    assert_both_need(change, &[MISCOUNTED, STORED_AFTER_END]);
}

#[test]
fn without_a_check_of_the_set_a_release_adds_permits() {
    assert_both_need(|plan| plan.without(rules::RELEASES_HELD), &[MISCOUNTED]);
}

#[test]
fn permits_of_an_expired_hold_that_are_not_returned_are_miscounted() {
    assert_both_need(|plan| with_lease_times(plan).without(rules::RETURNS_EXPIRED), &[MISCOUNTED]);
}

#[test]
fn without_a_check_of_the_set_a_hold_whose_latch_is_evicted_is_counted_twice() {
    let change = |plan: Plan<Settings>| {
        plan.without(rules::HELD_WITHOUT_LATCH).with(|plan| plan.settings.evicts_latches = true)
    };
    assert_both_need(change, &[MISCOUNTED]);
}

/// Leaves out the rule that a hold without an end is granted only to a request with a bound.
#[test]
fn an_endless_hold_without_a_bound_is_granted_to_a_copy_after_its_tombstone_has_expired() {
    let network = Network {
        loss_percent: 30,
        reply_loss_percent: 30,
        copy_percent: 60,
        slow_percent: 40,
        max_slow_delay_ms: 2_000_000,
        max_copy_delay_ms: 2_000_000,
        ..NETWORK
    };
    let change = |plan: Plan<Settings>| {
        plan.without(rules::BOUND).with(|plan| {
            plan.settings.endless_of_ten = 10;
            plan.network = network;
        })
    };
    assert_both_need(change, &[GRANTED_AFTER_END, STORED_AFTER_END]);
}

/// S93.
#[test]
fn without_a_tolerance_for_clock_skew_a_held_permit_is_granted_again() {
    let plan = with_lease_times(plan(Kind::Permits)).with(|plan| plan.settings.tolerated_skew = 0);
    assert_needed(400, &plan, &[LOST, "a Redisson permit was taken"]);
}
