//! Random calls of semaphores, permit-expirable semaphores and count-down latches, by edgelatch and
//! Redisson, on a real Redis and on the model, compared after each.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use edgelatch_proto::protocol::calls::{
    IdempotentCall, LatchCount, PermitCount, PermitTotal, Target,
};
use edgelatch_proto::protocol::reply::Code;
use edgelatch_proto::protocol::script::{Publish, ScriptCall};
use edgelatch_proto::timing::{LeaseTime, LifeTime};
use proptest::collection::vec;
use redis::Value as Raw;

use super::coverage::{ONCE, RENEWED, TAKEN, TOLD, run_all};
use super::pair::Pair;
use super::redisson::{SETS, does, integer, keys};
use super::steps::Aloud;
use super::steps::semaphores_and_latch::{GATE, Java, Kind, NAMES, PERM, SEM, Step, Verb, step};
use crate::scripts::semaphores_and_latch::vector_runner::java;
use crate::scripts::semaphores_and_latch::{
    batch, held, id, latch, latch_that_publishes, permits_that_publish, semaphore_that_publishes,
};
use test_support::calls::{Calls, lease, owner, request, token};
use test_support::script_model::Value;

/// All codes of the scripts.
const VERDICTS: [(&str, &[Code]); 15] = [
    ("semaphore_acquire", TAKEN),
    ("semaphore_acquire", &[Code::BoundRequired]),
    ("semaphore_renew", RENEWED),
    ("semaphore_release", TOLD),
    ("semaphore_change", ONCE),
    ("semaphore_inspect", TOLD),
    ("permits_acquire", TAKEN),
    ("permits_acquire", &[Code::BoundRequired]),
    ("permits_renew", RENEWED),
    ("permits_release", TOLD),
    ("permits_change", ONCE),
    ("permits_inspect", TOLD),
    ("latch_change", ONCE),
    ("latch_change", &[Code::Nothing]),
    ("latch_inspect", TOLD),
];
const SKEW: u64 = 500;

#[test]
fn random_calls_do_to_what_is_counted_what_they_do_to_the_model() {
    let channels = ["redisson_sc:{sem}", "redisson_countdownlatch__channel__{gate}"];
    let channels = channels.map(ToOwned::to_owned);
    let given = (Aloud::any(), vec(step(changes(1, Publish::Plain).len()), 1..50));
    let limits = Rc::new(Cell::new(0_u64));
    let reached = limits.clone();
    run_all(&VERDICTS, &channels, &given, async move |redis, (aloud, steps), replies| {
        let pair = Pair::new(redis).await;
        let mut world = World { pair, aloud, tokens: BTreeMap::new(), limits: 0 };
        world.begin().await;
        for step in &steps {
            replies.extend(world.take(step).await);
        }
        reached.set(reached.get() + world.limits);
    });
    assert!(limits.get() > 0, "no change was refused for its number of permits");
}

fn target(kind: Kind, publish: Publish) -> Calls {
    match kind {
        Kind::Semaphore => held(&semaphore_that_publishes(SEM, 2, publish)),
        Kind::Permits => batch(&permits_that_publish(PERM, 2, SKEW, publish)),
    }
}

/// All idempotent calls with this number.
fn changes(number: u32, publish: Publish) -> Vec<IdempotentCall> {
    let (s, l) = (semaphore_that_publishes(SEM, 2, publish), latch_that_publishes(GATE, publish));
    let p = permits_that_publish(PERM, 2, SKEW, publish);
    let total = PermitTotal::new(number).unwrap();
    let some = i32::try_from(number).unwrap();
    let who = u8::try_from(number.min(3)).unwrap();
    let ids = [id(owner(who), 0), id(owner(1), 1)];
    let terms = if number == 1 { LeaseTime::ENDLESS } else { lease(u64::from(number) * 50_000) };
    vec![
        s.add(some),
        s.add(-some),
        s.add(i32::MAX),
        s.add(i32::MIN),
        s.add_if_exists(PermitCount::new(number).unwrap()),
        s.drain(),
        s.try_set(total, (number > 2).then(|| LifeTime::new(Duration::from_secs(900)).unwrap())),
        Target::Semaphore(s).force_release(),
        p.add(some),
        p.add(-some),
        p.add(i32::MAX),
        p.add(i32::MIN),
        p.set(total),
        p.try_set(total),
        p.release_ids(&ids),
        p.update_lease(&ids[..1], terms),
        Target::Permits(p).force_release(),
        l.count_down(),
        l.count_down(),
        l.try_set(LatchCount::new(u64::from(number)).unwrap()),
        l.delete(),
    ]
}

struct World<'a> {
    pair: Pair<'a>,
    aloud: Aloud,
    /// The newest token of each owner of each kind.
    tokens: BTreeMap<(bool, u8), u64>,
    /// How many changes were refused, since the number of permits would have left its range.
    limits: u64,
}

impl World<'_> {
    async fn begin(&mut self) {
        for name in [SEM, PERM] {
            self.pair.write(name, Value::Text("4".into()), None).await;
        }
    }

    /// Runs a step on both, and compares everything visible.
    async fn take(&mut self, step: &Step) -> Option<(&'static str, Code)> {
        let now = self.pair.now();
        let what = format!("{step:?}");
        match step {
            Step::Hold { .. } | Step::Once { .. } | Step::Cancel { .. } | Step::Ask { .. } => {
                let call = self.make(step, now);
                let reply = match self.pair.try_call(&call, &what).await {
                    Ok(reply) => reply,
                    Err(error) => {
                        assert!(error.to_string().contains("LIMIT"), "{what}: {error}");
                        self.limits += 1;
                        return None;
                    }
                };
                if let Step::Hold { kind, verb: Verb::Acquire { .. }, owner, .. } = step
                    && let Ok(token) = reply.value.parse()
                    && token > 1_000_000
                {
                    self.tokens.insert((*kind == Kind::Permits, *owner), token);
                }
                return Some((call.script().name, reply.code));
            }
            Step::Java(step) => self.java(*step, &what).await,
            Step::RunOut { from_now } => {
                let now = i64::try_from(now).unwrap();
                self.run_out(from_now.map_or(1, |ms| now + ms)).await;
            }
            Step::Loss { of } => self.pair.touch(*of, true).await,
            Step::Gone { object } => {
                self.pair.redis.query::<u64>(&["DEL", NAMES[*object]]).await;
                self.pair.model.delete(NAMES[*object]);
            }
            Step::End { object, ms } => {
                // A token at the end of its range prevents a grant; the other two are expiries of
                // the objects.
                if let (0, "sem" | "x{a}b") = (ms % 4, NAMES[*object]) {
                    let key = if *object == 0 { "el:{sem}:token" } else { "el:x{a}b:token" };
                    let last = Value::Text("9007199254740991".into());
                    self.pair.write(key, last, Some(now + ms)).await;
                } else if let Some(number) = self.pair.model.number(NAMES[*object]) {
                    let number = Value::Text(number.to_string());
                    self.pair.write(NAMES[*object], number, Some(now + ms)).await;
                }
            }
        }
        self.pair.compare_keys(&what).await;
        None
    }

    fn make(&self, step: &Step, now: u64) -> ScriptCall {
        let Aloud { publish, grants } = self.aloud;
        match step {
            Step::Hold { kind, verb, owner: who, request: number, lease: ms, bound, keep } => {
                let (target, id, bound) =
                    (target(*kind, publish), request(*number), bound.bound(now, *keep));
                let (who, terms) = (owner(*who), ms.map_or(LeaseTime::ENDLESS, lease));
                let newest = (*kind == Kind::Permits, who);
                match verb {
                    Verb::Acquire { last } => {
                        target.acquire_aloud(id, bound, &who, terms, *last, grants)
                    }
                    Verb::Release => target.release(id, bound, &who),
                    Verb::Renew => {
                        let token = token(self.token(newest.0, step));
                        target.renew(id, bound, &who, terms, token)
                    }
                }
            }
            Step::Once { change, number, request: id, bound, keep } => {
                changes(*number, publish)[*change].call(request(*id), bound.bound(now, *keep))
            }
            Step::Cancel { change, number, request: id, bound, keep } => {
                changes(*number, publish)[*change].cancel(request(*id), bound.bound(now, *keep))
            }
            Step::Ask { object, owner: who } => match object {
                0 => target(Kind::Semaphore, publish).inspect(request(9), Some(owner(*who))),
                1 => target(Kind::Permits, publish).inspect(request(9), Some(owner(*who))),
                _ => latch(GATE).inspect(request(9)),
            },
            other => unreachable!("no call is made of {other:?}"),
        }
    }

    fn token(&self, permits: bool, step: &Step) -> u64 {
        let Step::Hold { owner, .. } = step else { unreachable!("only holds have tokens") };
        self.tokens.get(&(permits, *owner)).copied().unwrap_or(9)
    }

    /// Lets every hold that has a lease expire.
    async fn run_out(&mut self, at: i64) {
        for set in SETS {
            let scores: Vec<(Raw, f64)> =
                self.pair.redis.query(&["ZRANGE", set, "0", "-1", "WITHSCORES"]).await;
            for (member, score) in scores {
                if score < 1e14 {
                    let mut over = redis::cmd("ZADD");
                    let Raw::BulkString(member) = member else { panic!("{member:?}") };
                    over.arg(set).arg(at).arg(member);
                    self.pair.redis.send::<u64>(over).await.unwrap();
                }
            }
            self.pair.model.run_out(set, at);
        }
    }

    async fn java(&mut self, step: Java, what: &str) {
        let before = self.pair.redis.now_ms().await;
        self.pair.model.expire(before);
        let (script, args, answer) = does(&mut self.pair.model, step, before);
        let reply = java(self.pair.redis, script, &keys(script), &args).await;
        assert_eq!(integer(&reply), answer, "{what}: {reply:?}");
        self.pair.took(before, what).await;
    }
}
