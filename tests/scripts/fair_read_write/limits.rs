//! The limits on holders and waiters, and the range of tokens.

use edgelatch_proto::protocol::calls::FairMode;
use edgelatch_proto::protocol::reply::Code;

use super::fixtures::{
    Attempt, FairRw, LIFE_MS, exclusive, first, in_time, place_of, shared, woken,
};
use test_support::redis::Redis;

/// Rule W9.
#[tokio::test]
async fn at_most_the_maximum_of_shared_owners_hold_the_lock_in_the_order_of_arrival() {
    let mut redis = Redis::start().await;
    let lock = FairRw::new("job");
    let lock = FairRw { settings: lock.settings.max_holders(2).unwrap(), ..lock };
    let code = async |attempt| redis.run(&lock.acquire(attempt)).await.code;
    assert_eq!([code(shared(1)).await, code(shared(2)).await], [Code::Done; 2]);
    for owner in 3..=5 {
        assert_eq!(code(shared(owner)).await, Code::No);
    }
    redis.published().await;
    redis.run(&lock.release(shared(1))).await;
    assert_eq!(woken(&mut redis, &lock).await, [3]);
    // The place is kept for the first waiter.
    let code = async |attempt| redis.run(&lock.acquire(attempt)).await.code;
    assert_eq!(code(shared(4).nth(2)).await, Code::No);
    assert_eq!(code(shared(6).at_last()).await, Code::No);
    assert_eq!(code(shared(3).nth(2)).await, Code::Done);
    redis.published().await;
    redis.run(&lock.release(shared(2))).await;
    assert_eq!(woken(&mut redis, &lock).await, [4]);
    redis.run(&lock.release(shared(3))).await;
    assert_eq!(woken(&mut redis, &lock).await, [4, 5]);
    // An abandoned waiter gives its place to the next one.
    redis.run(&lock.acquire(shared(7))).await;
    redis.published().await;
    redis.run(&lock.release(shared(4))).await;
    assert_eq!(woken(&mut redis, &lock).await, [5, 7]);
}

#[tokio::test]
async fn a_queue_that_is_full_accepts_no_more_waiters() {
    let redis = Redis::start().await;
    let lock = FairRw::new("job");
    let lock = FairRw { settings: lock.settings.max_waiters(2).unwrap(), ..lock };
    redis.run(&lock.acquire(exclusive(1))).await;
    for waiter in [exclusive(2), shared(3)] {
        assert_eq!(redis.run(&lock.acquire(waiter)).await.code, Code::No);
    }
    let before = redis.dump().await;
    for mode in [FairMode::Exclusive, FairMode::Shared] {
        let error = redis.cells(&lock.acquire(first(4, mode))).await.unwrap_err();
        assert_eq!(error.code(), Some("LIMIT"), "{error}");
        assert!(!error.to_string().contains("job"), "{error}");
    }
    assert_eq!(before.keys().collect::<Vec<_>>(), redis.dump().await.keys().collect::<Vec<_>>());
    // Waiters poll on, a last try needs no place, and a takeover has one.
    assert_eq!(redis.run(&lock.acquire(shared(3).nth(2))).await.code, Code::No);
    assert_eq!(redis.run(&lock.acquire(shared(5).at_last())).await.code, Code::No);
    let taken = redis.run(&lock.acquire(exclusive(6).after(2))).await;
    assert_eq!((taken.code, place_of(&taken).0), (Code::No, 0));
    // Dead waiters do not count, and one that was only silent comes back.
    lock.age(&redis, LIFE_MS).await;
    redis.run(&lock.acquire(exclusive(1).nth(2))).await;
    for waiter in [exclusive(7), exclusive(8)] {
        assert_eq!(redis.run(&lock.acquire(waiter)).await.code, Code::No);
    }
    let back = redis.run(&lock.acquire(exclusive(6).nth(2))).await;
    assert_eq!(place_of(&back), (0, LIFE_MS / 3, true));
}

/// More dead waiters than one call removes: a new owner is told to poll at once, until they are
/// gone.
#[tokio::test]
async fn many_dead_waiters_are_removed_in_slices() {
    let redis = Redis::start().await;
    let lock = FairRw::new("job");
    redis.run(&lock.acquire(exclusive(1))).await;
    for owner in 2..=600 {
        redis
            .run(&lock.acquire(if owner % 3 == 0 { exclusive(owner) } else { shared(owner) }))
            .await;
        // On a slow machine the first would be dead before the last has come.
        if owner % 50 == 0 {
            lock.postpone(&redis, 100_000).await;
        }
    }
    lock.age(&redis, 12 * 100_000 + 30_000).await;
    for (number, left) in [(1, 599 - 256), (2, 599 - 512)] {
        let reply = redis.run(&lock.acquire(exclusive(1000).nth(number))).await;
        assert_eq!((reply.code, place_of(&reply).1), (Code::No, 1));
        let dead = redis.query::<u64>(&["ZCARD", &lock.key("queue")]).await;
        assert_eq!(dead, left + 1);
    }
    assert_eq!(redis.run(&lock.acquire(exclusive(1000).nth(3))).await.code, Code::Done);
    assert_eq!(redis.query::<u64>(&["EXISTS", &lock.key("queue")]).await, 0);
}

/// Rule W8: dead holders that no call has removed yet do not count.
#[tokio::test]
async fn more_dead_holders_than_one_call_removes_keep_no_owner_out() {
    let redis = Redis::start().await;
    let lock = FairRw::new("job");
    for owner in 1..=200 {
        redis.run(&lock.acquire(shared(owner))).await;
    }
    lock.age(&redis, 30_000).await;
    assert_eq!(redis.run(&lock.acquire(exclusive(300))).await.code, Code::Done);
    assert_eq!(redis.query::<u64>(&["ZCARD", &lock.key("holders")]).await, 200 - 64 + 1);
    let state = redis.run(&lock.inspect(Some(exclusive(300)))).await;
    let numbers: Vec<&str> = state.value.split(',').collect();
    assert_eq!(
        (state.code, &numbers[1..]),
        (Code::Done, ["1", "1", "2", "0", "0", "0"].as_slice())
    );
}

#[tokio::test]
async fn a_token_that_cannot_rise_grants_nothing() {
    let redis = Redis::start().await;
    let lock = FairRw::new("job");
    let within = in_time(&redis).await;
    for last in ["9007199254740991", "1e300", "garbage"] {
        redis.query::<u64>(&["HSET", &lock.key("last"), "t", last, "k", "x"]).await;
        for mode in [FairMode::Exclusive, FairMode::Shared, FairMode::Steal] {
            let call = lock.acquire(Attempt { bound: within, ..first(1, mode) });
            assert_eq!(redis.run(&call).await.code, Code::TokenRange, "{last} {mode:?}");
            assert!(redis.dump().await.keys().eq([&lock.key("last")]), "{last} {mode:?}");
        }
    }
}

/// Rule W12, over the loss and the expiry of everything but the last token.
#[tokio::test]
async fn tokens_rise_over_the_end_of_holds_and_above_the_last_one() {
    let redis = Redis::start().await;
    let lock = FairRw::new("job");
    let ahead = (redis.now_ms().await + 3_600_000) * 1_000;
    redis.query::<u64>(&["HSET", &lock.key("last"), "t", &ahead.to_string(), "k", "x"]).await;
    let grant = async |attempt: Attempt| -> u64 {
        let reply = redis.run(&lock.acquire(attempt)).await;
        redis.run(&lock.release(attempt)).await;
        reply.value.parse().unwrap()
    };
    assert_eq!(grant(shared(1)).await, ahead + 1);
    assert_eq!(grant(shared(2)).await, ahead + 1);
    assert_eq!(grant(exclusive(3)).await, ahead + 2);
    assert_eq!(grant(exclusive(4)).await, ahead + 3);
    assert_eq!(grant(shared(5)).await, ahead + 4);
}
