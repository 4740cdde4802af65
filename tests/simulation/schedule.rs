//! One schedule, from its plan to its verdict.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use edgelatch::timing::AttemptTime;
use edgelatch::{Client, Gateway};
use fastrand::Rng;

use super::clocks::Clocks;
use super::engine::{Sim, What};
use super::faults::Fault;
use super::gateway::TOKEN;
use super::host::{Machine, Place};
use super::plan::{Plan, Tooth};
use super::player::Player;
use super::redis::Node;
use super::seen::Seen;
use super::wire::Wire;

/// The result of a schedule.
pub(crate) struct Verdict {
    pub(crate) broken: Option<String>,
    pub(crate) seen: Seen,
    pub(crate) story: Vec<String>,
}

/// Plays a schedule; with `tells`, records its history.
pub(crate) fn play(plan: Plan, tells: bool) -> Verdict {
    let mut rng = Rng::with_seed(plan.draws);
    let machines = (0..plan.clients).map(|_| machine(&plan, &mut rng)).collect();
    let nodes = (0..plan.nodes).map(|_| Node::new(&plan, &mut rng)).collect();
    let strikes = plan.strikes(&mut rng);
    let sim = Rc::new(Sim::new(plan, machines, nodes, tells));
    sim.witness.borrow_mut().claims = !sim.plan.has(Fault::Drift);
    sim.lays_ground();
    for (at, strike) in strikes {
        sim.at(at, What::Strikes(strike));
    }
    for host in 0..sim.plan.clients {
        sim.settles(host, false);
    }
    sim.play();
    sim.ends();
    sim.clear();
    let broken = sim.witness.borrow_mut().broken.take();
    let broken = broken.filter(|_| !sim.plan.is_blind).or_else(|| sim.judge());
    let mut story: Option<Vec<_>> =
        sim.story.as_ref().map(|story| story.borrow().lines().collect());
    story.iter_mut().for_each(|story| story.extend(sim.history.borrow().lines()));
    Verdict { broken, seen: sim.seen.clone(), story: story.unwrap_or_default() }
}

/// Draws a host's clocks: within 1 % of Redis' clock, or within 10 % with `Drift`.
fn machine(plan: &Plan, rng: &mut Rng) -> Machine {
    let ppm = if plan.has(Fault::Drift) { 100_000 } else { 9_900 };
    let ppm = match rng.u32(0..4) {
        0 => -ppm,
        1 => ppm,
        _ => rng.i64(-ppm..=ppm),
    };
    // One of the two clocks stays right: a wall clock that is set has a monotonic clock that never
    // stands still.
    let stands = rng.bool() && !plan.has(Fault::WallSteps);
    let clocks = Clocks::new(rng.u64(0..1 << 40), rng.u64(1 << 50..1 << 51), ppm, stands);
    let clocks = if plan.lacks(Tooth::StoppedClocks) { clocks.both_stand() } else { clocks };
    Machine::new(clocks, rng.fork())
}

impl Sim {
    /// Starts clients on a host.
    pub(crate) fn settles(self: &Rc<Self>, host: usize, is_clone: bool) {
        let place = Place { sim: Rc::clone(self), host };
        let attempt = AttemptTime::new(Duration::from_millis(self.plan.attempt)).unwrap();
        let client = |node| {
            let gateway = Gateway::upstash("http://localhost", TOKEN).unwrap();
            let gateway = gateway.request_timeout(attempt).named(&format!("redis-{node}"));
            let (sim, is_gateway) = (Rc::clone(self), Rc::default());
            Client::new(gateway, Wire { sim, host, node, is_gateway }, place.clone())
        };
        let clients = Rc::new((0..self.plan.nodes).map(client).collect::<Vec<_>>());
        let tasks = if self.plan.draws & 0xf0 == 0xf0 { 2 } else { 1 };
        for _ in 0..tasks {
            let rng = RefCell::new(self.machines.borrow_mut()[host].rng.fork());
            let (sim, place, clients) = (Rc::clone(self), place.clone(), Rc::clone(&clients));
            self.spawn(host, Player { sim, host, place, clients, rng }.plays(is_clone));
        }
    }

    /// Checks what must hold when no event is left.
    fn ends(&self) {
        if self.is_broken() {
            return;
        }
        let stopped = self.machines.borrow().iter().any(|machine| machine.is_dead);
        if self.is_busy() {
            return self.broken(|| "I7 somebody waits for ever".into());
        }
        if self.open.get() > 0 && !stopped {
            let open = self.open.get();
            self.broken(|| format!("I9 {open} timers, requests and streams are left"));
        }
        // Longer than any lease, and than any upper bound that a client received.
        let later = self.now() + 3_600_000_000;
        let nodes = self.nodes.borrow();
        let mut witness = self.witness.borrow_mut();
        let ghost =
            witness.owners.iter().find(|owner| owner.hold.stands(&nodes[owner.node], later));
        let ghost = ghost.map(|owner| owner.latch.clone());
        if let Some(latch) = ghost {
            witness.breaks(self, || format!("I4 {latch} is held for ever"));
        }
    }
}
