//! Keys of another type, users with few rights, and a Redis whose memory is full.

use edgelatch_proto::protocol::calls::FairMode;
use edgelatch_proto::protocol::reply::Code;
use edgelatch_proto::protocol::script::{Publish, ScriptCall};

use super::fixtures::{FairRw, exclusive, first, in_time, shared};
use test_support::redis::{Redis, rights, run_on};

/// The commands of the scripts; their user needs no others.
const COMMANDS: [&str; 22] = [
    "eval",
    "time",
    "get",
    "set",
    "del",
    "unlink",
    "pttl",
    "pexpire",
    "hget",
    "hmget",
    "hset",
    "zadd",
    "zrem",
    "zscore",
    "zcard",
    "zcount",
    "zrank",
    "zrange",
    "zrangebyscore",
    "zrangebylex",
    "publish",
    "spublish",
];

/// In this order the calls cover most branches of the scripts.
async fn conversation(redis: &Redis, lock: &FairRw) -> Vec<ScriptCall> {
    let within = in_time(redis).await;
    let steal = first(6, FairMode::Steal).within(within);
    vec![
        lock.acquire(shared(1)),
        lock.acquire(shared(2)),
        lock.acquire(exclusive(3)),
        lock.acquire(shared(4)),
        lock.acquire(exclusive(5).after(3)),
        lock.acquire(shared(7).at_last()),
        lock.inspect(Some(shared(4))),
        lock.query(""),
        lock.release(shared(1)),
        lock.release(shared(2)),
        lock.acquire(exclusive(5).nth(2)),
        lock.acquire(exclusive(5).nth(3).for_ms(60_000)),
        lock.acquire(steal),
        lock.acquire(shared(4).nth(2)),
        lock.force_release(2, within),
        lock.acquire(shared(4).nth(3)),
        lock.release(exclusive(8).after(9)),
        lock.release(shared(4)),
    ]
}

/// S69.
#[tokio::test]
async fn a_key_of_another_type_is_refused_and_left_alone() {
    let redis = Redis::start().await;
    let lock = FairRw::new("job");
    let within = in_time(&redis).await;
    for call in [
        lock.acquire(exclusive(1)),
        lock.acquire(shared(1)),
        lock.acquire(exclusive(1).at_last()),
        lock.acquire(shared(1).after(9)),
        lock.acquire(first(1, FairMode::Steal).within(within)),
        lock.release(exclusive(1)),
        lock.renew(exclusive(1), 1),
        lock.force_release(1, within),
        lock.inspect(Some(shared(1))),
        lock.query(""),
    ] {
        let mut refused = 0;
        for key in call.keys() {
            redis.query::<String>(&["FLUSHALL"]).await;
            redis.query::<u64>(&["SADD", key, "5"]).await;
            // A call may end before it reads every key.
            let Err(error) = redis.cells(&call).await else { continue };
            assert!(error.to_string().contains("WRONGTYPE"), "{}: {error}", call.script().name);
            assert_eq!(redis.query::<u64>(&["SISMEMBER", key, "5"]).await, 1);
            let holders: Vec<String> = redis.query(&["KEYS", &lock.key("holders")]).await;
            assert!(holders.is_empty() || key == &holders[0], "{}", call.script().name);
            refused += 1;
        }
        assert!(refused > 0, "{}", call.script().name);
    }
}

#[tokio::test]
async fn a_user_needs_the_documented_commands_and_keys_and_no_more() {
    let redis = Redis::start().await;
    for name in ["job", "x{a}b"] {
        redis.query::<String>(&["FLUSHALL"]).await;
        let lock = FairRw::new(name);
        // The registry belongs to the hash tag.
        let on = [format!("~el:{}:*", lock.form()), format!("~{}", lock.registry("*"))];
        let on = on.into_iter().chain([format!("&el:{}:*", lock.form())]).collect::<Vec<_>>();
        let mut worker = redis.user(&rights(&on, &COMMANDS, "nothing")).await;
        for call in conversation(&redis, &lock).await {
            run_on(&mut worker, &call).await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_user_without_one_command_never_leaves_a_hold_or_a_key_without_an_expiry() {
    let redis = Redis::start().await;
    for missing in COMMANDS.iter().skip(1) {
        redis.query::<String>(&["FLUSHALL"]).await;
        let lock = FairRw::new("job");
        let holders = async || redis.query::<u64>(&["ZCARD", &lock.key("holders")]).await;
        let mut worker = redis.user(&rights(&["~*", "&*"], &COMMANDS, missing)).await;
        for call in conversation(&redis, &lock).await {
            let before = holders().await;
            let refused = run_on(&mut worker, &call).await.is_err();
            let is_grant = before == 0 && holders().await > 0;
            assert!(!(is_grant && refused), "{missing}: {}", call.script().name);
            for (key, stored) in redis.dump().await {
                assert!(stored.ttl > 0, "{missing}: {key}");
            }
        }
    }
}

#[tokio::test]
async fn a_waiter_is_notified_on_its_own_channel_in_the_requested_way() {
    let mut redis = Redis::start().await;
    for (publish, plain, sharded) in
        [(Publish::Plain, 1, 0), (Publish::Sharded, 0, 1), (Publish::Both, 1, 1)]
    {
        for name in ["job", "x{a}b"] {
            redis.query::<String>(&["FLUSHALL"]).await;
            let lock = FairRw::announced(name, publish);
            redis.run(&lock.acquire(exclusive(1))).await;
            let busy = redis.run(&lock.acquire(shared(2))).await;
            redis.published().await;
            redis.query::<String>(&["CONFIG", "RESETSTAT"]).await;
            redis.run(&lock.release(exclusive(1))).await;
            let publications = (redis.ran("publish").await, redis.ran("spublish").await);
            assert_eq!(publications, (plain, sharded));
            let owner = test_support::calls::numbered_owner(2);
            let topic = lock.target(FairMode::Shared).topic(owner, &busy);
            assert_eq!(topic.channel(), lock.latch(2));
            assert_eq!(redis.published().await, vec![(lock.latch(2), "1".to_owned()); plain]);
        }
    }
}

#[tokio::test]
async fn every_call_succeeds_although_publishing_is_not_allowed() {
    let redis = Redis::start().await;
    let lock = FairRw::new("job");
    let mut worker = redis.user(&rights(&["~*"], &COMMANDS, "publish")).await;
    for call in conversation(&redis, &lock).await {
        run_on(&mut worker, &call).await.unwrap();
    }
    assert!(!redis.dump().await.contains_key(&lock.key("holders")));
}

/// S66. Rule W14.
#[tokio::test]
async fn with_full_memory_new_owners_are_refused_and_all_others_go_on() {
    let mut redis = Redis::start().await;
    let lock = FairRw::new("job");
    let within = in_time(&redis).await;
    let grant: u64 = redis.run(&lock.acquire(exclusive(1))).await.value.parse().unwrap();
    for waiter in [exclusive(2), shared(3), shared(4), shared(5)] {
        redis.run(&lock.acquire(waiter)).await;
    }
    redis.fill().await;
    let before = redis.dump().await;
    let steal = first(6, FairMode::Steal).within(within);
    for attempt in [exclusive(6), shared(6), exclusive(6).at_last(), steal] {
        let error = redis.cells(&lock.acquire(attempt)).await.unwrap_err();
        assert!(error.to_string().contains("OOM"), "{error}");
    }
    assert_eq!(before.keys().collect::<Vec<_>>(), redis.dump().await.keys().collect::<Vec<_>>());
    redis.published().await;
    for (call, code) in [
        (lock.acquire(exclusive(1).nth(2)), Code::AlreadyYours),
        (lock.renew(exclusive(1).for_ms(60_000), grant), Code::Done),
        (lock.acquire(exclusive(2).nth(2)), Code::No),
        (lock.acquire(exclusive(7).after(2)), Code::No),
        (lock.release(shared(8)), Code::No),
        (lock.inspect(Some(exclusive(1))), Code::Done),
        (lock.query(""), Code::Done),
        (lock.release(exclusive(1)), Code::Done),
        (lock.acquire(exclusive(7).nth(2)), Code::Done),
        (lock.force_release(9, within), Code::Done),
        (lock.acquire(shared(3).nth(2).at_last()), Code::Done),
        (lock.release(shared(3)), Code::Done),
        (lock.release(shared(4)), Code::No),
    ] {
        let reply = redis.run(&call).await;
        assert_eq!(reply.code, code, "{} {reply:?}", call.script().name);
    }
    assert_eq!(redis.query::<String>(&["GET", &lock.latch(8)]).await, "x0");
    assert!(redis.published().await.len() > 3);
}
