//! Runs the steps of a vector: Redisson's calls, edgelatch's calls, and plain commands.

use edgelatch_proto::name::{OwnerId, PermitId};
use edgelatch_proto::protocol::calls::{IdempotentCall, LatchCount, PermitCount, PermitTotal};
use edgelatch_proto::protocol::reply::RespValue;
use edgelatch_proto::protocol::script::{Bound, ScriptCall};
use edgelatch_proto::timing::{LeaseTime, LifeTime};
use redis::Value as Raw;
use serde_json::{Value, json};
use std::time::Duration;

use super::{batch, held, id, latch, permits, semaphore};
use crate::scripts::vector_commands::{Words, raw};
use test_support::calls;
use test_support::redis::Redis;

/// Redisson's scripts, re-implemented.
const JAVA: [(&str, &str); 13] = [
    ("semaphore_acquire", include_str!("../java/semaphore_acquire.lua")),
    ("semaphore_release", include_str!("../java/semaphore_release.lua")),
    ("semaphore_drain", include_str!("../java/semaphore_drain.lua")),
    ("semaphore_set", include_str!("../java/semaphore_set.lua")),
    ("semaphore_add", include_str!("../java/semaphore_add.lua")),
    ("permits_acquire", include_str!("../java/permits_acquire.lua")),
    ("permits_release", include_str!("../java/permits_release.lua")),
    ("permits_release_all", include_str!("../java/permits_release_all.lua")),
    ("permits_ask", include_str!("../java/permits_ask.lua")),
    ("permits_set", include_str!("../java/permits_set.lua")),
    ("latch_set", include_str!("../java/latch_set.lua")),
    ("latch_count_down", include_str!("../java/latch_count_down.lua")),
    ("latch_delete", include_str!("../java/latch_delete.lua")),
];

/// Runs one of Redisson's scripts. An argument that starts with `hex:` stands for the bytes of its
/// hexadecimal digits.
pub(crate) async fn java(redis: &Redis, name: &str, keys: &[String], args: &[String]) -> Raw {
    let (_, source) = JAVA.iter().find(|(java, _)| *java == name).unwrap();
    let mut command = redis::cmd("EVAL");
    command.arg(*source).arg(keys.len()).arg(keys);
    for arg in args {
        match arg.strip_prefix("hex:") {
            Some(hex) => command.arg(bytes(hex)),
            None => command.arg(arg),
        };
    }
    redis.send(command).await.unwrap()
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[at * 2..at * 2 + 2], 16).unwrap()).collect()
}

/// A Redis, and the meaning of the vectors' words.
pub(crate) struct Bench {
    pub(crate) redis: Redis,
    pub(crate) words: Words,
    /// Redis' clock when the database was last emptied.
    pub(crate) since: u64,
}

impl Bench {
    pub(crate) fn new(redis: Redis, mut words: Words) -> Self {
        for (letter, number) in [("A", 1), ("B", 2), ("C", 3)] {
            let owner = calls::owner(number);
            words.mean(&format!("${letter}"), calls::field(&owner));
            for index in 0..3 {
                words.mean(&format!("${letter}{index}"), id(owner, index).to_text());
            }
        }
        Self { redis, words, since: 0 }
    }

    pub(crate) async fn run(&mut self, step: &Value) -> Value {
        if let Some(name) = step["java"].as_str() {
            raw(java(
                &self.redis,
                name,
                &self.words.texts(&step["keys"]),
                &self.words.texts(&step["args"]),
            )
            .await)
        } else if let Some(name) = step["ours"].as_str() {
            let call = self.call(name, step).await;
            let cells = self.redis.cells(&call).await.unwrap();
            if name.ends_with(".acquire") && cells[0] == RespValue::Int(1) {
                let RespValue::Text(token) = &cells[1] else { panic!("no token: {cells:?}") };
                self.words.mean("$T", token.clone());
            }
            cells.iter().take(4).map(to_json).collect()
        } else {
            let words = self.words.texts(&step["redis"]);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            if words == ["FLUSHALL"] {
                self.since = self.redis.now_ms().await;
            }
            raw(self.redis.query(&words).await)
        }
    }

    async fn call(&self, name: &str, step: &Value) -> ScriptCall {
        let bound = self.bound(step).await;
        let request = calls::request(step["request"].as_u64().unwrap_or(1));
        let number = |field: &str| step[field].as_u64().unwrap_or(1);
        let key = step["name"].as_str().unwrap_or("myLock");
        let s = semaphore(key, u32::try_from(number("permits")).unwrap());
        let skew = step["skew"].as_u64().unwrap_or(1000);
        let p = permits(key, u16::try_from(number("permits")).unwrap(), skew);
        let once = |call: IdempotentCall| call.call(request, bound);
        let total = || PermitTotal::new(u32::try_from(step["total"].as_u64().unwrap()).unwrap());
        let more = || i32::try_from(step["more"].as_i64().unwrap()).unwrap();
        if let Some((kind, verb)) = name.split_once('.').filter(|(kind, _)| *kind != "l") {
            let target = if kind == "s" { held(&s) } else { batch(&p) };
            let owner = step["owner"].as_str().map(owner);
            let last = step["last"] == json!(true);
            match verb {
                "acquire" => {
                    return target.acquire(request, bound, &owner.unwrap(), lease(step), last);
                }
                "renew" => {
                    let token = calls::token(self.words.fill("$T").parse().unwrap());
                    return target.renew(request, bound, &owner.unwrap(), lease(step), token);
                }
                "release" => return target.release(request, bound, &owner.unwrap()),
                "inspect" => return target.inspect(request, owner),
                "clear" => return target.force_release(request, bound),
                _ => {}
            }
        }
        match name {
            "s.add" => once(s.add(more())),
            "s.addx" => once(s.add_if_exists(PermitCount::new(1).unwrap())),
            "s.drain" => once(s.drain()),
            "s.set" => once(s.try_set(total().unwrap(), life(step))),
            "p.add" => once(p.add(more())),
            "p.set" => once(p.set(total().unwrap())),
            "p.new" => once(p.try_set(total().unwrap())),
            "p.free" => once(p.release_ids(&self.ids(step))),
            "p.lease" => once(p.update_lease(&self.ids(step), lease(step))),
            "p.query" => p.inspect_ids(request, &self.ids(step)),
            "l.down" => once(latch(key).count_down()),
            "l.set" => once(latch(key).try_set(LatchCount::new(number("count")).unwrap())),
            "l.delete" => once(latch(key).delete()),
            "l.count" => latch(key).inspect(request),
            other => panic!("no call of ours is named {other}"),
        }
    }

    /// The bound of a step. `not_after` is relative to now: ten minutes by default, null for none.
    async fn bound(&self, step: &Value) -> Bound {
        let keep = Duration::from_millis(step["keep"].as_u64().unwrap_or(90_000));
        let later = step.get("not_after").map_or(Some(600_000), Value::as_i64);
        let now = i64::try_from(self.redis.now_ms().await).unwrap();
        let not_after = later.map(|later| u64::try_from(now + later).unwrap());
        Bound { not_after, keep }
    }

    fn ids(&self, step: &Value) -> Vec<PermitId> {
        self.words.texts(&step["ids"]).iter().map(|id| PermitId::parse(id).unwrap()).collect()
    }
}

fn owner(letter: &str) -> OwnerId {
    calls::owner(letter.as_bytes()[0] - b'A' + 1)
}

fn lease(step: &Value) -> LeaseTime {
    step["lease"].as_u64().map_or(LeaseTime::ENDLESS, calls::lease)
}

fn life(step: &Value) -> Option<LifeTime> {
    step["life"].as_u64().map(|ms| LifeTime::new(Duration::from_millis(ms)).unwrap())
}

fn to_json(cell: &RespValue) -> Value {
    match cell {
        RespValue::Int(number) => json!(number),
        RespValue::Text(text) => json!(text),
    }
}
