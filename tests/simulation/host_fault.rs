//! Faults that affect a whole host or a whole Redis.

use std::rc::Rc;

use fastrand::Rng;

use super::coverage::CoverPoint;
use super::engine::{EventKind, Sim};
use super::faults::Fault;
use super::host::SimHost;
use super::plan::{Kind, Plan, SeededFault};

/// A fault, with its target and extent. Times are in microseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum HostFault {
    Suspend { host: usize, time: u64 },
    Resume { host: usize },
    Stop { host: usize },
    SetWallClock { host: usize, by: i64 },
    CloneHost { host: usize },
    FlushScripts { node: usize },
    Unready { node: usize, time: u64 },
    FillMemory { node: usize, time: u64 },
    EvictKey { node: usize, which: usize },
    RestartEmpty { node: usize },
    StopReplication { node: usize },
    FailOver { node: usize },
    SetServerClock { node: usize, by: i64 },
    JavaAcquires { node: usize, time: u64 },
    JavaReleases { node: usize },
    EndFaults,
}

/// The latest time of a fault, in microseconds.
const LATEST: u64 = 30_000_000;
/// The most by which the clock of one Redis is set forward, in microseconds. The nodes of a redLock
/// refuse tokens that are further ahead of their clocks.
const AHEAD_MAX: i64 = 60_000_000;
/// When all faults end, in schedules in which they do, in microseconds.
const FAULTS_END_AT: u64 = 40_000_000;

impl Plan {
    /// Draws the faults and their times.
    pub(crate) fn draw_host_faults(&self, rng: &mut Rng) -> Vec<(u64, HostFault)> {
        let mut all = Vec::new();
        for fault in self.faults.iter() {
            for _ in 0..rng.u32(1..=3) {
                let at = rng.u64(0..LATEST) >> rng.u32(0..12);
                let (host, node) = (rng.usize(0..self.clients), rng.usize(0..self.nodes));
                // From a fraction of the lease to more than twice its length.
                let time = rng.u64(0..self.lease * 2_500) >> rng.u32(0..4);
                let by = rng.i64(1..self.lease as i64 * 2_000);
                let which = rng.usize(..);
                let host_fault = match fault {
                    Fault::Suspensions => HostFault::Suspend { host, time },
                    Fault::Stops => HostFault::Stop { host },
                    Fault::Clones => HostFault::CloneHost { host },
                    Fault::WallSteps if which & 1 == 0 => HostFault::SetWallClock { host, by },
                    Fault::WallSteps => HostFault::SetWallClock { host, by: -by },
                    Fault::Flushes => HostFault::FlushScripts { node },
                    Fault::Unready => HostFault::Unready { node, time },
                    Fault::Memory => HostFault::FillMemory { node, time },
                    Fault::Evictions => HostFault::EvictKey { node, which },
                    Fault::Restarts => HostFault::RestartEmpty { node },
                    Fault::Failovers => {
                        all.push((at.saturating_sub(time), HostFault::StopReplication { node }));
                        HostFault::FailOver { node }
                    }
                    Fault::Java if self.has_plain_locks() => HostFault::JavaAcquires { node, time },
                    Fault::ServerForward => HostFault::SetServerClock { node, by },
                    Fault::ServerBack => HostFault::SetServerClock { node, by: -by },
                    _ => break,
                };
                all.push((at, host_fault));
            }
        }
        let mut ahead = vec![0_i64; self.nodes];
        all.retain(|(_, host_fault)| match host_fault {
            HostFault::SetServerClock { node, by } if ahead[*node] + by > AHEAD_MAX => false,
            HostFault::SetServerClock { node, by } => {
                ahead[*node] += by.max(&0);
                true
            }
            _ => true,
        });
        if self.ends_faults {
            all.push((FAULTS_END_AT, HostFault::EndFaults));
        }
        all
    }
}

impl Sim {
    pub(crate) fn apply_host_fault(self: &Rc<Self>, host_fault: HostFault) {
        let ends = matches!(host_fault, HostFault::Resume { .. } | HostFault::JavaReleases { .. });
        let late = self.faults_ended.get() && !ends;
        if late || !self.is_busy() {
            return;
        }
        self.trace(|| format!("STRIKES {host_fault:?}"));
        match host_fault {
            HostFault::Suspend { .. }
            | HostFault::Resume { .. }
            | HostFault::Stop { .. }
            | HostFault::SetWallClock { .. }
            | HostFault::CloneHost { .. } => self.apply_to_host(host_fault),
            HostFault::JavaAcquires { node, time } => self.java_acquires(node, time),
            HostFault::JavaReleases { node } => self.java_releases(node),
            HostFault::EndFaults => self.end_faults(),
            _ => self.apply_to_node(host_fault),
        }
    }

    fn apply_to_host(self: &Rc<Self>, host_fault: HostFault) {
        let now = self.now();
        match host_fault {
            HostFault::Suspend { host, time } => {
                let mut hosts = self.hosts.borrow_mut();
                if !hosts[host].is_suspended() && !hosts[host].is_dead {
                    self.coverage.count(CoverPoint::Suspensions, 1);
                    hosts[host].suspend(now);
                    self.checker.borrow_mut().on_clock_step(host, now);
                    self.after(time, EventKind::HostFault(HostFault::Resume { host }));
                }
            }
            HostFault::Resume { host } => self.resume_host(host),
            HostFault::Stop { host } => {
                self.coverage.count(CoverPoint::Stops, 1);
                self.hosts.borrow_mut()[host].is_dead = true;
                self.drop_tasks(host);
                // No client relies on the leases of a dead host.
                let gone: Vec<_> = {
                    let trusted_leases = &mut self.checker.borrow_mut().trusted_leases;
                    trusted_leases.extract_if(.., |trusted| trusted.host == host).collect()
                };
                drop(gone);
            }
            HostFault::SetWallClock { host, by } => {
                self.coverage.count(CoverPoint::WallSteps, 1);
                self.hosts.borrow_mut()[host].clocks.set(by);
                self.checker.borrow_mut().on_clock_step(host, now);
            }
            HostFault::CloneHost { host } => self.clone_host(host),
            _ => {}
        }
    }

    fn resume_host(&self, host: usize) {
        let (events, tasks) = {
            let mut hosts = self.hosts.borrow_mut();
            if !hosts[host].is_suspended() {
                return;
            }
            hosts[host].resume(self.now())
        };
        self.checker.borrow_mut().on_clock_step(host, self.now());
        for kind in events {
            self.after(0, kind);
        }
        tasks.into_iter().for_each(|task| self.wake(task));
    }

    /// Starts a copy of a host: with the same clocks, but new random numbers.
    fn clone_host(self: &Rc<Self>, host: usize) {
        let mut hosts = self.hosts.borrow_mut();
        if hosts[host].is_dead || hosts.len() > 2 * self.plan.clients {
            return;
        }
        self.coverage.count(CoverPoint::Clones, 1);
        let shares = self.plan.has_seeded(SeededFault::SharedEntropy);
        let original = &mut hosts[host];
        let rng = if shares { original.rng.clone() } else { original.rng.fork() };
        let mut clocks = original.clocks.clone();
        clocks.resume(self.now());
        hosts.push(SimHost::new(clocks, rng));
        let clone = hosts.len() - 1;
        drop(hosts);
        self.start_clients(clone, true);
    }

    fn apply_to_node(&self, host_fault: HostFault) {
        let now = self.now();
        let mut nodes = self.nodes.borrow_mut();
        let mut can_exclude = true;
        match host_fault {
            HostFault::FlushScripts { node } => {
                self.coverage.count(CoverPoint::Flushes, 1);
                nodes[node].known_scripts = 0;
            }
            HostFault::Unready { node, time } => nodes[node].unready_until = now + time,
            HostFault::FillMemory { node, time } => nodes[node].full_until = now + time,
            HostFault::EvictKey { node, which } => {
                let node = &mut nodes[node];
                let keys: Vec<String> = node.model.dump(node.millis(now)).into_keys().collect();
                if let Some(key) = keys.get(which % keys.len().max(1)) {
                    self.coverage.count(CoverPoint::Evictions, 1);
                    self.trace(|| format!("evicted: {key}"));
                    node.model.delete(key);
                    (node.has_lost, can_exclude) = (true, false);
                }
            }
            HostFault::RestartEmpty { node } => {
                self.coverage.count(CoverPoint::Restarts, 1);
                nodes[node].replace_data(None);
                can_exclude = false;
            }
            HostFault::StopReplication { node } => {
                nodes[node].replica = Some(nodes[node].model.clone())
            }
            HostFault::FailOver { node } => {
                self.coverage.count(CoverPoint::Failovers, 1);
                let replica = nodes[node].replica.take();
                nodes[node].replace_data(replica);
                can_exclude = false;
            }
            HostFault::SetServerClock { node, by } => {
                self.coverage.count(CoverPoint::ServerSteps, 1);
                nodes[node].set_by += by;
                nodes[node].was_set = true;
                nodes[node].went_back |= by < 0;
                can_exclude = false;
            }
            _ => {}
        }
        drop(nodes);
        if !can_exclude {
            // A reader that joins others gets their token. After a failover these may be earlier
            // readers, with an older token.
            let shared = matches!(self.plan.kind, Kind::ReadWrite | Kind::FairReadWrite);
            let shared = shared && self.has_lost();
            self.record_data_loss(!(shared || self.tokens_may_fall()));
        }
        self.checker.borrow_mut().can_exclude &= can_exclude;
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
    fn end_faults(&self) {
        self.faults_ended.set(true);
        for node in self.nodes.borrow_mut().iter_mut() {
            (node.unready_until, node.full_until) = (0, 0);
        }
        let count = self.hosts.borrow().len();
        for host in 0..count {
            self.resume_host(host);
        }
    }
}
