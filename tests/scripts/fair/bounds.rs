//! Calls that are too late, how long a request is remembered, and a Redis whose memory is full.

use std::time::Duration;

use edgelatch_proto::protocol::reply::{Code, Reply};
use edgelatch_proto::protocol::script::{Bound, ScriptCall};

use super::fixtures::{Fair, JAVA, Poll, nth_poll};
use test_support::calls::{UNBOUND, bound, request};
use test_support::redis::Redis;

/// The slack after which no copy of a request can still be in transit.
const SLACK_MS: u64 = 1_000;
/// The least time for which a previous owner is remembered.
const PREVIOUS_MS: u64 = 690_000;

async fn bounds(redis: &Redis) -> [Bound; 3] {
    let now = redis.now_ms().await;
    [
        UNBOUND,
        Bound { not_after: None, keep: Duration::from_secs(600) },
        bound(now + 1_000_000, 90_000),
    ]
}

fn life(bound: Bound, lease_ms: u64, reply: &Reply) -> u64 {
    let until = bound.not_after.map_or(0, |at| at.saturating_sub(reply.server_ms));
    lease_ms.max(until).max(u64::try_from(bound.keep.as_millis()).unwrap()) + SLACK_MS
}

async fn assert_remembered(redis: &Redis, key: &str, reply: &Reply, life: u64) {
    let left: u64 = redis.query(&["PTTL", key]).await;
    let elapsed = redis.now_ms().await - reply.server_ms;
    assert!(left <= life && left + elapsed + 1 >= life, "{left} of {life} after {elapsed}");
}

/// Lets Redisson's holder acquire the lock.
async fn is_held(redis: &Redis, lock: &Fair) {
    let now = i64::try_from(redis.now_ms().await).unwrap();
    lock.java().acquire(redis, JAVA[0], 300_000, now).await;
}

/// A scoped token can queue for any number of names, to which no client may ever return.
#[tokio::test]
async fn a_queue_without_live_waiters_expires_after_a_day() {
    let redis = Redis::start().await;
    let lock = Fair::new("job");
    is_held(&redis, &lock).await;
    for number in 1..=2 {
        let reply = redis.run(&lock.acquire(nth_poll(1, number))).await;
        assert_eq!(reply.code, Code::No);
        let of_redisson = ["redisson_lock_queue", "redisson_lock_timeout"].map(|key| lock.key(key));
        for key in of_redisson.into_iter().chain([lock.beats(), lock.arrivals()]) {
            let ends: u64 = redis.query(&["PEXPIRETIME", &key]).await;
            // Redis computes the expiry from a later reading of the clock than the script's.
            let read = reply.server_ms..=redis.now_ms().await;
            assert!(read.contains(&(ends - 86_400_000)), "{key}: {ends}");
            // As if half of the day had passed: the next poll extends it to a day again.
            redis.query::<u64>(&["PEXPIRE", &key, "43200000"]).await;
        }
    }
}

#[tokio::test]
async fn a_latch_outlives_memory_lease_and_bound_in_each_of_its_states() {
    let redis = Redis::start().await;
    let lock = Fair::new("job");
    for bound in bounds(&redis).await {
        redis.query::<String>(&["FLUSHALL"]).await;
        let granted = Poll { lease_ms: 3_600_000, ..nth_poll(1, 1).within(bound) };
        let reply = redis.run(&lock.acquire(granted)).await;
        assert_eq!(reply.code, Code::Done);
        assert_remembered(&redis, &lock.latch(1), &reply, life(bound, 3_600_000, &reply)).await;
        let reply = redis.run(&lock.acquire(Poll { owner: 2, ..granted })).await;
        assert_eq!(reply.code, Code::No);
        assert_remembered(&redis, &lock.latch(2), &reply, life(bound, 0, &reply)).await;
        let reply = redis.run(&lock.acquire(Poll { owner: 3, last: true, ..granted })).await;
        assert_eq!(reply.code, Code::No);
        assert_remembered(&redis, &lock.latch(3), &reply, life(bound, 0, &reply)).await;
        let reply = redis.run(&lock.abandon(4, bound, None)).await;
        assert_remembered(&redis, &lock.latch(4), &reply, life(bound, 0, &reply)).await;
        for key in [lock.beats(), lock.arrivals()] {
            let left: u64 = redis.query(&["PTTL", &key]).await;
            assert!(left > life(bound, 0, &reply), "{key}: {left}");
        }
    }
}

#[tokio::test]
async fn a_previous_owner_is_remembered_beyond_all_bounds_that_it_can_have_had() {
    let redis = Redis::start().await;
    let lock = Fair::new("job");
    for bound in bounds(&redis).await {
        redis.query::<String>(&["FLUSHALL"]).await;
        is_held(&redis, &lock).await;
        redis.run(&lock.acquire(nth_poll(9, 1))).await;
        let takes_over = redis.run(&lock.acquire(nth_poll(1, 1).after(9).within(bound))).await;
        let long = PREVIOUS_MS.max(life(bound, 0, &takes_over));
        assert_remembered(&redis, &lock.latch(9), &takes_over, long).await;
        let abandons = redis.run(&lock.abandon(2, bound, Some(8))).await;
        let long = PREVIOUS_MS.max(life(bound, 0, &abandons));
        assert_remembered(&redis, &lock.latch(8), &abandons, long).await;
    }
}

#[tokio::test]
async fn a_reply_from_a_tombstone_prolongs_it() {
    let redis = Redis::start().await;
    let lock = Fair::new("job");
    let abandon = lock.release(1);
    let reply = redis.run(&abandon).await;
    for call in [&abandon, &lock.acquire(nth_poll(1, 1))] {
        redis.query::<u64>(&["PEXPIRE", &lock.latch(1), "5000"]).await;
        let again = redis.run(call).await;
        assert_remembered(&redis, &lock.latch(1), &again, life(UNBOUND, 0, &reply)).await;
    }
}

#[tokio::test]
async fn a_request_that_arrives_after_its_bound_is_not_executed() {
    let redis = Redis::start().await;
    let lock = Fair::new("job");
    let passed = bound(redis.now_ms().await - 1, 90_000);
    for late in [nth_poll(1, 1), nth_poll(1, 2).at_last(), nth_poll(1, 3).after(9)] {
        assert_eq!(redis.run(&lock.acquire(late.within(passed))).await.code, Code::Late);
    }
    let force = lock.force_release();
    assert_eq!(redis.run(&force.call(request(1), passed)).await.code, Code::Late);
    assert_eq!(redis.run(&force.call(request(1), UNBOUND)).await.code, Code::BoundRequired);
    assert!(redis.dump().await.is_empty());

    is_held(&redis, &lock).await;
    redis.run(&lock.acquire(nth_poll(9, 1))).await;
    let before = redis.dump().await;
    let takes_over = lock.acquire(nth_poll(1, 1).after(9).within(passed));
    assert_eq!(redis.run(&takes_over).await.code, Code::Late);
    assert!(before.keys().eq(redis.dump().await.keys()));
    // A call that ends a hold or a wait is never too late.
    assert_eq!(redis.run(&lock.abandon(1, passed, Some(9))).await.code, Code::No);
    assert_eq!(redis.run(&lock.acquire(nth_poll(9, 2))).await.code, Code::Gone);
}

/// Redisson holds the lock; owners 1 and 9 wait; owner 5 holds another lock; and memory is full.
async fn full() -> (Redis, Fair, Fair, u64) {
    let (redis, lock, other) = (Redis::start().await, Fair::new("job"), Fair::new("other"));
    is_held(&redis, &lock).await;
    redis.run(&lock.acquire(nth_poll(1, 1))).await;
    redis.run(&lock.acquire(nth_poll(9, 1))).await;
    let grant = redis.run(&other.acquire(nth_poll(5, 1))).await.value.parse().unwrap();
    redis.fill().await;
    (redis, lock, other, grant)
}

#[tokio::test]
async fn nothing_new_begins_when_memory_is_full() {
    let (redis, lock, _, _) = full().await;
    let before = redis.dump().await;
    let free = Fair::new("free");
    let begins = [
        free.acquire(nth_poll(2, 1)),
        free.acquire(nth_poll(2, 1).at_last()),
        lock.acquire(nth_poll(2, 1)),
    ];
    for call in begins {
        let error = redis.cells(&call).await.unwrap_err();
        assert!(error.to_string().contains("OOM"), "{error}");
    }
    assert!(before.keys().eq(redis.dump().await.keys()));
}

/// S66.
#[tokio::test]
async fn a_queued_waiter_can_still_be_granted_when_memory_is_full() {
    let (redis, lock, other, grant) = full().await;
    passes(&redis, &lock.acquire(nth_poll(1, 2)), Code::No).await;
    passes(&redis, &lock.acquire(nth_poll(3, 1).after(9)), Code::No).await;
    passes(&redis, &lock.acquire(nth_poll(4, 1).at_last()), Code::No).await;
    passes(&redis, &other.renew(5, 60_000, grant), Code::Done).await;
    let within = bound(redis.now_ms().await + 60_000, 90_000);
    passes(&redis, &lock.force_release().call(request(1), within), Code::Done).await;
    passes(&redis, &lock.acquire(nth_poll(1, 3)), Code::Done).await;
    passes(&redis, &lock.release(1), Code::Done).await;
    passes(&redis, &lock.abandon(3, within, Some(9)), Code::No).await;
    passes(&redis, &other.release(5), Code::Done).await;
    for owner in [1, 3, 4, 5, 9] {
        let of = if owner == 5 { &other } else { &lock };
        let latch: String = redis.query(&["GET", &of.latch(owner)]).await;
        assert!(latch.starts_with('x'), "{owner}: {latch}");
    }
}

async fn passes(redis: &Redis, call: &ScriptCall, code: Code) {
    let reply = redis.run(call).await;
    assert_eq!(reply.code, code, "{} {:?}", call.script().name, call.args());
}
