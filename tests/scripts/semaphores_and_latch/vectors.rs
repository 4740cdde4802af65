//! `tests/vectors/{semaphore,permits,count_down_latch}.json`: edgelatch's scripts and Redisson's on
//! the same keys, byte for byte.

use serde_json::{Map, Value, json};

use super::vector_runner::Bench;
use crate::scripts::vector_commands::Words;
use test_support::redis::{Content, Keyspace, Redis};
use test_support::script_model::holds::raw;

#[tokio::test]
async fn a_semaphore_is_redisson_s_byte_for_byte() {
    run(include_str!("../../vectors/semaphore.json")).await;
}

#[tokio::test]
async fn a_permit_expirable_semaphore_is_redisson_s_byte_for_byte() {
    run(include_str!("../../vectors/permits.json")).await;
}

#[tokio::test]
async fn a_count_down_latch_is_redisson_s_byte_for_byte() {
    run(include_str!("../../vectors/count_down_latch.json")).await;
}

async fn run(document: &str) {
    let document: Value = serde_json::from_str(document).unwrap();
    let mut bench = Bench::new(Redis::start().await, Words::of(&document));
    for vector in document["vectors"].as_array().unwrap() {
        check(&mut bench, vector).await;
    }
}

async fn check(bench: &mut Bench, vector: &Value) {
    let name = vector["name"].as_str().unwrap();
    for step in vector.get("given").and_then(Value::as_array).into_iter().flatten() {
        bench.run(step).await;
    }
    bench.redis.published().await;
    let before = bench.redis.now_ms().await;
    let answer = bench.run(&vector["call"]).await;
    let published = bench.redis.published().await;
    let keyspace = bench.redis.dump().await;
    let now = bench.redis.now_ms().await;
    let spent = Spent { since: bench.since, before, now };
    compare(bench, &vector["reply"], &answer, &spent, name);
    let messages: Vec<Value> = published.iter().map(|(to, what)| json!([to, what])).collect();
    assert_eq!(vector["published"], Value::Array(messages), "{name}");
    compare_state(bench, vector["state"].as_object().unwrap(), &keyspace, &spent, name);
}

/// Redis' clock: when the database was emptied, before the call, and after it.
struct Spent {
    since: u64,
    before: u64,
    now: u64,
}

impl Spent {
    /// Whether `ms` is the remaining part of `most`, which began after the database was emptied.
    fn is_left_of(&self, ms: i64, most: i64) -> bool {
        let least = most - i64::try_from(self.now - self.since).unwrap() - 1;
        (least..=most).contains(&ms)
    }

    /// Whether `at` is later by `later` than a time after the database was emptied.
    fn is_later_by(&self, at: i64, later: i64) -> bool {
        let from = at - later;
        (i64::try_from(self.since).unwrap()..=i64::try_from(self.now).unwrap()).contains(&from)
    }
}

/// Compares the first elements of an edgelatch reply, or all of a Java result.
fn compare(bench: &Bench, wanted: &Value, answer: &Value, spent: &Spent, name: &str) {
    match (wanted, answer) {
        (Value::Array(wanted), Value::Array(answer)) => {
            assert!(wanted.len() <= answer.len(), "{name}");
            let pairs = wanted.iter().zip(answer);
            pairs.for_each(|(wanted, answer)| compare(bench, wanted, answer, spent, name));
        }
        // The newest token that Redis' clock allows.
        (Value::String(text), _) if text == "$new" => {
            let token: u64 = answer.as_str().unwrap().parse().unwrap();
            assert!((spent.before * 1000..(spent.now + 1) * 1000).contains(&token), "{name}");
        }
        (Value::String(text), _) => match text.strip_prefix("<=") {
            Some(most) => {
                let ms = answer.as_i64().unwrap();
                assert!(spent.is_left_of(ms, most.parse().unwrap()), "{name}: {ms}");
            }
            None => assert_eq!(json!(bench.words.fill(text)), *answer, "{name}"),
        },
        _ => assert_eq!(wanted, answer, "{name}"),
    }
}

fn compare_state(
    bench: &Bench,
    wanted: &Map<String, Value>,
    keyspace: &Keyspace,
    spent: &Spent,
    name: &str,
) {
    let mut keys: Vec<String> = wanted.keys().map(|key| bench.words.fill(key)).collect();
    keys.sort();
    assert_eq!(keys, keyspace.keys().cloned().collect::<Vec<_>>(), "{name}");
    for (key, wanted) in wanted {
        let key = bench.words.fill(key);
        let stored = &keyspace[&key];
        match (&stored.value, &wanted["sorted"]) {
            (Content::Sorted(members), Value::Object(scores)) => {
                assert_eq!(members.len(), scores.len(), "{name}: {key}: {members:?}");
                for (member, score) in scores {
                    let member = bench.words.fill(member);
                    let member = member.strip_prefix("hex:").map(raw).unwrap_or(member);
                    let at = *members.get(&member).unwrap_or_else(|| panic!("{name}: {members:?}"));
                    assert_score(at, score, spent, name);
                }
            }
            (Content::Text(text), _) => {
                assert_eq!(
                    *text,
                    bench.words.fill(wanted["text"].as_str().unwrap()),
                    "{name}: {key}"
                );
            }
            other => panic!("{name}: {key}: {other:?}"),
        }
        match wanted["ttl"].as_str() {
            Some(most) => {
                let most = most.strip_prefix("<=").unwrap().parse().unwrap();
                assert!(spent.is_left_of(stored.ttl, most), "{name}: {key}: {}", stored.ttl);
            }
            None => assert_eq!(Some(stored.ttl), wanted["ttl"].as_i64(), "{name}: {key}"),
        }
    }
}

/// A number, or `+` and the difference to Redis' clock.
fn assert_score(at: f64, wanted: &Value, spent: &Spent, name: &str) {
    assert_eq!(at.fract(), 0.0, "{name}: {at}");
    let at: i64 = format!("{at:.0}").parse().unwrap();
    match wanted.as_str().and_then(|text| text.strip_prefix('+')) {
        Some(later) => assert!(spent.is_later_by(at, later.parse().unwrap()), "{name}: {at}"),
        None => assert_eq!(Some(at), wanted.as_i64(), "{name}"),
    }
}
