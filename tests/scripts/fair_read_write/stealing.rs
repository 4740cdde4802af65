//! Holds that another client ends: by a steal, or by a forced release.

use edgelatch_proto::protocol::calls::FairMode;
use edgelatch_proto::protocol::reply::Code;

use super::fixtures::{Attempt, FairRw, exclusive, first, in_time, notified, place_of, shared};
use test_support::redis::Redis;

async fn steal(redis: &Redis, owner: u32) -> Attempt {
    first(owner, FairMode::Steal).within(in_time(redis).await)
}

fn messages(owners: &[u32], text: &str) -> Vec<(u32, String)> {
    owners.iter().map(|owner| (*owner, text.to_owned())).collect()
}

#[tokio::test]
async fn a_steal_ends_all_holds_and_takes_no_place() {
    let mut redis = Redis::start().await;
    let lock = FairRw::new("job");
    let grant: u64 = redis.run(&lock.acquire(shared(1))).await.value.parse().unwrap();
    redis.run(&lock.acquire(shared(2))).await;
    redis.run(&lock.acquire(exclusive(3))).await;
    redis.run(&lock.acquire(shared(4))).await;
    redis.published().await;
    let thief = steal(&redis, 5).await;
    let stolen = redis.run(&lock.acquire(thief)).await;
    assert!(stolen.code == Code::Done && stolen.value.parse::<u64>().unwrap() > grant);
    assert_eq!(notified(&mut redis, &lock).await, messages(&[1, 2], "0"));
    // The holders learn of it, and their calls change nothing.
    for call in [lock.renew(shared(1), grant), lock.acquire(shared(2).nth(2))] {
        let reply = redis.run(&call).await;
        assert_eq!((reply.code, reply.value.as_str()), (Code::Lost, "1"));
    }
    assert_eq!(redis.run(&lock.release(shared(1))).await.code, Code::No);
    let poll = redis.run(&lock.acquire(exclusive(3).nth(2))).await;
    assert_eq!((poll.code, place_of(&poll).0), (Code::No, 0));
    assert_eq!(notified(&mut redis, &lock).await, []);
    redis.run(&lock.release(thief)).await;
    assert_eq!(notified(&mut redis, &lock).await, messages(&[3], "1"));
    assert_eq!(redis.run(&lock.acquire(exclusive(3).nth(3))).await.code, Code::Done);
}

#[tokio::test]
async fn of_two_steals_the_later_one_holds_the_lock() {
    let mut redis = Redis::start().await;
    let lock = FairRw::new("job");
    let (one, other) = (steal(&redis, 1).await, steal(&redis, 2).await);
    let grant: u64 = redis.run(&lock.acquire(one)).await.value.parse().unwrap();
    assert_eq!(redis.run(&lock.acquire(other)).await.code, Code::Done);
    assert_eq!(notified(&mut redis, &lock).await, messages(&[1], "0"));
    // A copy of the first steal does not end the second one's hold.
    assert_eq!(redis.run(&lock.acquire(one)).await.code, Code::Lost);
    assert_eq!(redis.run(&lock.renew(one, grant)).await.value, "1");
    assert_eq!(redis.run(&lock.inspect(Some(other))).await.value.split(',').nth(2), Some("1"));
}

/// A steal of a lock that is free, or whose hold has expired, notifies no owner.
#[tokio::test]
async fn a_steal_of_an_expired_hold_notifies_no_owner() {
    let mut redis = Redis::start().await;
    let lock = FairRw::new("job");
    let grant: u64 = redis.run(&lock.acquire(exclusive(1))).await.value.parse().unwrap();
    lock.age(&redis, 30_000).await;
    let thief = steal(&redis, 2).await;
    assert_eq!(redis.run(&lock.acquire(thief)).await.code, Code::Done);
    assert_eq!(notified(&mut redis, &lock).await, []);
    // The reply cannot distinguish a hold that had expired before the steal.
    assert_eq!(redis.run(&lock.renew(exclusive(1), grant)).await.value, "1");
    assert_eq!(redis.run(&lock.release(exclusive(1))).await.code, Code::No);
}

#[tokio::test]
async fn a_forced_release_ends_all_holds_once() {
    let mut redis = Redis::start().await;
    let lock = FairRw::new("job");
    let within = in_time(&redis).await;
    assert_eq!(redis.run(&lock.force_release(1, within)).await.code, Code::No);
    let grant: u64 = redis.run(&lock.acquire(shared(1))).await.value.parse().unwrap();
    redis.run(&lock.acquire(shared(2))).await;
    redis.run(&lock.acquire(exclusive(3))).await;
    redis.published().await;
    let reply = redis.run(&lock.force_release(2, within)).await;
    assert_eq!((reply.code, reply.value.as_str(), reply.ms), (Code::Done, "2", 0));
    let all = [messages(&[1, 2], "0"), messages(&[3], "1")].concat();
    assert_eq!(notified(&mut redis, &lock).await, all);
    let lost = redis.run(&lock.renew(shared(1), grant)).await;
    assert_eq!((lost.code, lost.value.as_str()), (Code::Lost, "0"));
    // A copy of the request repeats the reply, and ends no later hold.
    assert_eq!(redis.run(&lock.acquire(exclusive(3).nth(2))).await.code, Code::Done);
    let reply = redis.run(&lock.force_release(2, within)).await;
    assert_eq!((reply.code, reply.value.as_str(), reply.ms), (Code::Done, "2", 1));
    assert_eq!(redis.run(&lock.acquire(exclusive(3).nth(3))).await.code, Code::AlreadyYours);
}

/// More holders than one call notifies: the rest learn of the end at their next renewal.
#[tokio::test]
async fn the_first_64_holders_are_notified_of_a_steal() {
    let mut redis = Redis::start().await;
    let lock = FairRw::new("job");
    let mut grant = 0;
    for owner in 1..=70 {
        grant = redis.run(&lock.acquire(shared(owner))).await.value.parse().unwrap();
    }
    redis.published().await;
    let thief = steal(&redis, 100).await;
    assert_eq!(redis.run(&lock.acquire(thief)).await.code, Code::Done);
    let notified = notified(&mut redis, &lock).await;
    assert!(notified.len() == 64 && notified.iter().all(|(_, text)| text == "0"));
    for owner in 1..=70 {
        assert_eq!(redis.run(&lock.renew(shared(owner), grant)).await.code, Code::Lost);
    }
}
