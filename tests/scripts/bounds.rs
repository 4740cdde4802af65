//! How long a request is remembered, and which calls are too late (rules C2, C3 and C8).

use std::time::Duration;

use edgelatch_proto::protocol::reply::{Code, Reply};
use edgelatch_proto::protocol::script::{Bound, ScriptCall};

use test_support::calls::{UNBOUND, bound, lease, lock, owner, request, token};
use test_support::redis::Redis;

/// The slack after which no copy of a request can still be in transit.
const SLACK_MS: u64 = 1_000;

/// How long a latch, a tombstone or a record must last: memory, lease and bound.
fn life(bound: Bound, lease_ms: u64, reply: &Reply) -> u64 {
    let until = bound.not_after.map_or(0, |at| at.saturating_sub(reply.server_ms));
    lease_ms.max(until).max(u64::try_from(bound.keep.as_millis()).unwrap()) + SLACK_MS
}

/// Bounds of every kind: without and with a not-after, with a short and a long memory.
pub(super) async fn bounds(redis: &Redis) -> [Bound; 4] {
    let now = redis.now_ms().await;
    [
        UNBOUND,
        Bound { not_after: None, keep: Duration::from_secs(600) },
        bound(now + 500_000, 1_000),
        bound(now + 1_000_000, 90_000),
    ]
}

/// Checks how long a call is remembered: its first key is the record.
async fn assert_remembered(redis: &Redis, call: &ScriptCall, reply: &Reply, life: u64) {
    let left: u64 = redis.query(&["PTTL", &call.keys()[0]]).await;
    let elapsed = redis.now_ms().await - reply.server_ms;
    let name = call.script().name;
    assert!(left <= life, "{name}: {left} of {life}");
    assert!(left + elapsed + 1 >= life, "{name}: {left} of {life} after {elapsed}");
}

#[tokio::test]
async fn a_latch_outlives_memory_lease_and_bound() {
    let redis = Redis::start().await;
    for bound in bounds(&redis).await {
        for lease_ms in [100, 30_000, 3_600_000] {
            redis.query::<String>(&["FLUSHALL"]).await;
            let call = lock("job").acquire(request(1), bound, &owner(1), lease(lease_ms), false);
            let reply = redis.run(&call).await;
            assert_eq!(reply.code, Code::Done);
            assert_remembered(&redis, &call, &reply, life(bound, lease_ms, &reply)).await;
        }
    }
}

/// S10.
#[tokio::test]
async fn a_renewal_prolongs_the_latch_with_the_hold() {
    let redis = Redis::start().await;
    let acquire = lock("job").acquire(request(1), UNBOUND, &owner(1), lease(30_000), false);
    let grant = redis.run(&acquire).await.value.parse().unwrap();
    for (lease_ms, longest) in [(200_000, 200_000), (1_000, 200_000), (400_000, 400_000)] {
        let bound = bound(redis.now_ms().await + 10_000, 90_000);
        let call = lock("job").renew(request(2), bound, &owner(1), lease(lease_ms), token(grant));
        let reply = redis.run(&call).await;
        assert_eq!(reply.code, Code::Done);
        let left: u64 = redis.query(&["PTTL", &call.keys()[0]]).await;
        let hold: u64 = redis.query(&["PTTL", "job"]).await;
        assert!(left > hold && left <= longest + SLACK_MS, "{left} for {hold}");
    }
}

/// S5.
#[tokio::test]
async fn a_tombstone_outlives_memory_and_bound() {
    let redis = Redis::start().await;
    for bound in bounds(&redis).await {
        redis.query::<String>(&["FLUSHALL"]).await;
        let abandon = lock("job").release(request(1), bound, &owner(1));
        let reply = redis.run(&abandon).await;
        assert_eq!(reply.code, Code::No);
        assert_remembered(&redis, &abandon, &reply, life(bound, 0, &reply)).await;

        let other = lock("job").acquire(request(2), UNBOUND, &owner(2), lease(60_000), false);
        assert_eq!(redis.run(&other).await.code, Code::Done);
        let last = lock("job").acquire(request(3), bound, &owner(3), lease(3_600_000), true);
        let reply = redis.run(&last).await;
        assert_eq!(reply.code, Code::No);
        // Nothing was granted, so the requested lease does not count.
        assert_remembered(&redis, &last, &reply, life(bound, 0, &reply)).await;
    }
}

#[tokio::test]
async fn the_record_of_a_forced_release_outlives_its_bound() {
    let redis = Redis::start().await;
    for bound in bounds(&redis).await.into_iter().filter(|bound| bound.not_after.is_some()) {
        redis.query::<String>(&["FLUSHALL"]).await;
        let call = lock("job").force_release(request(1), bound);
        let reply = redis.run(&call).await;
        assert_eq!(reply.code, Code::No);
        // The result of an idempotent call is kept for this long after its bound.
        let window = 60_000;
        assert_remembered(&redis, &call, &reply, life(bound, 0, &reply) + window).await;
    }
}

/// S5, S20, S56.
#[tokio::test]
async fn a_request_that_arrives_after_its_bound_is_not_executed() {
    let redis = Redis::start().await;
    let passed = bound(redis.now_ms().await - 1, 90_000);
    let acquire = lock("job").acquire(request(1), passed, &owner(1), lease(30_000), true);
    assert_eq!(redis.run(&acquire).await.code, Code::Late);
    let force = lock("job").force_release(request(2), passed);
    assert_eq!(redis.run(&force).await.code, Code::Late);
    assert!(redis.dump().await.is_empty());

    let in_time = lock("job").acquire(request(3), UNBOUND, &owner(1), lease(30_000), false);
    let grant = redis.run(&in_time).await.value.parse().unwrap();
    let held = redis.dump().await;
    let renew = lock("job").renew(request(4), passed, &owner(1), lease(600_000), token(grant));
    assert_eq!(redis.run(&renew).await.code, Code::Late);
    assert_eq!(redis.run(&acquire).await.code, Code::Late);
    for (key, stored) in redis.dump().await {
        assert!(stored.value == held[&key].value && stored.ttl <= held[&key].ttl, "{key}");
    }
}

#[tokio::test]
async fn a_release_is_never_too_late() {
    let redis = Redis::start().await;
    let acquire = lock("job").acquire(request(1), UNBOUND, &owner(1), lease(30_000), false);
    assert_eq!(redis.run(&acquire).await.code, Code::Done);
    let release = lock("job").release(request(2), bound(1, 90_000), &owner(1));
    assert_eq!(redis.run(&release).await.code, Code::Done);
}

#[tokio::test]
async fn a_forced_release_without_a_bound_only_returns_the_time() {
    let redis = Redis::start().await;
    redis.query::<u64>(&["HSET", "job", "java:1", "1"]).await;
    let before = redis.now_ms().await;
    let reply = redis.run(&lock("job").force_release(request(1), UNBOUND)).await;
    assert_eq!(reply.code, Code::BoundRequired);
    assert!((before..=redis.now_ms().await).contains(&reply.server_ms));
    assert_eq!(redis.dump().await.len(), 1);
}

/// S6, S11.
#[tokio::test]
async fn a_renewal_only_extends_the_hold_of_its_own_grant() {
    let redis = Redis::start().await;
    let acquire = lock("job").acquire(request(1), UNBOUND, &owner(1), lease(30_000), false);
    let grant: u64 = redis.run(&acquire).await.value.parse().unwrap();
    for (who, number) in [(owner(1), grant - 1), (owner(1), grant + 1), (owner(2), grant)] {
        let call = lock("job").renew(request(2), UNBOUND, &who, lease(600_000), token(number));
        assert_eq!(redis.run(&call).await.code, Code::Lost);
    }
    assert!(redis.query::<u64>(&["PTTL", "job"]).await <= 30_000);
}

#[tokio::test]
async fn a_reply_from_a_tombstone_prolongs_it() {
    let redis = Redis::start().await;
    let abandon = lock("job").release(request(1), UNBOUND, &owner(1));
    let reply = redis.run(&abandon).await;
    let last = lock("job").acquire(request(2), UNBOUND, &owner(1), lease(30_000), true);
    for call in [&abandon, &last] {
        // The record as it is after most of its life.
        redis.query::<u64>(&["PEXPIRE", &call.keys()[0], "5000"]).await;
        let again = redis.run(call).await;
        assert_remembered(&redis, call, &again, life(UNBOUND, 0, &reply)).await;
    }
}

/// S65.
#[tokio::test]
async fn a_hold_whose_latch_is_gone_is_lost_and_removed_by_its_release() {
    let redis = Redis::start().await;
    let acquire = lock("job").acquire(request(1), UNBOUND, &owner(1), lease(30_000), false);
    let grant = redis.run(&acquire).await.value.parse().unwrap();
    redis.query::<u64>(&["DEL", &acquire.keys()[0]]).await;
    let renew = lock("job").renew(request(2), UNBOUND, &owner(1), lease(600_000), token(grant));
    assert_eq!(redis.run(&renew).await.code, Code::Lost);
    assert_eq!(redis.run(&acquire).await.code, Code::Lost);
    assert!(redis.query::<u64>(&["PTTL", "job"]).await <= 30_000);
    assert_eq!(redis.query::<u64>(&["EXISTS", &acquire.keys()[0]]).await, 0);
    assert_eq!(
        redis.run(&lock("job").release(request(3), UNBOUND, &owner(1))).await.code,
        Code::Done
    );
    assert_eq!(redis.query::<u64>(&["EXISTS", "job"]).await, 0);
    let next = lock("job").acquire(request(4), UNBOUND, &owner(2), lease(30_000), false);
    assert_eq!(redis.run(&next).await.code, Code::Done);
}

/// S70.
#[tokio::test]
async fn a_lock_without_an_expiry_is_reported_so_and_gets_one_from_a_renewal() {
    let redis = Redis::start().await;
    let acquire = lock("job").acquire(request(1), UNBOUND, &owner(1), lease(30_000), false);
    let grant = redis.run(&acquire).await.value.parse().unwrap();
    redis.query::<u64>(&["PERSIST", "job"]).await;
    let other = lock("job").acquire(request(2), UNBOUND, &owner(2), lease(30_000), false);
    let busy = redis.run(&other).await;
    assert_eq!((busy.code, busy.ms), (Code::No, -1));
    let renew = lock("job").renew(request(3), UNBOUND, &owner(1), lease(40_000), token(grant));
    assert_eq!(redis.run(&renew).await.code, Code::Done);
    let ends = 1..=40_000;
    assert!(ends.contains(&redis.query::<i64>(&["PTTL", "job"]).await));
    assert!(ends.contains(&redis.run(&other).await.ms));
}
