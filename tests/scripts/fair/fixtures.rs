//! The calls about one fair lock, Redisson's scripts for it, and a script that lets time pass.

use edgelatch_proto::name::{LockName, OwnerId};
use edgelatch_proto::protocol::calls::{
    Extension, FairCalls, FairSettings, IdempotentCall, Target, Try,
};
use edgelatch_proto::protocol::script::{Bound, Publish, ScriptCall};
use redis::Value as Raw;

use test_support::calls::{UNBOUND, field, lease, numbered_owner, request, token};
use test_support::redis::Redis;
use test_support::script_model::java_fair::JavaFair;

/// Redisson's holders.
pub(crate) const JAVA: [&str; 3] = [
    "8743c9c0-0795-4907-87fd-6c719a6b4586:1",
    "1f1d3b8e-5a0a-4d2f-9f0e-0a6b7c8d9e0f:7",
    "2a2b2c2d-0000-4000-8000-000000000003:9",
];

/// A fair lock, and its keys.
#[derive(Clone)]
pub(crate) struct Fair {
    pub(crate) name: &'static str,
    /// The name in Redisson's keys: in braces, unless it has some.
    pub(crate) form: String,
    pub(crate) settings: FairSettings,
    pub(crate) publish: Publish,
}

/// A try of an owner, with defaults that most tests keep.
#[derive(Clone, Copy)]
pub(crate) struct Poll {
    pub(crate) owner: u32,
    pub(crate) number: u32,
    pub(crate) last: bool,
    pub(crate) lease_ms: u64,
    pub(crate) bound: Bound,
    pub(crate) previous: Option<u32>,
}

/// Try `number` of an owner.
pub(crate) const fn nth_poll(owner: u32, number: u32) -> Poll {
    Poll { owner, number, last: false, lease_ms: 30_000, bound: UNBOUND, previous: None }
}

impl Poll {
    pub(crate) const fn at_last(self) -> Self {
        Self { last: true, ..self }
    }

    pub(crate) const fn after(self, previous: u32) -> Self {
        Self { previous: Some(previous), ..self }
    }

    pub(crate) const fn within(self, bound: Bound) -> Self {
        Self { bound, ..self }
    }
}

impl Fair {
    pub(crate) fn new(name: &'static str) -> Self {
        Self::announced(name, Publish::Plain)
    }

    pub(crate) fn announced(name: &'static str, publish: Publish) -> Self {
        let form = if name.contains('{') { name.to_owned() } else { format!("{{{name}}}") };
        Self { name, form, settings: FairSettings::default(), publish }
    }

    fn calls(&self) -> FairCalls {
        FairCalls::new(LockName::parse(self.name).unwrap(), self.settings, self.publish)
    }

    fn target(&self) -> Target {
        Target::Fair(self.calls())
    }

    pub(crate) fn acquire(&self, poll: Poll) -> ScriptCall {
        let Poll { owner, number, last, lease_ms, bound, previous } = poll;
        self.target().acquire(&Try {
            request: request(u64::from(owner) * 1000 + u64::from(number)),
            bound,
            owner: numbered_owner(owner),
            lease: lease(lease_ms),
            last,
            number,
            previous: previous.map(numbered_owner),
            announces: false,
        })
    }

    pub(crate) fn release(&self, owner: u32) -> ScriptCall {
        self.abandon(owner, UNBOUND, None)
    }

    pub(crate) fn abandon(&self, owner: u32, bound: Bound, previous: Option<u32>) -> ScriptCall {
        let previous = previous.map(numbered_owner);
        self.target().abandon(request(999), bound, numbered_owner(owner), previous)
    }

    pub(crate) fn renew(&self, owner: u32, lease_ms: u64, grant: u64) -> ScriptCall {
        self.target().renew(&Extension {
            request: request(998),
            bound: UNBOUND,
            owner: numbered_owner(owner),
            lease: lease(lease_ms),
            token: token(grant),
        })
    }

    pub(crate) fn force_release(&self) -> IdempotentCall {
        self.target().force_release()
    }

    pub(crate) fn inspect(&self, owner: Option<u32>) -> ScriptCall {
        self.target().inspect(request(997), owner.map(numbered_owner))
    }

    pub(crate) fn inspect_queue(&self, owner: Option<u32>) -> ScriptCall {
        self.calls().queue(request(996), owner.map(numbered_owner))
    }

    pub(crate) fn channel(&self, owner: OwnerId) -> String {
        self.calls().topic(owner).channel().into()
    }

    pub(crate) fn key(&self, prefix: &str) -> String {
        format!("{prefix}:{}", self.form)
    }

    pub(crate) fn beats(&self) -> String {
        format!("el:{}:beat", self.form)
    }

    pub(crate) fn arrivals(&self) -> String {
        format!("el:{}:seat", self.form)
    }

    pub(crate) fn watch(&self) -> String {
        format!("el:{}:watch", self.form)
    }

    pub(crate) fn latch(&self, owner: u32) -> String {
        format!("el:{}:{}", self.form, field_of(owner))
    }

    /// Lets time pass; returns the keys that expire by that.
    pub(crate) async fn age(&self, redis: &Redis, ms: u64) -> Vec<String> {
        let (script, ms) = (include_str!("age.lua"), ms.to_string());
        redis.query(&["EVAL", script, "2", &self.arrivals(), &self.watch(), &ms]).await
    }

    pub(crate) fn java(&self) -> JavaKeys {
        JavaKeys {
            name: self.name.to_owned(),
            queue: self.key("redisson_lock_queue"),
            timeouts: self.key("redisson_lock_timeout"),
            channel: self.key("redisson_lock__channel"),
            latches: self.key("redisson_unlock_latch"),
        }
    }
}

/// The field of the owner of this number.
pub(crate) fn field_of(owner: u32) -> String {
    field(&numbered_owner(owner))
}

/// The keys that Redisson uses.
#[derive(Clone)]
pub(crate) struct JavaKeys {
    name: String,
    queue: String,
    timeouts: String,
    channel: String,
    latches: String,
}

/// Redisson's scripts that start with a sweep, and the one that does not.
const SWEEP: &str = include_str!("../java/fair_sweep.lua");
const ACQUIRE: &str = include_str!("../java/fair_acquire.lua");
const ONCE: &str = include_str!("../java/fair_once.lua");
const UNLOCK: &str = include_str!("../java/fair_unlock.lua");
const FORCE_UNLOCK: &str = include_str!("../java/fair_force_unlock.lua");
const GIVE_UP: &str = include_str!("../java/fair_give_up.lua");

impl JavaKeys {
    pub(crate) fn model(&self) -> JavaFair<'_> {
        let Self { name, queue, timeouts, channel, .. } = self;
        JavaFair { name, queue, timeouts, channel }
    }

    pub(crate) fn latch(&self, id: &str) -> String {
        format!("{}:{id}", self.latches)
    }

    /// Acquires or queues. Returns `None` if the lock is acquired, else how long to park.
    pub(crate) async fn acquire(
        &self,
        redis: &Redis,
        holder: &str,
        allowance: i64,
        now: i64,
    ) -> Option<i64> {
        let (allowance, now) = (allowance.to_string(), now.to_string());
        let args = ["30000", holder, &allowance, &now];
        int(self.run(redis, ACQUIRE, &self.three(), &args).await)
    }

    pub(crate) async fn once(&self, redis: &Redis, holder: &str, now: i64) -> bool {
        let args = ["30000", holder, &now.to_string(), "300000"];
        int(self.run(redis, ONCE, &self.three(), &args).await).is_none()
    }

    pub(crate) async fn unlock(
        &self,
        redis: &Redis,
        holder: &str,
        now: i64,
        id: &str,
    ) -> Option<i64> {
        let latch = self.latch(id);
        let keys = [&self.name, &self.queue, &self.timeouts, &self.channel, &latch];
        let args = ["0", "30000", holder, &now.to_string(), "PUBLISH", "17500"];
        int(self.run(redis, UNLOCK, &keys.map(String::as_str), &args).await)
    }

    pub(crate) async fn force_unlock(&self, redis: &Redis, now: i64) -> bool {
        let keys = [&self.name, &self.queue, &self.timeouts, &self.channel];
        let args = ["0", &now.to_string(), "PUBLISH"];
        int(self.run(redis, FORCE_UNLOCK, &keys.map(String::as_str), &args).await) == Some(1)
    }

    pub(crate) async fn give_up(&self, redis: &Redis, holder: &str, less: i64) {
        let keys = [self.queue.as_str(), self.timeouts.as_str()];
        self.run(redis, GIVE_UP, &keys, &[holder, &less.to_string()]).await;
    }

    fn three(&self) -> [&str; 3] {
        [&self.name, &self.queue, &self.timeouts]
    }

    async fn run(&self, redis: &Redis, script: &str, keys: &[&str], args: &[&str]) -> Raw {
        let (source, count) = (SWEEP.to_owned() + script, keys.len().to_string());
        let mut words = vec!["EVAL", &source, &count];
        words.extend(keys);
        words.extend(args);
        redis.query(&words).await
    }
}

fn int(raw: Raw) -> Option<i64> {
    match raw {
        Raw::Nil => None,
        Raw::Int(number) => Some(number),
        other => panic!("{other:?} is no answer of Redisson's scripts"),
    }
}
