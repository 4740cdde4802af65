//! The lock without one of its rules: the model must find the known violation. This proves that the
//! searches of `lock` can find one.

use super::lock::first_of_all;
use super::properties;
use super::search::{PLAN, finds, world};
use super::world::World;
use test_support::script_model::Latches;

/// S5.
#[test]
fn without_the_latch_a_copy_of_a_released_acquisition_is_granted() {
    let world = World { latches: Latches::Off, copies: 1, ..world([PLAN, PLAN]) };
    finds(world, properties::NOTHING_AFTER_END);
}

#[test]
fn with_a_bound_that_moves_an_owner_is_granted_twice() {
    let world = World { moving_bound: Some(110), times: &[0, 10, 120], ..world([PLAN, PLAN]) };
    finds(world, properties::AT_MOST_ONCE);
}

/// Searches that take many seconds without optimization: only a full run includes them.
mod large {
    use super::*;

    /// S6.
    #[test]
    fn without_the_latch_an_owner_is_granted_again_after_another_owner() {
        let world = World {
            latches: Latches::Off,
            copies: 1,
            times: &[0, 10, 20, 40],
            ..world([PLAN, PLAN])
        };
        finds(world, properties::NO_RETURN);
    }

    #[test]
    fn without_a_prolonged_tombstone_a_client_s_result_becomes_untrue() {
        finds(first_of_all(Latches::Brief), properties::OUTCOME_IS_TRUE);
    }
}
