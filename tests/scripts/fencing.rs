//! Tokens only rise, whatever happens to the key that stores them.

use edgelatch_proto::protocol::reply::Code;

use test_support::calls::{UNBOUND, lease, lock, owner, request};
use test_support::redis::Redis;

const KEY: &str = "redisson_lock_token:{job}";

/// Acquires and releases the lock as the owner of this number; returns the token.
async fn token_of(redis: &Redis, number: u8) -> u64 {
    let id = u64::from(number);
    let call = lock("job").acquire(request(id), UNBOUND, &owner(number), lease(30_000), false);
    let reply = redis.run(&call).await;
    assert_eq!(reply.code, Code::Done);
    redis.run(&lock("job").release(request(id + 1), UNBOUND, &owner(number))).await;
    reply.value.parse().unwrap()
}

#[tokio::test]
async fn a_token_rises_with_every_grant() {
    let redis = Redis::start().await;
    let mut last = 0;
    for number in 1..=100 {
        let token = token_of(&redis, number).await;
        assert!(token > last);
        last = token;
    }
}

/// S26, S62, S65, S68, S95.
#[tokio::test]
async fn a_token_rises_when_its_key_is_lost() {
    let redis = Redis::start().await;
    let first = token_of(&redis, 1).await;
    redis.query::<u64>(&["DEL", KEY]).await;
    let second = token_of(&redis, 2).await;
    redis.query::<String>(&["FLUSHALL"]).await;
    let third = token_of(&redis, 3).await;
    assert!(first < second && second < third, "{first} {second} {third}");
}

/// S27.
#[tokio::test]
async fn a_token_rises_by_one_while_it_is_ahead_of_the_clock() {
    let redis = Redis::start().await;
    redis.query::<String>(&["SET", KEY, "8000000000000000", "PX", "60000"]).await;
    assert_eq!(token_of(&redis, 1).await, 8_000_000_000_000_001);
    assert_eq!(token_of(&redis, 2).await, 8_000_000_000_000_002);
}

#[tokio::test]
async fn a_token_that_cannot_rise_grants_nothing_and_writes_nothing() {
    let redis = Redis::start().await;
    for last in
        ["9007199254740991", "9007199254740992", "1e300", "garbage", "", "inf", "nan", "-nan"]
    {
        redis.query::<String>(&["SET", KEY, last]).await;
        let call = lock("job").acquire(request(1), UNBOUND, &owner(1), lease(30_000), true);
        assert_eq!(redis.run(&call).await.code, Code::TokenRange, "{last}");
        let keys: Vec<String> = redis.dump().await.into_keys().collect();
        assert_eq!(keys, [KEY], "{last}");
        assert_eq!(redis.query::<String>(&["GET", KEY]).await, last);
    }
}

#[tokio::test]
async fn a_token_key_is_kept_for_a_day_and_a_fenced_lock_s_for_ever() {
    let redis = Redis::start().await;
    token_of(&redis, 1).await;
    let left: u64 = redis.query(&["PTTL", KEY]).await;
    assert!(left > 0 && left <= 86_400_000);
    redis.query::<u64>(&["PERSIST", KEY]).await;
    token_of(&redis, 2).await;
    assert_eq!(redis.query::<i64>(&["PTTL", KEY]).await, -1);
}
