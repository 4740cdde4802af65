//! A model in memory of what the scripts do to Redis: the meaning of each `.lua` file, line by
//! line. This file models Redis; each object's scripts have a file of their own.
//!
//! The model checker runs the real machines against it, and a test compares random calls with a
//! real Redis. Time is an argument. An error of a script itself is one cell, its text. Not
//! modelled: errors of Redis (such as full memory), limits other than the number of permits, and
//! the sweeping of old entries near the limits.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a model ends at the first call that it does not know"
)]

mod collections;
mod count_down_latch;
mod fair;
pub mod fair_head;
mod fair_read_write;
mod fair_read_write_queries;
mod fair_read_write_state;
mod group;
mod guard;
pub mod holds;
pub mod java_fair;
pub mod java_group;
pub mod java_permits;
pub mod java_read_write;
mod kind;
mod lock;
mod once;
mod permits;
pub mod read_write;
mod semaphore;
pub mod subscribers;
mod write_side;

use std::collections::{BTreeMap, VecDeque};

use edgelatch_proto::protocol::reply::RespValue;
use edgelatch_proto::protocol::script::ScriptCall;

use fair_head::Rule;
use subscribers::{Message, Subscribers};

/// The keys of one Redis.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ScriptModel {
    keys: BTreeMap<String, Entry>,
    latches: Latches,
    /// The subscriptions that exist.
    pub subscribers: Subscribers,
    /// The messages that the last call published, in order.
    pub published: Vec<Message>,
    /// A rule of the fair lock that is left out.
    pub without_fair: Option<Rule>,
    /// A rule that is left out, by the name that its script's model gives it: shows the rule's
    /// purpose.
    pub without: Option<&'static str>,
}

/// Whether the scripts keep grant latches. Without them the protocol has a known hole, which the
/// model must show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Latches {
    On,
    /// A reply from a tombstone does not extend it: a hole that affects only clients without a
    /// bound.
    Brief,
    Off,
}

/// A key: its value, and the server time after which it does not exist.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    pub value: Value,
    pub expires_at: Option<u64>,
}

/// The value of a key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    Text(String),
    Hash(BTreeMap<String, String>),
    List(VecDeque<String>),
    /// Scores are whole numbers in the model.
    Sorted(BTreeMap<String, i64>),
}

/// One execution: the call, the time, and the common arguments, as `prelude.lua` reads them.
struct Run<'a> {
    keys: &'a [String],
    args: &'a [String],
    /// `t[1] * 1000000 + t[2]`
    micros: u64,
    now: u64,
    not_after: Option<u64>,
    keep: u64,
}

/// `{code, value, ms}`; the rest of a reply is the same for all scripts.
type Out = (i64, String, i64);

/// The code of an [`Out`] that is an error; its text is the value.
const ERROR: i64 = i64::MIN;

impl ScriptModel {
    /// An empty Redis.
    pub const fn new(latches: Latches) -> Self {
        Self {
            keys: BTreeMap::new(),
            latches,
            subscribers: Subscribers::PatternAnd(Vec::new()),
            published: Vec::new(),
            without_fair: None,
            without: None,
        }
    }

    /// Whether the scripts keep grant latches.
    pub const fn latches(&self) -> Latches {
        self.latches
    }

    /// Runs a script at a server time in whole milliseconds, and discards what it publishes.
    ///
    /// A real server's clock has microseconds too, and a fencing token may be made of them: see
    /// [`run_at`](Self::run_at).
    pub fn run(&mut self, call: &ScriptCall, server_ms: u64) -> Vec<RespValue> {
        let cells = self.run_at(call, server_ms * 1000);
        self.published.clear();
        cells
    }

    /// Runs a script at a server time in microseconds.
    ///
    /// To follow a real server: its reply has the millisecond. If it grants with a token of that
    /// millisecond, the token is the microsecond; in all other cases the microseconds change
    /// nothing.
    pub fn run_at(&mut self, call: &ScriptCall, micros: u64) -> Vec<RespValue> {
        self.run_until(call, call.args()[1].parse().ok(), micros)
    }

    /// Runs a script with `not_after` in place of the call's own bound: shows the purpose of the
    /// rule that all attempts carry the same bound (C8).
    pub fn run_until(
        &mut self,
        call: &ScriptCall,
        not_after: Option<u64>,
        micros: u64,
    ) -> Vec<RespValue> {
        self.run_script(call.script().name, call.keys(), call.args(), not_after, micros)
    }

    /// Runs the script of this name with arguments that came over a wire.
    pub fn run_script(
        &mut self,
        script: &str,
        keys: &[String],
        args: &[String],
        not_after: Option<u64>,
        micros: u64,
    ) -> Vec<RespValue> {
        let (now, keep) = (micros / 1000, args[2].parse().unwrap());
        let run = Run { keys, args, micros, now, not_after, keep };
        self.expire(now);
        self.published.clear();
        let (code, value, ms) = match script {
            "lock_acquire" => self.lock_acquire(&run),
            "lock_raise" => self.lock_raise(&run),
            "lock_renew" => self.lock_renew(&run),
            "lock_release" => self.lock_release(&run),
            "lock_force_release" => self.lock_force_release(&run),
            "lock_inspect" => self.lock_inspect(&run),
            "fair_acquire" => self.fair_acquire(&run),
            "fair_release" => self.fair_release(&run),
            "fair_force_release" => self.fair_force_release(&run),
            "fair_queue" => self.fair_queue(&run),
            "cancel" => self.cancel(&run),
            "guard_write" => self.guard_write(&run),
            "guard_newest" => self.guard_newest(&run),
            "eval" => self.eval(&run),
            name if name.starts_with("fair_rw_") => self.fair_rw(name, &run),
            name if name.starts_with("group_") => self.group(name, &run),
            name if name.starts_with("read_")
                || name.starts_with("write_")
                || name.starts_with("rw_") =>
            {
                self.read_write(name, &run)
            }
            name if name.starts_with("semaphore_") => self.semaphore(name, &run),
            name if name.starts_with("permits_") => self.permits(name, &run),
            name if name.starts_with("latch_") => self.count_down_latch(name, &run),
            other => panic!("the model does not know `{other}`"),
        };
        if code == ERROR {
            return vec![RespValue::Text(value)];
        }
        let server_ms = i64::try_from(now).unwrap();
        vec![
            RespValue::Int(code),
            RespValue::Text(value),
            RespValue::Int(ms),
            RespValue::Int(server_ms),
            RespValue::Text(args[0].clone()),
        ]
    }

    /// All keys that exist at this time, sorted.
    pub fn dump(&self, server_ms: u64) -> BTreeMap<String, Entry> {
        let there = |entry: &Entry| !entry.is_over(server_ms);
        self.keys
            .iter()
            .filter(|(_, entry)| there(entry))
            .map(|(key, entry)| (key.clone(), entry.clone()))
            .collect()
    }

    /// The fields of the hash under a key at this time.
    pub fn fields(&self, key: &str, server_ms: u64) -> impl Iterator<Item = &str> {
        let hash = self.keys.get(key).filter(|entry| !entry.is_over(server_ms)).and_then(|entry| {
            match &entry.value {
                Value::Hash(hash) => Some(hash),
                _ => None,
            }
        });
        hash.into_iter().flatten().map(|(field, _)| field.as_str())
    }

    /// The value under a key at this time.
    pub fn value(&self, key: &str, server_ms: u64) -> Option<&Value> {
        let entry = self.keys.get(key).filter(|entry| !entry.is_over(server_ms));
        entry.map(|entry| &entry.value)
    }

    /// The time at which a key expires, if it does.
    pub fn expiry(&self, key: &str) -> Option<u64> {
        self.keys.get(key)?.expires_at
    }

    /// Writes a key as another program would, without a script.
    pub fn put(&mut self, key: &str, value: Value, expires_at: Option<u64>) {
        self.keys.insert(key.into(), Entry { value, expires_at });
    }

    /// `DEL`
    pub fn delete(&mut self, key: &str) -> bool {
        self.keys.remove(key).is_some()
    }

    /// Removes expired keys. Redis removes a key when it accesses it, which clients cannot
    /// distinguish from this.
    pub fn expire(&mut self, now: u64) {
        // Mostly no key has expired, and this check costs less than `retain`.
        if self.keys.values().any(|entry| entry.is_over(now)) {
            self.keys.retain(|_, entry| !entry.is_over(now));
        }
    }

    pub fn text(&self, key: &str) -> Option<String> {
        match &self.keys.get(key)?.value {
            Value::Text(text) => Some(text.clone()),
            _ => panic!("WRONGTYPE at {key}"),
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
            self.extend_ttl(&run.keys[0], run.record_ttl(0), run.now);
        }
    }

    fn has_field(&self, key: &str, field: &str) -> bool {
        matches!(self.keys.get(key).map(|entry| &entry.value), Some(Value::Hash(hash)) if hash.contains_key(field))
    }

    /// `HDEL`, which removes a hash without fields.
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

    /// The hash under a key.
    fn hash(&self, key: &str) -> Option<&BTreeMap<String, String>> {
        match &self.keys.get(key)?.value {
            Value::Hash(hash) => Some(hash),
            _ => panic!("WRONGTYPE at {key}"),
        }
    }

    /// `HGET`
    pub fn field(&self, key: &str, field: &str) -> Option<&str> {
        self.hash(key)?.get(field).map(String::as_str)
    }

    /// `HSET`; a new hash has no expiry.
    fn set_field(&mut self, key: &str, field: &str, value: &str) {
        let new = Entry { value: Value::Hash(BTreeMap::new()), expires_at: None };
        match &mut self.keys.entry(key.into()).or_insert(new).value {
            Value::Hash(hash) => drop(hash.insert(field.into(), value.into())),
            _ => panic!("WRONGTYPE at {key}"),
        }
    }

    /// `PEXPIRE`
    fn pexpire(&mut self, key: &str, ms: u64, now: u64) {
        if let Some(entry) = self.keys.get_mut(key) {
            entry.expires_at = Some(now + ms);
        }
    }

    /// `parts/mint.lua`
    fn mint(&mut self, run: &Run<'_>, key: &str, kept: u64) -> Option<String> {
        let last: u64 = self.text(key).map_or(Some(0), |last| last.parse().ok())?;
        let token = (last < (1 << 53) - 1).then(|| run.micros.max(last + 1))?;
        self.store_token(run, key, token, kept, false);
        Some(token.to_string())
    }

    /// `parts/store_token.lua`
    fn store_token(&mut self, run: &Run<'_>, key: &str, token: u64, kept: u64, for_ever: bool) {
        let left = self.pttl(key, run.now);
        let ahead = token.saturating_sub(run.micros).div_ceil(1000).min(86_400_000);
        let ms = kept.max(left.max(0).unsigned_abs()).max(ahead);
        let expires_at = (!for_ever && left != -1).then_some(run.now + ms);
        self.put(key, Value::Text(token.to_string()), expires_at);
    }

    fn leaves_out(&self, rule: &str) -> bool {
        self.without == Some(rule)
    }

    pub fn pttl(&self, key: &str, now: u64) -> i64 {
        let Some(entry) = self.keys.get(key) else { return -2 };
        entry.expires_at.map_or(-1, |at| i64::try_from(at.saturating_sub(now)).unwrap())
    }

    /// C7: extends the expiry, never shortens it. Returns the remaining time.
    fn extend_ttl(&mut self, key: &str, ms: u64, now: u64) -> i64 {
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
    fn record_ttl(&self, lease: u64) -> u64 {
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
