//! How long a request is remembered, and which calls are too late or lack a bound (rules C2, C3 and
//! C8).

use edgelatch_proto::protocol::script::{Bound, ScriptCall};
use edgelatch_proto::timing::LeaseTime;

use super::{batch, held, latch, permits, semaphore, verdict};
use crate::scripts::bounds::bounds;
use crate::scripts::vectors::assert_within;
use test_support::calls::{Calls, UNBOUND, bound, lease, owner, request, token};
use test_support::redis::Redis;

fn targets() -> [Calls; 2] {
    [held(&semaphore("sem", 2)), batch(&permits("perm", 2, 500))]
}

async fn redis_with_permits() -> Redis {
    let redis = Redis::start().await;
    refill(&redis).await;
    redis
}

async fn refill(redis: &Redis) {
    redis.query::<String>(&["FLUSHALL"]).await;
    redis.query::<String>(&["MSET", "sem", "2", "perm", "2", "gate", "2"]).await;
}

/// Asserts that the first key of a call, its record, lasts for the memory, the lease and the bound,
/// and a second more.
async fn assert_remembered(redis: &Redis, call: &ScriptCall, bound: Bound, at_least: u64) {
    let before = redis.now_ms().await;
    let cells = redis.cells(call).await.unwrap();
    let left: u64 = redis.query(&["PTTL", &call.keys()[0]]).await;
    let after = redis.now_ms().await;
    let until = |now| bound.not_after.map_or(0, |at: u64| at.saturating_sub(now));
    let keep = u64::try_from(bound.keep.as_millis()).unwrap();
    let life = |now| keep.max(at_least).max(until(now)) + 1_000;
    let name = (call.script().name, cells);
    assert!(left <= life(before), "{name:?}: {left}");
    assert!(left + (after - before) + 1 >= life(after), "{name:?}: {left}");
}

#[tokio::test]
async fn a_latch_and_a_tombstone_outlive_memory_lease_and_bound() {
    let redis = redis_with_permits().await;
    for bound in bounds(&redis).await {
        for ms in [100, 30_000, 3_600_000] {
            for target in targets() {
                refill(&redis).await;
                let take = target.acquire(request(1), bound, &owner(1), lease(ms), false);
                assert_remembered(&redis, &take, bound, ms).await;
                let last = target.acquire(request(2), bound, &owner(2), lease(ms), true);
                assert_remembered(&redis, &last, bound, 0).await;
                // A reply from a tombstone extends it.
                redis.query::<u64>(&["PEXPIRE", &last.keys()[0], "5000"]).await;
                assert_remembered(&redis, &last, bound, 0).await;
                let abandon = target.release(request(3), bound, &owner(3));
                assert_remembered(&redis, &abandon, bound, 0).await;
                redis.query::<u64>(&["PEXPIRE", &abandon.keys()[0], "5000"]).await;
                assert_remembered(&redis, &abandon, bound, 0).await;
            }
        }
    }
}

#[tokio::test]
async fn a_hold_without_an_end_needs_a_bound() {
    let redis = redis_with_permits().await;
    let before = redis.dump().await;
    for target in targets() {
        for last in [false, true] {
            let take = target.acquire(request(1), UNBOUND, &owner(1), LeaseTime::ENDLESS, last);
            assert_eq!(verdict(&redis.cells(&take).await.unwrap()).0, -4);
        }
    }
    assert_eq!(before, redis.dump().await);
    let within = bound(redis.now_ms().await + 60_000, 1_000);
    for target in targets() {
        let take = target.acquire(request(1), within, &owner(1), LeaseTime::ENDLESS, false);
        // The hold lasts for ever; the record of its request does not.
        assert_remembered(&redis, &take, within, 0).await;
    }
}

/// A scoped token may create semaphores with an expiry, so keys beside one must expire with it.
#[tokio::test]
async fn the_holds_end_with_their_semaphore() {
    let redis = redis_with_permits().await;
    let within = bound(redis.now_ms().await + 60_000, 1_000);
    for (target, (key, set)) in
        targets().iter().zip([("sem", "el:{sem}:held"), ("perm", "{perm}:timeout")])
    {
        redis.query::<u64>(&["PEXPIRE", key, "3600000"]).await;
        let before = redis.now_ms().await;
        redis.run(&target.acquire(request(1), within, &owner(1), lease(30_000), false)).await;
        let took = redis.now_ms().await - before;
        let keys = redis.dump().await;
        // Redis 7.0 reads its clock anew for each command of a script: the remaining time of the
        // semaphore becomes an expiry a little later.
        assert_within(keys[key].ends_at, keys[set].ends_at, took, key);
        // The holds of a semaphore without an expiry have none.
        refill(&redis).await;
        redis.run(&target.acquire(request(1), within, &owner(2), lease(30_000), false)).await;
        assert_eq!(redis.dump().await[set].ttl, -1, "{set}");
    }
}

/// S65.
#[tokio::test]
async fn a_hold_outlives_its_latch_and_is_released_once() {
    let redis = redis_with_permits().await;
    let within = bound(redis.now_ms().await + 60_000, 1_000);
    for (target, key) in targets().into_iter().zip(["sem", "perm"]) {
        let take = target.acquire(request(1), within, &owner(1), LeaseTime::ENDLESS, false);
        let grant = redis.run(&take).await.value;
        redis.query::<u64>(&["DEL", &take.keys()[0]]).await;
        let token = token(grant.parse().unwrap());
        let renew = target.renew(request(3), within, &owner(1), lease(30_000), token);
        assert_eq!(verdict(&redis.cells(&renew).await.unwrap()), (1, grant, -1));
        // A copy is not granted again.
        assert_eq!(verdict(&redis.cells(&take).await.unwrap()).0, -3);
        let release = target.release(request(2), within, &owner(1));
        assert_eq!(verdict(&redis.cells(&release).await.unwrap()).0, 1);
        // The tombstone may be lost, too.
        redis.query::<u64>(&["DEL", &release.keys()[0]]).await;
        assert_eq!(verdict(&redis.cells(&release).await.unwrap()).0, 0);
        assert_eq!(redis.query::<String>(&["GET", key]).await, "2");
    }
}

#[tokio::test]
async fn a_request_that_arrives_after_its_bound_is_not_executed() {
    let redis = redis_with_permits().await;
    let passed = bound(redis.now_ms().await - 1, 90_000);
    let long_passed = bound(redis.now_ms().await - 70_000, 1_000);
    let empty = redis.dump().await;
    for target in targets() {
        let take = target.acquire(request(1), passed, &owner(1), lease(30_000), true);
        assert_eq!(verdict(&redis.cells(&take).await.unwrap()).0, -1);
    }
    let (s, p, l) = (semaphore("sem", 1), permits("perm", 1, 0), latch("gate"));
    for change in [s.add(1), p.add(1), l.count_down()] {
        for (bound, code) in [(passed, -1), (long_passed, -5), (UNBOUND, -4)] {
            let answer = redis.cells(&change.call(request(2), bound)).await.unwrap();
            assert_eq!(verdict(&answer).0, code, "{change:?}");
        }
    }
    assert_eq!(empty, redis.dump().await);
    for target in targets() {
        let take = target.acquire(request(3), UNBOUND, &owner(1), lease(30_000), false);
        let grant = redis.run(&take).await.value.parse().unwrap();
        let scores = redis.dump().await;
        let renew = target.renew(request(4), passed, &owner(1), lease(600_000), token(grant));
        assert_eq!(verdict(&redis.cells(&renew).await.unwrap()).0, -1);
        let again = target.acquire(request(3), passed, &owner(1), lease(600_000), false);
        assert_eq!(verdict(&redis.cells(&again).await.unwrap()).0, -1);
        for (key, stored) in redis.dump().await {
            assert_eq!(stored.value, scores[&key].value, "{key}");
        }
        // A release is never too late.
        let release = target.release(request(5), passed, &owner(1));
        assert_eq!(verdict(&redis.cells(&release).await.unwrap()).0, 1);
    }
}

/// S93.
#[tokio::test]
async fn a_lease_about_to_expire_still_belongs_to_its_holder() {
    let redis = redis_with_permits().await;
    for target in targets() {
        let take = target.acquire(request(1), UNBOUND, &owner(1), lease(4_500), false);
        assert_eq!(verdict(&redis.cells(&take).await.unwrap()).0, 1);
        let other = target.acquire(request(2), UNBOUND, &owner(2), lease(30_000), false);
        assert_eq!(verdict(&redis.cells(&other).await.unwrap()).0, 0);
    }
}

/// S10, S11.
#[tokio::test]
async fn a_renewal_is_for_its_grant_and_shortens_nothing() {
    let redis = redis_with_permits().await;
    for target in targets() {
        let take = target.acquire(request(1), UNBOUND, &owner(1), lease(30_000), false);
        let grant: u64 = redis.run(&take).await.value.parse().unwrap();
        for (who, number) in [(owner(1), grant - 1), (owner(1), grant + 1), (owner(2), grant)] {
            let renew = target.renew(request(2), UNBOUND, &who, lease(600_000), token(number));
            assert_eq!(verdict(&redis.cells(&renew).await.unwrap()).0, -3);
        }
        for (ms, least, most) in [(200_000, 199_000, 200_000), (1_000, 190_000, 200_000)] {
            let renew = target.renew(request(2), UNBOUND, &owner(1), lease(ms), token(grant));
            let (code, _, left) = verdict(&redis.cells(&renew).await.unwrap());
            assert!(code == 1 && (least..=most).contains(&left), "{left}");
            assert!(redis.query::<i64>(&["PTTL", &take.keys()[0]]).await > left);
        }
    }
}
