//! One Redis: the model of all scripts, its clock and its faults.

use std::mem;
use std::rc::Rc;

use edgelatch_proto::protocol::reply::RespValue;
use fastrand::Rng;

use super::engine::Sim;
use super::faults::Fault;
use super::gateway::{Known, Run};
use super::plan::{Plan, Tooth};
use super::seen::Sight;
use super::wire::{Feed, Letter};
use test_support::script_model::audience::Audience;
use test_support::script_model::{Latches, ScriptModel};

/// Its time when a schedule begins, in microseconds since 1970.
const EPOCH: u64 = 1_700_000_000_000_000;
/// How long after its sending a copy of a request without a bound may be executed, in microseconds:
/// `FIRST_HORIZON` from the first request of a wait, less 90 s, the longest wait here.
const REMEMBERED: u64 = 510_000_000;
/// How many recent replies are kept, to be delivered to the wrong request.
const RECENT: usize = 4;

pub(crate) struct Node {
    pub(crate) model: ScriptModel,
    /// The scripts that it knows, one bit each.
    pub(crate) known: u64,
    /// By how much its clock was set, in microseconds.
    pub(crate) set_by: i64,
    pub(crate) unready_until: u64,
    pub(crate) full_until: u64,
    /// The data of a replica that lags behind.
    pub(crate) replica: Option<ScriptModel>,
    /// Whether it lost acknowledged data, whether its clock was ever set, and whether it was set
    /// back.
    pub(crate) has_lost: bool,
    pub(crate) was_set: bool,
    pub(crate) went_back: bool,
    pub(crate) listeners: Vec<Rc<Feed>>,
    recent: Vec<Vec<u8>>,
    tooth: Option<Tooth>,
}

impl Node {
    pub(crate) fn new(plan: &Plan, rng: &mut Rng) -> Self {
        let latches = if plan.lacks(Tooth::NoLatch) { Latches::Off } else { Latches::On };
        let mut model = ScriptModel::new(latches);
        model.without = plan.tooth.and_then(Tooth::rule);
        // The clocks of several Redis differ by less than the tokens of a redLock tolerate.
        let set_by = rng.i64(-200_000..200_000);
        Self {
            model,
            known: if plan.warm { u64::MAX } else { 0 },
            set_by,
            unready_until: 0,
            full_until: 0,
            replica: None,
            has_lost: false,
            was_set: false,
            went_back: false,
            listeners: Vec::new(),
            recent: Vec::new(),
            tooth: plan.tooth,
        }
    }

    /// Its time, in microseconds.
    pub(crate) fn micros(&self, now: u64) -> u64 {
        let paced = if self.tooth == Some(Tooth::FastServer) { now * 103 / 100 } else { now };
        (EPOCH + paced).saturating_add_signed(self.set_by)
    }

    pub(crate) fn millis(&self, now: u64) -> u64 {
        self.micros(now) / 1000
    }

    /// Another process takes over with the replica's data, or without any. It knows no scripts.
    pub(crate) fn forgets(&mut self, replica: Option<ScriptModel>) {
        let Self { model, known, has_lost, .. } = self;
        let mut empty = ScriptModel::new(model.latches());
        empty.without = model.without;
        *model = replica.unwrap_or(empty);
        (*known, *has_lost) = (0, true);
    }

    fn knows(&mut self, script: Known, whole: bool) -> bool {
        if whole {
            self.known |= 1 << script.0;
        }
        self.known >> script.0 & 1 == 1
    }

    /// Runs a script. Without free memory, rejects a script whose first write needs memory; the
    /// script then changes nothing.
    fn run(&mut self, run: &Run<'_>, now: u64) -> Result<Vec<RespValue>, &'static str> {
        let (name, micros) = (run.script.script().name, self.micros(now));
        let kept = (now < self.full_until && takes_memory(name)).then(|| self.model.clone());
        let tooth = self.tooth;
        let not_after = run.args[1].parse().ok().filter(|_| tooth != Some(Tooth::NoBound));
        let answer = tooth.and_then(|tooth| tooth.before(&mut self.model, run, micros / 1000));
        let cells = answer
            .unwrap_or_else(|| self.model.run_script(name, run.keys, run.args, not_after, micros));
        if let Some(tooth) = tooth {
            tooth.after(&mut self.model, run, &cells[0], micros / 1000);
        }
        if let Some(kept) = kept {
            let last =
                name.ends_with("_acquire") && run.args.get(6).is_some_and(|last| last == "1");
            if cells[0] == RespValue::Int(1)
                || cells[0] == RespValue::Int(0) && (last || name == "fair_acquire")
            {
                self.model = kept;
                return Err("OOM command not allowed when used memory > 'maxmemory'.");
            }
        }
        Ok(cells)
    }
}

/// Whether Redis rejects the script's first write when it is full. The first write of every other
/// script deletes a key or extends its expiry.
fn takes_memory(script: &str) -> bool {
    script.ends_with("_acquire") || matches!(script, "guard_write" | "eval")
}

impl Sim {
    /// Runs a script for the sender of the request.
    pub(crate) fn runs(
        &self,
        letter: &Letter,
        run: &Run<'_>,
        whole: bool,
    ) -> Result<Vec<RespValue>, &'static str> {
        let (now, place) = (self.now(), letter.node);
        let mut nodes = self.nodes.borrow_mut();
        let node = &mut nodes[place];
        if now < node.unready_until {
            self.seen.count(Sight::Unready, 1);
            return Err("LOADING Redis is loading the dataset in memory");
        }
        if run.args[1].is_empty() && now > letter.sent_at + REMEMBERED {
            return Err("ERR a copy of which nothing is promised");
        }
        if !node.knows(run.script, whole) {
            self.seen.count(Sight::UnknownScripts, 1);
            return Err("NOSCRIPT No matching script. Please use EVAL.");
        }
        let open = node.listeners.iter().filter(|feed| !feed.is_closed.get());
        node.model.audience = Audience::These(open.map(|feed| feed.channel.clone()).collect());
        let mut witness = self.witness.borrow_mut();
        let before = witness.before(place, node, run, now);
        let answer = node.run(run, now);
        if answer.is_err() {
            self.seen.count(Sight::NoMemory, 1);
        }
        let cells = answer?;
        witness.executed(self, place, node, run, &cells, before);
        drop(witness);
        let messages = mem::take(&mut node.model.published);
        drop(nodes);
        for message in messages {
            self.published(place, &message.channel, &message.text);
        }
        Ok(cells)
    }

    /// Keeps a reply, and returns the earlier ones that may be delivered in its place.
    pub(crate) fn keep(&self, node: usize, body: &[u8]) -> Vec<Vec<u8>> {
        // An error has no echo, so a client cannot detect that it belongs to another request.
        if !self.plan.has(Fault::Swapped) || body.windows(7).any(|part| part == b"\"error\"") {
            return Vec::new();
        }
        let recent = &mut self.nodes.borrow_mut()[node].recent;
        let others = recent.clone();
        if recent.len() == RECENT {
            recent.remove(0);
        }
        recent.push(body.into());
        others
    }
}
