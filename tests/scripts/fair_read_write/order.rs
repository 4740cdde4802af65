//! The order in which waiters are served, and which of them are notified.

use edgelatch_proto::protocol::reply::{Code, Reply};

use super::fixtures::{Attempt, FairRw, LIFE_MS, exclusive, place_of, shared, woken};
use test_support::redis::Redis;

/// A lock that owner 1 holds exclusively, for which these owners wait in this order.
async fn behind(redis: &Redis, waiters: &[Attempt]) -> FairRw {
    redis.query::<String>(&["FLUSHALL"]).await;
    let lock = FairRw::new("job");
    assert_eq!(redis.run(&lock.acquire(exclusive(1))).await.code, Code::Done);
    for (place, waiter) in waiters.iter().enumerate() {
        let reply = redis.run(&lock.acquire(*waiter)).await;
        assert_eq!((reply.code, place_of(&reply).0), (Code::No, place as u64));
    }
    lock
}

async fn release(redis: &Redis, lock: &FairRw, attempt: Attempt) {
    assert_eq!(redis.run(&lock.release(attempt)).await.code, Code::Done);
}

async fn token_of(redis: &Redis, lock: &FairRw, attempt: Attempt) -> u64 {
    let reply = redis.run(&lock.acquire(attempt)).await;
    assert_eq!(reply.code, Code::Done, "owner {}: {reply:?}", attempt.owner);
    reply.value.parse().unwrap()
}

/// Rules W5, W6, W10 and W12.
#[tokio::test]
async fn waiters_of_both_modes_are_served_in_the_order_of_arrival() {
    let mut redis = Redis::start().await;
    let lock = behind(&redis, &[shared(2), shared(3), exclusive(4), shared(5), exclusive(6)]).await;
    let state = redis.run(&lock.inspect(None)).await;
    let first: u64 = state.value.split(',').next().unwrap().parse().unwrap();
    redis.published().await;
    release(&redis, &lock, exclusive(1)).await;
    assert_eq!(woken(&mut redis, &lock).await, [2, 3]);
    // Neither a new owner nor a later waiter enters before them.
    let later = [exclusive(4).nth(2), shared(5).nth(2)];
    for attempt in [exclusive(7).at_last(), shared(8).at_last()].into_iter().chain(later) {
        assert_eq!(redis.run(&lock.acquire(attempt)).await.code, Code::No);
    }
    let second = token_of(&redis, &lock, shared(2).nth(2)).await;
    let third = token_of(&redis, &lock, shared(3).nth(2)).await;
    assert!(first < second && second == third, "{first} {second} {third}");
    // A shared owner waits behind an exclusive one, although shared owners hold the lock.
    assert_eq!(redis.run(&lock.acquire(shared(5).nth(3))).await.code, Code::No);
    release(&redis, &lock, shared(3)).await;
    assert!(woken(&mut redis, &lock).await.is_empty());
    release(&redis, &lock, shared(2)).await;
    assert_eq!(woken(&mut redis, &lock).await, [4]);
    let fourth = token_of(&redis, &lock, exclusive(4).nth(3)).await;
    release(&redis, &lock, exclusive(4)).await;
    assert_eq!(woken(&mut redis, &lock).await, [5]);
    let fifth = token_of(&redis, &lock, shared(5).nth(4)).await;
    assert!(third < fourth && fourth < fifth, "{third} {fourth} {fifth}");
}

/// Rule W7.
#[tokio::test]
async fn a_waiter_that_was_silent_for_its_life_blocks_no_other_and_keeps_its_place() {
    let mut redis = Redis::start().await;
    for (silent, behind_it) in [(exclusive(2), shared(3)), (shared(2), exclusive(3))] {
        let lock = behind(&redis, &[silent, behind_it, exclusive(4)]).await;
        lock.age(&redis, LIFE_MS).await;
        redis.run(&lock.acquire(exclusive(1).nth(2))).await;
        redis.published().await;
        // The poll of the next waiter removes it; owner 4 was silent too.
        let poll = redis.run(&lock.acquire(behind_it.nth(2))).await;
        assert_eq!((poll.code, place_of(&poll).0), (Code::No, 0));
        let back = redis.run(&lock.acquire(silent.nth(2))).await;
        assert_eq!((back.code, place_of(&back)), (Code::No, (0, 3_333, true)));
        let poll = redis.run(&lock.acquire(exclusive(4).nth(2))).await;
        assert_eq!(place_of(&poll).0, 2);
        assert!(woken(&mut redis, &lock).await.is_empty());
        // A second silence, in which the lock becomes free.
        redis.run(&lock.release(exclusive(1))).await;
        assert_eq!(woken(&mut redis, &lock).await, [2]);
        lock.age(&redis, LIFE_MS).await;
        assert_eq!(redis.run(&lock.acquire(behind_it.nth(3))).await.code, Code::Done);
    }
}

/// The time after which the next poll of a waiter is due, in ms.
fn after(reply: &Reply) -> u64 {
    assert_eq!(reply.code, Code::No);
    place_of(reply).1
}

#[tokio::test]
async fn a_waiter_polls_when_the_one_that_blocks_it_ends_by_itself() {
    let redis = Redis::start().await;
    let lock = behind(&redis, &[exclusive(2), shared(3), shared(4)]).await;
    let poll = async |attempt| after(&redis.run(&lock.acquire(attempt)).await);
    assert_eq!(poll(exclusive(2).nth(2)).await, LIFE_MS / 3);
    // The hold ends in less than a third of a life.
    lock.age(&redis, 28_000).await;
    for waiter in [exclusive(2), shared(3), shared(4)] {
        redis.run(&lock.acquire(waiter.nth(3))).await;
    }
    let left = poll(exclusive(2).nth(4)).await;
    assert!(left <= 2_001, "{left}");
    // The heartbeat of the waiter directly in front ends earlier than a third of a life.
    redis.run(&lock.acquire(exclusive(1).nth(2))).await;
    lock.age(&redis, 8_000).await;
    let left = poll(shared(3).nth(4)).await;
    assert!(left <= 2_001, "{left}");
    assert_eq!(poll(shared(4).nth(4)).await, LIFE_MS / 3);
}

/// Rule W16.
#[tokio::test]
async fn a_heartbeat_that_was_evicted_counts_as_a_fresh_one_once() {
    let redis = Redis::start().await;
    let lock = behind(&redis, &[exclusive(2), shared(3)]).await;
    redis.run(&lock.release(exclusive(1))).await;
    redis.query::<u64>(&["ZREM", &lock.key("beats"), &exclusive(2).member()]).await;
    let poll = async |number| redis.run(&lock.acquire(shared(3).nth(number))).await;
    assert_eq!(poll(2).await.code, Code::No);
    assert_eq!(poll(3).await.code, Code::No);
    // Only the evicted one has been silent for a life.
    lock.age(&redis, LIFE_MS).await;
    assert_eq!(poll(4).await.code, Code::Done);
}

#[tokio::test]
async fn a_waiter_that_leaves_lets_those_behind_it_enter() {
    let mut redis = Redis::start().await;
    let lock = behind(&redis, &[shared(2), exclusive(3), shared(4), shared(5)]).await;
    redis.run(&lock.release(exclusive(1))).await;
    token_of(&redis, &lock, shared(2).nth(2)).await;
    redis.published().await;
    // The writer leaves, by an abandon or by its last try: both readers can enter.
    redis.run(&lock.release(exclusive(3))).await;
    assert_eq!(woken(&mut redis, &lock).await, [4, 5]);
    redis.run(&lock.acquire(exclusive(3))).await;
    let lock = behind(&redis, &[exclusive(2), exclusive(3)]).await;
    redis.run(&lock.release(exclusive(1))).await;
    redis.published().await;
    redis.run(&lock.release(exclusive(2))).await;
    assert_eq!(woken(&mut redis, &lock).await, [3]);
    // A release that finds its lease over publishes too (W10).
    let lock = behind(&redis, &[exclusive(2)]).await;
    lock.age(&redis, 30_000).await;
    redis.published().await;
    assert_eq!(redis.run(&lock.release(exclusive(1))).await.code, Code::No);
    assert_eq!(woken(&mut redis, &lock).await, [2]);
}

/// Rule W10: more than 64 shared waiters are notified as those before them enter.
#[tokio::test]
async fn a_long_run_of_shared_waiters_is_notified_in_slices() {
    let mut redis = Redis::start().await;
    let waiters: Vec<Attempt> = (2..72).map(shared).collect();
    let lock = behind(&redis, &waiters).await;
    redis.published().await;
    redis.run(&lock.release(exclusive(1))).await;
    assert_eq!(woken(&mut redis, &lock).await, (2..66).collect::<Vec<_>>());
    for owner in 2..8 {
        token_of(&redis, &lock, shared(owner).nth(2)).await;
        assert_eq!(woken(&mut redis, &lock).await, [owner + 64]);
    }
    token_of(&redis, &lock, shared(8).nth(2)).await;
    assert!(woken(&mut redis, &lock).await.is_empty());
}
