//! The searches that must find nothing, each to its end. What each must have come across is said, too: a search that never saw
//! a loss says nothing about losses.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use edgelatch::timing::{LeaseTime, Patience, WaitTime};
use stateright::{Checker as _, Model as _};

use super::client::{Plan, seconds};
use super::seen::Sights;
use super::world::World;
use crate::script_model::Latches;

/// Tries once, for the default lease of 30 s; releases with one request.
pub(crate) const PLAN: Plan = Plan {
    takes_part: true,
    patience: Patience::Once,
    lease: LeaseTime::DEFAULT,
    knows_clock: true,
    cancels: false,
    renewals: 0,
    renews: 0,
    releases: 1,
};

/// Nothing is doubled and no connection breaks; the last time is past the lease of whoever began at the first.
pub(crate) fn world(plans: [Plan; 2]) -> World {
    World {
        plans,
        times: &[0, 10, 20, 40],
        copies: 0,
        in_flight: 2,
        breaks: 0,
        latches: Latches::On,
        moving_bound: None,
        sights: Arc::new(Sights::default()),
    }
}

#[test]
fn two_tries_and_a_copy_of_any_request() {
    let world = World { copies: 1, in_flight: 1, ..world([PLAN, PLAN]) };
    holds(world, |seen| {
        let Sights { both_granted, busy, abandoned, lost, unknown, .. } = seen;
        vec![
            both_granted,
            busy,
            abandoned,
            lost,
            unknown,
            &seen.refused_as_gone,
            &seen.refused_as_lost,
        ]
    });
}

#[test]
fn two_waits_and_a_copy_of_any_request() {
    let world = World { copies: 1, ..world([waits(), waits()]) };
    holds(world, |seen| {
        let Sights { both_granted, busy, abandoned, lost, .. } = seen;
        vec![both_granted, busy, abandoned, lost, &seen.refused_as_gone, &seen.refused_as_lost]
    });
}

#[test]
fn a_hold_that_is_renewed_when_due_and_on_demand() {
    let renews = Plan { renewals: 1, ..waits() };
    let world = world([Plan { renews: 1, ..renews }, renews]);
    holds(world, |seen| vec![&seen.both_granted, &seen.busy, &seen.renewed, &seen.lost]);
}

#[test]
fn a_wait_that_is_cancelled_while_a_copy_is_under_way() {
    let cancels = Plan { cancels: true, ..waits() };
    let world = World { copies: 1, in_flight: 1, ..world([cancels, PLAN]) };
    holds(world, |seen| vec![&seen.both_granted, &seen.abandoned, &seen.refused_as_gone]);
}

#[test]
fn a_connection_that_breaks_while_the_request_goes_on() {
    let world = World { copies: 1, breaks: 1, times: &[0, 20, 40], ..world([PLAN, waits()]) };
    holds(world, |seen| vec![&seen.both_granted, &seen.busy, &seen.abandoned, &seen.lost]);
}

#[test]
fn copies_from_before_the_end_of_every_latch() {
    // Bounds end at 110 s, latches and tombstones a second later: nothing may come back at 110 or 120.
    let world = World { copies: 1, times: &[0, 10, 110, 120], ..world([waits(), waits()]) };
    holds(world, |seen| vec![&seen.both_granted, &seen.lost, &seen.refused_as_late]);
}

#[test]
fn a_client_that_has_not_seen_the_clock() {
    // Its requests may be under way for 600 s, and its tombstones live a second longer.
    holds(first_of_all(Latches::On), |seen| {
        vec![&seen.both_granted, &seen.abandoned, &seen.lost, &seen.refused_as_late]
    });
}

#[test]
fn a_client_alone_that_has_not_seen_the_clock_and_a_copy_of_any_request() {
    let first = Plan { knows_clock: false, cancels: true, ..waits() };
    let absent = Plan { takes_part: false, ..PLAN };
    let world = World { times: &[0, 10, 40, 600, 610], copies: 1, ..world([first, absent]) };
    holds(world, |seen| vec![&seen.abandoned, &seen.lost]);
}

/// One client does not know the clock; the other does, and stays for as long as its lease.
pub(crate) fn first_of_all(latches: Latches) -> World {
    let first = Plan { knows_clock: false, ..PLAN };
    let world = world([first, Plan { releases: 0, ..PLAN }]);
    World { times: &[0, 10, 40, 600, 610], latches, ..world }
}

fn waits() -> Plan {
    Plan { patience: Patience::UpTo(WaitTime::new(seconds(20)).unwrap()), ..PLAN }
}

/// Searches a model to its end.
fn holds(world: World, expected: impl FnOnce(&Sights) -> Vec<&AtomicBool>) {
    let (seen, times) = (Arc::clone(&world.sights), world.times);
    let checker = world.checker().threads(2).spawn_bfs().join();
    let (states, visits) = (checker.unique_state_count(), checker.state_count());
    println!(
        "{states} states ({visits} visits, {} steps deep) at {times:?} s",
        checker.max_depth()
    );
    checker.assert_properties();
    for (place, sight) in expected(&seen).into_iter().enumerate() {
        assert!(sight.load(Ordering::Relaxed), "expected sight {place} was never seen: {seen:?}");
    }
}
