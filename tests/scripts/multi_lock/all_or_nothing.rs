//! All or nothing, case by case.

use edgelatch_proto::protocol::reply::Code;

use super::{locks, token_key};
use test_support::calls::{UNBOUND, field, lease, lock, owner, request, token};
use test_support::redis::{Content, Redis};

const ABC: [&str; 3] = ["a", "b", "fc"];

/// Acquires all three locks as owner 1; returns the token.
async fn taken(redis: &Redis) -> u64 {
    let take = locks(&ABC).acquire(request(1), UNBOUND, &owner(1), lease(30_000), false);
    let reply = redis.run(&take).await;
    assert_eq!((reply.code, reply.ms), (Code::Done, 30_000));
    reply.value.parse().unwrap()
}

/// Everything that is stored, except for latches.
async fn stored(redis: &Redis) -> Vec<(String, Content)> {
    let all = redis.dump().await.into_iter().filter(|(key, _)| !key.starts_with("el:"));
    all.map(|(key, stored)| (key, stored.value)).collect()
}

#[tokio::test]
async fn each_member_is_held_as_if_it_had_been_acquired_alone() {
    let redis = Redis::start().await;
    let grant = taken(&redis).await;
    for name in ABC {
        let state = redis.run(&lock(name).inspect(request(2), Some(owner(1)))).await;
        assert_eq!((state.code, state.value), (Code::Done, format!("{grant},1,1")), "{name}");
        let alone = lock(name).acquire(request(3), UNBOUND, &owner(2), lease(30_000), false);
        assert_eq!(redis.run(&alone).await.code, Code::No, "{name}");
        let entry: u64 = redis.query(&["HGET", name, &field(&owner(1))]).await;
        assert_eq!(entry, 1);
        assert!(redis.query::<i64>(&["PTTL", name]).await > 20_000);
    }
    // Only the keys that Redisson keeps without an expiry have none.
    for (name, ends) in [("a", true), ("b", true), ("fc", false)] {
        let left: i64 = redis.query(&["PTTL", &token_key(name)]).await;
        assert_eq!(left > 80_000_000, ends, "{name}: {left}");
        assert_eq!(left == -1, !ends, "{name}: {left}");
    }
}

#[tokio::test]
async fn one_member_that_is_held_refuses_all_and_nothing_is_written() {
    let redis = Redis::start().await;
    for (place, name) in ABC.iter().enumerate() {
        redis.query::<String>(&["FLUSHALL"]).await;
        redis.query::<u64>(&["HSET", name, "8743c9c0-0795-4907-87fd-6c719a6b4586:1", "1"]).await;
        redis.query::<u64>(&["PEXPIRE", name, "40000"]).await;
        let before = stored(&redis).await;
        let take = locks(&ABC).acquire(request(1), UNBOUND, &owner(1), lease(30_000), false);
        let reply = redis.run(&take).await;
        assert_eq!((reply.code, reply.value), (Code::No, (place + 1).to_string()));
        assert!(reply.ms > 30_000 && reply.ms <= 40_000);
        assert_eq!(redis.dump().await.len(), 1);
        assert_eq!(stored(&redis).await, before);
    }
}

#[tokio::test]
async fn a_refusal_names_the_first_that_is_held_and_the_longest_time() {
    let redis = Redis::start().await;
    for (name, ms) in [("b", "20000"), ("fc", "50000")] {
        redis.query::<u64>(&["HSET", name, "java:1", "1"]).await;
        redis.query::<u64>(&["PEXPIRE", name, ms]).await;
    }
    let take = locks(&ABC).acquire(request(1), UNBOUND, &owner(1), lease(30_000), false);
    let reply = redis.run(&take).await;
    assert_eq!(reply.value, "2");
    assert!(reply.ms > 40_000, "{}", reply.ms);
    redis.query::<u64>(&["PERSIST", "b"]).await;
    assert_eq!(redis.run(&take).await.ms, -1, "one has no end");
}

#[tokio::test]
async fn the_token_is_above_the_last_one_of_every_member_and_is_each_one_s_own() {
    let redis = Redis::start().await;
    let high = 8_000_000_000_000_000_u64;
    for (name, last) in [("a", high), ("b", high + 70), ("fc", 3)] {
        redis.query::<String>(&["SET", &token_key(name), &last.to_string()]).await;
    }
    assert_eq!(taken(&redis).await, high + 71);
    for name in ABC {
        assert_eq!(redis.query::<u64>(&["GET", &token_key(name)]).await, high + 71);
    }
    redis.run(&locks(&ABC).release(request(2), UNBOUND, &owner(1))).await;
    // Another set with one of these locks continues from its token.
    let take = locks(&["d", "b"]).acquire(request(3), UNBOUND, &owner(2), lease(30_000), false);
    assert_eq!(redis.run(&take).await.value, (high + 72).to_string());
    assert_eq!(redis.query::<u64>(&["GET", &token_key("a")]).await, high + 71);
}

#[tokio::test]
async fn one_token_that_cannot_rise_refuses_all() {
    let redis = Redis::start().await;
    redis.query::<String>(&["SET", &token_key("fc"), "9007199254740991"]).await;
    let take = locks(&ABC).acquire(request(1), UNBOUND, &owner(1), lease(30_000), true);
    assert_eq!(redis.run(&take).await.code, Code::TokenRange);
    assert_eq!(redis.dump().await.len(), 1);
}

#[tokio::test]
async fn a_member_that_is_lost_is_a_loss_of_all_and_nothing_is_repaired_or_extended() {
    let redis = Redis::start().await;
    for (lost, name) in ABC.iter().enumerate() {
        redis.query::<String>(&["FLUSHALL"]).await;
        let grant = taken(&redis).await;
        redis.query::<u64>(&["DEL", name]).await;
        let next = lock(name).acquire(request(2), UNBOUND, &owner(2), lease(30_000), false);
        assert_eq!(redis.run(&next).await.code, Code::Done);
        let (before, calls) = (stored(&redis).await, locks(&ABC));
        let again = calls.acquire(request(1), UNBOUND, &owner(1), lease(90_000), true);
        assert_eq!(redis.run(&again).await.code, Code::Lost, "{name}");
        let renew = calls.renew(request(3), UNBOUND, &owner(1), lease(90_000), token(grant));
        assert_eq!(redis.run(&renew).await.code, Code::Lost, "{name}");
        assert_eq!(stored(&redis).await, before);
        for other in ABC.iter().filter(|other| *other != name) {
            assert!(redis.query::<u64>(&["PTTL", other]).await <= 30_000);
        }
        // The release removes what is left of the owner's hold, and leaves another owner's hold.
        let release = calls.release(request(4), UNBOUND, &owner(1));
        assert_eq!(redis.run(&release).await.code, Code::No, "{lost}");
        let left: Vec<String> = redis.dump().await.into_keys().collect();
        let held: Vec<&String> = left.iter().filter(|key| ABC.contains(&key.as_str())).collect();
        assert_eq!(held, [name]);
        assert_eq!(redis.run(&release).await.code, Code::No, "told again");
        assert_eq!(redis.run(&again).await.code, Code::Gone);
    }
}

#[tokio::test]
async fn a_release_notifies_the_waiters_of_each_member_once() {
    let mut redis = Redis::start().await;
    taken(&redis).await;
    redis.published().await;
    let release = locks(&ABC).release(request(2), UNBOUND, &owner(1));
    for wanted in [3, 0] {
        assert_eq!(redis.run(&release).await.code, Code::Done);
        let published = redis.published().await;
        assert_eq!(published.len(), wanted);
        let channels = ABC.map(|name| format!("redisson_lock__channel:{{{name}}}"));
        assert!(published.iter().map(|(channel, _)| channel).eq(channels.iter().take(wanted)));
    }
}

#[tokio::test]
async fn two_sets_in_opposite_order_never_hold_half_each() {
    let redis = Redis::start().await;
    let one = locks(&["a", "b"]).acquire(request(1), UNBOUND, &owner(1), lease(30_000), false);
    let other = locks(&["b", "a"]).acquire(request(2), UNBOUND, &owner(2), lease(30_000), false);
    assert_eq!(redis.run(&one).await.code, Code::Done);
    assert_eq!(redis.run(&other).await.code, Code::No);
    redis.run(&locks(&["a", "b"]).release(request(3), UNBOUND, &owner(1))).await;
    assert_eq!(redis.run(&other).await.code, Code::Done);
    assert_eq!(redis.run(&one).await.code, Code::Gone);
}

/// S66.
#[tokio::test]
async fn with_full_memory_several_are_refused_whole_and_their_ends_pass() {
    let redis = Redis::start().await;
    let grant = taken(&redis).await;
    redis.fill().await;
    let before = redis.dump().await;
    let more = locks(&["d", "e"]).acquire(request(2), UNBOUND, &owner(2), lease(30_000), true);
    assert!(redis.cells(&more).await.unwrap_err().to_string().contains("OOM"));
    assert!(before.keys().eq(redis.dump().await.keys()));
    let calls = locks(&ABC);
    let renew = calls.renew(request(3), UNBOUND, &owner(1), lease(60_000), token(grant));
    assert_eq!(redis.run(&renew).await.code, Code::Done);
    let release = calls.release(request(4), UNBOUND, &owner(1));
    assert_eq!(redis.run(&release).await.code, Code::Done);
    assert_eq!(redis.query::<String>(&["GET", &release.keys()[0]]).await, "x1");
}

#[tokio::test]
async fn the_part_with_the_latest_end_decides_held_at_most() {
    let redis = Redis::start().await;
    let grant = taken(&redis).await;
    redis.query::<u64>(&["PEXPIRE", "b", "600000"]).await;
    redis.query::<u64>(&["PEXPIRE", "a", "5000"]).await;
    let renew = locks(&ABC).renew(request(2), UNBOUND, &owner(1), lease(60_000), token(grant));
    let renewed = redis.run(&renew).await;
    // The reply has the shortest remaining time; the longer hold is not shortened.
    assert!(renewed.ms > 50_000 && renewed.ms <= 60_000);
    assert!(redis.query::<u64>(&["PTTL", "b"]).await > 500_000);
}
