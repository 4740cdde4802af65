//! Groups: two sets of values that share one value.

use super::plan::{Operation, Plan};
use super::properties;
use super::reachability::CoverPoint::{
    Abandoned, BothGranted, Busy, Lost, RefusedAsGone, RefusedAsLost, Renewed, Repeated,
};
use super::search::{finds, holds, plan_for, waits, world};
use super::world::World;
use test_support::script_model::Latches;

const SOME: Plan = plan_for(Operation::Values(&["A", "B"]));
const OTHERS: Plan = plan_for(Operation::Values(&["B", "C"]));

#[test]
fn without_latches_values_are_granted_again_after_their_end() {
    let world = World { latches: Latches::Off, copies: 1, ..world([SOME, OTHERS]) };
    finds(world, properties::NOTHING_AFTER_END);
}

#[test]
fn a_release_that_ignores_the_owner_of_a_value_ends_another_s_hold() {
    let without = Some("a release leaves others' values alone");
    finds(World { without, ..world([SOME, OTHERS]) }, properties::CONTINUITY);
}

#[test]
fn a_repeat_that_needs_some_values_returns_those_that_another_owner_holds() {
    let without = Some("a repeat needs all values");
    let world = world([waits(SOME, 20), OTHERS]);
    finds(World { without, times: &[0, 20, 40], ..world }, properties::EXCLUSION);
}

/// Searches that take many seconds without optimization: only a full run includes them.
mod large {
    use super::*;

    #[test]
    fn two_sets_that_share_a_value_and_a_copy_of_any_request() {
        let world = world([SOME, waits(OTHERS, 20)]);
        holds(
            World { copies: 1, times: &[0, 20, 40], ..world },
            &[BothGranted, Busy, Abandoned, Lost, Repeated, RefusedAsGone, RefusedAsLost],
        );
    }

    #[test]
    fn values_that_are_renewed() {
        let world = world([Plan { due_renewals: 1, renewals_on_demand: 1, ..SOME }, OTHERS]);
        let vacuous = &[properties::HELD_AT_MOST, properties::OUTCOME_IS_TRUE];
        holds(World { in_flight: 1, vacuous, ..world }, &[BothGranted, Busy, Renewed, Lost]);
    }
}
