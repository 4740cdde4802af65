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
    takes_part: true,
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

#[test]
fn tune() {
    let env = |name: &str, default: u64| std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default);
    let plan = |n: &str| Plan {
        patience: match env(&format!("P{n}"), 0) { 0 => Patience::Once, w => Patience::UpTo(WaitTime::new(seconds(w)).unwrap()) },
        takes_part: env(&format!("O{n}"), 1) == 1, knows_clock: env(&format!("K{n}"), 1) == 1,
        cancels: env(&format!("C{n}"), 0) == 1,
        renewals: env(&format!("RL{n}"), 0) as u8,
        renews: env(&format!("RN{n}"), 0) as u8,
        releases: env(&format!("RE{n}"), 1) as u8,
        ..PLAN };
    let times: Vec<u64> = std::env::var("T").unwrap_or("0,10,20,40".into()).split(',').map(|s| s.parse().unwrap()).collect();
    let w = World { times: times.leak(), copies: env("COP", 0) as u8, in_flight: env("F", 2) as usize, breaks: env("B", 0) as u8, ..world([plan("0"), plan("1")]) };
    let seen = Arc::clone(&w.sights);
    let start = std::time::SystemTime::now();
    let checker = w.checker().threads(2).timeout(std::time::Duration::from_secs(env("S", 60))).spawn_bfs().join();
    println!("{:?} done={} {} states ({} visits), depth {}, {seen:?}", start.elapsed(), checker.is_done(), checker.unique_state_count(), checker.state_count(), checker.max_depth());
    for (name, path) in checker.discoveries() { println!("{name}"); for (st, a) in path.into_vec() { println!("{}  -> {a:?}", st.brief()); } }
}
