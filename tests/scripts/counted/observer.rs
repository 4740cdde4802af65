//! Who watches a schedule, and knows what must never be.

use std::collections::{BTreeMap, BTreeSet};

use super::schedule::{Executed, Network};
use super::steps::Kind;
use crate::support::script_model::holds::{NEVER, raw};
use crate::support::script_model::{Latches, ScriptModel};

/// The name of the semaphore.
pub(super) const NAME: &str = "job";
/// Redisson's set of its permits.
pub(super) const SET_OF_PERMITS: &str = "{job}:timeout";

/// What may happen in a schedule.
#[derive(Clone, Copy)]
pub(super) struct Plan {
    pub(super) kind: Kind,
    /// Of ten holds, how many have no lease.
    pub(super) endless: u8,
    /// Java takes part, with clocks that are off by up to so many ms; ours allow for `skew`.
    pub(super) java: Option<i64>,
    pub(super) skew: u64,
    pub(super) network: Network,
    /// Latches are evicted: then ours may find out that they have lost something, but nothing is counted twice.
    pub(super) evicts: bool,
    pub(super) latches: Latches,
    pub(super) without: Option<&'static str>,
}

pub(super) const PLAN: Plan = Plan {
    kind: Kind::Semaphore,
    endless: 5,
    java: Some(300),
    skew: 300,
    network: Network { lost: 15, doubled: 25, longest: 4_000, late: 30 },
    evicts: false,
    latches: Latches::On,
    without: None,
};

/// What an observer knows.
pub(super) struct Seen {
    pub(super) plan: Plan,
    pub(super) total: i64,
    /// The members of each owner's holds, by the owner's latch.
    pub(super) members: BTreeMap<String, Vec<String>>,
    pub(super) granted: BTreeSet<String>,
    pub(super) ended: BTreeSet<String>,
    pub(super) token: u64,
    /// The answers of what was done once, by request.
    pub(super) done: BTreeMap<String, (i64, String)>,
    /// Requests that must not be done any more.
    pub(super) closed: BTreeSet<String>,
    /// Java's: how many of a semaphore; ids, and when they end by its clock.
    pub(super) java: i64,
    pub(super) java_ids: BTreeMap<String, i64>,
    pub(super) wrong: Option<String>,
}

/// How often what has happened in all schedules together.
#[derive(Debug, Default)]
pub(super) struct Sights {
    pub(super) granted: usize,
    pub(super) by_java: usize,
    pub(super) lost: usize,
    pub(super) once: usize,
    pub(super) never: usize,
    pub(super) refused: usize,
}

impl Seen {
    pub(super) fn new(plan: Plan) -> Self {
        Self {
            plan,
            total: 4,
            members: BTreeMap::new(),
            granted: BTreeSet::new(),
            ended: BTreeSet::new(),
            token: 0,
            done: BTreeMap::new(),
            closed: BTreeSet::new(),
            java: 0,
            java_ids: BTreeMap::new(),
            wrong: None,
        }
    }

    pub(super) const fn set(&self) -> &'static str {
        match self.plan.kind {
            Kind::Semaphore => "el:{job}:held",
            Kind::Permits => SET_OF_PERMITS,
        }
    }

    fn is_wrong(&mut self, what: impl Into<String>) {
        self.wrong.get_or_insert_with(|| what.into());
    }

    pub(super) fn executed(&mut self, executed: &Executed<'_>, sights: &mut Sights) {
        let Executed { call, code, value, ms } = executed;
        let (args, latch) = (call.args(), call.keys()[0].clone());
        match call.script().name {
            "semaphore_acquire" | "permits_acquire" => {
                let members = if self.plan.kind == Kind::Semaphore {
                    vec![format!("{}|{}", args[8], args[4])]
                } else {
                    args[9..].iter().map(|id| raw(id)).collect()
                };
                self.members.insert(latch.clone(), members);
                match code {
                    1 => self.is_granted(latch, value, sights),
                    0 => {
                        sights.refused += 1;
                        // Without a bound a later attempt of the same last try may outlive the tombstone: the abandon ends it.
                        if args[6] == "1" && !args[1].is_empty() {
                            self.ended.insert(latch);
                        }
                    }
                    _ => {}
                }
            }
            "semaphore_release" | "permits_release" => drop(self.ended.insert(latch)),
            "semaphore_change" | "permits_change" if *code >= 0 && *ms == 0 => {
                sights.once += 1;
                if self.closed.contains(&args[0]) {
                    self.is_wrong("done after its client was told");
                }
                let answer = (*code, value.clone());
                if self.done.insert(args[0].clone(), answer).is_some() {
                    self.is_wrong("done twice");
                }
                let number: i64 = args[6].parse().unwrap();
                match args[5].as_str() {
                    "add" | "addx" if *code == 1 => self.total += number,
                    "drain" => self.total -= value.parse::<i64>().unwrap(),
                    _ => {}
                }
            }
            _ => {}
        }
    }

    fn is_granted(&mut self, latch: String, value: &str, sights: &mut Sights) {
        sights.granted += 1;
        let token = value.parse().unwrap();
        if token <= self.token {
            self.is_wrong("a token that does not rise");
        }
        self.token = token;
        if self.plan.evicts {
            return;
        }
        if self.ended.contains(&latch) {
            self.is_wrong("granted after its end");
        }
        if !self.granted.insert(latch) {
            self.is_wrong("granted twice");
        }
    }

    pub(super) fn checks(
        &mut self,
        model: &ScriptModel,
        set: &BTreeMap<String, i64>,
        believed: &[String],
        server: i64,
    ) {
        let weight = |member: &String| match self.plan.kind {
            Kind::Semaphore => member.split('|').next().unwrap().parse::<i64>().unwrap(),
            Kind::Permits => 1,
        };
        let held: i64 = set.keys().map(weight).sum();
        let there = model.number(NAME).unwrap_or(0);
        if there + held + self.java != self.total {
            let total = self.total;
            self.is_wrong(format!("{there} and {held} and {} are not {total}", self.java));
        }
        let ghost = |latch: &String| {
            let members = self.members.get(latch).into_iter().flatten();
            members.filter(|member| set.contains_key(*member)).count() > 0
        };
        if !self.plan.evicts && self.ended.iter().any(ghost) {
            self.is_wrong("what has ended is in the set");
        }
        for latch in believed {
            let members = self.members.get(latch).cloned().unwrap_or_default();
            if members.is_empty() || !members.iter().all(|member| set.contains_key(member)) {
                self.is_wrong("a hold that is believed in is not in the set");
            }
        }
        let gone = |(id, ends): (&String, &i64)| server < *ends && !set.contains_key(id);
        if self.java_ids.iter().any(gone) {
            self.is_wrong("a permit of Java's was taken before its end");
        }
        // What Java believes in is over then, whether or not anybody has taken it out.
        self.java_ids.retain(|_, ends| server < *ends && *ends < NEVER);
    }
}
