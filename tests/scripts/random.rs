//! Random calls on a real Redis and on the model, compared after each: what is answered, and everything that is stored.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use edgelatch::protocol::reply::{Cell, Code, Reply};
use edgelatch::protocol::script::{Bound, ScriptCall};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::steps::{LOCKS, Limit, Step, TOKEN_KEYS, step};
use crate::support::calls::{lease, lock, owner, request, token};
use crate::support::redis::{Content, Redis, Stored};
use crate::support::script_model::{Entry, Latches, ScriptModel, Value};

/// All that the scripts can say.
const VERDICTS: [(&str, &[Code]); 5] = [
    (
        "lock_acquire",
        &[
            Code::Done,
            Code::AlreadyYours,
            Code::No,
            Code::Late,
            Code::Gone,
            Code::Lost,
            Code::TokenRange,
        ],
    ),
    ("lock_release", &[Code::Done, Code::No]),
    ("lock_renew", &[Code::Done, Code::Late, Code::Lost]),
    ("lock_force_release", &[Code::Done, Code::No, Code::Late, Code::BoundRequired]),
    ("lock_inspect", &[Code::Done, Code::No]),
];

#[test]
fn random_calls_do_to_redis_what_they_do_to_the_model() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let redis = runtime.block_on(Redis::start());
    let config = ProptestConfig { cases: 200, failure_persistence: None, ..Default::default() };
    let heard = RefCell::new(Vec::new());
    let steps = proptest::collection::vec(step(), 1..40);
    let outcome = TestRunner::new(config).run(&steps, |steps| {
        runtime.block_on(async {
            let mut pair = Pair::new(&redis).await;
            for step in &steps {
                let said = pair.take(step).await;
                heard.borrow_mut().extend(said);
            }
        });
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
    for (script, codes) in VERDICTS {
        for code in codes {
            assert!(heard.borrow().contains(&(script, *code)), "{script} never said {code:?}");
        }
    }
    let _context = runtime.enter();
    drop(redis);
}

/// A Redis and a model that are told the same.
struct Pair<'a> {
    redis: &'a Redis,
    model: ScriptModel,
    /// The newest token of each owner on each lock.
    tokens: BTreeMap<(usize, u8), u64>,
    /// The longest that one call took: Redis reads its clock for a script's `TIME` and for its expiries one after the other.
    slowest: u64,
}

impl<'a> Pair<'a> {
    async fn new(redis: &'a Redis) -> Self {
        redis.ask::<String>(&["FLUSHALL"]).await;
        Self { redis, model: ScriptModel::new(Latches::On), tokens: BTreeMap::new(), slowest: 0 }
    }

    /// Does it to both, and compares all that can be seen.
    async fn take(&mut self, step: &Step) -> Option<(&'static str, Code)> {
        let before = self.redis.now_ms().await;
        let heard = match step {
            Step::Call { .. } => Some(self.call(step, before).await),
            Step::Java { lock, ends_in } => {
                let holder = Value::Hash(BTreeMap::from([("java:7".to_owned(), 2)]));
                self.write(LOCKS[*lock], holder, ends_in.map(|ms| before + ms)).await;
                None
            }
            Step::Token { lock, value, ends_in } => {
                let value = Value::Text(value.to_string());
                self.write(TOKEN_KEYS[*lock], value, ends_in.map(|ms| before + ms)).await;
                None
            }
            Step::Loss { of } | Step::Persist { of } => {
                self.touch(*of, matches!(step, Step::Loss { .. }), before).await;
                None
            }
        };
        self.slowest = self.slowest.max(self.redis.now_ms().await - before);
        self.compare_keys(step).await;
        heard
    }

    async fn call(&mut self, step: &Step, before: u64) -> (&'static str, Code) {
        let call = self.make(step, before);
        let cells = self.redis.cells(&call).await.unwrap();
        let reply = Reply::read(&cells, call.request).unwrap();
        let micros = self.micros(step, &reply);
        let modelled = self.model.run_at(&call, micros);
        assert_eq!(cells.len(), modelled.len(), "{step:?}");
        for (place, (real, model)) in cells.iter().zip(&modelled).enumerate() {
            match (place, real, model) {
                (2, Cell::Int(real), Cell::Int(model)) => {
                    let allowance = self.allowance() + reply.server_ms.abs_diff(before);
                    assert!(real.abs_diff(*model) <= allowance, "{step:?}: {real} {model}");
                }
                _ => assert_eq!(real, model, "{step:?}: element {place}"),
            }
        }
        (call.script().name, reply.code)
    }

    /// Redis' clock in microseconds, as far as it can be known: a fresh token is made of it.
    fn micros(&mut self, step: &Step, reply: &Reply) -> u64 {
        let Step::Call { script: 0, lock, owner, .. } = step else { return reply.server_ms * 1000 };
        if !matches!(reply.code, Code::Done | Code::AlreadyYours) {
            return reply.server_ms * 1000;
        }
        let token = reply.value.parse().unwrap();
        self.tokens.insert((*lock, *owner), token);
        if token / 1000 == reply.server_ms { token } else { reply.server_ms * 1000 }
    }

    fn make(&self, step: &Step, now: u64) -> ScriptCall {
        let Step::Call {
            script,
            lock: number,
            owner: who,
            request: id,
            lease: ms,
            last,
            bound,
            keep,
        } = step
        else {
            unreachable!("only calls are made")
        };
        let not_after = match bound {
            Limit::Unknown => None,
            Limit::Passed => Some(now - 1),
            Limit::In(ms) => Some(now + ms),
        };
        let bound = Bound { not_after, keep: Duration::from_millis(*keep) };
        let (lock, owner, id) = (lock(LOCKS[*number]), owner(*who), request(*id));
        match script {
            0 => lock.acquire(id, bound, &owner, lease(*ms), *last),
            1 => lock.release(id, bound, &owner),
            2 => {
                let grant = self.tokens.get(&(*number, *who)).copied().unwrap_or(9);
                lock.renew(id, bound, &owner, lease(*ms), token(grant))
            }
            3 => lock.force_release(id, bound),
            _ => lock.inspect(id, Some(&owner)),
        }
    }

    /// Writes a key past the scripts.
    async fn write(&mut self, key: &str, value: Value, ends_at: Option<u64>) {
        self.redis.ask::<u64>(&["DEL", key]).await;
        match &value {
            Value::Text(text) => drop(self.redis.ask::<String>(&["SET", key, text]).await),
            Value::Hash(fields) => {
                for (field, count) in fields {
                    self.redis.ask::<u64>(&["HSET", key, field, &count.to_string()]).await;
                }
            }
        }
        if let Some(at) = ends_at {
            self.redis.ask::<u64>(&["PEXPIREAT", key, &at.to_string()]).await;
        }
        self.model.put(key, value, ends_at);
    }

    /// Takes one key away, or its end.
    async fn touch(&mut self, of: usize, away: bool, now: u64) {
        let keys = self.model.dump(now);
        let Some((key, entry)) = keys.iter().nth(of % keys.len().max(1)) else { return };
        if away {
            self.redis.ask::<u64>(&["DEL", key]).await;
            self.model.delete(key);
        } else {
            self.redis.ask::<u64>(&["PERSIST", key]).await;
            self.model.put(key, entry.value.clone(), None);
        }
    }

    fn allowance(&self) -> u64 {
        self.slowest + 2
    }

    async fn compare_keys(&self, step: &Step) {
        let real = self.redis.dump().await;
        let model = self.model.dump(self.redis.now_ms().await);
        assert!(real.keys().eq(model.keys()), "{step:?}: {real:?} {model:?}");
        for ((key, stored), entry) in real.iter().zip(model.values()) {
            assert_eq!(stored.value, content(entry), "{step:?}: {key}");
            assert!(self.ends_alike(stored, entry), "{step:?}: {key}: {stored:?} {entry:?}");
        }
    }

    fn ends_alike(&self, stored: &Stored, entry: &Entry) -> bool {
        match (u64::try_from(stored.ends_at).ok(), entry.expires_at) {
            (None, None) => true,
            (Some(real), Some(model)) => real.abs_diff(model) <= self.allowance(),
            _ => false,
        }
    }
}

fn content(entry: &Entry) -> Content {
    match &entry.value {
        Value::Text(text) => Content::Text(text.clone()),
        Value::Hash(fields) => Content::Hash(
            fields.iter().map(|(field, count)| (field.clone(), count.to_string())).collect(),
        ),
    }
}
