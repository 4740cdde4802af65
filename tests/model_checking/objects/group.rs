//! Groups: two sets of values that share one value.

use super::plan::{Does, Plan};
use super::properties;
use super::search::{does, finds, holds, waits, world};
use super::sights::Sight::{
    Abandoned, BothGranted, Busy, Lost, RefusedAsGone, RefusedAsLost, Renewed, Repeated,
};
use super::world::World;
use test_support::script_model::Latches;

const SOME: Plan = does(Does::Values(&["A", "B"]));
const OTHERS: Plan = does(Does::Values(&["B", "C"]));

#[test]
fn without_latches_values_are_granted_again_after_their_end() {
    let world = World { latches: Latches::Off, copies: 1, ..world([SOME, OTHERS]) };
    finds(world, properties::NO_GHOST);
}

#[test]
fn a_release_that_does_not_look_whose_a_value_is_throws_its_holder_out() {
    let without = Some("a release leaves others' values alone");
    finds(World { without, ..world([SOME, OTHERS]) }, properties::CONTINUITY);
}

#[test]
fn a_repeat_that_does_not_need_all_values_is_told_of_what_somebody_else_holds() {
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
        let world = world([Plan { renewals: 1, renews: 1, ..SOME }, OTHERS]);
        let silent = &[properties::HELD_AT_MOST, properties::TOLD];
        holds(World { in_flight: 1, silent, ..world }, &[BothGranted, Busy, Renewed, Lost]);
    }
}
