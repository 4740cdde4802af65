//! Writes under a lease, by a guard or by a caller's script, and the promises about them.

use std::mem;
use std::time::Duration;

use edgelatch::Lease;
use edgelatch::error::{EvalError, GuardError, RequestError};
use edgelatch::protocol::calls::{GuardedWrite, OwnScript};
use edgelatch::protocol::reply::Cell;
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
/// For so long copies of a write may do it of which its writer has not heard, in microseconds: a
/// minute and a half, by a clock that is known within a hundredth.
const COPIES: u64 = 91_000_000;

/// What a caller has run: no other may have counted there.
const OWN: &str = "local count=redis.call('INCR',KEYS[1]) if count>tonumber(ARGV[1]) then error('too many') end return count";

/// What was seen of all that. Keys that are guarded are on one Redis.
#[derive(Default)]
pub(crate) struct Writes {
    all: Vec<Write>,
    newest: Vec<Newest>,
}

/// One of them, by its number: the value that it writes, or a part of the key that it counts in.
#[derive(Default)]
struct Write {
    is_done: bool,
    /// From when on it is not done any more: what its writer was told.
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
        // Tokens of two names must not meet at one guard.
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
            Err(GuardError::Request(RequestError::NotExecuted(_)) | GuardError::Stale { .. }) => {
                Told::NotExecuted
            }
            Err(_) => Told::Perhaps,
        };
        sim.is_told(number, told);
    }

    /// Has a script of its own run once, under a lease.
    pub(crate) async fn runs_own(&self, lease: &Lease<Wire, Place>) {
        let sim = &self.sim;
        let number = sim.witness.borrow_mut().writes.begins();
        let key = format!("{{{}}}:{number}", NAMES[0]);
        let script = OwnScript::new(OWN, [key].into(), ["1".to_owned()].into()).unwrap();
        let answer = lease.eval(&script).await;
        sim.tell(|| format!("host {} has run {number}: {answer:?}", self.host));
        let told = match answer {
            Ok(count) if count == "1" => Told::Done,
            Err(EvalError::Request(RequestError::NotExecuted(_) | RequestError::Lost(_))) => {
                Told::NotExecuted
            }
            Err(EvalError::Request(_)) => Told::Perhaps,
            // It has run again, as nobody remembered that it had.
            Err(EvalError::ScriptFailed(_)) if !sim.remembers() => Told::Done,
            other => return sim.broken(|| format!("I10 a script is said to be {other:?}")),
        };
        sim.is_told(number, told);
    }
}

/// What a writer is told of a write.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Told {
    Done,
    NotExecuted,
    /// It may have been done, and a copy may do it.
    Perhaps,
}

impl Sim {
    /// I10: what a writer is told is so.
    fn is_told(&self, number: usize, told: Told) {
        let remembers = self.remembers();
        let mut witness = self.witness.borrow_mut();
        let write = &mut witness.writes.all[number];
        let copies = match told {
            Told::NotExecuted => 0,
            // It is told by clocks that are right.
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

    /// Whether each Redis does.
    fn remembers(&self) -> bool {
        self.nodes.borrow().iter().all(remembers)
    }
}

impl Writes {
    /// Another write; answers its number.
    fn begins(&mut self) -> usize {
        self.all.push(Write::default());
        self.all.len() - 1
    }

    /// I2, I6 and I10: what is newer stays, and what is done is done once, and not after its writer
    /// was told that it is not.
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

    /// I3, I6 and I10: a caller's script runs while its lease is held, once, and not after its end.
    pub(crate) fn ran(
        &mut self,
        sim: &Sim,
        node: &Node,
        run: &Run<'_>,
        cells: &[Cell],
        stood: bool,
    ) -> Option<String> {
        // What ran before is told again, and has run only once.
        let [Cell::Int(1), _, Cell::Int(0), ..] = cells else { return None };
        sim.seen.count(Sight::Ran, 1);
        let number = run.keys.last()?.rsplit(':').next()?;
        let done = self.is_done(sim, number);
        let stranger =
            (!stood).then(|| format!("I3 script {number} runs for somebody who holds nothing"));
        stranger.or_else(|| done.filter(|_| remembers(node)))
    }

    /// It is done now; says what is wrong with that.
    fn is_done(&mut self, sim: &Sim, number: &str) -> Option<String> {
        let write = &mut self.all[number.parse::<usize>().unwrap()];
        if mem::replace(&mut write.is_done, true) {
            return Some(format!("I6 write {number} is done again"));
        }
        let is_over = write.over_at.is_some_and(|over_at| over_at <= sim.now());
        is_over.then(|| format!("I10 write {number} is done after its end"))
    }

    /// Puts down that this is the newest write; says what is wrong with that.
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

/// A fence or a record that was lost is not missed, and one that has run out is, when the clock
/// goes back to where it stood.
const fn remembers(node: &Node) -> bool {
    !node.has_lost && !node.went_back
}
