//! The scripts, and one run of one.

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use crate::name::RequestId;
use crate::protocol::reply::ServerClock;
use crate::time::{Instant, millis};
use crate::timing::{FIRST_HORIZON, HORIZON, Replicas};

/// A program that Redis runs. Its file under `scripts/` says what it takes, what it answers and why
/// it may be sent twice.
#[derive(Debug)]
pub struct Script {
    /// The file's name without its ending.
    pub name: &'static str,
    /// What it has in common with others, and what it has not.
    begins: &'static [&'static &'static str],
    own: &'static str,
    sha1: &'static str,
    key_locking_sha1: &'static str,
    computes_keys: bool,
}

/// The scripts as they are sent.
pub mod scripts {
    use super::Script;

    include!(concat!(env!("OUT_DIR"), "/scripts.rs"));

    pub(super) const fn key_locking() -> &'static str {
        KEY_LOCKING
    }
}

impl Script {
    /// The text that is sent when Redis does not know the script.
    pub fn source(&self, key_locking: bool) -> String {
        let mut source = String::from(self.first_line(key_locking));
        self.begins.iter().for_each(|part| source += part);
        source + self.own
    }

    /// Whether it touches keys that the caller cannot declare. It then never asks for key locking,
    /// which would refuse them.
    pub const fn computes_keys(&self) -> bool {
        self.computes_keys
    }

    const fn first_line(&self, key_locking: bool) -> &'static str {
        if key_locking && !self.computes_keys { scripts::key_locking() } else { "" }
    }

    /// The SHA-1 of that text.
    pub const fn sha1(&self, key_locking: bool) -> &'static str {
        if key_locking { self.key_locking_sha1 } else { self.sha1 }
    }
}

// There is one script of each name.
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

/// How a release is announced to those who wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Publish {
    /// `PUBLISH`, as Redisson does except in a cluster.
    #[default]
    Plain,
    /// `SPUBLISH`, as Redisson does in a cluster of Redis 7 or newer.
    Sharded,
    /// Both; costs listeners a needless try at the most.
    Both,
}

/// Until when a request may be done, and for how long it is remembered: one for all requests of one
/// id (rule C8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bound {
    /// Redis' time in milliseconds after which it must not be done; `None` before the client has
    /// seen that clock.
    pub not_after: Option<u64>,
    /// For how long it is remembered at least.
    pub keep: Duration,
}

impl Bound {
    /// Of what only asks: nothing is remembered.
    pub(crate) const NONE: Self = Self { not_after: None, keep: Duration::ZERO };

    /// So much later than now by what is known of Redis' clock; without that there is none, and it
    /// is remembered for longer (C3).
    pub(crate) fn after(later: Duration, clock: Option<ServerClock>, now: Instant) -> Self {
        match clock {
            Some(clock) => Self { not_after: Some(clock.after(later, now)), keep: HORIZON },
            None => Self { not_after: None, keep: FIRST_HORIZON },
        }
    }
}

/// One run of a script: what to run, on which keys, with which arguments. All that is needed to
/// send it again.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ScriptCall {
    /// What ties the reply to it.
    pub request: RequestId,
    /// Shared, since calls are handed on by every machine, which keeps them to send them again.
    parts: Arc<Parts>,
}

/// What a call is made of.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Parts {
    script: &'static Script,
    /// A caller's text, which stands in front of the script as its function `own`.
    callers: Option<Arc<str>>,
    keys: Vec<String>,
    args: Vec<String>,
    /// Which replicas are waited for behind it, and for how long.
    replicas: Option<(Replicas, Duration)>,
}

/// Neither keys nor arguments: they hold names and owners.
impl core::fmt::Debug for ScriptCall {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "ScriptCall({})", self.parts.script.name)
    }
}

impl ScriptCall {
    /// A run with the arguments that all scripts have in common; those of its own are added.
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

    /// The same under another request id.
    pub(crate) fn rename(&mut self, request: RequestId) {
        self.request = request;
        if let Some(first) = Arc::make_mut(&mut self.parts).args.first_mut() {
            *first = request.to_text();
        }
    }

    /// Waits for so many replicas to have what it writes, for so long at most.
    pub(crate) fn replicated(mut self, replicas: Replicas, within: Duration) -> Self {
        Arc::make_mut(&mut self.parts).replicas = Some((replicas, within));
        self
    }

    /// Puts a caller's text in front of the script.
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

    /// Adds a yes or no: `1` or `0`.
    pub(crate) fn flag(self, flag: bool) -> Self {
        self.arg(if flag { "1" } else { "0" })
    }

    /// The text that is sent when Redis does not know it.
    pub fn source(&self, key_locking: bool) -> String {
        let Some(text) = &self.parts.callers else { return self.parts.script.source(key_locking) };
        // The line stays the first, and the caller's lines keep their numbers.
        let (line, script) =
            (self.parts.script.first_line(key_locking), self.parts.script.source(false));
        [line, "local function own(KEYS,ARGV) ", text, "\nend\n", &script].concat()
    }

    /// The SHA-1 of that text; `None` for a caller's, which is always sent whole: hashing it would
    /// cost the npm package more than it saves anybody.
    pub fn sha1(&self, key_locking: bool) -> Option<&'static str> {
        self.parts.callers.is_none().then(|| self.parts.script.sha1(key_locking))
    }

    /// Whether it contains a script of the caller's.
    pub(crate) fn is_callers(&self) -> bool {
        self.parts.callers.is_some()
    }

    /// The script that is run.
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

    /// How many replicas are waited for behind it, and for how long at most.
    pub fn replicas(&self) -> Option<(Replicas, Duration)> {
        self.parts.replicas
    }
}
