//! Random calls of two fair read-write locks of one namespace, on a real Redis and on the model,
//! compared after each.

use std::collections::BTreeMap;

use edgelatch_proto::protocol::calls::FairMode;
use edgelatch_proto::protocol::reply::Code;
use edgelatch_proto::protocol::script::{Bound, Publish, ScriptCall};
use proptest::collection::vec;
use proptest::prelude::*;

use super::coverage::{ONCE, RENEWED, TOLD, run_all};
use super::pair::Pair;
use super::steps::fair_read_write_lock::{Call, OWNERS, Step, mode_of, step};
use crate::scripts::fair_read_write::fixtures::{Attempt, FairRw, age, first};
use test_support::calls::request;
use test_support::redis::Redis;
use test_support::script_model::Value;

const LOCKS: [&str; 2] = ["job", "{job}:b"];

/// The codes of an acquisition.
const ACQUIRED: &[Code] = &[
    Code::Done,
    Code::AlreadyYours,
    Code::No,
    Code::Late,
    Code::Gone,
    Code::Lost,
    Code::BoundRequired,
    Code::TokenRange,
];

/// All codes of the scripts.
const VERDICTS: [(&str, &[Code]); 6] = [
    ("fair_rw_acquire", ACQUIRED),
    ("fair_rw_release", TOLD),
    ("fair_rw_renew", RENEWED),
    ("fair_rw_force_release", ONCE),
    ("fair_rw_inspect", TOLD),
    ("fair_rw_query", &[Code::Done]),
];

#[test]
fn random_calls_do_to_redis_what_they_do_to_the_model() {
    // Half of the owners are subscribed to their shard channels.
    let channels = Vec::from_iter((1..=OWNERS / 2).map(|owner| FairRw::new("job").latch(owner)));
    let steps = (Just(()), vec(step(), 1..60));
    run_all(&VERDICTS, &channels, &steps, async |redis, ((), steps), replies| {
        let mut world = World::new(redis).await;
        for step in &steps {
            replies.extend(world.take(step).await);
        }
    });
}

/// The objects of the steps.
struct World<'a> {
    pair: Pair<'a>,
    /// The newest token of each owner, by lock.
    tokens: BTreeMap<(usize, u32), u64>,
}

impl<'a> World<'a> {
    async fn new(redis: &'a Redis) -> Self {
        let mut pair = Pair::new(redis).await;
        pair.says_the_same = |real, model, _| without_ids(real) == model;
        Self { pair, tokens: BTreeMap::new() }
    }

    /// Runs a step on both, and compares everything visible.
    async fn take(&mut self, step: &Step) -> Option<(&'static str, Code)> {
        match step {
            Step::Call { what, lock, small, publish, limit } => {
                let bound = limit.bound(self.pair.now(), 90_000);
                let call = self.make(what, *lock, *small, *publish, bound);
                // Beyond the limit of waiters the script fails.
                let reply = self.pair.try_call(&call, &format!("{step:?}")).await.ok()?;
                if let Call::Acquire { owner, .. } = what
                    && matches!(reply.code, Code::Done | Code::AlreadyYours)
                {
                    self.tokens.insert((*lock, *owner), reply.value.parse().unwrap());
                }
                return Some((call.script().name, reply.code));
            }
            Step::Age { ms } => self.age(*ms).await,
            Step::Loss { of } => self.pair.touch(*of, true).await,
            Step::Persist { of } => self.pair.touch(*of, false).await,
            Step::Token { value, is_shared } => {
                let (token, mode) = (value.to_string(), if *is_shared { "s" } else { "x" });
                let fields = [("t".to_owned(), token), ("k".to_owned(), mode.to_owned())];
                let key = FairRw::new(LOCKS[0]).key("last");
                self.pair.write(&key, Value::Hash(fields.into()), None).await;
            }
        }
        self.pair.compare_keys(&format!("{step:?}")).await;
        None
    }

    fn make(
        &self,
        what: &Call,
        place: usize,
        small: bool,
        publish: Publish,
        bound: Bound,
    ) -> ScriptCall {
        let mut lock = FairRw::announced(LOCKS[place], publish);
        if small {
            let settings = lock.settings.max_holders(2).unwrap();
            lock.settings = settings.max_waiters(2).unwrap();
        }
        let attempt = |owner| first(owner, mode_of(owner)).within(bound);
        match *what {
            Call::Acquire { owner, mode, number, last, lease, previous } => {
                let attempt = attempt(owner).nth(number).for_ms(lease);
                lock.acquire(Attempt { mode, last, previous, ..attempt })
            }
            Call::Release { owner, previous } => {
                lock.release(Attempt { previous, ..attempt(owner) })
            }
            Call::Renew { newest, owner, lease } => {
                let held = self.tokens.iter().filter(|((lock, _), _)| *lock == place);
                let last = held.max_by_key(|(_, token)| **token).map(|((_, owner), _)| *owner);
                let owner = last.filter(|_| newest).unwrap_or(owner);
                let token = self.tokens.get(&(place, owner)).copied().unwrap_or(9);
                lock.renew(attempt(owner).for_ms(lease), token)
            }
            Call::ForceRelease { id } => lock.force_release(id, bound),
            Call::Cancel { id } => {
                lock.target(FairMode::Exclusive).force_release().cancel(request(id), bound)
            }
            Call::Inspect { owner } => lock.inspect(Some(attempt(owner))),
            Call::Query => lock.query(""),
        }
    }

    async fn age(&mut self, ms: u64) {
        let locks = LOCKS.map(FairRw::new);
        let mut sets: Vec<String> = locks.iter().flat_map(FairRw::times).collect();
        sets.sort();
        // Both locks share the registry.
        sets.dedup();
        // A key may expire in this very moment: Redis decides whether it has.
        let gone = age(self.pair.redis, &sets, ms, true).await;
        let less = i64::try_from(ms).unwrap();
        for (key, entry) in self.pair.model.dump(0) {
            let value = match entry.value {
                Value::Sorted(members) if sets.contains(&key) => {
                    let older = members.into_iter().map(|(member, score)| (member, score - less));
                    Value::Sorted(older.collect())
                }
                other => other,
            };
            self.pair.model.put(&key, value, entry.expires_at.map(|at| at.saturating_sub(ms)));
        }
        for key in gone {
            self.pair.model.delete(&key);
        }
    }
}

/// The reply to a query without the hashes of its entries, which the model does not compute. Other
/// values have no tabs.
fn without_ids(value: &str) -> String {
    let line = |line: &str| {
        let mut fields: Vec<&str> = line.split('\t').collect();
        if let Some(id) = fields.get_mut(3) {
            *id = "";
        }
        fields.join("\t")
    };
    value.split('\n').map(line).collect::<Vec<_>>().join("\n")
}
