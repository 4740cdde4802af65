//! The observer of the permits of one schedule: records each script and checks the invariants.

use std::collections::{BTreeMap, BTreeSet};

use edgelatch_proto::protocol::reply::{Code, Reply};
use edgelatch_proto::protocol::script::ScriptCall;

use super::super::ledger::is_repeated;
use super::super::network::arg;
use super::super::runner::{Check, Coverage, Owners, Requests};
use super::{Kind, NAME, PERMITS, Settings};
use test_support::script_model::ScriptModel;
use test_support::script_model::holds::raw;

/// The sorted set of permits with ids, as Redisson names it.
pub(super) const SET_OF_PERMITS: &str = "{job}:timeout";

/// The index of the number of permits in the arguments of `semaphore_acquire`.
const SEMAPHORE_PERMITS_ARG: usize = 8;
/// The index of the first id in the arguments of `permits_acquire`.
const FIRST_PERMIT_ID_ARG: usize = 9;

pub(super) struct Checker {
    settings: Settings,
    /// The number of all permits, free and held.
    total: i64,
    /// By the latch of each owner that has tried: the members that its hold has in Redis' set of
    /// holds if it is granted.
    members: BTreeMap<String, Vec<String>>,
    /// The owners by their latches.
    owners: Owners,
    pub(super) requests: Requests,
    /// The number of permits of a semaphore that Redisson holds. Its permits with ids are in the
    /// set of permits instead.
    pub(super) java_held: i64,
    /// The permits with ids that Redisson holds, and their ends by Redis' clock.
    pub(super) java_ids: BTreeMap<String, u64>,
}

impl Checker {
    pub(super) fn new(settings: Settings) -> Self {
        Self {
            settings,
            total: PERMITS,
            members: BTreeMap::new(),
            owners: Owners::default(),
            requests: Requests::default(),
            java_held: 0,
            java_ids: BTreeMap::new(),
        }
    }

    /// The latches of all owners that have tried to acquire.
    pub(super) fn latches(&self) -> impl ExactSizeIterator<Item = &String> {
        self.members.keys()
    }

    /// Records that the owners with these latches must not be granted any more.
    pub(super) fn record_end(&mut self, latches: &BTreeSet<String>) {
        for latch in latches {
            self.owners.record_end(latch);
        }
    }

    /// Records a script of this library.
    pub(super) fn on_executed(
        &mut self,
        call: &ScriptCall,
        reply: &Reply,
        coverage: &mut Coverage,
    ) -> Check {
        // The first key of a request for an owner is the owner's latch.
        let (args, latch, code) = (call.args(), &call.keys()[0], reply.code);
        match call.script().name {
            "semaphore_acquire" | "permits_acquire" => {
                let members = if self.settings.kind == Kind::Semaphore {
                    vec![format!("{}|{}", args[SEMAPHORE_PERMITS_ARG], args[arg::OWNER])]
                } else {
                    args[FIRST_PERMIT_ID_ARG..].iter().map(|id| raw(id)).collect()
                };
                self.members.insert(latch.clone(), members);
                // A repeat of a grant has another code.
                if code == Code::Done {
                    coverage.count("grants");
                    return self.on_granted(latch, &reply.value);
                }
                if code == Code::No {
                    coverage.count("refusals");
                    // A refused last try leaves a tombstone. With a bound this ends its owner: no
                    // copy is executed after the tombstone has expired. Without a bound, as in the
                    // first request of a client for a hold with a lease time, a copy may still be
                    // granted then, and that hold expires: the owner has not ended.
                    if args[arg::LAST_TRY] == "1" && !args[arg::NOT_AFTER].is_empty() {
                        self.owners.record_end(latch);
                    }
                }
            }
            "semaphore_release" | "permits_release" => _ = self.owners.record_end(latch),
            // A call with a negative code was not executed.
            "semaphore_change" | "permits_change" if code as i64 >= 0 && !is_repeated(reply) => {
                coverage.count("changes");
                self.requests.record_execution(
                    &args[arg::REQUEST_ID],
                    code as i64,
                    &reply.value,
                )?;
                match args[arg::OPERATION].as_str() {
                    "add" | "addx" if code == Code::Done => {
                        self.total += args[arg::AMOUNT].parse::<i64>().unwrap()
                    }
                    "drain" => self.total -= reply.value.parse::<i64>().unwrap(),
                    _ => {}
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Records a grant to the owner of this latch; `value` is its token.
    fn on_granted(&mut self, latch: &str, value: &str) -> Check {
        let token = value.parse().unwrap();
        // Tokens must rise. The 0 is for a grant; only guarded writes are numbered.
        self.owners.record_token(NAME, (token, 0))?;
        if self.settings.evicts_latches { Ok(()) } else { self.owners.record_grant(latch, token) }
    }

    /// Checks that no permit is lost or counted twice, that no ended owner has a hold, and that no
    /// hold is taken from an owner that relies on it. `valid` contains the latches of those owners.
    pub(super) fn check<'a>(
        &mut self,
        model: &ScriptModel,
        mut valid: impl Iterator<Item = &'a str>,
        now: u64,
    ) -> Check {
        let set = model.members(match self.settings.kind {
            Kind::Semaphore => "el:{job}:held",
            Kind::Permits => SET_OF_PERMITS,
        });
        let weight = |member: &String| match self.settings.kind {
            Kind::Semaphore => member.split('|').next().unwrap().parse::<i64>().unwrap(),
            Kind::Permits => 1,
        };
        let held: i64 = set.keys().map(weight).sum();
        let free = model.number(NAME).unwrap_or(0);
        if free + held + self.java_held != self.total {
            let Self { java_held, total, .. } = self;
            return Err(format!(
                "{free} free, {held} held and {java_held} of Redisson's do not add up to {total}"
            ));
        }
        let members = |latch: &str| self.members.get(latch).map(Vec::as_slice).unwrap_or_default();
        let is_stored = |member: &String| set.contains_key(member);
        if !self.settings.evicts_latches
            && let Some(latch) =
                self.owners.ended().find(|latch| members(latch).iter().any(is_stored))
        {
            return Err(format!("{latch} has ended but is still stored"));
        }
        let is_lost =
            |latch: &&str| members(latch).is_empty() || !members(latch).iter().all(is_stored);
        if let Some(latch) = valid.find(is_lost) {
            return Err(format!("the valid hold of {latch} is not stored"));
        }
        let is_taken = |(id, ends): (&String, &u64)| now < *ends && !set.contains_key(id);
        if self.java_ids.iter().any(is_taken) {
            return Err("a Redisson permit was taken before its end".into());
        }
        // A Redisson permit is over at its end, even while it is still in the set.
        self.java_ids.retain(|_, ends| now < *ends);
        Ok(())
    }
}
