//! Compares, after every step, the leases on which clients rely with each other and with Redis.

use std::rc::Rc;

use edgelatch::Lease;

use super::engine::Sim;
use super::faults::Fault;
use super::host::{HostHandle, SLEEP_MAX_MS};
use super::transport::SimTransport;
use test_support::history::Claim;

/// A lease that a client holds.
pub(crate) struct TrustedLease {
    pub(crate) host: usize,
    pub(crate) operation: u32,
    pub(crate) lease: Rc<Lease<SimTransport, HostHandle>>,
    pub(crate) claims: Vec<Claim>,
    /// The number of Redis servers that must store the hold.
    pub(crate) parts: usize,
    /// Whether the client keeps its lease, so that it must be notified of its end.
    pub(crate) kept: bool,
    /// Whether the lease was unexpired at the last comparison.
    pub(crate) valid: bool,
    /// The time of the first comparison at which it had expired.
    pub(crate) ended_at: Option<u64>,
    /// How late the client may be notified of the lease's end, in microseconds.
    pub(crate) late_max: u64,
}

/// How late an exact timer may fire, in microseconds: hosts read their clocks in whole
/// milliseconds.
pub(crate) const LATE_MAX: u64 = 2_500;
/// How late a timer may fire after its clock has stood still, or after another clock has run ahead
/// of it, in microseconds: the client notices the step after its longest sleep, by a clock that is
/// slow by a tenth, and `LATE_MAX`.
const LATE_MAX_AFTER_STEP: u64 = SLEEP_MAX_MS * 1_112 + LATE_MAX;

impl TrustedLease {
    fn conflicts_with(&self, other: &Self) -> bool {
        self.claims.iter().any(|one| other.claims.iter().any(|two| one.conflicts_with(two)))
    }

    fn permits(&self) -> u32 {
        self.claims.iter().map(Claim::permits).sum()
    }
}

impl Sim {
    /// Compares all leases on which clients rely.
    pub(crate) fn check_leases(&self) {
        let now = self.now();
        let mut checker = self.checker.borrow_mut();
        if checker.trusted_leases.is_empty() || checker.violation.is_some() {
            return;
        }
        for trusted in &mut checker.trusted_leases {
            trusted.valid = !trusted.lease.remaining().is_zero();
        }
        let exact = !self.plan.has(Fault::LateTimers);
        for trusted in &mut checker.trusted_leases {
            let awake = !self.hosts.borrow()[trusted.host].is_suspended();
            match (trusted.valid, trusted.ended_at) {
                (true, _) => trusted.ended_at = None,
                (false, None) => trusted.ended_at = Some(now),
                (false, Some(since))
                    if trusted.kept && exact && awake && now > since + trusted.late_max =>
                {
                    let host = trusted.host;
                    return checker.fail(self, || {
                        format!("I8 host {host} was not notified of its loss in time")
                    });
                }
                // A suspended host notices the end when it resumes.
                (false, Some(_)) if !awake => trusted.ended_at = Some(now),
                (false, Some(_)) => {}
            }
        }
        if !checker.can_exclude {
            return;
        }
        if let Some(what) =
            self.find_conflict(&checker.trusted_leases).or_else(|| self.find_missing(&checker))
        {
            checker.fail(self, || what);
        }
    }

    /// I1: clients that rely on a hold exclude each other.
    fn find_conflict(&self, trusted_leases: &[TrustedLease]) -> Option<String> {
        let held = || trusted_leases.iter().filter(|trusted| trusted.valid);
        let permits: u32 = held().map(TrustedLease::permits).sum();
        if permits > self.plan.permits {
            return Some(format!("I1 {permits} of {} permits are held", self.plan.permits));
        }
        for (place, one) in held().enumerate() {
            if let Some(two) = held().skip(place + 1).find(|two| one.conflicts_with(two)) {
                return Some(format!("I1 hosts {} and {} both hold a lock", one.host, two.host));
            }
        }
        None
    }

    /// I3 and I5: Redis stores each hold on which a client relies, by one grant.
    fn find_missing(&self, checker: &super::checker::Checker) -> Option<String> {
        let nodes = self.nodes.borrow();
        for trusted in checker.trusted_leases.iter().filter(|trusted| trusted.valid) {
            let is_stored = |owner: &&super::checker::Owner| {
                owner.held
                    && owner.operation == trusted.operation
                    && owner.hold.is_valid(&nodes[owner.node], self.now())
            };
            let count = checker.owners.iter().filter(is_stored).count();
            if count < trusted.parts {
                return Some(format!(
                    "I3 host {} relies on a hold that Redis does not store",
                    trusted.host
                ));
            }
        }
        None
    }
}

impl super::checker::Checker {
    /// A clock of the host was set or stood still: timers may fire by up to `LATE_MAX_AFTER_STEP`
    /// late from now on.
    pub(crate) fn on_clock_step(&mut self, host: usize, now: u64) {
        for trusted in self.trusted_leases.iter_mut().filter(|trusted| trusted.host == host) {
            trusted.late_max = LATE_MAX_AFTER_STEP;
            trusted.ended_at = trusted.ended_at.map(|_| now);
        }
    }

    pub(crate) fn fail(&mut self, sim: &Sim, what: impl FnOnce() -> String) {
        if self.violation.is_none() {
            let what = what();
            sim.trace(|| format!("BROKEN  {what}"));
            self.violation = Some(what);
        }
    }
}
