//! `tests/vectors/fair.json`: the keys that the re-implementations of Redisson's scripts leave,
//! byte for byte.

use std::collections::BTreeMap;

use redis::Value as Raw;
use serde_json::{Value, json};

use test_support::redis::{Content, Redis, Stored};

const VECTORS: &str = include_str!("../../vectors/fair.json");
const SWEEP: &str = include_str!("../java/fair_sweep.lua");

/// The scripts, and the keys of each.
const JAVA: [(&str, &str, &[&str]); 5] = [
    ("fair_acquire", include_str!("../java/fair_acquire.lua"), &["myLock", QUEUE, TIMEOUTS]),
    ("fair_once", include_str!("../java/fair_once.lua"), &["myLock", QUEUE, TIMEOUTS]),
    (
        "fair_unlock",
        include_str!("../java/fair_unlock.lua"),
        &["myLock", QUEUE, TIMEOUTS, CHANNEL, "redisson_unlock_latch:{myLock}:$R"],
    ),
    ("fair_give_up", include_str!("../java/fair_give_up.lua"), &[QUEUE, TIMEOUTS]),
    (
        "fair_force_unlock",
        include_str!("../java/fair_force_unlock.lua"),
        &["myLock", QUEUE, TIMEOUTS, CHANNEL],
    ),
];
const QUEUE: &str = "redisson_lock_queue:{myLock}";
const TIMEOUTS: &str = "redisson_lock_timeout:{myLock}";
const CHANNEL: &str = "redisson_lock__channel:{myLock}";

#[tokio::test]
async fn every_call_of_java_leaves_the_keys_of_its_vector() {
    let document: Value = serde_json::from_str(VECTORS).unwrap();
    let mut bench = Bench { redis: Redis::start().await, words: document["words"].clone() };
    let mut since = 0;
    for vector in document["vectors"].as_array().unwrap() {
        let name = vector["name"].as_str().unwrap();
        for step in vector["given"].as_array().into_iter().flatten() {
            if *step == json!({"redis": ["FLUSHALL"]}) {
                since = bench.redis.now_ms().await;
            }
            bench.run(step).await;
        }
        bench.redis.published().await;
        let reply = bench.run(&vector["call"]).await;
        assert_eq!(reply, vector["reply"], "{name}");
        let said: Vec<Value> =
            bench.redis.published().await.into_iter().map(|(to, what)| json!([to, what])).collect();
        assert_eq!(bench.fill(&vector["published"]), Value::Array(said), "{name}");
        let state = bench.redis.dump().await;
        let elapsed = i64::try_from(bench.redis.now_ms().await - since).unwrap();
        compare(&bench.fill(&vector["state"]), &state, elapsed, name);
    }
}

struct Bench {
    redis: Redis,
    words: Value,
}

impl Bench {
    async fn run(&self, step: &Value) -> Value {
        let step = self.fill(step);
        let texts = |list: &Value| -> Vec<String> { serde_json::from_value(list.clone()).unwrap() };
        let words = match step["java"].as_str() {
            None => texts(&step["redis"]),
            Some(name) => {
                let (_, script, keys) = JAVA.iter().find(|(java, ..)| *java == name).unwrap();
                let head = ["EVAL".to_owned(), SWEEP.to_owned() + script, keys.len().to_string()];
                let keys = texts(&self.fill(&json!(keys)));
                [head.to_vec(), keys, texts(&step["args"])].concat()
            }
        };
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match self.redis.query(&words).await {
            Raw::Nil => Value::Null,
            Raw::Int(number) => json!(number),
            _ => Value::Null,
        }
    }

    /// The value with all words replaced.
    fn fill(&self, value: &Value) -> Value {
        let words = self.words.as_object().unwrap();
        let text = words.iter().fold(value.to_string(), |text, (word, said)| {
            text.replace(word, said.as_str().unwrap())
        });
        serde_json::from_str(&text).unwrap()
    }
}

fn compare(wanted: &Value, state: &BTreeMap<String, Stored>, elapsed: i64, name: &str) {
    let wanted: BTreeMap<&String, &Value> = wanted.as_object().unwrap().iter().collect();
    assert!(wanted.keys().copied().eq(state.keys()), "{name}: {state:?}");
    for (stored, wanted) in state.values().zip(wanted.values()) {
        let value = match &stored.value {
            Content::Text(text) => json!({ "text": text }),
            Content::Hash(fields) => json!({ "hash": fields }),
            Content::List(elements) => json!({ "list": elements }),
            Content::Sorted(members) => {
                #[expect(clippy::cast_possible_truncation, reason = "scores are whole")]
                let whole: BTreeMap<_, _> =
                    members.iter().map(|(member, score)| (member, *score as i64)).collect();
                json!({ "sorted": whole })
            }
        };
        for (kind, value) in value.as_object().unwrap() {
            assert_eq!(*value, wanted[kind], "{name}");
        }
        match wanted["ttl"].as_str().and_then(|most| most.strip_prefix("<=")?.parse::<i64>().ok()) {
            Some(most) => {
                let fits = (most - elapsed - 1..=most).contains(&stored.ttl);
                assert!(fits, "{name}: {} of {most} after {elapsed}", stored.ttl);
            }
            None => assert_eq!(Some(stored.ttl), wanted["ttl"].as_i64(), "{name}"),
        }
    }
}
