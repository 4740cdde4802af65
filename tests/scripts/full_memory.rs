//! A Redis whose memory is full and that evicts nothing: no new hold begins, and every call that
//! ends a hold succeeds (rule C5).

use edgelatch_proto::protocol::reply::Code;
use edgelatch_proto::protocol::script::ScriptCall;

use test_support::calls::{UNBOUND, bound, lease, lock, owner, request, token};
use test_support::redis::Redis;

/// A lock that owner 1 holds in a Redis whose memory is full, and the token of the hold.
async fn full() -> (Redis, u64) {
    let redis = Redis::start().await;
    let acquire = lock("job").acquire(request(1), UNBOUND, &owner(1), lease(30_000), false);
    let grant = redis.run(&acquire).await.value.parse().unwrap();
    redis.fill().await;
    (redis, grant)
}

/// S66.
#[tokio::test]
async fn an_acquisition_is_refused_and_writes_nothing() {
    let (redis, _) = full().await;
    let before = redis.dump().await;
    for last in [false, true] {
        let call = lock("free").acquire(request(2), UNBOUND, &owner(2), lease(30_000), last);
        let error = redis.cells(&call).await.unwrap_err();
        assert!(error.to_string().contains("OOM"), "{error}");
    }
    assert_eq!(before.keys().collect::<Vec<_>>(), redis.dump().await.keys().collect::<Vec<_>>());
}

/// S66.
#[tokio::test]
async fn a_renewal_passes() {
    let (redis, grant) = full().await;
    let renew = lock("job").renew(request(2), UNBOUND, &owner(1), lease(60_000), token(grant));
    assert_eq!(redis.run(&renew).await.code, Code::Done);
    assert!(redis.query::<u64>(&["PTTL", "job"]).await > 30_000);
}

#[tokio::test]
async fn a_repeated_acquisition_passes() {
    let (redis, grant) = full().await;
    let again = lock("job").acquire(request(1), UNBOUND, &owner(1), lease(60_000), false);
    let reply = redis.run(&again).await;
    assert_eq!((reply.code, reply.value), (Code::AlreadyYours, grant.to_string()));
}

/// S66.
#[tokio::test]
async fn a_release_succeeds_and_notifies_the_waiters() {
    let (mut redis, _) = full().await;
    redis.published().await;
    let release = lock("job").release(request(2), UNBOUND, &owner(1));
    assert_ends(&redis, &release, Code::Done, "x1").await;
    assert!(!redis.dump().await.contains_key("job"));
    assert_eq!(redis.published().await.len(), 1);
}

#[tokio::test]
async fn an_abandon_and_a_refused_last_try_leave_their_tombstones() {
    let (redis, _) = full().await;
    let abandon = lock("job").release(request(2), UNBOUND, &owner(2));
    assert_ends(&redis, &abandon, Code::No, "x0").await;
    let last = lock("job").acquire(request(3), UNBOUND, &owner(3), lease(30_000), true);
    assert_ends(&redis, &last, Code::No, "x0").await;
}

#[tokio::test]
async fn a_forced_release_passes() {
    let (redis, _) = full().await;
    let bound = bound(redis.now_ms().await + 60_000, 90_000);
    assert_ends(&redis, &lock("job").force_release(request(2), bound), Code::Done, "1:0").await;
    assert_ends(&redis, &lock("job").force_release(request(3), bound), Code::No, "0:0").await;
}

/// Asserts that the call succeeds although memory is full, and is remembered.
async fn assert_ends(redis: &Redis, call: &ScriptCall, code: Code, record: &str) {
    assert_eq!(redis.run(call).await.code, code);
    assert_eq!(redis.query::<String>(&["GET", &call.keys()[0]]).await, record);
}
