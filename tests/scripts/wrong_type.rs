//! A key of another type under one of a lock's keys: refused, and left alone.

use std::time::Duration;

use edgelatch_proto::protocol::script::{Bound, ScriptCall};

use test_support::calls::{UNBOUND, lease, lock, owner, request, token};
use test_support::redis::Redis;

/// Every call about one owner that reads what is stored.
fn calls() -> [ScriptCall; 6] {
    let job = lock("job");
    let bound = Bound { not_after: Some(9_000_000_000_000), keep: Duration::from_secs(90) };
    [
        job.acquire(request(1), UNBOUND, &owner(1), lease(30_000), false),
        job.acquire(request(2), UNBOUND, &owner(1), lease(30_000), true),
        job.renew(request(3), UNBOUND, &owner(1), lease(30_000), token(7)),
        job.release(request(4), UNBOUND, &owner(1)),
        job.inspect(request(5), Some(owner(1))),
        job.force_release(request(6), bound),
    ]
}

/// S69.
#[tokio::test]
async fn a_lock_key_of_another_type_is_refused_and_left_alone() {
    let redis = Redis::start().await;
    for call in calls() {
        redis.query::<String>(&["FLUSHALL"]).await;
        redis.query::<String>(&["SET", "job", "5"]).await;
        if call.script().name == "lock_renew" {
            // Without the latch of a grant a renewal does not read the lock.
            redis.query::<String>(&["SET", &call.keys()[0], "7", "PX", "60000"]).await;
        }
        assert_refused(&redis, &call).await;
    }
}

/// S69.
#[tokio::test]
async fn a_token_key_of_another_type_is_refused_and_left_alone() {
    let redis = Redis::start().await;
    for call in calls() {
        let uses_token_key = call.keys().iter().any(|key| key == "redisson_lock_token:{job}");
        redis.query::<String>(&["FLUSHALL"]).await;
        redis.query::<u64>(&["HSET", "redisson_lock_token:{job}", "a", "b"]).await;
        if uses_token_key {
            assert_refused(&redis, &call).await;
        }
    }
}

/// S69.
#[tokio::test]
async fn a_latch_of_another_type_is_refused_and_left_alone() {
    let redis = Redis::start().await;
    for call in calls().iter().filter(|call| call.keys()[0].starts_with("el:")) {
        redis.query::<String>(&["FLUSHALL"]).await;
        redis.query::<u64>(&["HSET", &call.keys()[0], "a", "b"]).await;
        assert_refused(&redis, call).await;
    }
}

async fn assert_refused(redis: &Redis, call: &ScriptCall) {
    let before = redis.dump().await;
    let error = redis.cells(call).await.unwrap_err();
    assert!(error.to_string().contains("WRONGTYPE"), "{}: {error}", call.script().name);
    let after = redis.dump().await;
    assert_eq!(
        before.iter().map(|(key, stored)| (key, &stored.value)).collect::<Vec<_>>(),
        after.iter().map(|(key, stored)| (key, &stored.value)).collect::<Vec<_>>(),
        "{}",
        call.script().name
    );
}
