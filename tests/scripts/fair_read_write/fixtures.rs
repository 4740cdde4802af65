//! The calls about one fair read-write lock, its keys, and a script that lets time pass.

use edgelatch_proto::name::{ClientId, LockName};
use edgelatch_proto::protocol::calls::{
    Extension, FairMode, FairReadWriteCalls, FairReadWriteQuery, FairReadWriteSettings, Target, Try,
};
use edgelatch_proto::protocol::reply::Reply;
use edgelatch_proto::protocol::script::{Bound, Publish, ScriptCall};

use test_support::calls::{UNBOUND, bound, field, lease, numbered_owner, request, token};
use test_support::redis::Redis;

/// The client id of all owners.
pub(crate) const CLIENT: &str = "tab|7";
/// The default life of a waiter, and a little more.
pub(crate) const LIFE_MS: u64 = 10_000;

/// A fair read-write lock.
#[derive(Clone)]
pub(crate) struct FairRw {
    pub(crate) name: &'static str,
    pub(crate) settings: FairReadWriteSettings,
    pub(crate) publish: Publish,
}

/// A try of an owner, with defaults that most tests keep. It also names the owner of other calls.
#[derive(Clone, Copy)]
pub(crate) struct Attempt {
    pub(crate) owner: u32,
    pub(crate) mode: FairMode,
    pub(crate) number: u32,
    pub(crate) last: bool,
    pub(crate) lease_ms: u64,
    pub(crate) bound: Bound,
    pub(crate) previous: Option<u32>,
}

/// The first try of an owner in this mode.
pub(crate) const fn first(owner: u32, mode: FairMode) -> Attempt {
    Attempt {
        owner,
        mode,
        number: 1,
        last: false,
        lease_ms: 30_000,
        bound: UNBOUND,
        previous: None,
    }
}

pub(crate) const fn exclusive(owner: u32) -> Attempt {
    first(owner, FairMode::Exclusive)
}

pub(crate) const fn shared(owner: u32) -> Attempt {
    first(owner, FairMode::Shared)
}

impl Attempt {
    pub(crate) const fn nth(self, number: u32) -> Self {
        Self { number, ..self }
    }

    pub(crate) const fn at_last(self) -> Self {
        Self { last: true, ..self }
    }

    pub(crate) const fn after(self, previous: u32) -> Self {
        Self { previous: Some(previous), ..self }
    }

    pub(crate) const fn within(self, bound: Bound) -> Self {
        Self { bound, ..self }
    }

    pub(crate) const fn for_ms(self, lease_ms: u64) -> Self {
        Self { lease_ms, ..self }
    }

    /// The owner as a member of holders and queue.
    pub(crate) fn member(self) -> String {
        let mode = if self.mode == FairMode::Shared { "s" } else { "x" };
        format!("{mode}{}|{CLIENT}", field(&numbered_owner(self.owner)))
    }
}

impl FairRw {
    pub(crate) fn new(name: &'static str) -> Self {
        Self::announced(name, Publish::Plain)
    }

    pub(crate) fn announced(name: &'static str, publish: Publish) -> Self {
        Self { name, settings: FairReadWriteSettings::default(), publish }
    }

    pub(crate) fn target(&self, mode: FairMode) -> Target {
        let (name, client) = (LockName::parse(self.name).unwrap(), ClientId::parse(CLIENT));
        let client = client.unwrap();
        let calls = FairReadWriteCalls::new(name, mode, self.settings, client, self.publish);
        Target::FairReadWrite(calls)
    }

    pub(crate) fn acquire(&self, attempt: Attempt) -> ScriptCall {
        let Attempt { owner, mode, number, last, lease_ms, bound, previous } = attempt;
        self.target(mode).acquire(&Try {
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

    /// The release or the abandon of this owner, and of its previous one.
    pub(crate) fn release(&self, attempt: Attempt) -> ScriptCall {
        let (owner, previous) = (numbered_owner(attempt.owner), attempt.previous);
        let previous = previous.map(numbered_owner);
        self.target(attempt.mode).abandon(request(999), attempt.bound, owner, previous)
    }

    pub(crate) fn renew(&self, attempt: Attempt, grant: u64) -> ScriptCall {
        self.target(attempt.mode).renew(&Extension {
            request: request(998),
            bound: attempt.bound,
            owner: numbered_owner(attempt.owner),
            lease: lease(attempt.lease_ms),
            token: token(grant),
        })
    }

    pub(crate) fn force_release(&self, id: u64, bound: Bound) -> ScriptCall {
        self.target(FairMode::Exclusive).force_release().call(request(id), bound)
    }

    pub(crate) fn inspect(&self, attempt: Option<Attempt>) -> ScriptCall {
        let mode = attempt.map_or(FairMode::Shared, |attempt| attempt.mode);
        let owner = attempt.map(|attempt| numbered_owner(attempt.owner));
        self.target(mode).inspect(request(997), owner)
    }

    pub(crate) fn query(&self, cursor: &str) -> ScriptCall {
        let name = LockName::parse(self.name).unwrap();
        FairReadWriteQuery::new(name, self.publish).slice(request(996), cursor)
    }

    /// The name in our keys: in braces, unless it has some.
    pub(crate) fn form(&self) -> String {
        let name = self.name;
        if name.contains('{') { name.to_owned() } else { format!("{{{name}}}") }
    }

    pub(crate) fn key(&self, suffix: &str) -> String {
        format!("el:{}:frw:{suffix}", self.form())
    }

    /// A key of the registry that all names with this hash tag share.
    pub(crate) fn registry(&self, suffix: &str) -> String {
        let form = self.form();
        let tag = form.split(['{', '}']).nth(1).unwrap();
        format!("el:{{{tag}}}:frw:{suffix}")
    }

    /// The latch of an owner, which is also its channel.
    pub(crate) fn latch(&self, owner: u32) -> String {
        format!("el:{}:{}", self.form(), field(&numbered_owner(owner)))
    }

    /// The sorted sets whose scores are times.
    pub(crate) fn times(&self) -> [String; 3] {
        [self.key("holders"), self.key("beats"), self.registry("ends")]
    }

    /// Lets time pass for leases, heartbeats and the registry, but not for the expiries of keys.
    pub(crate) async fn age(&self, redis: &Redis, ms: u64) {
        age(redis, &self.times(), ms, false).await;
    }

    /// Postpones the ends of leases, heartbeats and the registry.
    pub(crate) async fn postpone(&self, redis: &Redis, ms: u64) {
        shift(redis, &self.times(), &format!("-{ms}"), false).await;
    }
}

/// Lets time pass for these sorted sets, and with `expiries` for the expiry of each key. Returns
/// the keys that expire by that.
pub(crate) async fn age(redis: &Redis, sets: &[String], ms: u64, expiries: bool) -> Vec<String> {
    shift(redis, sets, &ms.to_string(), expiries).await
}

async fn shift(redis: &Redis, sets: &[String], ms: &str, expiries: bool) -> Vec<String> {
    let count = sets.len().to_string();
    let mut words = vec!["EVAL", include_str!("age.lua"), &count];
    words.extend(sets.iter().map(String::as_str));
    words.extend([ms, if expiries { "1" } else { "0" }]);
    redis.query(&words).await
}

/// A bound that is not reached in a test.
pub(crate) async fn in_time(redis: &Redis) -> Bound {
    bound(redis.now_ms().await + 600_000, 90_000)
}

/// The place of a refused waiter, when it has to poll again, and whether it was restored.
pub(crate) fn place_of(reply: &Reply) -> (u64, u64, bool) {
    let numbers: Vec<u64> = reply.value.split(',').map(|text| text.parse().unwrap()).collect();
    (numbers[0], numbers[1], numbers[2] == 1)
}

/// The owners that were notified since the last look, with the message to each.
pub(crate) async fn notified(redis: &mut Redis, lock: &FairRw) -> Vec<(u32, String)> {
    let published = redis.published().await.into_iter();
    let owner = |channel: &str| (0..200).find(|owner| lock.latch(*owner) == channel).unwrap();
    let mut all: Vec<_> = published.map(|(channel, text)| (owner(&channel), text)).collect();
    all.sort();
    all
}

/// The owners that were notified since the last look that they can enter.
pub(crate) async fn woken(redis: &mut Redis, lock: &FairRw) -> Vec<u32> {
    let notified = notified(redis, lock).await.into_iter();
    notified
        .map(|(owner, text)| {
            assert_eq!(text, "1");
            owner
        })
        .collect()
}
