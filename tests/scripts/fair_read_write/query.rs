//! The query of all holds and waits of a namespace.

use std::collections::BTreeSet;
use std::time::Duration;

use edgelatch_proto::protocol::calls::{QueryEntry, QuerySlice};
use edgelatch_proto::protocol::reply::{Code, Reply};

use super::fixtures::{Attempt, CLIENT, FairRw, LIFE_MS, exclusive, shared};
use test_support::calls::{field, numbered_owner};
use test_support::redis::Redis;
use test_support::work::EditableCall;

/// The sizes of one slice.
#[derive(Clone, Copy, Debug)]
struct Slices {
    entries: u32,
    names: u32,
}

const WHOLE: Slices = Slices { entries: 256, names: 64 };

async fn slice(redis: &Redis, lock: &FairRw, cursor: &str, size: Slices) -> QuerySlice {
    let mut call = EditableCall::from(&lock.query(cursor));
    call.args[5] = size.entries.to_string();
    call.args[6] = size.names.to_string();
    let (code, value, ms, server_ms, _): (i64, String, i64, u64, String) =
        redis.send(call.command()).await.unwrap();
    assert_eq!(code, 1);
    let reply = Reply { code: Code::Done, value, ms, server_ms, acknowledged: None };
    let slice = QuerySlice::read(&reply).unwrap();
    assert_eq!(slice.entries.len(), usize::try_from(ms).unwrap());
    assert!(slice.entries.len() <= size.entries.try_into().unwrap());
    slice
}

/// All entries; `between` runs after each slice.
async fn list(
    redis: &Redis,
    lock: &FairRw,
    size: Slices,
    mut between: impl AsyncFnMut(usize),
) -> Vec<QueryEntry> {
    let (mut entries, mut cursor) = (Vec::new(), String::new());
    for number in 0.. {
        let slice = slice(redis, lock, &cursor, size).await;
        entries.extend(slice.entries);
        let Some(next) = slice.cursor else { break };
        cursor = next;
        between(number).await;
    }
    entries
}

/// Name, mode, hold or wait.
fn shown(entries: &[QueryEntry]) -> Vec<(&str, bool, bool)> {
    entries.iter().map(|entry| (&*entry.name, entry.is_exclusive, entry.is_held)).collect()
}

/// Three names of one namespace, and one of another.
async fn stage(redis: &Redis) -> FairRw {
    let lock = FairRw::new("{job}:b");
    let tries = async |name, attempt: Attempt| {
        redis.run(&FairRw::new(name).acquire(attempt)).await;
    };
    tries("{job}:b", shared(1).for_ms(40_000)).await;
    tries("{job}:b", shared(2)).await;
    tries("{job}:b", exclusive(3)).await;
    tries("{job}:b", shared(4)).await;
    tries("job", exclusive(1)).await;
    tries("job", exclusive(2)).await;
    tries("{job}:c", shared(5)).await;
    tries("other", exclusive(1)).await;
    lock
}

const ALL: [(&str, bool, bool); 7] = [
    ("job", true, true),
    ("job", true, false),
    ("{job}:b", false, true),
    ("{job}:b", false, true),
    ("{job}:b", true, false),
    ("{job}:b", false, false),
    ("{job}:c", false, true),
];

#[tokio::test]
async fn all_holds_and_waits_of_a_namespace_are_listed_without_their_owners() {
    let redis = Redis::start().await;
    let lock = stage(&redis).await;
    let entries = list(&redis, &lock, WHOLE, async |_| {}).await;
    assert_eq!(shown(&entries), ALL);
    let left = entries.iter().map(|entry| entry.remaining).collect::<Vec<_>>();
    let s = Duration::from_secs;
    // Holders by the end of their leases.
    assert!(left[2] <= s(30) && left[3] > s(30) && left[4] <= s(10), "{left:?}");
    assert!(entries.iter().all(|entry| entry.client_id == CLIENT && entry.id.len() == 16));
    let ids: BTreeSet<_> = entries.iter().map(|entry| &entry.id).collect();
    assert_eq!(ids.len(), ALL.len());
}

/// An owner is the right to release: neither entries nor cursors contain it.
#[tokio::test]
async fn a_reply_contains_no_owner() {
    let redis = Redis::start().await;
    let lock = stage(&redis).await;
    let (mut cursor, mut slices) = (String::new(), 0);
    loop {
        let slice = slice(&redis, &lock, &cursor, Slices { entries: 1, names: 1 }).await;
        let text = format!("{slice:?}");
        assert!((1..=5).all(|owner| !text.contains(&field(&numbered_owner(owner)))), "{text}");
        slices += 1;
        let Some(next) = slice.cursor else { break };
        cursor = next;
    }
    assert!(slices >= 7, "{slices}");
}

#[tokio::test]
async fn slices_of_every_size_return_each_entry_once() {
    let redis = Redis::start().await;
    let lock = stage(&redis).await;
    for entries in 1..=8 {
        for names in 1..=4 {
            let size = Slices { entries, names };
            assert_eq!(shown(&list(&redis, &lock, size, async |_| {}).await), ALL, "{size:?}");
        }
    }
}

/// A renewal moves a holder behind the cursor, never in front of it; and leases may end together.
#[tokio::test]
async fn holders_that_renew_between_two_slices_are_not_missed() {
    let redis = Redis::start().await;
    let lock = FairRw::new("job");
    for together in [false, true] {
        redis.query::<String>(&["FLUSHALL"]).await;
        let mut grant = 0;
        for owner in 1..=9 {
            let attempt = shared(owner).for_ms(30_000 + u64::from(owner) * 100);
            grant = redis.run(&lock.acquire(attempt)).await.value.parse().unwrap();
        }
        let ends = redis.now_ms().await + 30_000;
        for owner in 1..=9 {
            if together {
                let member = shared(owner).member();
                redis
                    .query::<u64>(&["ZADD", &lock.key("holders"), &ends.to_string(), &member])
                    .await;
            }
        }
        for entries in 1..=4 {
            let renew = async |number: usize| {
                // Each holder once: the query would not end while they renew faster than it reads.
                let owner = 1 + u32::try_from(number).unwrap();
                if owner > 9 {
                    return;
                }
                let renew = lock.renew(shared(owner).for_ms(60_000), grant);
                assert_eq!(redis.run(&renew).await.code, Code::Done);
            };
            let all = list(&redis, &lock, Slices { entries, names: 64 }, renew).await;
            let ids: BTreeSet<&str> = all.iter().map(|entry| &*entry.id).collect();
            assert_eq!(ids.len(), 9, "{together} {entries}: {all:?}");
        }
    }
}

#[tokio::test]
async fn dead_entries_are_not_listed_and_their_names_leave_the_registry() {
    let redis = Redis::start().await;
    let lock = stage(&redis).await;
    // Waiters die; the hold of owner 1 lasts longer than the others.
    lock.age(&redis, LIFE_MS).await;
    let entries = list(&redis, &lock, WHOLE, async |_| {}).await;
    let held: Vec<_> = entries.iter().filter(|entry| entry.name == "{job}:b").collect();
    assert!(held.len() == 2 && held.iter().all(|entry| entry.is_held));
    lock.age(&redis, 25_000).await;
    assert_eq!(shown(&list(&redis, &lock, WHOLE, async |_| {}).await).len(), 4);
    lock.age(&redis, 10_000).await;
    let entries = list(&redis, &lock, WHOLE, async |_| {}).await;
    assert!(entries.iter().all(|entry| entry.name != "{job}:b"), "{entries:?}");
    let names: Vec<String> = redis.query(&["ZRANGE", &lock.registry("names"), "0", "-1"]).await;
    assert_eq!(names, ["{job}", "{job}:c"]);
}

/// Rule W17.
#[tokio::test]
async fn a_registry_that_was_lost_comes_back_with_polls_and_renewals() {
    let redis = Redis::start().await;
    let lock = FairRw::new("job");
    let grant: u64 = redis.run(&lock.acquire(exclusive(1))).await.value.parse().unwrap();
    redis.run(&lock.acquire(shared(2))).await;
    for call in [
        lock.acquire(shared(2).nth(2)),
        lock.renew(exclusive(1), grant),
        lock.acquire(exclusive(1).nth(2)),
    ] {
        redis.query::<u64>(&["DEL", &lock.registry("names"), &lock.registry("ends")]).await;
        assert_eq!(list(&redis, &lock, WHOLE, async |_| {}).await, []);
        redis.run(&call).await;
        assert_eq!(list(&redis, &lock, WHOLE, async |_| {}).await.len(), 2);
    }
}
