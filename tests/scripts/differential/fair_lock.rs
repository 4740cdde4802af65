//! Random calls of a fair lock, by edgelatch and Redisson, on a real Redis and on the model,
//! compared after each.

use std::collections::BTreeMap;

use edgelatch_proto::protocol::reply::{Code, Reply};
use edgelatch_proto::protocol::script::{Bound, ScriptCall};
use proptest::collection::vec;
use proptest::sample::select;

use super::coverage::{ONCE, TAKEN, TOLD, run_all};
use super::pair::Pair;
use super::steps::fair_lock::{Java, OWNERS, Ours, Step, step};
use crate::scripts::fair::fixtures::{Fair, JAVA, Poll};
use test_support::calls::{numbered_owner, request};
use test_support::redis::Redis;
use test_support::script_model::Value;
use test_support::script_model::java_fair::JavaPoll;

/// All codes of the scripts.
const VERDICTS: [(&str, &[Code]); 5] = [
    ("fair_acquire", TAKEN),
    ("fair_release", TOLD),
    ("fair_force_release", ONCE),
    ("fair_queue", TOLD),
    ("lock_renew", &[Code::Done, Code::Lost]),
];

#[test]
fn random_calls_do_to_redis_what_they_do_to_the_model() {
    let calls = (select(vec!["job", "x{a}b"]), vec(step(), 1..50));
    // One of Redisson's waiters is subscribed to its shard channel.
    let ours = (1..=OWNERS).map(|owner| Fair::new("job").channel(numbered_owner(owner)));
    let java = format!("redisson_lock__channel:{{job}}:{}", JAVA[0]);
    let channels = Vec::from_iter(ours.chain([java]));
    run_all(&VERDICTS, &channels, &calls, async |redis, (name, steps), replies| {
        let mut world = World::new(redis, name).await;
        for step in &steps {
            replies.extend(world.take(step).await);
        }
    });
}

/// The objects of the steps.
struct World<'a> {
    pair: Pair<'a>,
    lock: Fair,
    /// The newest token of each owner.
    tokens: BTreeMap<u32, u64>,
}

impl<'a> World<'a> {
    async fn new(redis: &'a Redis, name: &'static str) -> Self {
        let mut pair = Pair::new(redis).await;
        pair.says_the_same = numbers_alike;
        Self { pair, lock: Fair::new(name), tokens: BTreeMap::new() }
    }

    /// Runs a step on both, and compares everything visible.
    async fn take(&mut self, step: &Step) -> Option<(&'static str, Code)> {
        match step {
            Step::Ours { what, publish, limit } => {
                let lock = Fair::announced(self.lock.name, *publish);
                let bound = limit.bound(self.pair.now(), 90_000);
                let call = self.make(&lock, what, bound);
                let reply = self.pair.call(&call, &format!("{step:?}")).await;
                self.note(what, &reply);
                return Some((call.script().name, reply.code));
            }
            Step::Java { what, holder, ahead } => self.java(what, *holder, *ahead).await,
            Step::Age { ms } => self.age(*ms).await,
            Step::Loss { of } => self.pair.touch(*of, true).await,
            Step::Persist { of } => self.pair.touch(*of, false).await,
            Step::Token { value } => {
                let (key, value) = (self.lock.key("redisson_lock_token"), value.to_string());
                self.pair.write(&key, Value::Text(value), None).await;
            }
        }
        self.pair.compare_keys(&format!("{step:?}")).await;
        None
    }

    fn make(&self, lock: &Fair, what: &Ours, bound: Bound) -> ScriptCall {
        match *what {
            Ours::Acquire { owner, number, last, lease, previous } => {
                lock.acquire(Poll { owner, number, last, lease_ms: lease, bound, previous })
            }
            Ours::Release { owner, previous } => lock.abandon(owner, bound, previous),
            Ours::Renew { newest, owner, lease } => {
                let last = self.tokens.iter().max_by_key(|(_, token)| **token);
                let owner = last.filter(|_| newest).map_or(owner, |(owner, _)| *owner);
                lock.renew(owner, lease, self.tokens.get(&owner).copied().unwrap_or(9))
            }
            Ours::ForceRelease { id } => lock.force_release().call(request(id), bound),
            Ours::Cancel { id } => lock.force_release().cancel(request(id), bound),
            Ours::Inspect { owner } => lock.inspect(Some(owner)),
            Ours::InspectQueue { owner } => lock.inspect_queue(Some(owner)),
        }
    }

    fn note(&mut self, what: &Ours, reply: &Reply) {
        if let Ours::Acquire { owner, .. } = what
            && matches!(reply.code, Code::Done | Code::AlreadyYours)
        {
            self.tokens.insert(*owner, reply.value.parse().unwrap());
        }
    }

    async fn java(&mut self, what: &Java, holder: usize, ahead: i64) {
        let (redis, keys, holder) = (self.pair.redis, self.lock.java(), JAVA[holder]);
        let server = redis.now_ms().await;
        let now = i64::try_from(server).unwrap() + ahead;
        let poll = JavaPoll { holder, lease: 30_000, allowance: 300_000, now, server };
        let (lock, model) = (keys.model(), &mut self.pair.model);
        match *what {
            Java::Acquire { allowance } => {
                let real = keys.acquire(redis, holder, allowance, now).await;
                let model = model.java_acquire(&lock, JavaPoll { allowance, ..poll });
                let (real, model) = (real.map(|ms| ms.max(-1)), model.map(|ms| ms.max(-1)));
                assert_eq!(real.is_some(), model.is_some(), "{what:?}");
                assert!(
                    real.unwrap_or(0).abs_diff(model.unwrap_or(0)) < 1000,
                    "{real:?} {model:?}"
                );
            }
            Java::Once => {
                let real = keys.once(redis, holder, now).await;
                assert_eq!(real, model.java_once(&lock, poll));
            }
            Java::Unlock { id } => {
                let (id, life) = (id.to_string(), 17_500);
                let real = keys.unlock(redis, holder, now, &id).await;
                assert_eq!(real, model.java_unlock(&lock, poll, &keys.latch(&id), life));
            }
            Java::GiveUp { less } => {
                keys.give_up(redis, holder, less).await;
                model.java_gives_up(&lock, holder, less);
            }
            Java::ForceUnlock => {
                let real = keys.force_unlock(redis, now).await;
                assert_eq!(real, model.java_force_unlock(&lock, poll));
            }
        }
        self.pair.took(server, &format!("{what:?}")).await;
    }

    async fn age(&mut self, ms: u64) {
        // A key may expire in this very moment: Redis decides whether it has.
        let gone = self.lock.age(self.pair.redis, ms).await;
        let (arrivals, watch) = (self.lock.arrivals(), self.lock.watch());
        let less = i64::try_from(ms).unwrap();
        for (key, entry) in self.pair.model.dump(0) {
            let value = match entry.value {
                Value::Sorted(members) => {
                    let less = if key == arrivals { less * 1000 } else { less };
                    let older = members.into_iter().map(|(member, score)| (member, score - less));
                    Value::Sorted(older.collect())
                }
                Value::Text(text) if key == watch => Value::Text(older_watch(&text, less)),
                other => other,
            };
            self.pair.model.put(&key, value, entry.expires_at.map(|at| at.saturating_sub(ms)));
        }
        for key in gone {
            self.pair.model.delete(&key);
        }
    }
}

fn older_watch(text: &str, less: i64) -> String {
    let mut words = text.splitn(3, ' ');
    let mut number = || (words.next().unwrap().parse::<i64>().unwrap() - less).max(0);
    let (since, sent) = (number(), number());
    format!("{since} {sent} {}", words.next().unwrap())
}

/// Equal, except for times relative to a clock: those of the poll and of the waiters.
fn numbers_alike(real: &str, model: &str, allowance: u64) -> bool {
    let (real, model): (Vec<&str>, Vec<&str>) =
        (real.split(',').collect(), model.split(',').collect());
    let alike = |(real, model): (&&str, &&str)| match (real.parse::<u64>(), model.parse::<u64>()) {
        (Ok(real), Ok(model)) => real.abs_diff(model) <= if real < 16 { 0 } else { allowance },
        _ => real == model,
    };
    real == model
        || real.len() > 1 && real.len() == model.len() && real.iter().zip(&model).all(alike)
}
