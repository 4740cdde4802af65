//! A virtual Redis: the model of all scripts, a clock, and the faults of a server.

use std::mem;
use std::rc::Rc;

use edgelatch_proto::protocol::reply::RespValue;
use fastrand::Rng;

use super::coverage::CoverPoint;
use super::engine::Sim;
use super::faults::Fault;
use super::gateway::{KnownScript, Run};
use super::plan::{Plan, SeededFault};
use super::subscription::Subscription;
use super::transport::SentRequest;
use test_support::script_model::subscribers::Subscribers;
use test_support::script_model::{Latches, ScriptModel};

/// The server's time when a schedule begins, in microseconds since 1970.
const EPOCH: u64 = 1_700_000_000_000_000;
/// How long after its sending a copy of a request without a bound may be executed, in microseconds:
/// `FIRST_HORIZON` from the first request of a wait, less 90 s, the longest wait here.
const COPY_MAX_AGE: u64 = 510_000_000;
/// How many recent replies are kept, to be delivered to the wrong request.
const RECENT: usize = 4;

pub(crate) struct Node {
    pub(crate) model: ScriptModel,
    /// The scripts that it has cached: the bit with the script's index.
    pub(crate) known_scripts: u64,
    /// The amount by which its clock differs from the exact time, in microseconds.
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
    pub(crate) listeners: Vec<Rc<Subscription>>,
    recent: Vec<Vec<u8>>,
    seeded_fault: Option<SeededFault>,
}

impl Node {
    pub(crate) fn new(plan: &Plan, rng: &mut Rng) -> Self {
        let latches =
            if plan.has_seeded(SeededFault::NoLatch) { Latches::Off } else { Latches::On };
        let mut model = ScriptModel::new(latches);
        model.without = plan.seeded_fault.and_then(SeededFault::rule);
        // The clocks of several Redis differ by less than the tokens of a redLock tolerate.
        let set_by = rng.i64(-200_000..200_000);
        Self {
            model,
            known_scripts: if plan.knows_scripts { u64::MAX } else { 0 },
            set_by,
            unready_until: 0,
            full_until: 0,
            replica: None,
            has_lost: false,
            was_set: false,
            went_back: false,
            listeners: Vec::new(),
            recent: Vec::new(),
            seeded_fault: plan.seeded_fault,
        }
    }

    /// The server's time, in microseconds since 1970.
    pub(crate) fn micros(&self, now: u64) -> u64 {
        let scaled =
            if self.seeded_fault == Some(SeededFault::FastServer) { now * 103 / 100 } else { now };
        (EPOCH + scaled).saturating_add_signed(self.set_by)
    }

    pub(crate) fn millis(&self, now: u64) -> u64 {
        self.micros(now) / 1000
    }

    /// Another process takes over with the replica's data, or without any. It knows no scripts.
    pub(crate) fn replace_data(&mut self, replica: Option<ScriptModel>) {
        let Self { model, known_scripts, has_lost, .. } = self;
        let mut empty = ScriptModel::new(model.latches());
        empty.without = model.without;
        *model = replica.unwrap_or(empty);
        (*known_scripts, *has_lost) = (0, true);
    }

    fn loads(&mut self, script: KnownScript, whole: bool) -> bool {
        if whole {
            self.known_scripts |= 1 << script.0;
        }
        self.known_scripts >> script.0 & 1 == 1
    }

    /// Runs a script. Without free memory, rejects a script whose first write needs memory; the
    /// script then changes nothing.
    fn run(&mut self, run: &Run<'_>, now: u64) -> Result<Vec<RespValue>, &'static str> {
        let (name, micros) = (run.script.script().name, self.micros(now));
        let kept = (now < self.full_until && needs_memory(name)).then(|| self.model.clone());
        let seeded_fault = self.seeded_fault;
        let not_after =
            run.args[1].parse().ok().filter(|_| seeded_fault != Some(SeededFault::NoBound));
        let answer = seeded_fault
            .and_then(|seeded_fault| seeded_fault.before(&mut self.model, run, micros / 1000));
        let cells = answer
            .unwrap_or_else(|| self.model.run_script(name, run.keys, run.args, not_after, micros));
        if let Some(seeded_fault) = seeded_fault {
            seeded_fault.after(&mut self.model, run, &cells[0], micros / 1000);
        }
        if let Some(kept) = kept.filter(|kept| needs_more_memory(run, kept, &cells[0])) {
            self.model = kept;
            return Err("OOM command not allowed when used memory > 'maxmemory'.");
        }
        Ok(cells)
    }
}

/// Whether the script whose first reply is `code` begins with a write that Redis rejects when it is
/// full. `before` is the state before it ran.
fn needs_more_memory(run: &Run<'_>, before: &ScriptModel, code: &RespValue) -> bool {
    let name = run.script.script().name;
    let is_granted = *code == RespValue::Int(1);
    let is_busy = *code == RespValue::Int(0);
    if name == "fair_rw_acquire" {
        // A known waiter, or one that takes over its place, begins with an extension of its latch.
        let is_known = before.text(&run.keys[0]).is_some() || !run.args[12].is_empty();
        return (is_granted || is_busy) && !is_known;
    }
    let last = name.ends_with("_acquire") && run.args.get(6).is_some_and(|last| last == "1");
    is_granted || is_busy && (last || name == "fair_acquire")
}

/// Whether Redis rejects the script's first write when it is full. The first write of every other
/// script deletes a key or extends its expiry.
fn needs_memory(script: &str) -> bool {
    script.ends_with("_acquire") || matches!(script, "guard_write" | "eval")
}

impl Sim {
    /// Runs a script for the sender of the request.
    pub(crate) fn run_command(
        &self,
        sent: &SentRequest,
        run: &Run<'_>,
        whole: bool,
    ) -> Result<Vec<RespValue>, &'static str> {
        let (now, place) = (self.now(), sent.node);
        let mut nodes = self.nodes.borrow_mut();
        let node = &mut nodes[place];
        if now < node.unready_until {
            self.coverage.count(CoverPoint::Unready, 1);
            return Err("LOADING Redis is loading the dataset in memory");
        }
        if run.args[1].is_empty() && now > sent.sent_at + COPY_MAX_AGE {
            return Err("ERR a copy that is too old for any promise");
        }
        if !node.loads(run.script, whole) {
            self.coverage.count(CoverPoint::UnknownScripts, 1);
            return Err("NOSCRIPT No matching script. Please use EVAL.");
        }
        let open = node.listeners.iter().filter(|subscription| !subscription.is_closed.get());
        node.model.subscribers =
            Subscribers::Channels(open.map(|subscription| subscription.channel.clone()).collect());
        let mut checker = self.checker.borrow_mut();
        let before = checker.state_before(place, node, run, now);
        let answer = node.run(run, now);
        if answer.is_err() {
            self.coverage.count(CoverPoint::NoMemory, 1);
        }
        let cells = answer?;
        checker.on_executed(self, place, node, run, &cells, before);
        drop(checker);
        let messages = mem::take(&mut node.model.published);
        drop(nodes);
        for message in messages {
            self.publish(place, &message.channel, &message.text);
        }
        Ok(cells)
    }

    /// Keeps a reply, and returns the earlier ones that may be delivered in its place.
    pub(crate) fn keep_reply(&self, node: usize, body: &[u8]) -> Vec<Vec<u8>> {
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
