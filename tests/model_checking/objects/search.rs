//! Runs the model checker.

use std::collections::BTreeSet;
use std::sync::Arc;

use edgelatch_proto::timing::{LeaseTime, WaitPolicy, WaitTime};
use stateright::{Checker as _, HasDiscoveries, Model as _};

use super::network::Travel;
use super::plan::{Does, Plan, seconds};
use super::premises::premise_of;
use super::properties;
use super::sights::{Sight, Sights};
use super::world::World;
use test_support::script_model::Latches;

/// Tries once, with the default lease of 30 s, and releases with one request.
pub(crate) const PLAN: Plan = Plan {
    takes_part: true,
    does: Does::Lock,
    patience: WaitPolicy::Once,
    // The smallest budget: two tries, and one request to undo them.
    budget: 3,
    lease: LeaseTime::DEFAULT,
    knows_clock: true,
    cancels: false,
    renewals: 0,
    renews: 0,
    releases: 1,
    requests: 0,
};

/// `PLAN` for another object.
pub(crate) const fn does(does: Does) -> Plan {
    Plan { does, ..PLAN }
}

/// Waits for `time` seconds.
pub(crate) fn waits(plan: Plan, time: u64) -> Plan {
    Plan { patience: WaitPolicy::UpTo(WaitTime::new(seconds(time)).unwrap()), ..plan }
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
        off: None,
        moving_bound: None,
        travel: Travel::ToItsBound,
        held_at_most: None,
        laws: properties::of_a_lock,
        silent: &[properties::HELD_AT_MOST],
        sights: Arc::new(Sights::default()),
    }
}

/// Searches a model to its end. Panics if a law is violated, if an expected event never occurs, or
/// if the laws whose premise never came up are not exactly the `silent` ones.
pub(crate) fn holds(world: World, expected: &[Sight]) {
    let (seen, times) = (Arc::clone(&world.sights), world.times);
    let (laws, silent) = ((world.laws)(), world.silent);
    let checker = world.checker().threads(2).spawn_bfs().join();
    let (states, visits) = (checker.unique_state_count(), checker.state_count());
    println!(
        "{states} states ({visits} visits, {} steps deep) at {times:?} s",
        checker.max_depth()
    );
    laws.iter().for_each(|law| checker.assert_no_discovery(law.name));
    let came_up = checker.discoveries();
    let unmet = laws.iter().filter(|law| !came_up.contains_key(premise_of(law).name));
    let unmet: BTreeSet<&str> = unmet.map(|law| law.name).collect();
    assert_eq!(unmet, silent.iter().copied().collect(), "laws that say nothing here");
    for sight in expected {
        assert!(seen.saw(*sight), "{sight:?} was never seen, but {seen:?}");
    }
}

/// Searches a model until it violates `property`; panics if it never does.
pub(crate) fn finds(world: World, property: &'static str) {
    let wanted = HasDiscoveries::AnyOf(BTreeSet::from([property]));
    let checker = world.checker().threads(2).finish_when(wanted).spawn_bfs().join();
    let found = checker.assert_any_discovery(property);
    println!(
        "{property}: refuted in {} steps after {} states",
        found.into_actions().len(),
        checker.unique_state_count()
    );
}
