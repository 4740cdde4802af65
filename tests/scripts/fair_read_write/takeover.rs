//! The takeover of a place in the queue by a new owner of the same waiter.

use edgelatch_proto::protocol::calls::FairMode;
use edgelatch_proto::protocol::reply::Code;

use super::fixtures::{Attempt, FairRw, LIFE_MS, exclusive, first, place_of, shared, woken};
use test_support::redis::Redis;

/// Rule W15.
#[tokio::test]
async fn a_takeover_keeps_the_place_and_ends_the_previous_owner() {
    let redis = Redis::start().await;
    for mode in [FairMode::Exclusive, FairMode::Shared] {
        redis.query::<String>(&["FLUSHALL"]).await;
        let lock = FairRw::new("job");
        redis.run(&lock.acquire(exclusive(2))).await;
        redis.run(&lock.acquire(first(9, mode))).await;
        redis.run(&lock.acquire(shared(3))).await;
        let ticket = async |attempt: Attempt| -> Option<u64> {
            redis.query(&["ZSCORE", &lock.key("queue"), &attempt.member()]).await
        };
        let before = ticket(first(9, mode)).await;
        let takes_over = first(1, mode).after(9);
        let reply = redis.run(&lock.acquire(takes_over)).await;
        assert_eq!((reply.code, place_of(&reply).0), (Code::No, 0));
        assert_eq!((ticket(first(1, mode)).await, ticket(first(9, mode)).await), (before, None));
        // A copy that names the previous owner, and one of the previous owner itself.
        redis.run(&lock.acquire(takes_over)).await;
        assert_eq!(redis.run(&lock.acquire(first(9, mode).nth(7))).await.code, Code::Gone);
        // A second takeover in the same place.
        let reply = redis.run(&lock.acquire(first(5, mode).after(1))).await;
        assert_eq!((place_of(&reply).0, ticket(first(5, mode)).await), (0, before));
        assert_eq!(redis.run(&lock.acquire(takes_over.nth(2))).await.code, Code::Gone);
        assert_eq!(redis.query::<u64>(&["ZCARD", &lock.key("queue")]).await, 2);
        let writers: u64 = redis.query(&["ZCARD", &lock.key("writers")]).await;
        assert_eq!(writers, u64::from(mode == FairMode::Exclusive));
    }
}

#[tokio::test]
async fn a_takeover_gets_the_hold_that_a_copy_was_granted_meanwhile() {
    let redis = Redis::start().await;
    for mode in [FairMode::Exclusive, FairMode::Shared] {
        redis.query::<String>(&["FLUSHALL"]).await;
        let lock = FairRw::new("job");
        redis.run(&lock.acquire(first(9, mode))).await;
        redis.run(&lock.acquire(exclusive(3))).await;
        let reply = redis.run(&lock.acquire(first(1, mode).after(9))).await;
        assert_eq!((reply.code, reply.ms), (Code::Done, 30_000), "{reply:?}");
        let holders: Vec<String> = redis.query(&["ZRANGE", &lock.key("holders"), "0", "-1"]).await;
        assert_eq!(holders, [first(1, mode).member()]);
        assert_eq!(redis.query::<String>(&["GET", &lock.latch(9)]).await, "x1");
        assert_eq!(redis.run(&lock.acquire(first(9, mode).nth(2))).await.code, Code::Gone);
        assert_eq!(redis.run(&lock.release(first(1, mode))).await.code, Code::Done);
        assert_eq!(redis.run(&lock.acquire(exclusive(3).nth(2))).await.code, Code::Done);
    }
}

#[tokio::test]
async fn a_takeover_of_a_waiter_that_was_removed_uses_the_ticket_in_its_latch() {
    let redis = Redis::start().await;
    let lock = FairRw::new("job");
    redis.run(&lock.acquire(exclusive(2).for_ms(60_000))).await;
    redis.run(&lock.acquire(exclusive(9))).await;
    redis.run(&lock.acquire(shared(3))).await;
    lock.age(&redis, LIFE_MS).await;
    assert_eq!(place_of(&redis.run(&lock.acquire(shared(3).nth(2))).await).0, 0);
    let reply = redis.run(&lock.acquire(exclusive(1).after(9))).await;
    assert_eq!((reply.code, place_of(&reply)), (Code::No, (0, LIFE_MS / 3, false)));
    // A previous owner without any record has no place.
    let reply = redis.run(&lock.acquire(shared(4).after(8))).await;
    assert_eq!((reply.code, place_of(&reply).0), (Code::No, 2));
}

/// An abandon while the takeover is not confirmed ends both owners.
#[tokio::test]
async fn an_abandon_of_a_takeover_ends_the_previous_owner_too() {
    let mut redis = Redis::start().await;
    for (mode, held) in [(FairMode::Exclusive, true), (FairMode::Shared, false)] {
        redis.query::<String>(&["FLUSHALL"]).await;
        let lock = FairRw::new("job");
        if !held {
            redis.run(&lock.acquire(exclusive(2))).await;
        }
        redis.run(&lock.acquire(first(9, mode))).await;
        redis.run(&lock.acquire(exclusive(3))).await;
        redis.published().await;
        let code = redis.run(&lock.release(first(1, mode).after(9))).await.code;
        assert_eq!(code == Code::Done, held);
        let ended = if held { "x1" } else { "x0" };
        for owner in [1, 9] {
            assert_eq!(redis.query::<String>(&["GET", &lock.latch(owner)]).await, ended);
            let again = redis.run(&lock.acquire(first(owner, mode).nth(9))).await;
            assert_eq!(again.code, Code::Gone);
        }
        assert_eq!(woken(&mut redis, &lock).await, if held { vec![3] } else { Vec::new() });
        assert_eq!(redis.query::<u64>(&["ZCARD", &lock.key("queue")]).await, 1);
    }
}
