//! The scripts, and the calls that are made of them.

use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use crate::name::{FencingToken, LockName, OwnerId, RequestId};
use crate::protocol::key;
use crate::time::millis;
use crate::timing::{LeaseTime, TOKEN_KEPT};

/// A program that Redis runs. Its file under `scripts/` says what it takes, what it answers and why it may be sent twice.
#[derive(Debug)]
pub struct Script {
    /// The file's name without its ending.
    pub name: &'static str,
    source: &'static str,
    sha1: &'static str,
    key_locking_sha1: &'static str,
}

/// The scripts as they are sent.
pub mod scripts {
    use super::Script;

    include!(concat!(env!("OUT_DIR"), "/scripts.rs"));

    /// All of them.
    pub static ALL: [&Script; 5] =
        [&LOCK_ACQUIRE, &LOCK_FORCE_RELEASE, &LOCK_INSPECT, &LOCK_RELEASE, &LOCK_RENEW];

    pub(super) const fn key_locking() -> &'static str {
        KEY_LOCKING
    }
}

impl Script {
    /// The text that is sent when Redis does not know the script.
    pub fn source(&self, key_locking: bool) -> String {
        let line = if key_locking { scripts::key_locking() } else { "" };
        String::from(line) + self.source
    }

    /// The SHA-1 of that text.
    pub const fn sha1(&self, key_locking: bool) -> &'static str {
        if key_locking { self.key_locking_sha1 } else { self.sha1 }
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

/// Until when a request may be done, and for how long it is remembered: one for all requests of one id (rule C8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bound {
    /// Redis' time in milliseconds after which it must not be done; `None` before the client has seen that clock.
    pub not_after: Option<u64>,
    /// For how long it is remembered at least.
    pub keep: Duration,
}

/// One run of a script: what to run, on which keys, with which arguments. All that is needed to send it again.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ScriptCall {
    /// What ties the reply to it.
    pub request: RequestId,
    script: &'static Script,
    keys: Vec<String>,
    args: Vec<String>,
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

/// Neither keys nor arguments: they hold names and owners.
impl core::fmt::Debug for ScriptCall {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "ScriptCall({})", self.script.name)
    }
}

impl ScriptCall {
    fn new(
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
        Self { request, script, keys, args }
    }

    fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// The script that is run.
    pub const fn script(&self) -> &'static Script {
        self.script
    }

    /// KEYS.
    pub fn keys(&self) -> &[String] {
        &self.keys
    }

    /// ARGV.
    pub fn args(&self) -> &[String] {
        &self.args
    }
}

/// The calls about one lock.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LockCalls {
    /// The lock.
    pub name: LockName,
    /// How its release is announced.
    pub publish: Publish,
}

impl LockCalls {
    /// Takes the lock for `owner`; with `last`, no later copy of the request can be granted after a refusal.
    pub fn acquire(
        &self,
        request: RequestId,
        bound: Bound,
        owner: &OwnerId,
        lease: LeaseTime,
        last: bool,
    ) -> ScriptCall {
        let keys =
            vec![key::latch(&self.name, owner), key::lock(&self.name), key::token(&self.name)];
        ScriptCall::new(&scripts::LOCK_ACQUIRE, request, bound, self.publish, keys)
            .arg(owner.as_str())
            .arg(millis(lease.get()).to_string())
            .arg(if last { "1" } else { "0" })
            .arg(millis(TOKEN_KEPT).to_string())
    }

    /// Prolongs the hold of `owner` that was granted with `token`.
    pub fn renew(
        &self,
        request: RequestId,
        bound: Bound,
        owner: &OwnerId,
        lease: LeaseTime,
        token: FencingToken,
    ) -> ScriptCall {
        let keys = vec![key::latch(&self.name, owner), key::lock(&self.name)];
        ScriptCall::new(&scripts::LOCK_RENEW, request, bound, self.publish, keys)
            .arg(owner.as_str())
            .arg(millis(lease.get()).to_string())
            .arg(token.to_string())
    }

    /// Ends the hold of `owner`, or sees to it that it never has one.
    pub fn release(&self, request: RequestId, bound: Bound, owner: &OwnerId) -> ScriptCall {
        let keys =
            vec![key::latch(&self.name, owner), key::lock(&self.name), key::channel(&self.name)];
        ScriptCall::new(&scripts::LOCK_RELEASE, request, bound, self.publish, keys)
            .arg(owner.as_str())
    }

    /// Ends whatever hold there is.
    pub fn force_release(&self, request: RequestId, bound: Bound) -> ScriptCall {
        let keys =
            vec![key::record(&self.name, request), key::lock(&self.name), key::channel(&self.name)];
        ScriptCall::new(&scripts::LOCK_FORCE_RELEASE, request, bound, self.publish, keys)
    }

    /// Asks for the lock's state, and whether `owner` holds it.
    pub fn inspect(&self, request: RequestId, owner: Option<&OwnerId>) -> ScriptCall {
        let keys = vec![key::lock(&self.name), key::token(&self.name)];
        let bound = Bound { not_after: None, keep: Duration::ZERO };
        ScriptCall::new(&scripts::LOCK_INSPECT, request, bound, self.publish, keys)
            .arg(owner.map_or("", OwnerId::as_str))
    }
}
