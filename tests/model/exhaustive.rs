//! The searches that must find nothing, each to its end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use edgelatch::timing::{LeaseTime, Patience, WaitTime};
use stateright::{Checker as _, Model as _};

use super::client::{Plan, seconds};
use super::seen::Sights;
use super::world::World;
use crate::script_model::Latches;

/// Waits for two steps; takes the default lease, which is three.
pub(crate) const PLAN: Plan = Plan {
    patience: Patience::Once,
    lease: LeaseTime::DEFAULT,
    knows_clock: true,
    cancels: false,
    renewals: 0,
    renews: 0,
    releases: 1,
};

pub(crate) fn world(plans: [Plan; 2]) -> World {
    World {
        plans,
        times: &[0, 10, 20, 40],
        copies: 0,
        in_flight: 3,
        breaks: 0,
        latches: Latches::On,
        moving_bound: None,
        sights: Arc::new(Sights::default()),
    }
}

fn waits() -> Plan {
    Plan { patience: Patience::UpTo(WaitTime::new(seconds(20)).unwrap()), ..PLAN }
}

#[test]
fn try_once() {
    holds(World { copies: 1, breaks: 1, ..world([PLAN, PLAN]) }, |_| vec![]);
}

#[test]
fn waiting() {
    holds(World { copies: 1, breaks: 1, ..world([waits(), waits()]) }, |_| vec![]);
}

fn holds(world: World, sights: impl FnOnce(&Sights) -> Vec<&AtomicBool>) {
    let seen = Arc::clone(&world.sights);
    let checker = world.checker().threads(2).spawn_bfs().join();
    println!("{} states ({} visits), depth {}, {seen:?}", checker.unique_state_count(), checker.state_count(), checker.max_depth());
    checker.assert_properties();
    for sight in sights(&seen) {
        assert!(sight.load(Ordering::Relaxed));
    }
}
