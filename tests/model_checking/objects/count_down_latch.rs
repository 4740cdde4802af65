//! The count-down latch: its idempotent calls, and clients that await its opening. A call's bound
//! ends 5.15 s after the call is made; Redis keeps its result for 60 s more.

use super::plan::{Operation, Plan};
use super::properties;
use super::reachability::CoverPoint::{
    Cancelled, Done, NotExecuted, Nothing, Open, ResultRepeated,
};
use super::search::{finds, holds, plan_for, waits, world};
use super::world::World;
use test_support::script_model::holds::rules;

const COUNTS: Plan = Plan { requests: 4, ..plan_for(Operation::CountDown) };
const CLOSES: Plan = Plan { requests: 1, ..plan_for(Operation::Close(2)) };
const AWAITS: Plan = Plan { requests: 2, ..plan_for(Operation::Await) };

fn latch(plans: impl Into<Vec<Plan>>, count: Option<i64>) -> World {
    World {
        number: count,
        copies: 1,
        times: &[0, 6, 67],
        properties: properties::of_idempotent_calls,
        vacuous: &[],
        ..world(plans)
    }
}

#[test]
fn a_count_that_is_retried_until_it_is_cancelled() {
    let alone = latch([COUNTS], Some(2));
    holds(World { breaks: 1, ..alone }, &[Done, NotExecuted, Cancelled, ResultRepeated]);
}

#[test]
fn a_count_on_an_open_latch_that_is_closed_again() {
    let world = World { times: &[0, 6], ..latch([COUNTS, CLOSES], None) };
    holds(world, &[Done, Nothing, ResultRepeated, Cancelled]);
}

#[test]
fn a_wait_ends_when_the_latch_is_open() {
    let world = latch([Plan { requests: 2, ..COUNTS }, waits(AWAITS, 5)], Some(1));
    let properties = properties::of_latch_waits;
    holds(World { times: &[0, 6], properties, ..world }, &[Done, Open]);
}

#[test]
fn a_refusal_that_is_not_recorded_is_executed_later() {
    let world = latch([COUNTS, CLOSES], None);
    finds(World { without: Some(rules::RECORDED), ..world }, properties::REPORTED_ONCE);
}

#[test]
fn with_a_bound_that_moves_a_cancelled_count_is_executed() {
    // Redis remembers the cancel for 66 s; the request may be executed for 70 s.
    let world = World { copies: 0, in_flight: 4, ..latch([COUNTS], Some(2)) };
    finds(World { moving_bound: Some(70), ..world }, properties::REPORTED_ONCE);
}

/// Searches that take many seconds without optimization: only a full run includes them.
mod large {
    use super::*;

    #[test]
    fn two_counts_and_a_copy_of_any_request() {
        let world = latch([COUNTS, COUNTS], Some(2));
        holds(World { times: &[0, 6], ..world }, &[Done, NotExecuted, Cancelled, ResultRepeated]);
    }
}
