//! Exhaustive searches with the real machines that must find no violation. Each lists the events
//! that it must have reached.

// Slow: a search visits up to 1.8 million states of real machines; only a full run includes them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use edgelatch_proto::timing::{LeaseTime, WaitPolicy, WaitTime};
use stateright::{Checker as _, HasDiscoveries, Model as _};

use super::plan::{Calls, Plan, Rule};
use super::reachability::Reachability;
use super::world::{self, World};
use test_support::script_model::Latches;

/// Tries two parts once, with the default lease of 30 s.
const ONCE: Plan = Plan {
    rule: Rule::All,
    nodes: &[0, 1],
    lease: LeaseTime::DEFAULT,
    wait_policy: WaitPolicy::Once,
    cancels: false,
    max_calls: calls(8, 4),
};

/// Tries three nodes once.
const VOTE: Plan = Plan { rule: Rule::Majority, nodes: &[0, 1, 2], max_calls: calls(9, 3), ..ONCE };

/// The largest numbers of calls to acquire and to release, for clients that do not renew.
const fn calls(acquire: u8, release: u8) -> Calls {
    Calls { acquire, release, renew: 0 }
}

/// Lets a client wait for 15 s.
fn waits(plan: Plan) -> Plan {
    let wait = WaitTime::new(Duration::from_secs(15)).unwrap();
    Plan { wait_policy: WaitPolicy::UpTo(wait), ..plan }
}

fn world(plans: impl Into<Vec<Plan>>) -> World {
    World {
        plans: plans.into(),
        times: &[0, 10, 40],
        copies: 0,
        losses: 0,
        breaks: 0,
        held_at_most: None,
        latches: Latches::On,
        reached: Arc::new(Reachability::default()),
    }
}

#[test]
fn two_tries_of_two_parts_and_a_lost_reply() {
    let plan = Plan { max_calls: calls(6, 2), ..ONCE };
    let world = World { losses: 1, times: &[0, 40], ..world([plan, plan]) };
    holds(world, |reached| vec![&reached.all_held, &reached.busy, &reached.undone]);
}

#[test]
fn a_try_of_two_parts_and_a_copy_of_any_request() {
    let other = Plan { nodes: &[1], max_calls: calls(2, 1), ..ONCE };
    let world = World {
        copies: 1,
        times: &[0, 40],
        ..world([Plan { max_calls: calls(4, 2), ..ONCE }, other])
    };
    holds(world, |reached| vec![&reached.all_held, &reached.busy, &reached.undone, &reached.gone]);
}

#[test]
fn two_clients_wait_for_parts_with_one_in_common() {
    let first = waits(Plan { max_calls: calls(8, 2), ..ONCE });
    let world = World { times: &[0, 1], ..world([first, Plan { nodes: &[1, 2], ..first }]) };
    holds(world, |reached| vec![&reached.all_held, &reached.kept, &reached.undone]);
}

#[test]
fn a_wait_for_two_parts_that_is_cancelled_and_one_that_continues() {
    let plan = waits(Plan { max_calls: calls(6, 2), ..ONCE });
    let world = World { times: &[0], losses: 1, ..world([Plan { cancels: true, ..plan }, plan]) };
    holds(world, |reached| vec![&reached.all_held, &reached.undone]);
}

#[test]
fn two_votes_and_a_lost_reply() {
    let world = World { losses: 1, times: &[0], ..world([VOTE, VOTE]) };
    holds(world, |reached| {
        vec![&reached.all_held, &reached.busy, &reached.undone, &reached.raised]
    });
}

#[test]
fn two_votes_and_a_lease_that_runs_out() {
    let first = Plan { max_calls: calls(6, 3), ..VOTE };
    let world =
        World { times: &[0, 40], ..world([first, Plan { max_calls: calls(3, 3), ..VOTE }]) };
    holds(world, |reached| vec![&reached.all_held, &reached.undone]);
}

#[test]
fn two_votes_and_a_copy_of_any_request() {
    let first = Plan { max_calls: calls(6, 3), ..VOTE };
    let world =
        World { copies: 1, times: &[0], ..world([first, Plan { max_calls: calls(3, 3), ..VOTE }]) };
    holds(world, |reached| vec![&reached.all_held, &reached.undone, &reached.gone]);
}

/// Keeps two parts for one renewal of each, and one further attempt of either.
const KEPT: Plan = Plan { max_calls: Calls { renew: 3, ..calls(2, 2) }, ..ONCE };

#[test]
fn two_parts_that_are_renewed_while_others_want_one_of_them() {
    let other = Plan { nodes: &[1], max_calls: calls(1, 1), ..ONCE };
    let world = World { times: &[0, 10, 29, 41], losses: 1, ..world([KEPT, other]) };
    holds(world, |reached| {
        vec![&reached.all_held, &reached.busy, &reached.renewed, &reached.unsure, &reached.lost]
    });
}

#[test]
fn two_parts_that_are_renewed_and_a_copy_of_any_request() {
    let other = Plan { nodes: &[1], max_calls: calls(1, 1), ..ONCE };
    let world = World { times: &[0, 10, 31, 41], copies: 1, ..world([KEPT, other]) };
    holds(world, |reached| vec![&reached.all_held, &reached.renewed, &reached.lost]);
}

#[test]
fn a_majority_is_renewed_while_another_client_holds_a_node() {
    let plan = Plan { max_calls: Calls { renew: 3, ..calls(3, 3) }, ..VOTE };
    let other = Plan { nodes: &[1], max_calls: calls(1, 1), ..ONCE };
    let world = World { times: &[0, 10, 41], losses: 1, ..world([plan, other]) };
    holds(world, |reached| {
        vec![&reached.all_held, &reached.renewed, &reached.unsure, &reached.lost]
    });
}

#[test]
fn unconfirmed_parts_and_votes_are_held_until_a_lease_after_their_bound_at_most() {
    // A wait of 15 s that is cancelled at once: its bound is at 105 s.
    for plan in [ONCE, VOTE] {
        let plan =
            Plan { cancels: true, nodes: &plan.nodes[..1], max_calls: calls(4, 0), ..waits(plan) };
        let times = &[0, 1, 2, 4, 105, 125, 138];
        let world = || World { copies: 1, breaks: 3, times, ..world([plan]) };
        holds(world(), |reached| vec![&reached.unknown]);
        let horizon_and_lease = Some(Duration::from_secs(90 + 30));
        finds(World { held_at_most: horizon_and_lease, ..world() }, world::HELD_AT_MOST);
    }
}

#[test]
fn without_latches_a_copy_of_an_undone_acquisition_is_granted() {
    let world = World { copies: 1, latches: Latches::Off, times: &[0, 40], ..world([ONCE, ONCE]) };
    finds(world, world::OUTCOME_IS_TRUE);
}

/// Searches a model until it violates `property`; panics if it never does.
fn finds(world: World, property: &'static str) {
    let discovery = HasDiscoveries::AnyOf(BTreeSet::from([property]));
    let checker = world.checker().threads(2).finish_when(discovery).spawn_bfs().join();
    let found = checker.assert_any_discovery(property);
    println!("refuted in {} steps", found.into_actions().len());
}

/// Searches a model to its end. Panics if it violates a property or never reaches an expected
/// event.
fn holds(world: World, expected: impl FnOnce(&Reachability) -> Vec<&AtomicBool>) {
    let reached = Arc::clone(&world.reached);
    let checker = world.checker().threads(2).spawn_bfs().join();
    println!("{} states, {} steps deep", checker.unique_state_count(), checker.max_depth());
    checker.assert_properties();
    for (index, event) in expected(&reached).into_iter().enumerate() {
        assert!(event.load(Ordering::Relaxed), "event {index} was never reached: {reached:?}");
    }
}
