//! Writes under a lease, by a guard or by a caller's script, and the promises about them.

use std::mem;
use std::time::Duration;

use edgelatch::Error;
use edgelatch::Lease;
use edgelatch::error::{EvalError, GuardError, RequestError};
use edgelatch::protocol::calls::{GuardedWrite, OwnScript};
use edgelatch::protocol::reply::RespValue;
use edgelatch::timing::GuardMemory;

use super::engine::Sim;
use super::faults::Fault;
use super::gateway::Run;
use super::host::Place;
use super::objects::NAMES;
use super::plan::Kind;
use super::player::Player;
use super::redis::Node;
use super::seen::Sight;
use super::wire::Wire;

/// The shortest possible memory: within a schedule, Redis forgets fences.
const SHORT: Duration = Duration::from_secs(60);
/// How long copies of a write with an unknown outcome may still be executed, in microseconds: 90 s,
/// by a clock with an error below 1 %, rounded up.
const COPIES: u64 = 91_000_000;

/// A caller's script. It fails if it runs a second time with the same key.
const OWN: &str = "local count=redis.call('INCR',KEYS[1]) if count>tonumber(ARGV[1]) then error('too many') end return count";

/// The writes that the witness has recorded. All guarded keys are on one Redis.
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
    /// When the write must not be executed any more, by the result that its writer received.
    over_at: Option<u64>,
}

/// The newest write to a key.
struct Newest {
    key: String,
    token: u64,
    owner: String,
}

impl Player {
    /// Writes once, under a lease.
    pub(crate) async fn writes(&self, lease: &Lease<Wire, Place>) {
        let sim = &self.sim;
        let is_of_several = sim.plan.kind == Kind::Multi;
        // Each name has a guard of its own: tokens of different names cannot be compared.
        let name = NAMES.into_iter().find(|name| is_of_several && lease.token_of(name).is_some());
        let key = format!("guarded:{}", name.unwrap_or_default());
        let is_short = sim.plan.draws & 2 == 2;
        let memory = if is_short { GuardMemory::new(SHORT).unwrap() } else { GuardMemory::DEFAULT };
        let guard = self.clients[0].guard(&key, memory).unwrap();
        let number = sim.witness.borrow_mut().writes.begins();
        let write = GuardedWrite::set(number.to_string(), None);
        let answer = guard.write(lease, name, &write).await;
        sim.tell(|| format!("host {} has written {number}: {answer:?}", self.host));
        let told = match answer {
            Ok(()) => Told::Done,
            Err(Error {
                kind: GuardError::Request(RequestError::NotExecuted(_)) | GuardError::Stale { .. },
                ..
            }) => Told::NotExecuted,
            Err(_) => Told::Perhaps,
        };
        sim.is_told(number, told);
    }

    /// Runs a script of the caller's once, under a lease.
    pub(crate) async fn runs_own(&self, lease: &Lease<Wire, Place>) {
        let sim = &self.sim;
        let number = sim.witness.borrow_mut().writes.begins();
        let key = format!("{{{}}}:{number}", NAMES[0]);
        let script = OwnScript::new(OWN, [key].into(), ["1".to_owned()].into()).unwrap();
        let answer = lease.eval(&script).await;
        sim.tell(|| format!("host {} has run {number}: {answer:?}", self.host));
        let told = match answer {
            Ok(count) if count == "1" => Told::Done,
            Err(Error {
                kind: EvalError::Request(RequestError::NotExecuted(_) | RequestError::Lost(_)),
                ..
            }) => Told::NotExecuted,
            Err(Error { kind: EvalError::Request(_), .. }) => Told::Perhaps,
            // The script ran a second time, since Redis had lost the record of the first run.
            Err(Error { kind: EvalError::ScriptFailed(_), .. }) if !sim.remembers() => Told::Done,
            other => return sim.broken(|| format!("I10 a script is said to be {other:?}")),
        };
        sim.is_told(number, told);
    }
}

/// The outcome that a writer received.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Told {
    Done,
    NotExecuted,
    /// It may have been executed, or a copy of it may still be.
    Perhaps,
}

impl Sim {
    /// I10: the outcome that a writer receives is true.
    fn is_told(&self, number: usize, told: Told) {
        let remembers = self.remembers();
        let mut witness = self.witness.borrow_mut();
        let write = &mut witness.writes.all[number];
        let copies = match told {
            Told::NotExecuted => 0,
            // The client's bound assumes clocks within the drift allowance.
            Told::Done | Told::Perhaps if self.plan.has(Fault::Drift) => u64::MAX,
            Told::Done | Told::Perhaps => COPIES,
        };
        write.over_at = Some(self.now().saturating_add(copies));
        let is_wrong = match told {
            Told::Done => !write.is_done,
            Told::NotExecuted => write.is_done,
            Told::Perhaps => false,
        };
        if is_wrong && remembers {
            witness.breaks(self, || format!("I10 of write {number} its writer is told {told:?}"));
        }
    }

    /// Whether every Redis still has its records.
    fn remembers(&self) -> bool {
        self.nodes.borrow().iter().all(remembers)
    }
}

impl Writes {
    /// Records the start of a write; returns its number.
    fn begins(&mut self) -> usize {
        self.all.push(Write::default());
        self.all.len() - 1
    }

    /// I2, I6 and I10: a newer value is never overwritten; a write is executed at most once, and
    /// not after its writer received the outcome that it was not.
    pub(crate) fn executed(
        &mut self,
        sim: &Sim,
        node: &Node,
        run: &Run<'_>,
        code: i64,
    ) -> Option<String> {
        match code {
            0 => sim.seen.count(Sight::Stale, 1),
            1 => sim.seen.count(Sight::Written, 1),
            _ => 0,
        };
        if code != 1 {
            return None;
        }
        let (key, owner, number) = (&run.keys[1], &run.args[5], &run.args[9]);
        let token = run.args[4].parse().unwrap();
        let (newer, done) = (self.comes_after(key, token, owner), self.is_done(sim, number));
        newer.or(done).filter(|_| remembers(node))
    }

    /// I3, I6 and I10: a caller's script runs while its lease is held, at most once, and not after
    /// its end.
    pub(crate) fn ran(
        &mut self,
        sim: &Sim,
        node: &Node,
        run: &Run<'_>,
        cells: &[RespValue],
        stood: bool,
    ) -> Option<String> {
        // A repeated result is not a second run.
        let [RespValue::Int(1), _, RespValue::Int(0), ..] = cells else { return None };
        sim.seen.count(Sight::Ran, 1);
        let number = run.keys.last()?.rsplit(':').next()?;
        let done = self.is_done(sim, number);
        let stranger =
            (!stood).then(|| format!("I3 script {number} runs for somebody who holds nothing"));
        stranger.or_else(|| done.filter(|_| remembers(node)))
    }

    /// Records the write's execution; returns the broken promise, if any.
    fn is_done(&mut self, sim: &Sim, number: &str) -> Option<String> {
        let write = &mut self.all[number.parse::<usize>().unwrap()];
        if mem::replace(&mut write.is_done, true) {
            return Some(format!("I6 write {number} is done again"));
        }
        let is_over = write.over_at.is_some_and(|over_at| over_at <= sim.now());
        is_over.then(|| format!("I10 write {number} is done after its end"))
    }

    /// Records this write as the newest; returns the broken promise, if any.
    fn comes_after(&mut self, key: &str, token: u64, owner: &str) -> Option<String> {
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
const fn remembers(node: &Node) -> bool {
    !node.has_lost && !node.went_back
}
