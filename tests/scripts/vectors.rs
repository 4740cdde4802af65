//! `tests/vectors/lock.json`, and the runner for the vectors of the other objects: edgelatch's
//! scripts and Redisson's behaviour on the same keys, byte for byte.

use std::time::Duration;

use edgelatch_proto::protocol::reply::{Code, Reply};
use edgelatch_proto::protocol::script::{Bound, ScriptCall};
use serde_json::{Map, Value, json};

use super::vector_commands::{Words, raw};
use test_support::calls;
use test_support::redis::{Content, Keyspace, Redis};

const VECTORS: &str = include_str!("../vectors/lock.json");

#[tokio::test]
async fn every_call_leaves_the_keys_of_its_vector() {
    check_all(VECTORS, &JAVA, |step| calls::lock(step["lock"].as_str().unwrap_or("myLock"))).await;
}

/// Runs all vectors of a document. `java` has Redisson's scripts by name; `target` returns the
/// target of an edgelatch call.
pub(crate) async fn check_all(
    document: &str,
    java: &'static [(&'static str, &'static str)],
    target: fn(&Value) -> calls::Calls,
) {
    let document: Value = serde_json::from_str(document).unwrap();
    let mut bench = Bench::new(Redis::start().await, Words::of(&document), java, target);
    for vector in document["vectors"].as_array().unwrap() {
        bench.check(vector).await;
    }
}

/// Redisson's scripts, re-implemented.
const JAVA: [(&str, &str); 5] = [
    ("acquire", include_str!("java/acquire.lua")),
    ("unlock", include_str!("java/unlock.lua")),
    ("force_unlock", include_str!("java/force_unlock.lua")),
    ("renew", include_str!("java/renew.lua")),
    ("token_acquire", include_str!("java/token_acquire.lua")),
];

struct Bench {
    redis: Redis,
    java: &'static [(&'static str, &'static str)],
    target: fn(&Value) -> calls::Calls,
    words: Words,
    /// Redis' clock when the database was last emptied: no key is older.
    since: u64,
}

impl Bench {
    fn new(
        redis: Redis,
        mut words: Words,
        java: &'static [(&'static str, &'static str)],
        target: fn(&Value) -> calls::Calls,
    ) -> Self {
        for (word, number) in [("$A", 1), ("$B", 2), ("$C", 3)] {
            words.mean(word, calls::field(&calls::owner(number)));
        }
        Self { redis, java, target, words, since: 0 }
    }

    async fn check(&mut self, vector: &Value) {
        let name = vector["name"].as_str().unwrap();
        for step in vector.get("given").and_then(Value::as_array).into_iter().flatten() {
            self.run(step).await;
        }
        self.redis.published().await;
        let before = self.redis.now_ms().await;
        let answer = self.run(&vector["call"]).await;
        let wanted = with_new_token(&vector["reply"], &answer, before);
        let published = self.redis.published().await;
        let keyspace = self.redis.dump().await;
        let elapsed = self.redis.now_ms().await - self.since;
        self.compare(&wanted, &answer, elapsed, name);
        let messages: Vec<Value> = published.iter().map(|(to, what)| json!([to, what])).collect();
        assert_eq!(vector["published"], Value::Array(messages), "{name}");
        self.compare_state(vector["state"].as_object().unwrap(), &keyspace, elapsed, name);
    }

    async fn run(&mut self, step: &Value) -> Value {
        if let Some(name) = step["java"].as_str() {
            self.run_java(name, step).await
        } else if let Some(name) = step["ours"].as_str() {
            let call = self.ours(name, step).await;
            let reply = self.redis.run(&call).await;
            if name == "acquire" && reply.code == Code::Done {
                let token: u64 = reply.value.parse().unwrap();
                self.words.mean("$T", token.to_string());
                self.words.mean("$T+1", (token + 1).to_string());
            }
            if name == "release" && reply.value != "0" {
                self.words.mean("$E", reply.value.clone());
            }
            to_json(&reply)
        } else {
            let words = self.words.texts(&step["redis"]);
            self.query(&words).await;
            if words == ["FLUSHALL"] {
                self.since = self.redis.now_ms().await;
            }
            Value::Null
        }
    }

    async fn run_java(&self, name: &str, step: &Value) -> Value {
        let (_, source) = self.java.iter().find(|(java, _)| *java == name).unwrap();
        let keys = self.words.texts(&step["keys"]);
        let mut words = vec!["EVAL".to_owned(), (*source).to_owned(), keys.len().to_string()];
        words.extend(keys);
        words.extend(self.words.texts(&step["args"]));
        self.query(&words).await
    }

    async fn query(&self, words: &[String]) -> Value {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        raw(self.redis.query(&words).await)
    }

    /// An edgelatch call. A bound that starts with `+` is relative to Redis' current clock.
    async fn ours(&self, name: &str, step: &Value) -> ScriptCall {
        let not_after = match &step["not_after"] {
            Value::String(later) => {
                Some(self.redis.now_ms().await + later[1..].parse::<u64>().unwrap())
            }
            number => number.as_u64(),
        };
        let keep = Duration::from_millis(step["keep"].as_u64().unwrap_or(0));
        let bound = Bound { not_after, keep };
        let request = calls::request(step["request"].as_u64().unwrap());
        let owner =
            step["owner"].as_str().map(|owner| calls::owner(owner.as_bytes()[0] - b'A' + 1));
        let held_by = || owner.unwrap();
        let lease = || calls::lease(step["lease"].as_u64().unwrap());
        let lock = (self.target)(step);
        match name {
            "acquire" => {
                lock.acquire(request, bound, &held_by(), lease(), step["last"] == json!(true))
            }
            "renew" => {
                let token = self.words.fill(step["token"].as_str().unwrap()).parse().unwrap();
                lock.renew(request, bound, &held_by(), lease(), calls::token(token))
            }
            "release" => lock.release(request, bound, &held_by()),
            "force_release" => lock.force_release(request, bound),
            "inspect" => lock.inspect(request, owner),
            other => panic!("no call of ours is named {other}"),
        }
    }

    /// Compares the first elements of an edgelatch reply, or all of a Java result.
    fn compare(&self, wanted: &Value, answer: &Value, elapsed: u64, name: &str) {
        match (wanted, answer) {
            (Value::Array(wanted), Value::Array(answer)) => {
                assert!(wanted.len() <= answer.len(), "{name}");
                for (wanted, answer) in wanted.iter().zip(answer) {
                    self.compare(wanted, answer, elapsed, name);
                }
            }
            (Value::String(text), _) => match text.strip_prefix("<=") {
                Some(most) => {
                    let most = most.parse().unwrap();
                    assert_within(answer.as_i64().unwrap(), most, elapsed, name);
                }
                // A Java token is a number, an edgelatch token is text.
                None => assert_eq!(self.words.fill(text), text_of(answer), "{name}"),
            },
            _ => assert_eq!(wanted, answer, "{name}"),
        }
    }

    fn compare_state(
        &self,
        wanted: &Map<String, Value>,
        keyspace: &Keyspace,
        elapsed: u64,
        name: &str,
    ) {
        let keys: Vec<String> = wanted.keys().map(|key| self.words.fill(key)).collect();
        let mut sorted = keys.clone();
        sorted.sort();
        assert_eq!(sorted, keyspace.keys().cloned().collect::<Vec<_>>(), "{name}");
        for (key, wanted) in keys.iter().zip(wanted.values()) {
            let stored = &keyspace[key];
            let content = match (&wanted["hash"], &wanted["text"]) {
                (Value::Object(fields), _) => Content::Hash(
                    fields
                        .iter()
                        .map(|(field, count)| {
                            (self.words.fill(field), count.as_str().unwrap().to_owned())
                        })
                        .collect(),
                ),
                (_, text) => Content::Text(self.words.fill(text.as_str().unwrap())),
            };
            assert_eq!(stored.value, content, "{name}: {key}");
            match wanted["ttl"].as_str() {
                Some(most) => {
                    let most = most.strip_prefix("<=").unwrap().parse().unwrap();
                    assert_within(stored.ttl, most, elapsed, &format!("{name}: {key}"));
                }
                None => assert_eq!(Some(stored.ttl), wanted["ttl"].as_i64(), "{name}: {key}"),
            }
        }
    }
}

/// `$new` is any token that Redis' clock allows between `before_ms` and the script's own reading;
/// afterwards it is `$T`.
fn with_new_token(reply: &Value, answer: &Value, before_ms: u64) -> Value {
    if reply.get(1) != Some(&json!("$new")) {
        return reply.clone();
    }
    let token: u64 = answer[1].as_str().unwrap().parse().unwrap();
    let after_us = answer[3].as_u64().unwrap() * 1000 + 999;
    assert!((before_ms * 1000..=after_us).contains(&token), "{token} is Redis' time");
    json!([reply[0], "$T", reply[2]])
}

/// Asserts that `ms` is at most `most`, and less by at most the elapsed time.
pub(crate) fn assert_within(ms: i64, most: i64, elapsed: u64, name: &str) {
    let least = most - i64::try_from(elapsed).unwrap() - 1;
    assert!((least..=most).contains(&ms), "{name}: {ms} is not within {least} and {most}");
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}

/// A reply in the form of the vectors.
fn to_json(reply: &Reply) -> Value {
    let code = reply.code as i64;
    json!([code, reply.value, reply.ms, reply.server_ms])
}
