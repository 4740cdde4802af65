//! Keys of another type, users with few rights, and the notification of the next waiter.

use edgelatch_proto::protocol::reply::Code;
use edgelatch_proto::protocol::script::{Publish, ScriptCall};

use super::fixtures::{Fair, JAVA, field_of, nth_poll};
use test_support::calls::{bound, request};
use test_support::redis::{Redis, rights, run_on};

/// The commands of the scripts; their user needs no others.
const COMMANDS: [&str; 32] = [
    "eval",
    "time",
    "get",
    "set",
    "del",
    "pttl",
    "pexpire",
    "exists",
    "hexists",
    "hset",
    "hdel",
    "hvals",
    "lindex",
    "linsert",
    "llen",
    "lpop",
    "lpos",
    "lrange",
    "lrem",
    "lset",
    "rpush",
    "zadd",
    "zrange",
    "zrangebyscore",
    "zrem",
    "zscore",
    "publish",
    "spublish",
    "unlink",
    "hscan",
    "hlen",
    "zcard",
];

/// Every call that reads what is stored.
async fn calls(redis: &Redis, lock: &Fair) -> Vec<ScriptCall> {
    let within = bound(redis.now_ms().await + 60_000, 90_000);
    vec![
        lock.acquire(nth_poll(1, 1)),
        lock.acquire(nth_poll(1, 1).at_last()),
        lock.acquire(nth_poll(1, 1).after(9)),
        lock.release(1),
        lock.force_release().call(request(1), within),
    ]
}

/// S69.
#[tokio::test]
async fn a_key_of_another_type_is_refused_and_left_alone() {
    let redis = Redis::start().await;
    let lock = Fair::new("job");
    let queue = lock.key("redisson_lock_queue");
    for key in [lock.name, &lock.latch(1), &queue] {
        for call in calls(&redis, &lock).await {
            // Calls that end a hold or a wait start with the lock, and succeed although the queue
            // is not a list.
            let ends = !call.script().name.ends_with("acquire");
            let looks = call.keys().iter().any(|its| its == key);
            if !looks || ends && key == queue {
                continue;
            }
            redis.query::<String>(&["FLUSHALL"]).await;
            let odd = if key == lock.name { "SET" } else { "SADD" };
            redis.query::<redis::Value>(&[odd, key, "5"]).await;
            let error = redis.cells(&call).await.unwrap_err();
            assert!(error.to_string().contains("WRONGTYPE"), "{}: {error}", call.script().name);
            let keys: Vec<String> = redis.query(&["KEYS", "*"]).await;
            assert_eq!(keys, [key], "{}", call.script().name);
        }
    }
}

#[tokio::test]
async fn a_token_that_cannot_rise_grants_nothing() {
    let redis = Redis::start().await;
    let lock = Fair::new("job");
    let key = lock.key("redisson_lock_token");
    for last in ["9007199254740991", "1e300", "garbage"] {
        redis.query::<String>(&["SET", &key, last]).await;
        for poll in [nth_poll(1, 1), nth_poll(2, 1).at_last()] {
            assert_eq!(redis.run(&lock.acquire(poll)).await.code, Code::TokenRange, "{last}");
        }
        assert!(redis.dump().await.keys().eq([&key]), "{last}");
    }
}

#[tokio::test]
async fn a_user_needs_the_documented_commands_and_keys_and_no_more() {
    let redis = Redis::start().await;
    for name in ["job", "x{a}b"] {
        redis.query::<String>(&["FLUSHALL"]).await;
        let lock = Fair::new(name);
        let channel = lock.key("redisson_lock__channel");
        let on = [
            format!("~{name}"),
            format!("~el:{}:*", lock.form),
            format!("~redisson_lock_*:{}", lock.form),
            format!("&{channel}:*"),
        ];
        let mut worker = redis.user(&rights(&on, &COMMANDS, "nothing")).await;
        for call in conversation(&redis, &lock).await {
            run_on(&mut worker, &call).await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_user_without_one_command_never_leaves_a_hold_or_a_key_of_ours_without_an_expiry() {
    let redis = Redis::start().await;
    for missing in COMMANDS {
        redis.query::<String>(&["FLUSHALL"]).await;
        let lock = Fair::new("job");
        let mut worker = redis.user(&rights(&["~*", "&*"], &COMMANDS, missing)).await;
        for call in conversation(&redis, &lock).await {
            let before = redis.dump().await.get("job").cloned();
            let refused = run_on(&mut worker, &call).await.is_err();
            let all = redis.dump().await;
            let taken = before.is_none() && all.contains_key("job");
            assert!(!(taken && refused), "{missing}: {}", call.script().name);
            for (key, stored) in all.iter().filter(|(key, _)| key.starts_with("el:")) {
                assert!(stored.ttl > 0, "{missing}: {key}");
            }
        }
    }
}

/// In this order the calls cover most branches of the scripts.
async fn conversation(redis: &Redis, lock: &Fair) -> Vec<ScriptCall> {
    let within = bound(redis.now_ms().await + 60_000, 90_000);
    let force = lock.force_release();
    vec![
        lock.acquire(nth_poll(1, 1)),
        lock.acquire(nth_poll(2, 1)),
        lock.acquire(nth_poll(3, 1)),
        lock.acquire(nth_poll(4, 1).after(2)),
        lock.acquire(nth_poll(5, 1).at_last()),
        lock.inspect_queue(Some(4)),
        lock.inspect(Some(1)),
        lock.release(1),
        lock.acquire(nth_poll(3, 2)),
        lock.acquire(nth_poll(4, 2)),
        force.call(request(2), within),
        lock.abandon(6, within, Some(7)),
        lock.acquire(nth_poll(3, 3)),
        lock.release(3),
    ]
}

#[tokio::test]
async fn the_next_waiter_is_notified_on_its_own_channel_in_the_requested_way() {
    let mut redis = Redis::start().await;
    for (publish, plain, sharded) in
        [(Publish::Plain, 1, 0), (Publish::Sharded, 0, 1), (Publish::Both, 1, 1)]
    {
        for name in ["job", "x{a}b"] {
            redis.query::<String>(&["FLUSHALL"]).await;
            let lock = Fair::announced(name, publish);
            redis.run(&lock.acquire(nth_poll(1, 1))).await;
            redis.run(&lock.acquire(nth_poll(2, 1))).await;
            let now = i64::try_from(redis.now_ms().await).unwrap();
            lock.java().acquire(&redis, JAVA[0], 300_000, now).await;
            redis.published().await;
            redis.query::<String>(&["CONFIG", "RESETSTAT"]).await;
            redis.run(&lock.release(1)).await;
            let publications = (redis.ran("publish").await, redis.ran("spublish").await);
            assert_eq!(publications, (plain, sharded));
            let channel = lock.key("redisson_lock__channel") + ":" + &field_of(2);
            assert_eq!(channel, lock.channel(test_support::calls::numbered_owner(2)));
            assert_eq!(redis.published().await, vec![(channel, "0".to_owned()); plain]);
        }
    }
}

#[tokio::test]
async fn a_release_is_whole_although_publishing_is_not_allowed() {
    let redis = Redis::start().await;
    let lock = Fair::new("job");
    let mut worker = redis.user(&rights(&["~*"], &COMMANDS, "publish")).await;
    for call in conversation(&redis, &lock).await {
        run_on(&mut worker, &call).await.unwrap();
    }
    assert!(!redis.dump().await.contains_key("job"));
}
