//! The scripts, and calls of them.

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use crate::name::RequestId;
use crate::protocol::reply::ServerClock;
use crate::time::{Instant, millis};
use crate::timing::{FIRST_HORIZON, HORIZON, Replicas};

/// A Lua script of this crate. Its file under `scripts/` documents its arguments, its replies, and
/// why it may be sent twice.
#[derive(Debug)]
pub struct Script {
    /// The file's name without its ending.
    pub name: &'static str,
    /// The place in [`scripts::ALL`].
    number: u8,
    /// The parts before its own text, which it shares with other scripts.
    begins: &'static [&'static &'static str],
    own: &'static str,
    sha1: &'static str,
    key_locking_sha1: &'static str,
    computes_keys: bool,
}

/// The scripts as they are sent.
pub mod scripts {
    use super::Script;

    // One text has all parts, scripts and digests: beside each other they compress better.
    include!(concat!(env!("OUT_DIR"), "/scripts.rs"));

    const DIGEST_LENGTH: usize = 40;

    const fn part(place: usize, length: usize) -> &'static str {
        ALL_TEXT.split_at(place).1.split_at(length).0
    }

    const fn digest(number: usize) -> &'static str {
        part(DIGESTS_AT + number * DIGEST_LENGTH, DIGEST_LENGTH)
    }

    pub(super) const fn key_locking() -> &'static str {
        KEY_LOCKING
    }
}

impl Script {
    /// Returns the text, which is sent when Redis does not know the script.
    pub fn source(&self, key_locking: bool) -> String {
        let mut source = String::from(self.first_line(key_locking));
        self.begins.iter().for_each(|part| source += part);
        source + self.own
    }

    /// Whether it accesses keys that the caller cannot declare. Such a script never requests key
    /// locking, which would reject them.
    pub const fn computes_keys(&self) -> bool {
        self.computes_keys
    }

    const fn first_line(&self, key_locking: bool) -> &'static str {
        if key_locking && !self.computes_keys { scripts::key_locking() } else { "" }
    }

    /// The SHA-1 of [`source`](Self::source).
    pub const fn sha1(&self, key_locking: bool) -> &'static str {
        if key_locking { self.key_locking_sha1 } else { self.sha1 }
    }
}

// Names are unique.
impl PartialEq for Script {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}
impl Eq for Script {}

impl core::hash::Hash for Script {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

/// A set of this crate's scripts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScriptSet(u64);

const _: () = assert!(scripts::ALL.len() <= 64, "one bit for each script");

impl ScriptSet {
    pub(crate) const EMPTY: Self = Self(0);

    pub(crate) const fn contains(self, script: &Script) -> bool {
        self.0 >> script.number & 1 == 1
    }

    pub(crate) const fn insert(&mut self, script: &Script) {
        self.0 |= 1 << script.number;
    }
}

/// How messages to waiters are published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Publish {
    /// `PUBLISH`, as Redisson does except in a cluster.
    #[default]
    Plain,
    /// `SPUBLISH`, as Redisson does in a cluster of Redis 7 or newer.
    Sharded,
    /// Both commands; costs a listener of both at most one retry.
    Both,
}

/// The time limit of a request, and how long Redis remembers it: one value for all requests of one
/// id (rule C8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bound {
    /// Redis' time in milliseconds after which the request must not be executed; `None` before the
    /// client has seen that clock.
    pub not_after: Option<u64>,
    /// The least time for which Redis remembers the request.
    pub keep: Duration,
}

impl Bound {
    /// The bound of queries: nothing is remembered.
    pub(crate) const NONE: Self = Self { not_after: None, keep: Duration::ZERO };

    /// The bound at `later` from now by Redis' clock. Without a known clock it has no limit, and is
    /// remembered for longer (C3).
    pub(crate) fn after(later: Duration, clock: Option<ServerClock>, now: Instant) -> Self {
        match clock {
            Some(clock) => Self { not_after: Some(clock.after(later, now)), keep: HORIZON },
            None => Self { not_after: None, keep: FIRST_HORIZON },
        }
    }
}

/// One call of a script: the script, its keys and its arguments. It can be sent repeatedly.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ScriptCall {
    /// The request id, which the reply echoes.
    pub request: RequestId,
    /// Shared, since machines pass calls on, and keep them for retries.
    parts: Arc<Parts>,
}

/// The parts of a call.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Parts {
    script: &'static Script,
    /// A caller's script, which precedes the script's text as its function `own`.
    callers: Option<Arc<str>>,
    keys: Vec<String>,
    args: Vec<String>,
    /// The required replicas, and how long to wait for them.
    replicas: Option<(Replicas, Duration)>,
}

/// Omits keys and arguments: they contain names and owners.
impl core::fmt::Debug for ScriptCall {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "ScriptCall({})", self.parts.script.name)
    }
}

impl ScriptCall {
    /// Creates a call with the arguments that all scripts share; the script's own are added.
    pub(crate) fn new(
        script: &'static Script,
        request: RequestId,
        bound: Bound,
        publish: Publish,
        keys: Vec<String>,
    ) -> Self {
        let not_after = bound.not_after.map_or_else(String::new, |ms| ms.to_string());
        let publish = match publish {
            Publish::Plain => "P",
            Publish::Sharded => "S",
            Publish::Both => "B",
        };
        let args =
            vec![request.to_text(), not_after, millis(bound.keep).to_string(), publish.into()];
        let parts = Parts { script, callers: None, keys, args, replicas: None };
        Self { request, parts: Arc::new(parts) }
    }

    /// Replaces the request id.
    pub(crate) fn set_request_id(&mut self, request: RequestId) {
        self.request = request;
        if let Some(first) = Arc::make_mut(&mut self.parts).args.first_mut() {
            *first = request.to_text();
        }
    }

    /// Makes the call wait, for at most `within`, until this number of replicas has its writes.
    pub(crate) fn replicated(mut self, replicas: Replicas, within: Duration) -> Self {
        Arc::make_mut(&mut self.parts).replicas = Some((replicas, within));
        self
    }

    /// Puts a caller's script in front of the script.
    pub(crate) fn with_own(mut self, text: Arc<str>) -> Self {
        Arc::make_mut(&mut self.parts).callers = Some(text);
        self
    }

    /// Adds an argument.
    pub(crate) fn arg(mut self, arg: impl Into<String>) -> Self {
        Arc::make_mut(&mut self.parts).args.push(arg.into());
        self
    }

    /// Adds a time in milliseconds.
    pub(crate) fn ms(self, time: Duration) -> Self {
        self.arg(millis(time).to_string())
    }

    /// Adds a number. Numbers are written as 64 bits everywhere: the npm package would have code
    /// for each other size.
    pub(crate) fn number(self, number: u32) -> Self {
        self.arg(u64::from(number).to_string())
    }

    /// Adds a flag: `1` or `0`.
    pub(crate) fn flag(self, flag: bool) -> Self {
        self.arg(if flag { "1" } else { "0" })
    }

    /// Returns the text, which is sent when Redis does not know it.
    pub fn source(&self, key_locking: bool) -> String {
        let Some(text) = &self.parts.callers else { return self.parts.script.source(key_locking) };
        // The key-locking line stays the first, and the caller's lines keep their numbers. After a
        // `return`, a text that ends its function early does not compile: the rest of it would run
        // without a lease.
        let (line, script) =
            (self.parts.script.first_line(key_locking), self.parts.script.source(false));
        [line, "local own=(function() return function(KEYS,ARGV) ", text, "\nend end)()\n", &script]
            .concat()
    }

    /// The SHA-1 of [`source`](Self::source); `None` with a caller's script, which is always sent
    /// whole: hashing it would cost the npm package more than it saves.
    pub fn sha1(&self, key_locking: bool) -> Option<&'static str> {
        self.parts.callers.is_none().then(|| self.parts.script.sha1(key_locking))
    }

    /// Whether the call contains a caller's script.
    pub(crate) fn is_callers(&self) -> bool {
        self.parts.callers.is_some()
    }

    /// The script of the call.
    pub fn script(&self) -> &'static Script {
        self.parts.script
    }

    /// KEYS.
    pub fn keys(&self) -> &[String] {
        &self.parts.keys
    }

    /// ARGV.
    pub fn args(&self) -> &[String] {
        &self.parts.args
    }

    /// The number of required replicas, and how long to wait for them at most.
    pub fn replicas(&self) -> Option<(Replicas, Duration)> {
        self.parts.replicas
    }
}
