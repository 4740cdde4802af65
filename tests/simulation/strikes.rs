//! Faults that affect a whole host or a whole Redis.

use std::rc::Rc;

use fastrand::Rng;

use super::engine::{Sim, What};
use super::faults::Fault;
use super::host::Machine;
use super::plan::{Kind, Plan, Tooth};
use super::seen::Sight;

/// A fault, with its target and extent. Times are in microseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Strike {
    Stands { host: usize, time: u64 },
    GoesOn { host: usize },
    Stops { host: usize },
    SetsWall { host: usize, by: i64 },
    Clones { host: usize },
    Flushes { node: usize },
    Unready { node: usize, time: u64 },
    Full { node: usize, time: u64 },
    Evicts { node: usize, which: usize },
    Restarts { node: usize },
    Lags { node: usize },
    FailsOver { node: usize },
    SetsServer { node: usize, by: i64 },
    JavaTakes { node: usize, time: u64 },
    JavaLeaves { node: usize },
    Heals,
}

/// The latest time of a fault, in microseconds.
const LATEST: u64 = 30_000_000;
/// When all faults end, in schedules in which they do, in microseconds.
const HEALS_AT: u64 = 40_000_000;

impl Plan {
    /// Draws the faults and their times.
    pub(crate) fn strikes(&self, rng: &mut Rng) -> Vec<(u64, Strike)> {
        let mut all = Vec::new();
        for fault in self.faults.iter() {
            for _ in 0..rng.u32(1..=3) {
                let at = rng.u64(0..LATEST) >> rng.u32(0..12);
                let (host, node) = (rng.usize(0..self.clients), rng.usize(0..self.nodes));
                // From a fraction of the lease to more than twice its length.
                let time = rng.u64(0..self.lease * 2_500) >> rng.u32(0..4);
                let by = rng.i64(1..self.lease as i64 * 2_000);
                let which = rng.usize(..);
                let strike = match fault {
                    Fault::Suspensions => Strike::Stands { host, time },
                    Fault::Stops => Strike::Stops { host },
                    Fault::Clones => Strike::Clones { host },
                    Fault::WallSteps if which & 1 == 0 => Strike::SetsWall { host, by },
                    Fault::WallSteps => Strike::SetsWall { host, by: -by },
                    Fault::Flushes => Strike::Flushes { node },
                    Fault::Unready => Strike::Unready { node, time },
                    Fault::Memory => Strike::Full { node, time },
                    Fault::Evictions => Strike::Evicts { node, which },
                    Fault::Restarts => Strike::Restarts { node },
                    Fault::Failovers => {
                        all.push((at.saturating_sub(time), Strike::Lags { node }));
                        Strike::FailsOver { node }
                    }
                    Fault::Java if self.has_plain_locks() => Strike::JavaTakes { node, time },
                    Fault::ServerForward => Strike::SetsServer { node, by },
                    Fault::ServerBack => Strike::SetsServer { node, by: -by },
                    _ => break,
                };
                all.push((at, strike));
            }
        }
        if self.heals {
            all.push((HEALS_AT, Strike::Heals));
        }
        all
    }
}

impl Sim {
    pub(crate) fn strikes(self: &Rc<Self>, strike: Strike) {
        let ends = matches!(strike, Strike::GoesOn { .. } | Strike::JavaLeaves { .. });
        let late = self.healed.get() && !ends;
        if late || !self.is_busy() {
            return;
        }
        self.tell(|| format!("STRIKES {strike:?}"));
        match strike {
            Strike::Stands { .. }
            | Strike::GoesOn { .. }
            | Strike::Stops { .. }
            | Strike::SetsWall { .. }
            | Strike::Clones { .. } => self.strikes_host(strike),
            Strike::JavaTakes { node, time } => self.java_takes(node, time),
            Strike::JavaLeaves { node } => self.java_leaves(node),
            Strike::Heals => self.heals(),
            _ => self.strikes_node(strike),
        }
    }

    fn strikes_host(self: &Rc<Self>, strike: Strike) {
        let now = self.now();
        match strike {
            Strike::Stands { host, time } => {
                let mut machines = self.machines.borrow_mut();
                if !machines[host].stands() && !machines[host].is_dead {
                    self.seen.count(Sight::Suspensions, 1);
                    machines[host].stand(now);
                    self.witness.borrow_mut().disturbs(host, now);
                    self.after(time, What::Strikes(Strike::GoesOn { host }));
                }
            }
            Strike::GoesOn { host } => self.goes_on(host),
            Strike::Stops { host } => {
                self.seen.count(Sight::Stops, 1);
                self.machines.borrow_mut()[host].is_dead = true;
                self.drop_tasks(host);
                // No client relies on the leases of a dead host.
                let gone: Vec<_> = {
                    let beliefs = &mut self.witness.borrow_mut().beliefs;
                    beliefs.extract_if(.., |belief| belief.host == host).collect()
                };
                drop(gone);
            }
            Strike::SetsWall { host, by } => {
                self.seen.count(Sight::WallSteps, 1);
                self.machines.borrow_mut()[host].clocks.set(by);
                self.witness.borrow_mut().disturbs(host, now);
            }
            Strike::Clones { host } => self.clones(host),
            _ => {}
        }
    }

    fn goes_on(&self, host: usize) {
        let (events, tasks) = {
            let mut machines = self.machines.borrow_mut();
            if !machines[host].stands() {
                return;
            }
            machines[host].go_on(self.now())
        };
        self.witness.borrow_mut().disturbs(host, self.now());
        for what in events {
            self.after(0, what);
        }
        tasks.into_iter().for_each(|task| self.wake(task));
    }

    /// Starts a copy of a host: with the same clocks, but new random numbers.
    fn clones(self: &Rc<Self>, host: usize) {
        let mut machines = self.machines.borrow_mut();
        if machines[host].is_dead || machines.len() > 2 * self.plan.clients {
            return;
        }
        self.seen.count(Sight::Clones, 1);
        let shares = self.plan.lacks(Tooth::SharedEntropy);
        let original = &mut machines[host];
        let rng = if shares { original.rng.clone() } else { original.rng.fork() };
        let mut clocks = original.clocks.clone();
        clocks.go_on(self.now());
        machines.push(Machine::new(clocks, rng));
        let clone = machines.len() - 1;
        drop(machines);
        self.settles(clone, true);
    }

    fn strikes_node(&self, strike: Strike) {
        let now = self.now();
        let mut nodes = self.nodes.borrow_mut();
        let mut claims = true;
        match strike {
            Strike::Flushes { node } => {
                self.seen.count(Sight::Flushes, 1);
                nodes[node].known = 0;
            }
            Strike::Unready { node, time } => nodes[node].unready_until = now + time,
            Strike::Full { node, time } => nodes[node].full_until = now + time,
            Strike::Evicts { node, which } => {
                let node = &mut nodes[node];
                let keys: Vec<String> = node.model.dump(node.millis(now)).into_keys().collect();
                if let Some(key) = keys.get(which % keys.len().max(1)) {
                    self.seen.count(Sight::Evictions, 1);
                    self.tell(|| format!("evicted: {key}"));
                    node.model.delete(key);
                    (node.has_lost, claims) = (true, false);
                }
            }
            Strike::Restarts { node } => {
                self.seen.count(Sight::Restarts, 1);
                nodes[node].forgets(None);
                claims = false;
            }
            Strike::Lags { node } => nodes[node].replica = Some(nodes[node].model.clone()),
            Strike::FailsOver { node } => {
                self.seen.count(Sight::Failovers, 1);
                let replica = nodes[node].replica.take();
                nodes[node].forgets(replica);
                claims = false;
            }
            Strike::SetsServer { node, by } => {
                self.seen.count(Sight::ServerSteps, 1);
                nodes[node].set_by += by;
                nodes[node].was_set = true;
                nodes[node].went_back |= by < 0;
                claims = false;
            }
            _ => {}
        }
        drop(nodes);
        if !claims {
            // A reader that joins gets the token of the present readers: after a failover, of
            // earlier ones.
            let shared = self.plan.kind == Kind::ReadWrite && self.has_lost();
            self.loses(!(shared || self.tokens_may_fall()));
        }
        self.witness.borrow_mut().claims &= claims;
    }

    /// Whether a token may be older than an earlier one: a Redis lost data, and either its clock
    /// was set back or tokens come from several clocks.
    pub(crate) fn tokens_may_fall(&self) -> bool {
        let several = self.plan.nodes > 1;
        self.nodes.borrow().iter().any(|node| node.has_lost && (node.went_back || several))
    }

    /// Whether any Redis has lost acknowledged data.
    pub(crate) fn has_lost(&self) -> bool {
        self.nodes.borrow().iter().any(|node| node.has_lost)
    }

    /// No new faults occur from here on.
    fn heals(&self) {
        self.healed.set(true);
        for node in self.nodes.borrow_mut().iter_mut() {
            (node.unready_until, node.full_until) = (0, 0);
        }
        let hosts = self.machines.borrow().len();
        for host in 0..hosts {
            self.goes_on(host);
        }
    }
}
