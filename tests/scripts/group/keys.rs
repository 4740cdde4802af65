//! The keys and commands of a group's scripts, names of every form, keys of another type, and how
//! an end is published.

use edgelatch_proto::protocol::reply::{Code, Reply};
use edgelatch_proto::protocol::script::{Publish, ScriptCall};

use super::fixtures::{GROUP, PAD, hash, values, values_of};
use test_support::calls::{Calls, UNBOUND, bound, lease, owner, request, token};
use test_support::redis::{Redis, rights, run_on};

/// The commands of the scripts; their user needs no others.
const COMMANDS: [&str; 17] = [
    "eval", "time", "get", "set", "del", "pttl", "pexpire", "hget", "hset", "hdel", "hlen",
    "hkeys", "publish", "spublish", "hmget", "hscan", "hexists",
];

fn all_but(missing: &str) -> Vec<String> {
    rights(&["~*", "&*"], &COMMANDS, missing)
}

/// Every script in states that cover all its branches, and the code of each.
async fn conversation(redis: &Redis, calls: &Calls) -> Vec<(ScriptCall, Code)> {
    let within = bound(redis.now_ms().await + 600_000, 90_000);
    let take = calls.acquire(request(1), within, &owner(1), lease(30_000), false);
    let grant = redis.run(&take).await.value.parse().unwrap();
    redis.query::<String>(&["FLUSHALL"]).await;
    vec![
        (calls.inspect(request(2), None), Code::No),
        (take.clone(), Code::Done),
        (take.clone(), Code::AlreadyYours),
        (calls.inspect(request(3), Some(owner(1))), Code::Done),
        (calls.acquire(request(4), within, &owner(2), lease(30_000), false), Code::No),
        (calls.acquire(request(5), within, &owner(2), lease(30_000), true), Code::No),
        (calls.renew(request(6), within, &owner(1), lease(60_000), token(grant)), Code::Lost),
        (calls.release(request(7), within, &owner(1)), Code::Done),
        (take, Code::Gone),
        (calls.acquire(request(8), within, &owner(3), lease(30_000), false), Code::Done),
        (calls.force_release(request(9), within), Code::Done),
        (calls.acquire(request(8), within, &owner(3), lease(30_000), false), Code::Lost),
        (calls.release(request(10), within, &owner(3)), Code::No),
    ]
}

#[tokio::test]
async fn every_key_that_a_group_s_script_touches_is_declared() {
    let redis = Redis::start().await;
    for (call, wanted) in conversation(&redis, &values(&["A", "B"])).await {
        let mut rights = vec!["+@all".to_owned(), "resetchannels".to_owned()];
        for key in call.keys() {
            rights.push(format!("~{key}"));
            if key.contains("__channel") {
                rights.push(format!("&{key}"));
            }
        }
        let cells = run_on(&mut redis.user(&rights).await, &call).await.unwrap();
        let code = Reply::read(&cells, call.request).unwrap().code;
        assert_eq!(code, wanted, "{}", call.script().name);
    }
}

#[tokio::test]
async fn the_commands_of_a_group_s_user_are_enough() {
    let redis = Redis::start().await;
    let calls = conversation(&redis, &values(&["A", "B"])).await;
    let mut worker = redis.user(&all_but("nothing")).await;
    for (call, wanted) in calls {
        let cells = run_on(&mut worker, &call).await.unwrap();
        assert_eq!(Reply::read(&cells, call.request).unwrap().code, wanted);
    }
}

#[tokio::test]
async fn a_user_without_one_command_leaves_no_hold_of_refused_values() {
    let redis = Redis::start().await;
    for missing in COMMANDS {
        for leftover in [false, true] {
            redis.query::<String>(&["FLUSHALL"]).await;
            if leftover {
                let helper = format!("{}:java:7:expire_time", super::fixtures::field("A"));
                redis.query::<u64>(&["HSET", GROUP, &helper, "1"]).await;
                redis.query::<u64>(&["PEXPIRE", GROUP, "60000"]).await;
            }
            let mut worker = redis.user(&all_but(missing)).await;
            let take = values(&["A"]).acquire(request(1), UNBOUND, &owner(1), lease(30_000), false);
            let refused = run_on(&mut worker, &take).await.is_err();
            let held = hash(&redis).await.contains_key(&super::fixtures::field("A"));
            assert!(held != refused, "{missing}");
            assert!(!held || redis.query::<i64>(&["PTTL", GROUP]).await > 0, "{missing}");
        }
    }
}

#[tokio::test]
async fn groups_of_all_names_keep_to_themselves() {
    let redis = Redis::start().await;
    for name in ["a", "{tag}", "x{a}b", "é/?#% \"", "with\u{2028}line"] {
        redis.query::<String>(&["FLUSHALL"]).await;
        let calls = values_of(name, &["A", ""], PAD, Publish::Plain);
        let take = calls.acquire(request(1), UNBOUND, &owner(1), lease(30_000), true);
        assert_eq!(redis.run(&take).await.code, Code::Done, "{name}");
        let tag = if name.contains('{') { name.to_owned() } else { format!("{{{name}}}") };
        let mut wanted =
            [take.keys()[0].clone(), name.to_owned(), format!("redisson_lock_token:{tag}")];
        wanted.sort();
        assert!(take.keys()[0].starts_with(&format!("el:{tag}:")), "{name}");
        assert_eq!(redis.dump().await.into_keys().collect::<Vec<_>>(), wanted);
        let release = calls.release(request(2), UNBOUND, &owner(1));
        assert_eq!(redis.run(&release).await.code, Code::Done, "{name}");
    }
}

#[tokio::test]
async fn the_largest_set_is_acquired_and_released_whole() {
    let redis = Redis::start().await;
    let names: Vec<String> = (0..1_000).map(|number| format!("value {number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let calls = values(&names);
    let take = calls.acquire(request(1), UNBOUND, &owner(1), lease(30_000), true);
    assert_eq!(redis.run(&take).await.code, Code::Done);
    assert_eq!(hash(&redis).await.len(), 3_000);
    let state = redis.run(&calls.inspect(request(2), Some(owner(1)))).await;
    assert!(state.value.ends_with(",1,1,1000"), "{}", state.value);
    let release = calls.release(request(3), UNBOUND, &owner(1));
    assert_eq!(redis.run(&release).await.code, Code::Done);
    assert!(hash(&redis).await.is_empty());
}

/// S69.
#[tokio::test]
async fn a_group_s_key_of_another_type_is_refused_and_left_alone() {
    let redis = Redis::start().await;
    let calls = values(&["A"]);
    let within = bound(redis.now_ms().await + 60_000, 90_000);
    let all = [
        calls.acquire(request(1), within, &owner(1), lease(30_000), true),
        calls.renew(request(2), within, &owner(1), lease(30_000), token(7)),
        calls.release(request(3), within, &owner(1)),
        calls.inspect(request(4), Some(owner(1))),
        calls.force_release(request(5), within),
    ];
    for call in all {
        for place in 0..call.keys().len() {
            let key = &call.keys()[place];
            if key.contains("__channel") {
                continue;
            }
            redis.query::<String>(&["FLUSHALL"]).await;
            // Without the latch of a grant a renewal does not read the group.
            redis.query::<String>(&["SET", &call.keys()[0], "7", "PX", "60000"]).await;
            if place > 0 && call.script().name != "group_renew" {
                redis.query::<u64>(&["DEL", &call.keys()[0]]).await;
            }
            redis.query::<u64>(&["DEL", key]).await;
            redis.query::<u64>(&["RPUSH", key, "another's"]).await;
            let before = redis.dump().await;
            let error = redis.cells(&call).await.unwrap_err();
            assert!(error.to_string().contains("WRONGTYPE"), "{}: {error}", call.script().name);
            let after = redis.dump().await;
            assert!(before.keys().eq(after.keys()), "{}", call.script().name);
            assert_eq!(before[key].value, after[key].value);
        }
    }
}

#[tokio::test]
async fn an_end_of_values_is_published_in_the_requested_way() {
    let mut redis = Redis::start().await;
    for (publish, plain, sharded) in
        [(Publish::Plain, 1, 0), (Publish::Sharded, 0, 1), (Publish::Both, 1, 1)]
    {
        let calls = values_of(GROUP, &["A"], PAD, publish);
        let within = bound(redis.now_ms().await + 60_000, 90_000);
        for end in
            [calls.release(request(2), within, &owner(1)), calls.force_release(request(3), within)]
        {
            redis.query::<String>(&["FLUSHALL"]).await;
            let take = calls.acquire(request(1), UNBOUND, &owner(1), lease(30_000), true);
            assert_eq!(redis.run(&take).await.code, Code::Done);
            redis.published().await;
            redis.query::<String>(&["CONFIG", "RESETSTAT"]).await;
            redis.run(&end).await;
            let publications = (redis.ran("publish").await, redis.ran("spublish").await);
            assert_eq!(publications, (plain, sharded));
            let channel = format!("redisson_lock__channel:{{{GROUP}}}");
            assert_eq!(redis.published().await, vec![(channel, "0".to_owned()); plain]);
        }
    }
}
