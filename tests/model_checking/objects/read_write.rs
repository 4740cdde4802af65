//! The read-write lock: concurrent readers, one writer, and a read inside a write that outlives it.

use super::client::TOKEN_HANDOVER;
use super::plan::{Operation, Plan};
use super::properties;
use super::reachability::CoverPoint::{
    Abandoned, BothGranted, Busy, Downgraded, Lost, NestedRead, RefusedAsGone, RefusedAsLost,
    Renewed,
};
use super::search::{finds, holds, plan_for, waits, world};
use super::world::World;
use test_support::script_model::Latches;
use test_support::script_model::read_write::rules;

/// A program that reads inside its own write hold, modelled as two clients.
const OUTER: Plan = plan_for(Operation::Write);
const INNER: Plan = plan_for(Operation::NestedRead(0));

fn sides(plans: impl Into<Vec<Plan>>) -> World {
    World { first: None, properties: properties::of_two_sides, ..world(plans) }
}

#[test]
fn without_the_latch_a_copy_of_a_released_read_is_granted() {
    let world = sides([plan_for(Operation::Read), plan_for(Operation::Write)]);
    finds(World { latches: Latches::Off, copies: 1, ..world }, properties::NOTHING_AFTER_END);
}

#[test]
fn with_a_bound_that_moves_a_reader_is_granted_twice() {
    let world = sides([plan_for(Operation::Read), plan_for(Operation::Write)]);
    let times = &[0, 10, 120];
    finds(World { moving_bound: Some(110), times, ..world }, properties::AT_MOST_ONCE);
}

#[test]
fn a_last_try_without_a_tombstone_is_granted_after_its_end() {
    let world = sides([plan_for(Operation::Write), plan_for(Operation::Read)]);
    let without = Some(rules::LAST_TRY);
    finds(World { without, copies: 1, ..world }, properties::NOTHING_AFTER_END);
}

#[test]
fn a_repeat_that_does_not_extend_leaves_a_hold_that_has_gone() {
    let world = sides([waits(plan_for(Operation::Read), 20), plan_for(Operation::Write)]);
    let without = Some(rules::REPEAT_EXTENDS);
    finds(World { without, times: &[0, 20, 40], ..world }, properties::TRUSTED_IS_STORED);
}

#[test]
fn a_writer_that_does_not_look_at_timeout_keys_enters_among_readers() {
    let world = sides([plan_for(Operation::Read), plan_for(Operation::Write)]);
    finds(World { without: Some(rules::ALIVE), ..world }, properties::BESIDE);
}

#[test]
fn readers_with_a_token_each_would_fence_each_other() {
    let world = sides([plan_for(Operation::Read), plan_for(Operation::Read)]);
    finds(World { without: Some(rules::EPOCH), ..world }, properties::SHARED);
}

#[test]
fn without_a_new_token_a_downgraded_read_keeps_the_token_of_its_write() {
    let world = sides([OUTER, INNER]);
    finds(World { without: Some(rules::DOWNGRADE), ..world }, properties::DOWNGRADE);
}

#[test]
fn a_nested_read_not_named_in_the_release_keeps_the_token_of_its_write() {
    let renewed = World { times: &[0, 10], ..sides([OUTER, Plan { due_renewals: 1, ..INNER }]) };
    let repeated = World { copies: 1, times: &[0], ..sides([OUTER, INNER]) };
    for world in [renewed, repeated] {
        finds(World { without: Some(rules::RISES), ..world }, properties::RISES);
    }
}

#[test]
fn a_read_without_the_end_of_its_write_keeps_the_token_of_a_nested_read() {
    let world = World { times: &[0], ..sides([OUTER, INNER]) };
    finds(World { without: Some(TOKEN_HANDOVER), ..world }, properties::NEWER_THAN_WRITE);
}

#[test]
fn a_reader_without_a_parent_does_not_come_in() {
    let world = sides([plan_for(Operation::Write), plan_for(Operation::Read)]);
    finds(World { without: Some(rules::PARENT), ..world }, properties::BESIDE);
}

/// Searches that take many seconds without optimization: only a full run includes them.
mod large {
    use super::*;

    #[test]
    fn a_writer_and_a_reader_and_a_copy_of_any_request() {
        let world = sides([plan_for(Operation::Write), plan_for(Operation::Read)]);
        let vacuous = &[
            properties::HELD_AT_MOST,
            properties::SHARED,
            properties::DOWNGRADE,
            properties::RISES,
            properties::NEWER_THAN_WRITE,
        ];
        holds(
            World { copies: 1, in_flight: 1, times: &[0, 20, 40], vacuous, ..world },
            &[BothGranted, Busy, Abandoned, Lost, RefusedAsGone, RefusedAsLost],
        );
    }

    #[test]
    fn a_writer_that_waits_for_a_reader() {
        let world = sides([waits(plan_for(Operation::Write), 20), plan_for(Operation::Read)]);
        let vacuous = &[
            properties::HELD_AT_MOST,
            properties::SHARED,
            properties::DOWNGRADE,
            properties::RISES,
            properties::NEWER_THAN_WRITE,
        ];
        holds(
            World { copies: 1, times: &[0, 20, 40], vacuous, ..world },
            &[BothGranted, Busy, Abandoned, Lost, RefusedAsGone],
        );
    }

    #[test]
    fn two_writers_and_a_copy_of_any_request() {
        let world = sides([plan_for(Operation::Write), plan_for(Operation::Write)]);
        let vacuous = &[
            properties::HELD_AT_MOST,
            properties::READ_TOKENS,
            properties::SHARED,
            properties::DOWNGRADE,
            properties::RISES,
            properties::NEWER_THAN_WRITE,
        ];
        holds(
            World {
                first: Some(0),
                copies: 1,
                in_flight: 1,
                times: &[0, 20, 40],
                vacuous,
                ..world
            },
            &[BothGranted, Busy, Abandoned, Lost, RefusedAsGone, RefusedAsLost],
        );
    }

    #[test]
    fn two_readers_and_a_writer() {
        let world = sides([
            plan_for(Operation::Read),
            plan_for(Operation::Read),
            plan_for(Operation::Write),
        ]);
        let vacuous = &[
            properties::HELD_AT_MOST,
            properties::DOWNGRADE,
            properties::RISES,
            properties::NEWER_THAN_WRITE,
        ];
        holds(
            World { copies: 1, in_flight: 1, times: &[0, 40], vacuous, ..world },
            &[BothGranted, Busy, Lost],
        );
    }

    #[test]
    fn a_read_inside_a_write_and_a_copy_of_any_request() {
        let world = sides([OUTER, INNER]);
        let vacuous = &[properties::HELD_AT_MOST, properties::BESIDE, properties::SHARED];
        holds(
            World { copies: 1, times: &[0, 20, 40], vacuous, ..world },
            &[NestedRead, Downgraded, Lost, RefusedAsGone],
        );
    }

    #[test]
    fn a_read_inside_a_write_that_is_renewed_after_it() {
        let world = sides([OUTER, Plan { due_renewals: 1, ..INNER }]);
        let vacuous = &[properties::HELD_AT_MOST, properties::BESIDE, properties::SHARED];
        holds(
            World { times: &[0, 10, 20, 40], vacuous, ..world },
            &[NestedRead, Downgraded, Renewed, Lost],
        );
    }

    #[test]
    fn a_downgrade_while_another_writes() {
        let world = sides([OUTER, INNER, plan_for(Operation::Write)]);
        let vacuous = &[properties::HELD_AT_MOST, properties::SHARED, properties::OUTCOME_IS_TRUE];
        holds(
            World { in_flight: 1, times: &[0, 20, 40], vacuous, ..world },
            &[NestedRead, Downgraded, Busy, Lost],
        );
    }
}
