//! What clients believe to hold, compared with each other and with what is so: after every step.

use std::rc::Rc;

use edgelatch::Lease;

use super::engine::Sim;
use super::faults::Fault;
use super::host::{Place, SLEEP_MAX_MS};
use super::wire::Wire;
use test_support::history::Claim;

/// A lease in the hands of a client.
pub(crate) struct Belief {
    pub(crate) host: usize,
    pub(crate) operation: u32,
    pub(crate) lease: Rc<Lease<Wire, Place>>,
    pub(crate) claims: Vec<Claim>,
    /// Whether it is kept, so that its end has to be told.
    pub(crate) parts: usize,
    pub(crate) kept: bool,
    /// Whether its lease was good when all was compared last.
    pub(crate) valid: bool,
    /// When it was first seen to have ended.
    pub(crate) ended_at: Option<u64>,
    /// How late it may be told of its end, in microseconds.
    pub(crate) late_max: u64,
}

/// How late a timer may be that is exact, in microseconds: clocks are read in whole milliseconds.
pub(crate) const LATE_MAX: u64 = 2_500;
/// The same where the clock that timers go by has stood still, or another has run ahead of it: as
/// long as the longest sleep. By a clock that is slow by a tenth.
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
    /// Compares all that is believed.
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
                // Whoever stood still finds out when it goes on.
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

    /// I1
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

    /// I3 and I5: what is believed in stands in Redis, by one grant.
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
    /// Timers of a host do not go by all of its clocks any more.
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
