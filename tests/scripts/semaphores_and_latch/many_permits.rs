//! Very many expired holds: Redisson's script fails at ten thousand.

use edgelatch_proto::timing::LeaseTime;

use super::{batch, held, permits, semaphore, verdict};
use test_support::calls::{Calls, bound, lease, owner, request};
use test_support::redis::Redis;
use test_support::script_model::holds::EVICTED_MAX;

const MANY: usize = 100_000;

/// Adds this many members to a set, one permit each, with scores 1, 2, 3...
async fn fill(redis: &Redis, set: &str, prefix: &str, many: usize) {
    for from in (0..many).step_by(5_000) {
        let mut add = redis::cmd("ZADD");
        add.arg(set);
        for number in from..from + 5_000 {
            add.arg(number + 1).arg(format!("{prefix}{number:016}"));
        }
        add.exec_async(&mut redis.connect().await).await.unwrap();
    }
}

/// Takes one permit, then none, until all expired holds are removed.
async fn empties(redis: &Redis, target: &Calls, set: &str, number: &str) {
    let within = bound(redis.now_ms().await + 600_000, 90_000);
    let take = target.acquire(request(1), within, &owner(1), LeaseTime::ENDLESS, true);
    assert_eq!(verdict(&redis.cells(&take).await.unwrap()).0, 1);
    let mut holders = 1;
    let mut over = MANY - EVICTED_MAX;
    while over > 0 {
        let set_now: usize = redis.query(&["ZCARD", set]).await;
        assert_eq!(set_now, over + usize::from(holders));
        holders += 1;
        let take = target.acquire(request(2), within, &owner(holders), lease(60_000), true);
        assert_eq!(verdict(&redis.cells(&take).await.unwrap()).0, 1);
        over = over.saturating_sub(EVICTED_MAX);
    }
    let left: usize = redis.query(&["ZCARD", set]).await;
    assert_eq!(left, usize::from(holders));
    let available: usize = redis.query(&["GET", number]).await;
    assert_eq!(available + left, MANY);
}

#[tokio::test]
async fn a_hundred_thousand_permits_that_have_ended_come_back_in_slices() {
    let redis = Redis::start().await;
    redis.query::<String>(&["MSET", "sem", "0", "perm", "0"]).await;
    fill(&redis, "{perm}:timeout", "", MANY).await;
    empties(&redis, &batch(&permits("perm", 1, 1000)), "{perm}:timeout", "perm").await;
    fill(&redis, "el:{sem}:held", "1|", MANY).await;
    empties(&redis, &held(&semaphore("sem", 1)), "el:{sem}:held", "sem").await;
}

#[tokio::test]
async fn very_many_permits_are_acquired_and_released_by_force() {
    let redis = Redis::start().await;
    let within = bound(redis.now_ms().await + 600_000, 90_000);
    redis.query::<String>(&["MSET", "sem", "0", "perm", "0"]).await;
    fill(&redis, "{perm}:timeout", "", MANY).await;
    fill(&redis, "el:{sem}:held", "1|", 10_000).await;
    let asked = batch(&permits("perm", 1, 0)).inspect(request(1), None);
    assert_eq!(verdict(&redis.cells(&asked).await.unwrap()).1, "0,0,0,100000,100000");
    // Only the first 500 are examined one by one.
    let asked = held(&semaphore("sem", 1)).inspect(request(1), None);
    assert_eq!(verdict(&redis.cells(&asked).await.unwrap()).1, "0,0,0,500,0");
    let targets = [batch(&permits("perm", 1, 0)), held(&semaphore("sem", 1))];
    for (target, given) in targets.into_iter().zip(["100000", "10000"]) {
        let clear = target.force_release(request(2), within);
        assert_eq!(verdict(&redis.cells(&clear).await.unwrap()), (1, given.into(), 0));
    }
    assert_eq!(redis.query::<Vec<String>>(&["MGET", "perm", "sem"]).await, ["100000", "10000"]);
}

#[tokio::test]
async fn an_acquisition_larger_than_one_call_can_free_retries_at_once() {
    let redis = Redis::start().await;
    redis.query::<String>(&["SET", "sem", "0"]).await;
    fill(&redis, "el:{sem}:held", "1|", 10_000).await;
    let within = bound(redis.now_ms().await + 600_000, 90_000);
    let target = held(&semaphore("sem", 5_000));
    for slices in 1..10 {
        let available = (slices * EVICTED_MAX).to_string();
        let take = target.acquire(request(1), within, &owner(1), lease(60_000), false);
        let answer = verdict(&redis.cells(&take).await.unwrap());
        assert_eq!(answer, (0, available, 0));
    }
    let take = target.acquire(request(1), within, &owner(1), lease(60_000), false);
    assert_eq!(verdict(&redis.cells(&take).await.unwrap()).0, 1);
}
