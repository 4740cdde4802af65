//! Runs the model checker.

use std::collections::BTreeSet;
use std::sync::Arc;

use edgelatch_proto::timing::{LeaseTime, WaitPolicy, WaitTime};
use stateright::{Checker as _, HasDiscoveries, Model as _};

use super::network::DeliveryLimit;
use super::plan::{Operation, Plan, seconds};
use super::properties;
use super::reachability::{CoverPoint, Reachability};
use super::vacuity::Vacuity;
use super::world::World;
use test_support::script_model::Latches;

/// Tries once, with the default lease of 30 s, and releases with one request.
pub(crate) const PLAN: Plan = Plan {
    is_active: true,
    operation: Operation::Lock,
    wait_policy: WaitPolicy::Once,
    // The smallest budget: two tries, and one request to undo them.
    budget: 3,
    lease: LeaseTime::DEFAULT,
    knows_clock: true,
    cancels: false,
    due_renewals: 0,
    renewals_on_demand: 0,
    releases: 1,
    requests: 0,
};

/// `PLAN` for another object.
pub(crate) const fn plan_for(operation: Operation) -> Plan {
    Plan { operation, ..PLAN }
}

/// Waits for `time` seconds.
pub(crate) fn waits(plan: Plan, time: u64) -> Plan {
    Plan { wait_policy: WaitPolicy::UpTo(WaitTime::new(seconds(time)).unwrap()), ..plan }
}

/// A world without copies and broken connections in which the first client in the list begins
/// first. The last time is after the end of a lease that began at the first time.
pub(crate) fn world(plans: impl Into<Vec<Plan>>) -> World {
    World {
        plans: plans.into(),
        first: Some(0),
        number: None,
        java_holds_for: None,
        times: &[0, 10, 20, 40],
        copies: 0,
        in_flight: 2,
        breaks: 0,
        latches: Latches::On,
        without: None,
        without_fair: None,
        moving_bound: None,
        delivery_limit: DeliveryLimit::ToItsBound,
        held_at_most: None,
        properties: properties::of_a_lock,
        vacuous: &[properties::HELD_AT_MOST],
        reached: Arc::new(Reachability::default()),
        vacuity: Arc::default(),
    }
}

/// Searches a model to its end. Panics if a property is violated, if an expected event never
/// occurs, or if the properties that no state could violate are not exactly the `vacuous` ones.
pub(crate) fn holds(world: World, expected: &[CoverPoint]) {
    let (reached, times) = (Arc::clone(&world.reached), world.times);
    let (properties, vacuous) = ((world.properties)(), world.vacuous);
    let vacuity = Arc::new(Vacuity::new(&properties));
    let world = World { vacuity: Arc::clone(&vacuity), ..world };
    let checker = world.checker().threads(2).spawn_bfs().join();
    let (states, visits) = (checker.unique_state_count(), checker.state_count());
    println!(
        "{states} states ({visits} visits, {} steps deep) at {times:?} s",
        checker.max_depth()
    );
    properties.iter().for_each(|property| checker.assert_no_discovery(property.name));
    assert_eq!(vacuity.vacuous(), vacuous.iter().copied().collect(), "vacuous properties");
    for point in expected {
        assert!(reached.has_reached(*point), "{point:?} was never reached, but {reached:?}");
    }
}

/// Searches a model until it violates `property`; panics if it never does.
pub(crate) fn finds(world: World, property: &'static str) {
    let discovery = HasDiscoveries::AnyOf(BTreeSet::from([property]));
    let checker = world.checker().threads(2).finish_when(discovery).spawn_bfs().join();
    let found = checker.assert_any_discovery(property);
    println!(
        "{property}: refuted in {} steps after {} states",
        found.into_actions().len(),
        checker.unique_state_count()
    );
}
