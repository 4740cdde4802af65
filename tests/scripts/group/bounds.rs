//! How long a group's owners are remembered, which calls are too late, and a Redis whose memory is
//! full (rules C2, C3, C5 and C8).

use std::time::Duration;

use edgelatch_proto::protocol::reply::{Code, Reply};
use edgelatch_proto::protocol::script::{Bound, ScriptCall};

use super::fixtures::{GROUP, field, hash, values};
use test_support::calls::{UNBOUND, bound, lease, owner, request, token};
use test_support::redis::Redis;

const SLACK_MS: u64 = 1_000;

/// How long a latch or a tombstone must last: memory, lease and bound.
fn life(bound: Bound, lease_ms: u64, reply: &Reply) -> u64 {
    let until = bound.not_after.map_or(0, |at| at.saturating_sub(reply.server_ms));
    lease_ms.max(until).max(u64::try_from(bound.keep.as_millis()).unwrap()) + SLACK_MS
}

async fn assert_lives(redis: &Redis, call: &ScriptCall, reply: &Reply, life: u64) {
    let left: u64 = redis.query(&["PTTL", &call.keys()[0]]).await;
    let elapsed = redis.now_ms().await - reply.server_ms;
    assert!(left <= life && left + elapsed + 1 >= life, "{left} of {life} after {elapsed}");
}

#[tokio::test]
async fn a_group_s_latches_and_tombstones_outlive_memory_lease_and_bound() {
    let redis = Redis::start().await;
    let calls = values(&["A", "B"]);
    let unbounded = Bound { not_after: None, keep: Duration::from_secs(600) };
    let bounded = bound(redis.now_ms().await + 500_000, 1_000);
    for bound in [UNBOUND, unbounded, bounded] {
        redis.query::<String>(&["FLUSHALL"]).await;
        for lease_ms in [100, 3_600_000] {
            let who = owner(if lease_ms == 100 { 1 } else { 2 });
            let take = calls.acquire(request(1), bound, &who, lease(lease_ms), false);
            redis.query::<u64>(&["DEL", GROUP]).await;
            let reply = redis.run(&take).await;
            assert_eq!(reply.code, Code::Done);
            assert_lives(&redis, &take, &reply, life(bound, lease_ms, &reply)).await;
        }
        let abandon = calls.release(request(2), bound, &owner(3));
        let last = calls.acquire(request(3), bound, &owner(4), lease(3_600_000), true);
        for code in [Code::No, Code::Gone] {
            // The second reply comes from the tombstone, which is extended.
            let (abandoned, refused) = (redis.run(&abandon).await, redis.run(&last).await);
            assert_eq!((abandoned.code, refused.code), (Code::No, code));
            for (call, reply) in [(&abandon, &abandoned), (&last, &refused)] {
                assert_lives(&redis, call, reply, life(bound, 0, reply)).await;
                redis.query::<u64>(&["PEXPIRE", &call.keys()[0], "5000"]).await;
            }
        }
    }
}

#[tokio::test]
async fn a_group_request_that_arrives_after_its_bound_is_not_executed() {
    let redis = Redis::start().await;
    let calls = values(&["A", "B"]);
    let passed = bound(redis.now_ms().await - 1, 90_000);
    let late = calls.acquire(request(1), passed, &owner(1), lease(30_000), true);
    assert_eq!(redis.run(&late).await.code, Code::Late);
    assert_eq!(redis.run(&calls.force_release(request(2), passed)).await.code, Code::Late);
    let unbound = calls.force_release(request(2), UNBOUND);
    assert_eq!(redis.run(&unbound).await.code, Code::BoundRequired);
    assert!(redis.dump().await.is_empty());

    let in_time = calls.acquire(request(3), UNBOUND, &owner(1), lease(30_000), false);
    let grant = redis.run(&in_time).await.value.parse().unwrap();
    let held = hash(&redis).await;
    let renew = calls.renew(request(4), passed, &owner(1), lease(600_000), token(grant));
    assert_eq!(redis.run(&renew).await.code, Code::Late);
    assert_eq!(redis.run(&late).await.code, Code::Late);
    assert_eq!(hash(&redis).await, held);
    let release = calls.release(request(5), passed, &owner(1));
    assert_eq!(redis.run(&release).await.code, Code::Done, "a release is never too late");
}

/// S10, S11.
#[tokio::test]
async fn a_renewal_of_values_is_of_its_own_grant_and_never_shortens() {
    let redis = Redis::start().await;
    let calls = values(&["A", "B"]);
    let take = calls.acquire(request(1), UNBOUND, &owner(1), lease(30_000), false);
    let grant: u64 = redis.run(&take).await.value.parse().unwrap();
    let held = hash(&redis).await;
    for (who, number) in [(1, grant + 1), (2, grant)] {
        let call = calls.renew(request(2), UNBOUND, &owner(who), lease(600_000), token(number));
        assert_eq!(redis.run(&call).await.code, Code::Lost);
    }
    assert_eq!(hash(&redis).await, held);
    let mut ends = 0;
    for ms in [200_000, 1_000] {
        let renew = calls.renew(request(3), UNBOUND, &owner(1), lease(ms), token(grant));
        let renewed = redis.run(&renew).await;
        assert_eq!((renewed.code, renewed.value), (Code::Done, grant.to_string()));
        ends = ends.max(renewed.server_ms + ms + 1_000);
        let left = ends - 1_000 - renewed.server_ms;
        assert_eq!(u64::try_from(renewed.ms), Ok(left));
        let stored = hash(&redis).await;
        let fields_with_end: Vec<&String> = stored
            .iter()
            .filter(|(key, _)| key.ends_with("expire_time"))
            .map(|(_, at)| at)
            .collect();
        assert_eq!(fields_with_end, [&ends.to_string(), &ends.to_string()]);
        for key in [GROUP, &take.keys()[0]] {
            assert!(redis.query::<u64>(&["PTTL", key]).await > 190_000, "{key}");
        }
    }
}

/// Owner 1 holds values, and memory is full.
async fn full() -> (Redis, u64) {
    let redis = Redis::start().await;
    let take = values(&["A", "B"]).acquire(request(1), UNBOUND, &owner(1), lease(30_000), false);
    let grant = redis.run(&take).await.value.parse().unwrap();
    redis.fill().await;
    (redis, grant)
}

#[tokio::test]
async fn with_full_memory_no_value_is_acquired_and_nothing_is_written() {
    let (redis, _) = full().await;
    // There is an entry to sweep too: a deletion before the write must not make a full Redis accept
    // it.
    redis.query::<String>(&["CONFIG", "SET", "maxmemory", "0"]).await;
    redis.query::<u64>(&["HSET", GROUP, &format!("{}:java:7:expire_time", field("C")), "1"]).await;
    redis.query::<String>(&["CONFIG", "SET", "maxmemory", "1"]).await;
    let (free, before) = (values(&["C"]), redis.dump().await);
    for last in [false, true] {
        let call = free.acquire(request(2), UNBOUND, &owner(2), lease(30_000), last);
        let error = redis.cells(&call).await.unwrap_err();
        assert!(error.to_string().contains("OOM"), "{error}");
    }
    let after = redis.dump().await;
    assert!(
        before
            .iter()
            .map(|(key, stored)| (key, &stored.value))
            .eq(after.iter().map(|(key, stored)| (key, &stored.value)))
    );
}

/// S66.
#[tokio::test]
async fn with_full_memory_calls_that_end_or_prolong_a_hold_of_values_succeed() {
    let (mut redis, grant) = full().await;
    let calls = values(&["A", "B"]);
    let renew = calls.renew(request(2), UNBOUND, &owner(1), lease(60_000), token(grant));
    assert_eq!(redis.run(&renew).await.code, Code::Done);
    let again = calls.acquire(request(1), UNBOUND, &owner(1), lease(90_000), false);
    let reply = redis.run(&again).await;
    assert_eq!((reply.code, reply.value), (Code::AlreadyYours, grant.to_string()));
    let last = calls.acquire(request(3), UNBOUND, &owner(3), lease(30_000), true);
    assert_ends(&redis, &last, Code::No, "x0").await;
    assert_ends(&redis, &calls.release(request(4), UNBOUND, &owner(4)), Code::No, "x0").await;
    let within = bound(redis.now_ms().await + 60_000, 90_000);
    let force = values(&["B"]).force_release(request(5), within);
    assert_ends(&redis, &force, Code::Done, "1:1").await;
    redis.published().await;
    assert_ends(&redis, &calls.release(request(6), UNBOUND, &owner(1)), Code::No, "x0").await;
    assert!(hash(&redis).await.is_empty());
    assert_eq!(redis.published().await.len(), 1);
}

/// Asserts that the call succeeds although memory is full, and is remembered.
async fn assert_ends(redis: &Redis, call: &ScriptCall, code: Code, record: &str) {
    assert_eq!(redis.run(call).await.code, code);
    assert_eq!(redis.query::<String>(&["GET", &call.keys()[0]]).await, record);
}
