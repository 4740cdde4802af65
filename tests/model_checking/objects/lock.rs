//! Exhaustive searches of the lock that must find no violation. Each lists the events that it must
//! have reached: a search without a lost hold proves nothing about lost holds.

// Slow: a search visits up to 2.3 million states of real machines; only a full run includes them.

use super::plan::Plan;
use super::properties;
use super::reachability::CoverPoint::{
    Abandoned, BothGranted, Busy, Lost, RefusedAsGone, RefusedAsLate, RefusedAsLost, Renewed,
    Unknown,
};
use super::search::{PLAN, holds, waits, world};
use super::world::World;
use test_support::script_model::Latches;

/// S3, S6, S7.
#[test]
fn two_tries_and_a_copy_of_any_request() {
    let world = World { copies: 1, in_flight: 1, ..world([PLAN, PLAN]) };
    holds(world, &[BothGranted, Busy, Abandoned, Lost, Unknown, RefusedAsGone, RefusedAsLost]);
}

/// S8, S79.
#[test]
fn two_waits_and_a_copy_of_any_request() {
    let world = World { copies: 1, ..world([waits(PLAN, 20), waits(PLAN, 20)]) };
    holds(world, &[BothGranted, Busy, Abandoned, Lost, RefusedAsGone, RefusedAsLost]);
}

#[test]
fn a_hold_that_is_renewed_when_due_and_on_demand() {
    let renews = Plan { due_renewals: 1, ..waits(PLAN, 20) };
    let world = world([Plan { renewals_on_demand: 1, ..renews }, renews]);
    holds(world, &[BothGranted, Busy, Renewed, Lost]);
}

/// S59.
#[test]
fn a_wait_that_is_cancelled_while_a_copy_is_under_way() {
    let cancels = Plan { cancels: true, ..waits(PLAN, 20) };
    let world = World { copies: 1, in_flight: 1, ..world([cancels, PLAN]) };
    holds(world, &[BothGranted, Abandoned, RefusedAsGone]);
}

#[test]
fn a_connection_that_breaks_while_the_request_stays_in_flight() {
    let world =
        World { copies: 1, breaks: 1, times: &[0, 20, 40], ..world([PLAN, waits(PLAN, 20)]) };
    holds(world, &[BothGranted, Busy, Abandoned, Lost]);
}

/// S5.
#[test]
fn copies_from_before_the_end_of_every_latch() {
    // Bounds end at 110 s, latches and tombstones 1 s later: nothing is granted at 110 or 120 s.
    let both = world([waits(PLAN, 20), waits(PLAN, 20)]);
    holds(
        World { copies: 1, times: &[0, 10, 110, 120], ..both },
        &[BothGranted, Lost, RefusedAsLate],
    );
}

/// S5.
#[test]
fn a_client_that_has_not_seen_the_clock() {
    // Without a bound, its requests may arrive for 600 s; its tombstones last 1 s longer.
    holds(first_of_all(Latches::On), &[BothGranted, Abandoned, Lost, RefusedAsLate]);
}

#[test]
fn a_client_alone_that_has_not_seen_the_clock_and_a_copy_of_any_request() {
    let first = Plan { knows_clock: false, cancels: true, ..waits(PLAN, 20) };
    let absent = Plan { is_active: false, ..PLAN };
    let world = World { times: &[0, 10, 40, 600, 610], copies: 1, ..world([first, absent]) };
    let vacuous = &[properties::HELD_AT_MOST, properties::EXCLUSION, properties::NO_RETURN];
    holds(World { vacuous, ..world }, &[Abandoned, Lost]);
}

/// Two clients: one does not know the server's clock; the other does, and holds until its lease
/// ends.
pub(crate) fn first_of_all(latches: Latches) -> World {
    let first = Plan { knows_clock: false, ..PLAN };
    let world = world([first, Plan { releases: 0, ..PLAN }]);
    World { times: &[0, 10, 40, 600, 610], latches, ..world }
}
