//! Writes under a lease, by a guard or by a caller's script, and the promises about them.

use std::mem;
use std::time::Duration;

use edgelatch::Error;
use edgelatch::Lease;
use edgelatch::client::{GuardedWrite, UserScript};
use edgelatch::error::{EvalError, GuardError, RequestError};
use edgelatch::timing::GuardMemory;
use edgelatch_proto::protocol::reply::RespValue;

use super::coverage::CoverPoint;
use super::engine::Sim;
use super::faults::Fault;
use super::gateway::Run;
use super::host::HostHandle;
use super::objects::NAMES;
use super::plan::Kind;
use super::redis::Node;
use super::transport::SimTransport;
use super::workload::Workload;

/// The shortest possible memory: within a schedule, Redis forgets fences.
const SHORT: Duration = Duration::from_secs(60);
/// How long copies of a write with an unknown outcome may still be executed, in microseconds: 90 s,
/// by a clock with an error below 1 %, rounded up.
const COPY_MAX_AGE: u64 = 91_000_000;

/// A caller's script. It fails if it runs a second time with the same key.
const OWN_SCRIPT: &str = "local count=redis.call('INCR',KEYS[1]) if count>tonumber(ARGV[1]) then error('too many') end return count";

/// The writes that the checker has recorded. All guarded keys are on one Redis.
#[derive(Default)]
pub(crate) struct Writes {
    all: Vec<Write>,
    newest: Vec<Newest>,
}

/// A write. Its index in `all` is the value that a guard writes, or a part of the key in which a
/// script counts.
#[derive(Default)]
struct Write {
    is_done: bool,
    /// Whether it was a copy of its request that was executed.
    by_copy: bool,
    /// When the write must not be executed any more, by the result that its writer received.
    over_at: Option<u64>,
}

/// The newest write to a key.
struct Newest {
    key: String,
    token: u64,
    owner: String,
}

impl Workload {
    /// Writes once, under a lease.
    pub(crate) async fn write_guarded(&self, lease: &Lease<SimTransport, HostHandle>) {
        let sim = &self.sim;
        let is_of_several = sim.plan.kind == Kind::Multi;
        // Each name has a guard of its own: tokens of different names cannot be compared.
        let name = NAMES.into_iter().find(|name| is_of_several && lease.token_of(name).is_some());
        let key = format!("guarded:{}", name.unwrap_or_default());
        let is_short = sim.plan.rng_seed & 2 == 2;
        let memory = if is_short { GuardMemory::new(SHORT).unwrap() } else { GuardMemory::DEFAULT };
        let guard = self.clients[0].guard(&key, memory).unwrap();
        let number = sim.checker.borrow_mut().writes.begin();
        let write = GuardedWrite::set(number.to_string(), None);
        let answer = guard.write(lease, name, &write).await;
        sim.trace(|| format!("host {} has written {number}: {answer:?}", self.host));
        let result = match answer {
            Ok(()) => WriteResult::Done,
            Err(Error { kind: GuardError::Request(RequestError::NotExecuted(_)), .. }) => {
                WriteResult::NotExecuted
            }
            Err(Error { kind: GuardError::Stale { .. }, .. }) => WriteResult::Stale,
            Err(_) => WriteResult::Unknown,
        };
        sim.check_result(number, result);
    }

    /// Runs a script of the caller's once, under a lease.
    pub(crate) async fn run_script(&self, lease: &Lease<SimTransport, HostHandle>) {
        let sim = &self.sim;
        let number = sim.checker.borrow_mut().writes.begin();
        let key = format!("{{{}}}:{number}", NAMES[0]);
        let script = UserScript::new(OWN_SCRIPT, [key].into(), ["1".to_owned()].into()).unwrap();
        let answer = lease.eval(&script).await;
        sim.trace(|| format!("host {} has run {number}: {answer:?}", self.host));
        let result = match answer {
            Ok(count) if count == "1" => WriteResult::Done,
            Err(Error {
                kind: EvalError::Request(RequestError::NotExecuted(_) | RequestError::Lost(_)),
                ..
            }) => WriteResult::NotExecuted,
            Err(Error { kind: EvalError::Request(_), .. }) => WriteResult::Unknown,
            // The script ran a second time, since Redis had lost the record of the first run.
            Err(Error { kind: EvalError::ScriptFailed(_), .. }) if !sim.keeps_records() => {
                WriteResult::Done
            }
            other => return sim.fail(|| format!("I10 a script has the result {other:?}")),
        };
        sim.check_result(number, result);
    }
}

/// The outcome that a writer received.
#[derive(Clone, Copy, Debug, PartialEq)]
enum WriteResult {
    Done,
    NotExecuted,
    /// A newer write came before it: it was not executed, unless a copy of it came even earlier.
    Stale,
    /// It may have been executed, or a copy of it may still be.
    Unknown,
}

impl Sim {
    /// I10: the outcome that a writer receives is true.
    fn check_result(&self, number: usize, result: WriteResult) {
        let keeps_records = self.keeps_records();
        let mut checker = self.checker.borrow_mut();
        let write = &mut checker.writes.all[number];
        let copies = match result {
            WriteResult::NotExecuted | WriteResult::Stale => 0,
            // The client's bound is right only if clocks drift less than it allows for.
            WriteResult::Done | WriteResult::Unknown if self.plan.has(Fault::Drift) => u64::MAX,
            WriteResult::Done | WriteResult::Unknown => COPY_MAX_AGE,
        };
        write.over_at = Some(self.now().saturating_add(copies));
        let is_wrong = match result {
            WriteResult::Done => !write.is_done,
            WriteResult::NotExecuted => write.is_done,
            WriteResult::Stale => write.is_done && !write.by_copy,
            WriteResult::Unknown => false,
        };
        if is_wrong && keeps_records {
            checker.fail(self, || format!("I10 the writer of {number} got {result:?}"));
        }
    }

    /// Whether every Redis still has its records.
    fn keeps_records(&self) -> bool {
        self.nodes.borrow().iter().all(keeps_records)
    }
}

impl Writes {
    /// Records the start of a write; returns its number.
    fn begin(&mut self) -> usize {
        self.all.push(Write::default());
        self.all.len() - 1
    }

    /// I2, I6 and I10: a newer value is never overwritten; a write is executed at most once, and
    /// not after its writer received the outcome that it was not.
    pub(crate) fn on_guard_write(
        &mut self,
        sim: &Sim,
        node: &Node,
        run: &Run<'_>,
        code: i64,
    ) -> Option<String> {
        match code {
            0 => sim.coverage.count(CoverPoint::Stale, 1),
            1 => sim.coverage.count(CoverPoint::Written, 1),
            _ => 0,
        };
        if code != 1 {
            return None;
        }
        let (key, owner, number) = (&run.keys[1], &run.args[5], &run.args[9]);
        let token = run.args[4].parse().unwrap();
        let (newer, done) =
            (self.record_newest(key, token, owner), self.record_execution(sim, run, number));
        newer.or(done).filter(|_| keeps_records(node))
    }

    /// I3, I6 and I10: a caller's script runs while its lease is held, at most once, and not after
    /// its end.
    pub(crate) fn on_eval(
        &mut self,
        sim: &Sim,
        node: &Node,
        run: &Run<'_>,
        cells: &[RespValue],
        existed: bool,
    ) -> Option<String> {
        // A repeated result is not a second run.
        let [RespValue::Int(1), _, RespValue::Int(0), ..] = cells else { return None };
        sim.coverage.count(CoverPoint::Ran, 1);
        let number = run.keys.last()?.rsplit(':').next()?;
        let done = self.record_execution(sim, run, number);
        let not_held =
            (!existed).then(|| format!("I3 script {number} runs for a client that holds nothing"));
        not_held.or_else(|| done.filter(|_| keeps_records(node)))
    }

    /// Records the write's execution; returns the broken promise, if any.
    fn record_execution(&mut self, sim: &Sim, run: &Run<'_>, number: &str) -> Option<String> {
        let write = &mut self.all[number.parse::<usize>().unwrap()];
        write.by_copy |= run.is_copy;
        if mem::replace(&mut write.is_done, true) {
            return Some(format!("I6 write {number} is done again"));
        }
        let is_over = write.over_at.is_some_and(|over_at| over_at <= sim.now());
        is_over.then(|| format!("I10 write {number} is done after its end"))
    }

    /// Records this write as the newest; returns the broken promise, if any.
    fn record_newest(&mut self, key: &str, token: u64, owner: &str) -> Option<String> {
        let this = Newest { key: key.into(), token, owner: owner.into() };
        let Some(newest) = self.newest.iter_mut().find(|newest| newest.key == key) else {
            self.newest.push(this);
            return None;
        };
        let last = mem::replace(newest, this);
        let is_older = token < last.token || token == last.token && *owner != last.owner;
        is_older.then(|| format!("I2 {key} is written with token {token} after {}", last.token))
    }
}

/// Whether Redis still has its fences and records. It may have lost them with its data; and when
/// its clock is set back, it may have removed records that should still exist.
const fn keeps_records(node: &Node) -> bool {
    !node.has_lost && !node.went_back
}
