//! What the lock's scripts do to Redis, as a small model in memory: the meaning of each `.lua` file, line by line.
//!
//! The model checker runs the real machines against it, and random calls are compared with a real Redis. Time is an argument.
//! Not modelled: what is published, and errors of Redis (a key of another type, memory that is full).

use std::collections::BTreeMap;

use edgelatch::protocol::reply::Cell;
use edgelatch::protocol::script::ScriptCall;

/// The keys of one Redis.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ScriptModel {
    keys: BTreeMap<String, Entry>,
    latches: Latches,
}

/// Whether the scripts keep grant latches. Without them the protocol has a known hole, which the model must show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Latches {
    On,
    /// An answer from a tombstone does not prolong it: a hole that only a client without a bound can fall into.
    Brief,
    Off,
}

/// A key: what it holds, and after which time of the server it is gone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Entry {
    pub(crate) value: Value,
    pub(crate) expires_at: Option<u64>,
}

/// What a key holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Value {
    Text(String),
    Hash(BTreeMap<String, i64>),
}

/// One run: the call, the time, and the common arguments, as `prelude.lua` reads them.
struct Run<'a> {
    keys: &'a [String],
    args: &'a [String],
    /// `t[1] * 1000000 + t[2]`
    micros: u64,
    now: u64,
    not_after: Option<u64>,
    keep: u64,
}

/// `{code, value, ms}`; the rest of a reply is common to all.
type Out = (i64, String, i64);

impl ScriptModel {
    /// An empty Redis.
    pub(crate) const fn new(latches: Latches) -> Self {
        Self { keys: BTreeMap::new(), latches }
    }

    /// Runs a script at a time of the server in whole milliseconds.
    ///
    /// A real server's clock has microseconds too, of which a fencing token may be made: see [`run_at`](Self::run_at).
    pub(crate) fn run(&mut self, call: &ScriptCall, server_ms: u64) -> Vec<Cell> {
        self.run_at(call, server_ms * 1000)
    }

    /// Runs a script at a time of the server in microseconds.
    ///
    /// To follow a real server: its reply tells the millisecond. When it grants with a token of that very millisecond, then the
    /// token is the microsecond; in all other cases the microseconds change nothing.
    pub(crate) fn run_at(&mut self, call: &ScriptCall, micros: u64) -> Vec<Cell> {
        self.run_until(call, call.args()[1].parse().ok(), micros)
    }

    /// The same with another not-after than the call's own: only to show what the rule is for that fixes it (C8).
    pub(crate) fn run_until(
        &mut self,
        call: &ScriptCall,
        not_after: Option<u64>,
        micros: u64,
    ) -> Vec<Cell> {
        let (args, now) = (call.args(), micros / 1000);
        let keep = args[2].parse().unwrap();
        let run = Run { keys: call.keys(), args, micros, now, not_after, keep };
        self.expire(now);
        let (code, value, ms) = match call.script().name {
            "lock_acquire" => self.lock_acquire(&run),
            "lock_renew" => self.lock_renew(&run),
            "lock_release" => self.lock_release(&run),
            "lock_force_release" => self.lock_force_release(&run),
            "lock_inspect" => self.lock_inspect(&run),
            other => panic!("the model does not know `{other}`"),
        };
        let server_ms = i64::try_from(now).unwrap();
        vec![
            Cell::Int(code),
            Cell::Text(value),
            Cell::Int(ms),
            Cell::Int(server_ms),
            Cell::Text(args[0].clone()),
        ]
    }

    /// All keys that are there at this time, sorted.
    pub(crate) fn dump(&self, server_ms: u64) -> BTreeMap<String, Entry> {
        let there = |entry: &Entry| !entry.is_over(server_ms);
        self.keys
            .iter()
            .filter(|(_, entry)| there(entry))
            .map(|(key, entry)| (key.clone(), entry.clone()))
            .collect()
    }

    /// The fields of the hash under a key at this time.
    pub(crate) fn fields(&self, key: &str, server_ms: u64) -> impl Iterator<Item = &str> {
        let hash = self.keys.get(key).filter(|entry| !entry.is_over(server_ms)).and_then(|entry| {
            match &entry.value {
                Value::Hash(hash) => Some(hash),
                Value::Text(_) => None,
            }
        });
        hash.into_iter().flatten().map(|(field, _)| field.as_str())
    }

    /// What somebody else does to a key, not by a script of ours.
    pub(crate) fn put(&mut self, key: &str, value: Value, expires_at: Option<u64>) {
        self.keys.insert(key.into(), Entry { value, expires_at });
    }

    /// `DEL`
    pub(crate) fn delete(&mut self, key: &str) -> bool {
        self.keys.remove(key).is_some()
    }

    /// Takes out what is gone. Redis does so when it comes across a key, which nobody can tell from this.
    pub(crate) fn expire(&mut self, now: u64) {
        self.keys.retain(|_, entry| !entry.is_over(now));
    }

    fn lock_acquire(&mut self, run: &Run<'_>) -> Out {
        let (field, lease) = (run.args[4].as_str(), run.args[5].parse().unwrap());
        let locks: Vec<&[String]> = run.keys[1..].chunks(2).collect();
        let latch = self.latch(&run.keys[0]);
        if latch.as_deref().is_some_and(is_tombstone) {
            self.prolong_tombstone(run);
            return out(-2, "0", 0);
        }
        let (mut mine, mut busy, mut wait) = (0, 0, 0);
        for (place, lock) in (1..).zip(&locks) {
            if self.has_field(&lock[0], field) {
                mine += 1;
                continue;
            }
            let ms = self.pttl(&lock[0], run.now);
            if ms != -2 {
                busy = if busy == 0 { place } else { busy };
                wait = if ms == -1 || wait == -1 { -1 } else { ms.max(wait) };
            }
        }
        let again = match (&latch, self.latches) {
            (Some(token), _) => Some(token.clone()),
            (None, Latches::On | Latches::Brief) => None,
            // Without a latch the field alone has to tell that this owner was granted.
            (None, Latches::Off) => {
                (mine == locks.len()).then(|| self.text(&locks[0][1]).unwrap_or_default())
            }
        };
        if let Some(token) = again {
            if mine < locks.len() {
                return out(-3, &token, 0);
            }
            if run.is_late() {
                return out(-1, "0", 0);
            }
            let left = locks.iter().map(|lock| self.longer(&lock[0], lease, run.now)).min();
            self.longer(&run.keys[0], run.life(lease), run.now);
            return out(2, &token, left.unwrap());
        }
        if mine > 0 {
            return out(-3, "0", 0);
        }
        if run.is_late() {
            return out(-1, "0", 0);
        }
        if busy > 0 {
            if run.args[6] == "1" {
                self.set_latch(&run.keys[0], "x0", run.life(0), run.now);
            }
            return out(0, &busy.to_string(), wait);
        }
        self.grant(run, &locks, field, lease)
    }

    fn grant(&mut self, run: &Run<'_>, locks: &[&[String]], field: &str, lease: u64) -> Out {
        let mut token = run.micros;
        for lock in locks {
            if let Some(last) = self.text(&lock[1]) {
                let Some(last) = last.parse::<u64>().ok().filter(|last| *last < (1 << 53) - 1)
                else {
                    return out(-6, "0", 0);
                };
                token = token.max(last + 1);
            }
        }
        let kept: Option<u64> = run.args[7].parse().ok();
        for lock in locks {
            let expires_at =
                kept.filter(|_| self.pttl(&lock[1], run.now) != -1).map(|kept| run.now + kept);
            self.put(&lock[1], Value::Text(token.to_string()), expires_at);
            let hash = BTreeMap::from([(field.to_owned(), 1)]);
            self.put(&lock[0], Value::Hash(hash), Some(run.now + lease));
        }
        self.set_latch(&run.keys[0], &token.to_string(), run.life(lease), run.now);
        out(1, &token.to_string(), i64::try_from(lease).unwrap())
    }

    fn lock_renew(&mut self, run: &Run<'_>) -> Out {
        let (field, lease, token) =
            (run.args[4].as_str(), run.args[5].parse().unwrap(), run.args[6].as_str());
        if run.is_late() {
            return out(-1, "0", 0);
        }
        if self.latches != Latches::Off && self.latch(&run.keys[0]).as_deref() != Some(token) {
            return out(-3, "0", 0);
        }
        if !run.keys[1..].iter().all(|lock| self.has_field(lock, field)) {
            return out(-3, "0", 0);
        }
        let left = run.keys[1..].iter().map(|lock| self.longer(lock, lease, run.now)).min();
        self.longer(&run.keys[0], run.life(lease), run.now);
        out(1, token, left.unwrap())
    }

    fn lock_release(&mut self, run: &Run<'_>) -> Out {
        let field = run.args[4].as_str();
        let locks: Vec<&[String]> = run.keys[1..].chunks(2).collect();
        if let Some(latch) = self.latch(&run.keys[0]).filter(|latch| is_tombstone(latch)) {
            self.prolong_tombstone(run);
            return out(latch[1..].parse().unwrap(), "0", 0);
        }
        let held = locks.iter().filter(|lock| self.remove_field(&lock[0], field)).count();
        let verdict = i64::from(held == locks.len());
        self.set_latch(&run.keys[0], &format!("x{verdict}"), run.life(0), run.now);
        out(verdict, "0", 0)
    }

    fn lock_force_release(&mut self, run: &Run<'_>) -> Out {
        if let Some(record) = self.text(&run.keys[0]) {
            return out(record[1..].parse().unwrap(), "0", 0);
        }
        if run.not_after.is_none() {
            return out(-4, "0", 0);
        }
        if run.is_late() {
            return out(-1, "0", 0);
        }
        let held = i64::from(self.delete(&run.keys[1]));
        self.put(&run.keys[0], Value::Text(format!("x{held}")), Some(run.now + run.life(0)));
        out(held, "0", 0)
    }

    fn lock_inspect(&self, run: &Run<'_>) -> Out {
        let (lock, field) = (&run.keys[0], run.args[4].as_str());
        let count: i64 = match self.keys.get(lock).map(|entry| &entry.value) {
            Some(Value::Hash(hash)) => hash.values().sum(),
            Some(Value::Text(_)) | None => 0,
        };
        let ms = self.pttl(lock, run.now);
        let mine = i64::from(self.has_field(lock, field));
        let last = self.text(&run.keys[1]).unwrap_or_else(|| "0".into());
        out(i64::from(ms != -2), &format!("{last},{count},{mine}"), ms)
    }

    fn text(&self, key: &str) -> Option<String> {
        match &self.keys.get(key)?.value {
            Value::Text(text) => Some(text.clone()),
            Value::Hash(_) => panic!("WRONGTYPE at {key}"),
        }
    }

    fn latch(&self, key: &str) -> Option<String> {
        if self.latches == Latches::Off { None } else { self.text(key) }
    }

    fn set_latch(&mut self, key: &str, value: &str, life: u64, now: u64) {
        if self.latches != Latches::Off {
            self.put(key, Value::Text(value.into()), Some(now + life));
        }
    }

    fn prolong_tombstone(&mut self, run: &Run<'_>) {
        if self.latches == Latches::On {
            self.longer(&run.keys[0], run.life(0), run.now);
        }
    }

    fn has_field(&self, key: &str, field: &str) -> bool {
        matches!(self.keys.get(key).map(|entry| &entry.value), Some(Value::Hash(hash)) if hash.contains_key(field))
    }

    /// `HDEL`, which takes a hash without fields away.
    fn remove_field(&mut self, key: &str, field: &str) -> bool {
        let Some(Value::Hash(hash)) = self.keys.get_mut(key).map(|entry| &mut entry.value) else {
            return false;
        };
        let removed = hash.remove(field).is_some();
        if hash.is_empty() {
            self.keys.remove(key);
        }
        removed
    }

    fn pttl(&self, key: &str, now: u64) -> i64 {
        let Some(entry) = self.keys.get(key) else { return -2 };
        entry.expires_at.map_or(-1, |at| i64::try_from(at.saturating_sub(now)).unwrap())
    }

    /// C7: only ever longer. Answers what is left then.
    fn longer(&mut self, key: &str, ms: u64, now: u64) -> i64 {
        if let Some(entry) = self.keys.get_mut(key) {
            entry.expires_at = Some(entry.expires_at.map_or(now + ms, |at| at.max(now + ms)));
        }
        self.pttl(key, now)
    }
}

impl Entry {
    fn is_over(&self, now: u64) -> bool {
        self.expires_at.is_some_and(|at| now > at)
    }
}

impl Run<'_> {
    fn is_late(&self) -> bool {
        self.not_after.is_some_and(|not_after| self.now > not_after)
    }

    /// C2
    fn life(&self, lease: u64) -> u64 {
        let bound = self.not_after.map_or(0, |not_after| not_after.saturating_sub(self.now));
        self.keep.max(lease).max(bound) + 1000
    }
}

fn is_tombstone(latch: &str) -> bool {
    latch.starts_with('x')
}

fn out(code: i64, value: &str, ms: i64) -> Out {
    (code, value.into(), ms)
}
