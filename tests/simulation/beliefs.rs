//! Compares, after every step, the leases on which clients rely with each other and with Redis.

use std::rc::Rc;

use edgelatch::Lease;

use super::engine::Sim;
use super::faults::Fault;
use super::host::{Place, SLEEP_MAX_MS};
use super::wire::Wire;
use test_support::history::Claim;

/// A lease that a client holds.
pub(crate) struct Belief {
    pub(crate) host: usize,
    pub(crate) operation: u32,
    pub(crate) lease: Rc<Lease<Wire, Place>>,
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
/// of it, in microseconds: the longest sleep, by a clock that is slow by a tenth, and `LATE_MAX`.
const DISTURBED: u64 = SLEEP_MAX_MS * 1_112 + LATE_MAX;

impl Belief {
    fn clashes(&self, other: &Self) -> bool {
        self.claims.iter().any(|one| other.claims.iter().any(|two| one.clashes(two)))
    }

    fn permits(&self) -> u32 {
        self.claims.iter().map(Claim::permits).sum()
    }
}

impl Sim {
    /// Compares all leases on which clients rely.
    pub(crate) fn look(&self) {
        let now = self.now();
        let mut witness = self.witness.borrow_mut();
        if witness.beliefs.is_empty() || witness.broken.is_some() {
            return;
        }
        for belief in &mut witness.beliefs {
            belief.valid = !belief.lease.remaining().is_zero();
        }
        let exact = !self.plan.has(Fault::LateTimers);
        for belief in &mut witness.beliefs {
            let awake = !self.machines.borrow()[belief.host].stands();
            match (belief.valid, belief.ended_at) {
                (true, _) => belief.ended_at = None,
                (false, None) => belief.ended_at = Some(now),
                (false, Some(since))
                    if belief.kept && exact && awake && now > since + belief.late_max =>
                {
                    let host = belief.host;
                    return witness.breaks(self, || {
                        format!("I8 host {host} was not told of its loss in time")
                    });
                }
                // A host that stands still notices the end when it continues.
                (false, Some(_)) if !awake => belief.ended_at = Some(now),
                (false, Some(_)) => {}
            }
        }
        if !witness.claims {
            return;
        }
        if let Some(what) = self.clash(&witness.beliefs).or_else(|| self.missing(&witness)) {
            witness.breaks(self, || what);
        }
    }

    /// I1: clients that rely on a hold exclude each other.
    fn clash(&self, beliefs: &[Belief]) -> Option<String> {
        let held = || beliefs.iter().filter(|belief| belief.valid);
        let permits: u32 = held().map(Belief::permits).sum();
        if permits > self.plan.permits {
            return Some(format!("I1 {permits} of {} permits are held", self.plan.permits));
        }
        for (place, one) in held().enumerate() {
            if let Some(two) = held().skip(place + 1).find(|two| one.clashes(two)) {
                return Some(format!("I1 hosts {} and {} both hold a lock", one.host, two.host));
            }
        }
        None
    }

    /// I3 and I5: Redis stores each hold on which a client relies, by one grant.
    fn missing(&self, witness: &super::witness::Witness) -> Option<String> {
        let nodes = self.nodes.borrow();
        for belief in witness.beliefs.iter().filter(|belief| belief.valid) {
            let stands = |owner: &&super::witness::Owner| {
                owner.held
                    && owner.operation == belief.operation
                    && owner.hold.stands(&nodes[owner.node], self.now())
            };
            let count = witness.owners.iter().filter(stands).count();
            if count < belief.parts {
                return Some(format!(
                    "I3 host {} believes in a hold that is not there",
                    belief.host
                ));
            }
        }
        None
    }
}

impl super::witness::Witness {
    /// Some clock of the host was set or stood still: its timers may now fire as late as
    /// `DISTURBED`.
    pub(crate) fn disturbs(&mut self, host: usize, now: u64) {
        for belief in self.beliefs.iter_mut().filter(|belief| belief.host == host) {
            belief.late_max = DISTURBED;
            belief.ended_at = belief.ended_at.map(|_| now);
        }
    }

    pub(crate) fn breaks(&mut self, sim: &Sim, what: impl FnOnce() -> String) {
        if self.broken.is_none() {
            let what = what();
            sim.tell(|| format!("BROKEN  {what}"));
            self.broken = Some(what);
        }
    }
}
