//! The end of a scoped token: after it and the stated bound, every name is free for other clients,
//! whatever calls the token was used for until then.

use std::collections::BTreeSet;
use std::time::Duration;

use edgelatch::Gateway;
use edgelatch::client::Released;
use edgelatch::client::{Client, ReadWriteSettings};
use edgelatch::timing::{GuardMemory, LifeTime, PeerSkew};
use edgelatch_proto::name::{ClientId, LockName};
use edgelatch_proto::protocol::calls::{
    FairMode, FairReadWriteCalls, FairReadWriteSettings, FairSettings, GuardedWrite, Target, Try,
};
use edgelatch_proto::protocol::scope::ObjectKind::{self, Guard, Latch, Lock, Permits, Semaphore};
use edgelatch_proto::protocol::scope::Right;
use edgelatch_proto::protocol::script::Publish;
use fastrand::Rng;
use serde_json::json;
use test_support::calls::{UNBOUND, lease, owner, request};
use test_support::random::seed;

use super::attacks;
use super::env::{Env, Snapshot};
use super::form::{Form, forms};
use super::last_calls::{self, Last};
use super::library::Library;
use super::round::Round;
use super::scope::Scope;
use super::tally::Tally;
use super::victims::Victims;
use crate::scoped_objects::{NativeClient, NativeLock};
use crate::support::TOKEN;

pub(super) const SECOND: u64 = 1000;
/// How long a refused writer keeps new readers out, at most.
const WANT_TTL: u64 = 5 * SECOND;
/// How long a silent waiter of a fair lock keeps its place.
const WAITER: u64 = 10 * SECOND;
/// How far ahead of the clock a fence can be, with a second for the clock itself.
const AHEAD: u64 = 61 * SECOND;
/// The longest life of any key that is not in the token's `lasting`: a fence's.
const MAX_TTL: u64 = 24 * 60 * 60 * SECOND + 61 * SECOND;
/// The most tries of another client: each clears a part of what has ended.
const TRIES: usize = 20;
/// The permits of each semaphore; the token's client acquires some of them.
const PERMITS: u16 = 5;
/// The default number of random requests in all tests of rights.
const REQUESTS: u64 = 120;
/// The claims `maxLeaseMs` and `peerSkewMs`.
const CLAIMS: [(u64, u64); 2] = [(100, 0), (60_000, 1000)];

/// Makes a test for each right.
macro_rules! tests_of_rights {
    ($($name:ident: $right:ident,)*) => {
        mod a_token_with_the_right {
            use super::*;

            $(
                #[tokio::test]
                async fn $name() {
                    after_its_end_and_the_stated_bound_a_token_excludes_no_client(Right::$right).await;
                }
            )*

            #[test]
            fn each_right_has_a_test() {
                assert_eq!(Right::ALL, [$(Right::$right),*]);
            }
        }
    };
}

tests_of_rights! {
    to_hold: Hold,
    to_count: Count,
    to_manage: Manage,
    to_guard: Guard,
    to_force: Force,
    of_a_majority: Majority,
}

// Slow: two tokens, some random requests with each, and a snapshot of all keys after each.
async fn after_its_end_and_the_stated_bound_a_token_excludes_no_client(right: Right) {
    let (mut env, mut library) = (Env::redis().await, Library::default());
    let (mut rng, mut tally) = (Rng::with_seed(seed() ^ right as u64), Tally::default());
    let rounds = Right::ALL.len() * CLAIMS.len();
    let requests = attacks(REQUESTS).div_ceil(rounds as u64);
    for (max_lease, peer_skew) in CLAIMS {
        let scope = Scope::whole([Right::Hold, right], max_lease, peer_skew);
        env.flush().await;
        prepare(&mut env, &scope).await;
        let victims = Victims::none(&mut rng);
        let mut round = Round::with(&mut env, &mut library, scope.clone(), victims).await;
        let played = round.play(&mut rng, &mut tally, requests).await;
        let claims = (right.name(), max_lease, peer_skew);
        played.unwrap_or_else(|broken| panic!("{broken}\nin {claims:?} of seed {}", seed()));
        let mut end = End::of(&mut env, &mut library, &scope, &mut rng).await;
        end.is_over().await.unwrap_or_else(|broken| {
            panic!("{broken}\nin {claims:?} of seed {}", seed());
        });
    }
}

/// Creates the objects that a backend creates, without an expiry.
async fn prepare(env: &mut Env, scope: &Scope) {
    let mut commands = Vec::new();
    for kind in [Semaphore, Permits, Latch] {
        let names = scope.names(kind).into_iter().chain([scope.name(kind, "last")]);
        commands.extend(names.map(|name| json!(["SET", name, PERMITS.to_string()])));
    }
    let (status, answer) = env.client(TOKEN).post("/pipeline", &json!(commands).to_string()).await;
    assert!(status == 200 && !answer.contains("\"error\""), "{answer}");
}

/// The world after a token's last request.
struct End<'a> {
    env: &'a mut Env,
    scope: &'a Scope,
    /// The keys without an expiry from before the token's use.
    lasting: BTreeSet<String>,
    /// Redis' clock after the last request, in milliseconds.
    at: u64,
    /// The time that [`Env::later`] has added since.
    added: u64,
    other: NativeClient,
}

impl<'a> End<'a> {
    /// Has the token's client acquire an object of each kind with the longest lease.
    async fn of(env: &'a mut Env, library: &mut Library, scope: &'a Scope, rng: &mut Rng) -> Self {
        let backend = [Semaphore, Permits, Latch].into_iter();
        let names = backend
            .flat_map(|kind| scope.names(kind).into_iter().chain([scope.name(kind, "last")]));
        let lasting = names.collect();
        let now = env.look().await.now;
        let mut last = Last { env, library, scope, now };
        for object in last_calls::HELD {
            last.holds(object, rng).await;
        }
        last.waits(rng).await;
        let at = env.look().await.now;
        let other = other(env);
        Self { env, scope, lasting, at, added: 0, other }
    }

    /// Checks each kind of object after its bound. Returns what still keeps other clients out.
    async fn is_over(&mut self) -> Result<(), String> {
        self.check_expiry(true).await?;
        let Scope { max_lease, peer_skew, .. } = *self.scope;
        let bound = max_lease + 2 * peer_skew + SECOND;
        self.until(bound).await;
        self.check_locks_are_free(&["lock", "write", "group"]).await?;
        self.all_locks_are_free_at_once().await?;
        self.check_permits_are_free().await?;
        self.until(bound.max(WANT_TTL)).await;
        self.check_locks_are_free(&["read"]).await?;
        self.until(bound.max(WAITER)).await;
        self.check_locks_are_free(&["fair"]).await?;
        self.check_fair_read_write_locks_are_free().await?;
        self.until(bound.max(AHEAD)).await;
        self.guards_and_latches_are_free().await?;
        self.check_expiry(self.scope.has(Right::Manage)).await
    }

    /// Checks that each key expires within a day, except for the objects that a backend created.
    /// The holds of such an object may last as long as it does: other clients evict those that have
    /// ended.
    async fn check_expiry(&mut self, may_have_holds: bool) -> Result<(), String> {
        let Snapshot { keys, now } = self.env.look().await;
        let latest = i64::try_from(now + MAX_TTL).unwrap();
        for (key, stored) in &keys {
            let is_part = |(form, names): &(Form, Vec<String>)| {
                let is_known = names.iter().any(|name| self.lasting.contains(name));
                is_known && (*form == Form::Bare || *form == Form::Holds && may_have_holds)
            };
            let may_last = forms(key).iter().any(is_part);
            let ends = (0..=latest).contains(&stored.ends_at);
            if !(ends || may_last && stored.ends_at < 0) {
                return Err(format!("{key} stays: {stored:?}"));
            }
        }
        Ok(())
    }

    /// Lets time pass until this long after the last request.
    async fn until(&mut self, after: u64) {
        let now = self.env.look().await.now + self.added;
        let rest = (self.at + after).saturating_sub(now);
        self.env.later(rest).await;
        self.added += rest;
        // A new client: one that has seen the tokens of before would report that they fell.
        self.other = other(self.env);
    }

    fn names(&self, kind: ObjectKind) -> Vec<String> {
        let held = last_calls::HELD.into_iter().filter(|object| object.kind == kind);
        let endings = held.flat_map(|object| object.calls).flat_map(|(_, endings)| *endings);
        let held = endings.map(|ending| self.scope.name(kind, ending));
        self.scope.names(kind).into_iter().chain(held).collect()
    }

    async fn check_locks_are_free(&self, kinds: &[&str]) -> Result<(), String> {
        for name in self.names(Lock) {
            for kind in kinds {
                if !is_free(&self.lock(kind, &name)).await {
                    return Err(format!("{name} is not free as {kind}"));
                }
            }
        }
        Ok(())
    }

    /// Checks that a multi-lock of all names is granted.
    async fn all_locks_are_free_at_once(&self) -> Result<(), String> {
        let names = self.names(Lock);
        let locks = names.iter().map(|name| self.lock("lock", name));
        let all = self.other.multi_lock(locks).unwrap();
        if is_free(&all).await { Ok(()) } else { Err(format!("one of {names:?} is not free")) }
    }

    /// Checks that the script grants each fair read-write lock to a new exclusive owner.
    async fn check_fair_read_write_locks_are_free(&self) -> Result<(), String> {
        let client = self.env.client(TOKEN);
        for name in self.names(Lock) {
            let calls = FairReadWriteCalls::new(
                LockName::parse(&name).unwrap(),
                FairMode::Exclusive,
                FairReadWriteSettings::default(),
                ClientId::default(),
                Publish::Plain,
            );
            let target = Target::FairReadWrite(calls);
            let mut is_free = false;
            for number in (1..).take(TRIES) {
                let call = target.acquire(&Try {
                    request: request(number),
                    bound: UNBOUND,
                    owner: owner(u8::try_from(number).unwrap()),
                    lease: lease(1_000),
                    last: true,
                    number: 1,
                    previous: None,
                    announces: false,
                });
                let count = call.keys().len().to_string();
                let head = ["EVAL".to_owned(), call.source(false), count];
                let words: Vec<&String> =
                    head.iter().chain(call.keys()).chain(call.args()).collect();
                let (status, answer) = client.post("/", &json!(words).to_string()).await;
                assert_eq!(status, 200, "{answer}");
                is_free = answer.starts_with("{\"result\":[1,");
                if is_free {
                    break;
                }
            }
            if !is_free {
                return Err(format!("{name} is not free as a fair read-write lock"));
            }
        }
        Ok(())
    }

    fn lock(&self, kind: &str, name: &str) -> NativeLock {
        let skew = Duration::from_millis(self.scope.peer_skew);
        let (other, skew) = (&self.other, PeerSkew::new(skew).unwrap());
        let sides = || other.read_write_lock(name, ReadWriteSettings::default()).unwrap();
        match kind {
            "lock" => other.lock(name),
            "fair" => other.fair_lock(name, FairSettings::default()),
            "read" => Ok(sides().read().clone()),
            "write" => Ok(sides().write().clone()),
            _ => other.group_lock(name, ["a", "b", "c"], skew),
        }
        .unwrap()
    }

    /// Checks the permits of all semaphores. With the right to manage, a token may change how many
    /// there are; then only the semaphores that it did not manage have all of them.
    async fn check_permits_are_free(&self) -> Result<(), String> {
        let skew = PeerSkew::new(Duration::from_millis(self.scope.peer_skew)).unwrap();
        let managed = self.scope.has(Right::Manage);
        for kind in [Semaphore, Permits] {
            for name in self.names(kind) {
                if managed && !name.ends_with("last") {
                    continue;
                }
                let permits = match kind {
                    Semaphore => self.other.semaphore(&name).unwrap().permits(PERMITS.into()),
                    _ => {
                        let semaphore = self.other.permit_expirable_semaphore(&name, skew);
                        semaphore.unwrap().permits(PERMITS)
                    }
                };
                if !is_free(&permits.unwrap()).await {
                    return Err(format!("permits of {name} are held"));
                }
            }
        }
        Ok(())
    }

    async fn guards_and_latches_are_free(&self) -> Result<(), String> {
        let lease = self.lock("lock", &self.scope.name(Lock, "other")).acquire().await.unwrap();
        for name in self.names(Guard).into_iter().chain([self.scope.name(Guard, "last")]) {
            let guard = self.other.guard(&name, GuardMemory::DEFAULT).unwrap();
            let life = LifeTime::new(Duration::from_secs(60)).ok();
            let written = guard.write(&lease, None, &GuardedWrite::set("1", life)).await;
            written.map_err(|error| format!("{name} is guarded: {error}"))?;
        }
        for name in self.names(Latch).into_iter().chain([self.scope.name(Latch, "last")]) {
            let latch = self.other.count_down_latch(&name).unwrap();
            latch.delete().await.unwrap();
            if !latch.try_set_count(1).await.unwrap() || latch.count_down().await.unwrap() != 0 {
                return Err(format!("{name} cannot be set"));
            }
        }
        assert_eq!(lease.release().await, Ok(Released::Released));
        Ok(())
    }
}

/// Returns a client with the full token.
fn other(env: &Env) -> NativeClient {
    Client::connect(Gateway::upstash(env.address(), TOKEN).unwrap())
}

/// Whether another client acquires it without a wait.
async fn is_free(lock: &NativeLock) -> bool {
    for _ in 0..TRIES {
        if let Some(lease) = lock.try_acquire().await.unwrap() {
            assert_eq!(lease.release().await, Ok(Released::Released));
            return true;
        }
    }
    false
}

/// The helper that lets time pass is exact.
#[tokio::test]
async fn time_passes_for_every_form_of_time_in_redis() {
    let mut env = Env::redis().await;
    let now = env.look().await.now;
    let token = now * 1000;
    let commands = json!([
        ["SET", "short", "1", "PX", "5000"],
        ["SET", "redisson_lock_token:{a}", token.to_string(), "PX", "50000"],
        ["SET", "el:{a}:watch", format!("0 {now} 1 me")],
        ["HSET", "group", "f:me:expire_time", now.to_string(), "f", "me"],
        ["ZADD", "el:{a}:held", now.to_string(), "me"],
        ["ZADD", "el:{a}:seat", token.to_string(), "me"],
        ["RPUSH", "redisson_lock_queue:{a}", "me"],
    ]);
    let (status, answer) = env.client(TOKEN).post("/pipeline", &commands.to_string()).await;
    assert!(status == 200 && !answer.contains("\"error\""), "{answer}");
    let before = env.look().await.keys;
    env.later(10_000).await;
    let after = env.look().await.keys;
    let (earlier, stamp) = (now - 10_000, (token - 10_000_000).to_string());
    let text = |key: &str| format!("{:?}", after[key].value);
    assert!(!after.contains_key("short") && after.len() == before.len() - 1);
    assert!(text("redisson_lock_token:{a}").contains(&stamp));
    assert!(after["redisson_lock_token:{a}"].ttl <= 40_000);
    assert!(text("el:{a}:watch").contains(&format!("0 {earlier} 1 me")));
    assert!(text("group").contains(&earlier.to_string()));
    assert!(text("el:{a}:held").contains(&earlier.to_string()));
    assert_eq!(after["el:{a}:seat"].value, before["el:{a}:seat"].value);
}
