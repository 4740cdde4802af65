//! How long either side is remembered, which calls are too late, and a Redis whose memory is full
//! (rules C2, C3, C5 and C8).

use std::time::Duration;

use edgelatch_proto::protocol::reply::{Code, Reply};
use edgelatch_proto::protocol::script::{Bound, ScriptCall};

use super::fixtures::{eager_writes, reads, reads_inside, writes, writes_around};
use test_support::calls::{Calls, UNBOUND, bound, lease, owner, request, token};
use test_support::redis::Redis;

const JOB: &str = "job";
const SLACK_MS: u64 = 1_000;

/// How long a latch or a tombstone must last: memory, lease and bound.
fn life(bound: Bound, lease_ms: u64, reply: &Reply) -> u64 {
    let until = bound.not_after.map_or(0, |at| at.saturating_sub(reply.server_ms));
    lease_ms.max(until).max(u64::try_from(bound.keep.as_millis()).unwrap()) + SLACK_MS
}

async fn bounds(redis: &Redis) -> [Bound; 3] {
    let now = redis.now_ms().await;
    [
        UNBOUND,
        Bound { not_after: None, keep: Duration::from_secs(600) },
        bound(now + 500_000, 1_000),
    ]
}

async fn assert_lives(redis: &Redis, key: &str, life: u64, since: u64, what: &str) {
    let left: u64 = redis.query(&["PTTL", key]).await;
    let elapsed = redis.now_ms().await - since;
    assert!(left <= life && left + elapsed + 1 >= life, "{what}: {left} of {life} after {elapsed}");
}

fn sides() -> [(&'static str, Calls); 3] {
    [("read", reads(JOB)), ("write", writes(JOB)), ("eager write", eager_writes(JOB, 5_000))]
}

#[tokio::test]
async fn latches_and_tombstones_of_both_sides_outlive_memory_lease_and_bound() {
    let redis = Redis::start().await;
    for (what, side) in sides() {
        for bound in bounds(&redis).await {
            for lease_ms in [100, 30_000, 3_600_000] {
                redis.query::<String>(&["FLUSHALL"]).await;
                let take = side.acquire(request(1), bound, &owner(1), lease(lease_ms), false);
                let reply = redis.run(&take).await;
                let life = life(bound, lease_ms, &reply);
                assert_lives(&redis, &take.keys()[0], life, reply.server_ms, what).await;
            }
            redis.query::<String>(&["FLUSHALL"]).await;
            let release = side.release(request(2), bound, &owner(1));
            let other = writes(JOB).acquire(request(3), UNBOUND, &owner(2), lease(60_000), true);
            let last = side.acquire(request(4), bound, &owner(3), lease(3_600_000), true);
            let mut released = redis.run(&release).await;
            redis.run(&other).await;
            for _ in 0..2 {
                // The second reply comes from the tombstone, which is extended.
                let refused = redis.run(&last).await;
                for (call, reply) in [(&release, &released), (&last, &refused)] {
                    let life = life(bound, 0, reply);
                    assert_lives(&redis, &call.keys()[0], life, reply.server_ms, what).await;
                    redis.query::<u64>(&["PEXPIRE", &call.keys()[0], "5000"]).await;
                }
                released = redis.run(&release).await;
            }
        }
    }
}

#[tokio::test]
async fn a_read_hold_the_hash_and_the_tokens_have_their_ends() {
    let redis = Redis::start().await;
    let take = reads(JOB).acquire(request(1), UNBOUND, &owner(1), lease(30_000), false);
    let reply = redis.run(&take).await;
    let day = 86_400_000;
    for (key, most) in [(1, 30_000), (2, 30_000), (3, day), (4, day)] {
        assert_lives(&redis, &take.keys()[key], most, reply.server_ms, "grant").await;
    }
    // The next reader extends epoch and token; a fenced lock's token has no expiry and gets none.
    redis.query::<u64>(&["PEXPIRE", &take.keys()[3], "5000"]).await;
    for (who, persisted) in [(2, false), (3, true)] {
        if persisted {
            redis.query::<u64>(&["PERSIST", &take.keys()[3]]).await;
        }
        let id = request(u64::from(who));
        let joins = reads(JOB).acquire(id, UNBOUND, &owner(who), lease(10_000), false);
        assert_eq!(redis.run(&joins).await.value, reply.value);
        assert_eq!(redis.query::<i64>(&["PTTL", &take.keys()[3]]).await == -1, persisted);
        assert!(persisted || redis.query::<u64>(&["PTTL", &take.keys()[3]]).await > 5_000);
        assert!(redis.query::<u64>(&["PTTL", JOB]).await > 10_000, "not shortened");
    }
}

#[tokio::test]
async fn a_request_on_either_side_that_arrives_after_its_bound_is_not_executed() {
    let redis = Redis::start().await;
    let passed = bound(redis.now_ms().await - 1, 90_000);
    for (what, side) in sides() {
        redis.query::<String>(&["FLUSHALL"]).await;
        let late = side.acquire(request(1), passed, &owner(1), lease(30_000), true);
        assert_eq!(redis.run(&late).await.code, Code::Late, "{what}");
        assert_eq!(redis.run(&side.force_release(request(2), passed)).await.code, Code::Late);
        let unbound = side.force_release(request(2), UNBOUND);
        assert_eq!(redis.run(&unbound).await.code, Code::BoundRequired, "{what}");
        assert!(redis.dump().await.is_empty(), "{what}");

        let in_time = side.acquire(request(3), UNBOUND, &owner(1), lease(30_000), false);
        let grant = redis.run(&in_time).await.value.parse().unwrap();
        let held = redis.dump().await;
        let renew = side.renew(request(4), passed, &owner(1), lease(600_000), token(grant));
        assert_eq!(redis.run(&renew).await.code, Code::Late, "{what}");
        assert_eq!(redis.run(&late).await.code, Code::Late, "{what}");
        for (key, stored) in redis.dump().await {
            let before = &held[&key];
            assert!(stored.value == before.value && stored.ttl <= before.ttl, "{what}: {key}");
        }
        let release = side.release(request(5), passed, &owner(1));
        assert_eq!(redis.run(&release).await.code, Code::Done, "a release is never too late");
    }
}

/// S10, S11.
#[tokio::test]
async fn a_renewal_extends_only_the_hold_of_its_own_grant_and_never_shortens() {
    let redis = Redis::start().await;
    for (what, side) in sides() {
        redis.query::<String>(&["FLUSHALL"]).await;
        let take = side.acquire(request(1), UNBOUND, &owner(1), lease(30_000), false);
        let grant: u64 = redis.run(&take).await.value.parse().unwrap();
        for (who, number) in [(owner(1), grant + 1), (owner(2), grant)] {
            let renew = side.renew(request(2), UNBOUND, &who, lease(600_000), token(number));
            assert_eq!(redis.run(&renew).await.code, Code::Lost, "{what}");
        }
        assert!(redis.query::<u64>(&["PTTL", JOB]).await <= 30_000, "{what}");
        for (ms, least) in [(200_000, 190_000), (1_000, 190_000)] {
            let renew = side.renew(request(3), UNBOUND, &owner(1), lease(ms), token(grant));
            let renewed = redis.run(&renew).await;
            assert_eq!((renewed.code, renewed.value), (Code::Done, grant.to_string()), "{what}");
            assert!(
                renewed.ms > least && redis.query::<i64>(&["PTTL", JOB]).await > least,
                "{what}"
            );
            assert!(redis.query::<i64>(&["PTTL", &take.keys()[0]]).await > least, "{what}");
        }
    }
}

/// Owner 1 writes, owner 2 reads inside, and memory is full.
async fn full() -> (Redis, u64) {
    let redis = Redis::start().await;
    let write = writes(JOB).acquire(request(1), UNBOUND, &owner(1), lease(60_000), false);
    let grant = redis.run(&write).await.value.parse().unwrap();
    let inside = reads_inside(JOB, owner(1));
    let read = inside.acquire(request(2), UNBOUND, &owner(2), lease(60_000), false);
    assert_eq!(redis.run(&read).await.code, Code::Done);
    redis.fill().await;
    (redis, grant)
}

#[tokio::test]
async fn with_full_memory_nothing_begins_and_nothing_is_written() {
    let (redis, _) = full().await;
    let before = redis.dump().await;
    for side in [reads("free"), writes("free"), reads_inside(JOB, owner(1))] {
        for last in [false, true] {
            let call = side.acquire(request(3), UNBOUND, &owner(3), lease(30_000), last);
            let error = redis.cells(&call).await.unwrap_err();
            assert!(error.to_string().contains("OOM"), "{error}");
        }
    }
    assert!(before.keys().eq(redis.dump().await.keys()));
}

/// S66.
#[tokio::test]
async fn with_full_memory_calls_that_end_or_prolong_a_hold_succeed() {
    let (mut redis, grant) = full().await;
    for (who, side) in [(1, writes(JOB)), (2, reads(JOB))] {
        let renew = side.renew(request(3), UNBOUND, &owner(who), lease(90_000), token(grant));
        assert_eq!(redis.run(&renew).await.code, Code::Done);
        let again = side.acquire(request(4), UNBOUND, &owner(who), lease(90_000), false);
        assert_eq!(redis.run(&again).await.code, Code::AlreadyYours);
    }
    let eager = eager_writes(JOB, 5_000);
    for side in [reads(JOB), writes(JOB), eager] {
        for (who, last) in [(3, false), (3, true), (4, false)] {
            let refused = side.acquire(request(5), UNBOUND, &owner(who), lease(30_000), last);
            assert!(matches!(redis.run(&refused).await.code, Code::No | Code::Gone));
        }
        assert_ends(&redis, &side.release(request(6), UNBOUND, &owner(4)), Code::No, "x0").await;
        redis.query::<u64>(&["DEL", &side.release(request(6), UNBOUND, &owner(3)).keys()[0]]).await;
        redis.query::<u64>(&["DEL", &side.release(request(6), UNBOUND, &owner(4)).keys()[0]]).await;
    }
    redis.published().await;
    let downgrade = writes_around(JOB, owner(2)).release(request(7), UNBOUND, &owner(1));
    let epoch = redis.run(&downgrade).await.value;
    assert_ends(&redis, &downgrade, Code::Done, &format!("x1{epoch}")).await;
    let read = reads(JOB).release(request(8), UNBOUND, &owner(2));
    assert_eq!(redis.query::<String>(&["GET", &read.keys()[0]]).await, epoch);
    assert_ends(&redis, &read, Code::Done, "x1").await;
    assert!(!redis.dump().await.contains_key(JOB));
    assert_eq!(redis.published().await.len(), 2);
    let within = bound(redis.now_ms().await + 60_000, 90_000);
    assert_ends(&redis, &reads(JOB).force_release(request(9), within), Code::No, "0:0").await;
}

#[tokio::test]
async fn with_full_memory_a_read_gets_its_new_token_after_the_release() {
    for repeats in [false, true] {
        let (redis, grant) = full().await;
        let unnamed = writes(JOB).release(request(3), UNBOUND, &owner(1));
        let epoch: u64 = redis.run(&unnamed).await.value.parse().unwrap();
        // Less than the remaining time, so that nothing else is written.
        let inside = reads_inside(JOB, owner(1));
        let call = if repeats {
            inside.acquire(request(2), UNBOUND, &owner(2), lease(1_000), false)
        } else {
            inside.renew(request(4), UNBOUND, &owner(2), lease(1_000), token(grant))
        };
        let latch = async || redis.query::<u64>(&["GET", &call.keys()[0]]).await;
        assert_eq!(latch().await, grant);
        let left: u64 = redis.query(&["PTTL", &call.keys()[0]]).await;
        let reply = redis.run(&call).await;
        let wanted = if repeats { Code::AlreadyYours } else { Code::Done };
        assert_eq!((reply.code, reply.value), (wanted, epoch.to_string()));
        assert_eq!(latch().await, epoch);
        assert!(redis.query::<u64>(&["PTTL", &call.keys()[0]]).await > left / 2, "not shortened");
        // An owner that knows the new token from the reply to the release may use it.
        let newer = token(epoch);
        let renew = inside.renew(request(5), UNBOUND, &owner(2), lease(1_000), newer);
        assert_eq!(redis.run(&renew).await.code, Code::Done);
    }
}

/// Asserts that the call succeeds although memory is full, and is remembered.
async fn assert_ends(redis: &Redis, call: &ScriptCall, code: Code, record: &str) {
    assert_eq!(redis.run(call).await.code, code);
    assert_eq!(redis.query::<String>(&["GET", &call.keys()[0]]).await, record);
}
