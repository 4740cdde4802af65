//! One schedule, from its plan to its report.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use edgelatch::client::Driver;
use edgelatch::timing::AttemptTime;
use edgelatch::{Client, Gateway};
use fastrand::Rng;

use super::clocks::Clocks;
use super::coverage::Coverage;
use super::engine::{EventKind, Sim};
use super::faults::Fault;
use super::gateway::TOKEN;
use super::host::{HostHandle, SimHost};
use super::plan::{Plan, SeededFault};
use super::redis::Node;
use super::transport::SimTransport;
use super::workload::Workload;

/// The result of a schedule.
pub(crate) struct Report {
    pub(crate) broken: Option<String>,
    pub(crate) coverage: Coverage,
    pub(crate) trace: Vec<String>,
    /// The history in lines of JSON, if the plan exports it.
    pub(crate) history: String,
}

/// Plays a schedule; with `with_trace`, records its history.
pub(crate) fn play(plan: Plan, with_trace: bool) -> Report {
    let mut rng = Rng::with_seed(plan.rng_seed);
    let hosts = (0..plan.clients).map(|_| sim_host(&plan, &mut rng)).collect();
    let nodes = (0..plan.nodes).map(|_| Node::new(&plan, &mut rng)).collect();
    let host_faults = plan.draw_host_faults(&mut rng);
    let sim = Rc::new(Sim::new(plan, hosts, nodes, with_trace));
    sim.checker.borrow_mut().can_exclude = !sim.plan.has(Fault::Drift);
    sim.set_assumptions();
    for (at, host_fault) in host_faults {
        sim.at(at, EventKind::HostFault(host_fault));
    }
    for host in 0..sim.plan.clients {
        sim.start_clients(host, false);
    }
    sim.play();
    sim.check_end();
    sim.clear();
    let broken = sim.checker.borrow_mut().violation.take();
    let broken = broken.filter(|_| !sim.plan.checks_history_only).or_else(|| sim.check_history());
    let mut trace: Option<Vec<_>> =
        sim.trace.as_ref().map(|trace| trace.borrow().lines().collect());
    trace.iter_mut().for_each(|trace| trace.extend(sim.history.borrow().lines()));
    let history =
        if sim.plan.exports { sim.export_history(broken.as_deref()) } else { String::new() };
    Report { broken, coverage: sim.coverage.clone(), trace: trace.unwrap_or_default(), history }
}

/// Draws a host's clocks: within 1 % of Redis' clock, or within 10 % with `Drift`.
fn sim_host(plan: &Plan, rng: &mut Rng) -> SimHost {
    let ppm = if plan.has(Fault::Drift) { 100_000 } else { 9_900 };
    let ppm = match rng.u32(0..4) {
        0 => -ppm,
        1 => ppm,
        _ => rng.i64(-ppm..=ppm),
    };
    // One of the two clocks stays right: a wall clock that is set has a monotonic clock that never
    // stands still.
    let monotonic_stops = rng.bool() && !plan.has(Fault::WallSteps);
    let clocks = Clocks::new(rng.u64(0..1 << 40), rng.u64(1 << 50..1 << 51), ppm, monotonic_stops);
    let clocks = if plan.has_seeded(SeededFault::StoppedClocks) {
        clocks.with_both_clocks_suspended()
    } else {
        clocks
    };
    SimHost::new(clocks, rng.fork())
}

impl Sim {
    /// Starts clients on a host.
    pub(crate) fn start_clients(self: &Rc<Self>, host: usize, is_clone: bool) {
        let handle = HostHandle { sim: Rc::clone(self), host };
        let attempt = AttemptTime::new(Duration::from_millis(self.plan.attempt)).unwrap();
        let client = |node| {
            let gateway = Gateway::upstash("http://localhost", TOKEN).unwrap();
            let gateway = gateway.request_timeout(attempt).named(&format!("redis-{node}"));
            let (sim, is_gateway) = (Rc::clone(self), Rc::default());
            let transport = SimTransport { sim, host, node, is_gateway };
            Client::with_driver(
                gateway,
                transport,
                handle.clone(),
                |driver: Driver<_, HostHandle>| {
                    let HostHandle { sim, host } = driver.host().clone();
                    sim.spawn(host, driver.run());
                },
            )
        };
        let clients = Rc::new((0..self.plan.nodes).map(client).collect::<Vec<_>>());
        let tasks = if self.plan.rng_seed & 0xf0 == 0xf0 { 2 } else { 1 };
        for _ in 0..tasks {
            let rng = RefCell::new(self.hosts.borrow_mut()[host].rng.fork());
            let (sim, handle, clients) = (Rc::clone(self), handle.clone(), Rc::clone(&clients));
            self.spawn(host, Workload { sim, host, handle, clients, rng }.run(is_clone));
        }
    }

    /// Checks what must hold when no event is left.
    fn check_end(&self) {
        if self.has_violation() {
            return;
        }
        let stopped = self.hosts.borrow().iter().any(|host| host.is_dead);
        if self.is_busy() {
            return self.fail(|| "I7 a client waits for ever".into());
        }
        if self.open.get() > 0 && !stopped {
            let open = self.open.get();
            self.fail(|| format!("I9 {open} timers, requests and streams are left"));
        }
        // Longer than any lease, and than any upper bound that a client received.
        let later = self.now() + 3_600_000_000;
        let nodes = self.nodes.borrow();
        let mut checker = self.checker.borrow_mut();
        let left_hold =
            checker.owners.iter().find(|owner| owner.hold.is_valid(&nodes[owner.node], later));
        let left_hold = left_hold.map(|owner| owner.latch.clone());
        if let Some(latch) = left_hold {
            checker.fail(self, || format!("I4 {latch} is held for ever"));
        }
    }
}
