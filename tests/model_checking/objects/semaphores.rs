//! Permits of both kinds of semaphore: each is counted once, however often a request is resent.

use edgelatch_proto::timing::LeaseTime;

use super::network::DeliveryLimit;
use super::plan::{Operation, Plan};
use super::properties::{self, of_changing_permits};
use super::reachability::CoverPoint::{
    Abandoned, BothGranted, BoundRequired, Busy, Cancelled, Done, Lost, NotExecuted, RefusedAsGone,
    RefusedAsLost, Renewed, Repeated, ResultRepeated,
};
use super::search::{PLAN, finds, holds, plan_for, waits, world};
use super::world::World;
use test_support::script_model::Latches;
use test_support::script_model::holds::rules;

const ONE: Plan = plan_for(Operation::Permits(1));
/// Held until it is released.
const ENDLESS: Plan = Plan { lease: LeaseTime::ENDLESS, ..ONE };
/// Sends three attempts, then cancels the call.
const ADDS: Plan = Plan { requests: 4, ..plan_for(Operation::Add(1)) };
/// Two permits at a time.
const BATCH: Plan = plan_for(Operation::Batch(2));

fn counted(plans: impl Into<Vec<Plan>>, permits: i64) -> World {
    World { number: Some(permits), properties: properties::of_permits, ..world(plans) }
}

#[test]
fn without_latches_a_copy_of_a_released_acquisition_of_permits_is_granted() {
    for plan in [ONE, BATCH] {
        let world = counted([plan, plan], 2);
        finds(World { latches: Latches::Off, copies: 1, ..world }, properties::NOTHING_AFTER_END);
    }
}

#[test]
fn without_the_tombstone_of_a_last_try_its_copy_is_granted() {
    for plan in [ONE, BATCH] {
        let world = counted([plan, plan], 2);
        let world = World { without: Some(rules::LAST_TRY), copies: 1, ..world };
        finds(
            World { number: Some(plan.operation.permits().unwrap()), ..world },
            properties::NOTHING_AFTER_END,
        );
    }
}

#[test]
fn with_a_bound_that_moves_a_permit_is_granted_twice() {
    let world = counted([ENDLESS, PLAN], 2);
    let world = World { plans: vec![ENDLESS, ENDLESS], ..world };
    let (moving_bound, without) = (Some(110), Some(rules::HELD_WITHOUT_LATCH));
    let times = &[0, 10, 120];
    finds(World { moving_bound, without, times, ..world }, properties::AT_MOST_ONCE);
}

#[test]
fn with_a_bound_that_moves_a_cancelled_addition_of_permits_is_executed() {
    // Redis remembers the cancel for 66 s; the request may be executed for 70 s.
    let world = counted([Plan { is_active: false, ..ONE }, ADDS], 1);
    let properties = of_changing_permits;
    let world = World { first: Some(1), in_flight: 4, times: &[0, 6, 67], properties, ..world };
    finds(World { moving_bound: Some(70), ..world }, properties::REPORTED_ONCE);
}

#[test]
fn without_a_bound_a_hold_without_an_end_comes_back_after_ten_minutes() {
    let world = counted([Plan { knows_clock: false, ..ENDLESS }, ENDLESS], 1);
    let world = World { delivery_limit: DeliveryLimit::Late, copies: 1, times: &[0, 610], ..world };
    finds(World { without: Some(rules::BOUND), ..world }, properties::NOTHING_AFTER_END);
}

#[test]
fn a_repeat_that_does_not_extend_makes_a_client_trust_its_hold_too_long() {
    for plan in [ONE, BATCH] {
        let world = counted([waits(plan, 20), plan], plan.operation.permits().unwrap());
        let (without, times) = (Some(rules::REPEAT_EXTENDS), &[0, 20, 40]);
        finds(World { without, times, ..world }, properties::TRUSTED_IS_STORED);
    }
}

#[test]
fn giving_back_what_is_not_held_makes_permits() {
    for plan in [ONE, BATCH] {
        let world = counted([plan, plan], plan.operation.permits().unwrap());
        finds(World { without: Some(rules::RELEASES_HELD), ..world }, properties::COUNTED);
    }
}

#[test]
fn permits_of_an_expired_hold_that_are_not_returned_are_miscounted() {
    for plan in [ONE, BATCH] {
        let world = counted([plan, plan], plan.operation.permits().unwrap());
        finds(World { without: Some(rules::RETURNS_EXPIRED), ..world }, properties::COUNTED);
    }
}

/// Searches that take many seconds without optimization: only a full run includes them.
mod large {
    use super::*;

    #[test]
    fn one_permit_and_two_clients_with_endless_holds() {
        let world = counted([ENDLESS, waits(ENDLESS, 20)], 1);
        holds(
            World { copies: 1, in_flight: 1, times: &[0, 20, 110, 120], ..world },
            &[BothGranted, Busy, Abandoned, Repeated, RefusedAsGone],
        );
    }

    #[test]
    fn one_permit_and_a_client_that_has_not_seen_the_clock() {
        let world = counted([Plan { knows_clock: false, ..ENDLESS }, ENDLESS], 1);
        holds(
            World {
                copies: 1,
                in_flight: 1,
                delivery_limit: DeliveryLimit::Late,
                times: &[0, 600, 610],
                ..world
            },
            &[BothGranted, Busy, BoundRequired, RefusedAsGone],
        );
    }

    #[test]
    fn one_permit_and_two_clients_with_leases() {
        let world = counted([ONE, waits(ONE, 20)], 1);
        holds(
            World { copies: 1, times: &[0, 20, 40], ..world },
            &[BothGranted, Busy, Abandoned, Lost, Repeated, RefusedAsGone, RefusedAsLost],
        );
    }

    #[test]
    fn a_hold_of_a_permit_that_is_renewed() {
        let world = counted([Plan { due_renewals: 1, renewals_on_demand: 1, ..ONE }, ONE], 1);
        let vacuous = &[properties::HELD_AT_MOST, properties::OUTCOME_IS_TRUE];
        holds(World { in_flight: 1, vacuous, ..world }, &[BothGranted, Busy, Renewed, Lost]);
    }

    #[test]
    fn two_of_three_permits_with_ids_and_a_copy_of_any_request() {
        let world = counted([BATCH, waits(BATCH, 20)], 3);
        holds(
            World { copies: 1, times: &[0, 20, 40], ..world },
            &[BothGranted, Busy, Abandoned, Lost, Repeated, RefusedAsGone, RefusedAsLost],
        );
    }

    #[test]
    fn permits_with_ids_that_are_renewed() {
        let world = counted([Plan { due_renewals: 1, renewals_on_demand: 1, ..BATCH }, BATCH], 3);
        let vacuous = &[properties::HELD_AT_MOST, properties::OUTCOME_IS_TRUE];
        holds(World { in_flight: 1, vacuous, ..world }, &[BothGranted, Busy, Renewed, Lost]);
    }

    #[test]
    fn permits_are_added_once_while_a_client_acquires_one() {
        let world = counted([ONE, ADDS], 0);
        let vacuous = &[properties::HELD_AT_MOST, properties::BESIDE, properties::TOKENS];
        holds(
            World {
                first: None,
                copies: 1,
                times: &[0, 6],
                properties: of_changing_permits,
                vacuous,
                ..world
            },
            &[Busy, Repeated, Done, NotExecuted, Cancelled, ResultRepeated],
        );
    }
}
