//! The keys of a fair read-write lock: in one slot, each with an expiry, and beside the keys of
//! every other object of the same name, Redisson's included.

use std::collections::BTreeSet;

use edgelatch_proto::name::LockName;
use edgelatch_proto::protocol::calls::FairMode;
use edgelatch_proto::protocol::reply::Code;
use edgelatch_proto::protocol::script::{Publish, ScriptCall};
use edgelatch_proto::protocol::slot::slot;

use super::fixtures::{FairRw, exclusive, first, in_time, shared};
use test_support::every_call::every_call;
use test_support::redis::Redis;

const NAMES: [&str; 5] = ["job", "x{a}b", "{job}", "{a}:frw", "é/?# \""];

/// Calls that write every key.
async fn conversation(redis: &Redis, lock: &FairRw) -> Vec<ScriptCall> {
    let within = in_time(redis).await;
    vec![
        lock.acquire(exclusive(1)),
        lock.acquire(exclusive(2)),
        lock.acquire(shared(3)),
        lock.acquire(shared(4).at_last()),
        lock.acquire(exclusive(5).after(2)),
        lock.query(""),
        lock.acquire(first(6, FairMode::Steal).within(within)),
        lock.force_release(1, within),
        lock.acquire(exclusive(5).nth(2)),
    ]
}

/// Rule N4.
#[tokio::test]
async fn every_key_is_in_the_slot_of_the_name_and_expires() {
    let redis = Redis::start().await;
    for name in NAMES {
        redis.query::<String>(&["FLUSHALL"]).await;
        let lock = FairRw::new(name);
        let mut stored = BTreeSet::new();
        for call in conversation(&redis, &lock).await {
            assert_eq!(call.keys().iter().map(|key| slot(key)).collect::<BTreeSet<_>>().len(), 1);
            redis.run(&call).await;
            for (key, entry) in redis.dump().await {
                assert!(key.starts_with("el:") && slot(&key) == slot(name), "{key}");
                assert!(entry.ttl > 0, "{key}");
                stored.insert(key);
            }
        }
        for suffix in ["holders", "queue", "writers", "beats", "last"] {
            assert!(stored.contains(&lock.key(suffix)), "{suffix}");
        }
        assert!(
            stored.contains(&lock.registry("names")) && stored.contains(&lock.registry("ends"))
        );
    }
}

#[tokio::test]
async fn a_tag_in_braces_spells_the_same_lock() {
    let redis = Redis::start().await;
    let (plain, tagged) = (FairRw::new("job"), FairRw::new("{job}"));
    assert_eq!(plain.acquire(exclusive(1)).keys(), tagged.acquire(exclusive(1)).keys());
    redis.run(&plain.acquire(exclusive(1))).await;
    assert_eq!(redis.run(&tagged.acquire(exclusive(2))).await.code, Code::No);
}

/// The keys of all other objects with this name.
fn others(name: &str) -> BTreeSet<String> {
    let calls = every_call(name, "other", Publish::Plain).into_iter();
    let calls = calls.filter(|known| !known.call.script().name.starts_with("fair_rw_"));
    calls.flat_map(|known| known.call.keys().to_vec()).filter(|key| key != "other").collect()
}

/// No key is one that an object of another kind uses, except for the records of owners and
/// requests, which are random.
#[test]
fn no_key_is_that_of_another_object() {
    for name in NAMES {
        let lock = FairRw::new(name);
        let state = ["holders", "queue", "writers", "beats", "last"].map(|suffix| lock.key(suffix));
        let all: Vec<String> =
            state.into_iter().chain(["names", "ends"].map(|key| lock.registry(key))).collect();
        // The names of other objects may be spelled like the beginnings of these keys.
        let form = lock.form();
        let spelled = [name.to_owned(), format!("{form}:frw"), "{a}:frw".to_owned(), form];
        for other in spelled.iter().filter(|other| LockName::parse(other).is_ok()) {
            let others = others(other);
            assert!(all.iter().all(|key| !others.contains(key)), "{name} and {other}");
        }
    }
}

/// Redisson's objects of the same name keep their bytes.
#[tokio::test]
async fn the_keys_of_redisson_s_objects_of_the_same_name_are_left_alone() {
    let redis = Redis::start().await;
    let java = "8743c9c0-0795-4907-87fd-6c719a6b4586:1";
    let timeout = format!("{{job}}:{java}:rwlock_timeout:1");
    let lock = FairRw::new("job");
    // Locks, a read-write lock, a fair lock and a fenced lock; then semaphores and latches.
    let hashes = [vec![java, "1"], vec!["mode", "read", java, "2"]];
    let values: Vec<Vec<&str>> = hashes
        .iter()
        .map(|fields| [&["HSET", "job"], fields.as_slice()].concat())
        .chain([vec!["SET", "job", "7"]])
        .collect();
    let beside = [
        vec!["SET", "redisson_lock_token:{job}", "41"],
        vec!["RPUSH", "redisson_lock_queue:{job}", java],
        vec!["ZADD", "redisson_lock_timeout:{job}", "1700000000000", java],
        vec!["ZADD", "{job}:timeout", "1700000000000", "0123456789abcdef"],
        vec!["SET", &timeout, "1"],
        vec!["SET", "redisson_unlock_latch:{job}:1", "1"],
    ];
    for value in values {
        redis.query::<String>(&["FLUSHALL"]).await;
        for words in beside.iter().chain([&value]) {
            redis.query::<redis::Value>(words).await;
        }
        redis.query::<u64>(&["PEXPIRE", "job", "600000"]).await;
        let theirs = async || -> Vec<_> {
            let all = redis.dump().await.into_iter();
            all.filter(|(key, _)| !key.starts_with("el:"))
                .map(|(key, stored)| (key, stored.value, stored.ends_at))
                .collect()
        };
        let before = theirs().await;
        assert_eq!(before.len(), 7);
        let steps = conversation(&redis, &lock).await;
        let codes = [1, 0, 0, 0, 0, 1, 1, 1, 1];
        for (call, code) in steps.iter().zip(codes) {
            assert_eq!(redis.run(call).await.code as i64, code, "{}", call.script().name);
            assert_eq!(before, theirs().await, "{}", call.script().name);
        }
    }
}

/// The registry does not grow by names that no client uses any more.
#[tokio::test]
async fn names_whose_time_is_over_leave_the_registry() {
    let redis = Redis::start().await;
    let names: Vec<String> = (0..10).map(|number| format!("{{tenant}}:{number}")).collect();
    let lock = FairRw::new("{tenant}:0");
    for name in names.clone() {
        let lock = FairRw::new(name.leak());
        redis.run(&lock.acquire(exclusive(1).for_ms(1_000))).await;
        redis.query::<u64>(&["UNLINK", &lock.key("holders"), &lock.latch(1)]).await;
    }
    let registered = async || redis.query::<u64>(&["ZCARD", &lock.registry("names")]).await;
    assert_eq!(registered().await, 10);
    lock.age(&redis, 60_000).await;
    // Each call removes four of them.
    for (owner, left) in [(2, 7), (3, 3), (4, 1)] {
        redis.run(&lock.acquire(shared(owner))).await;
        assert_eq!(registered().await, left, "{owner}");
    }
    // A name leaves with its last owner.
    for owner in 2..=4 {
        redis.run(&lock.release(shared(owner))).await;
    }
    assert_eq!(registered().await, 0);
}
