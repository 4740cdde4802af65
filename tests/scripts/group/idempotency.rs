//! A repeated request about values, and one after its bound, leave what one execution leaves.

use edgelatch_proto::protocol::reply::Code;
use edgelatch_proto::protocol::script::ScriptCall;

use super::fixtures::{GROUP, Java, values};
use test_support::calls::{UNBOUND, bound, field, lease, owner, request, token};
use test_support::redis::{Content, Redis};

const H: &str = "8743c9c0-0795-4907-87fd-6c719a6b4586:1";

/// The state before a call.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Before {
    Nothing,
    Held,
    HeldByAnother,
    HeldByJava,
    HalfLost,
}

/// Brings the group into a state; returns the token of owner 1's hold, or 1.
async fn prepare(redis: &Redis, before: Before) -> u64 {
    redis.query::<String>(&["FLUSHALL"]).await;
    let holder = match before {
        Before::Nothing => return 1,
        Before::HeldByJava => {
            assert_eq!(Java::new(redis, H).takes(&["B"], 60_000).await, None);
            return 1;
        }
        Before::Held | Before::HalfLost => owner(1),
        Before::HeldByAnother => owner(2),
    };
    let take = values(&["A", "B"]).acquire(request(900), UNBOUND, &holder, lease(60_000), false);
    let grant = redis.run(&take).await.value.parse().unwrap();
    if before == Before::HalfLost {
        let thief = Java { ahead: 90_000, ..Java::new(redis, H) };
        assert_eq!(thief.takes(&["B"], 60_000).await, None);
    }
    grant
}

type Make = Box<dyn Fn(u64) -> ScriptCall>;

/// Every script in every state that it distinguishes.
async fn cases(redis: &Redis) -> Vec<(Before, Make)> {
    let within = bound(redis.now_ms().await + 600_000, 90_000);
    let all = [
        Before::Nothing,
        Before::Held,
        Before::HeldByAnother,
        Before::HeldByJava,
        Before::HalfLost,
    ];
    let mut cases: Vec<(Before, Make)> = Vec::new();
    for before in all {
        let calls = || values(&["A", "B"]);
        for last in [false, true] {
            let call = move |_| calls().acquire(request(1), within, &owner(1), lease(30_000), last);
            cases.push((before, Box::new(call)));
        }
        for ms in [120_000, 1_000] {
            cases.push((
                before,
                Box::new(move |grant| {
                    calls().renew(request(3), within, &owner(1), lease(ms), token(grant))
                }),
            ));
        }
        cases.push((before, Box::new(move |_| calls().release(request(2), within, &owner(1)))));
        cases.push((before, Box::new(move |_| calls().force_release(request(4), within))));
        cases.push((before, Box::new(move |_| calls().inspect(request(5), Some(owner(1))))));
    }
    cases
}

/// Everything that is stored, without expiries, which change by themselves.
async fn contents(redis: &Redis) -> Vec<(String, Content)> {
    let all = redis.dump().await.into_iter();
    all.map(|(key, stored)| (key, without_ends(stored.value))).collect()
}

fn without_ends(content: Content) -> Content {
    match content {
        Content::Hash(fields) => {
            Content::Hash(fields.into_iter().filter(|(key, _)| !key.ends_with("time")).collect())
        }
        other => other,
    }
}

/// S4.
#[tokio::test]
async fn a_repeated_request_about_values_is_executed_once() {
    let mut redis = Redis::start().await;
    for (before, make) in cases(&redis).await {
        let call = make(prepare(&redis, before).await);
        let what = format!("{} {before:?}", call.script().name);
        redis.published().await;
        let first = redis.run(&call).await;
        let (once, published) = (contents(&redis).await, redis.published().await);
        let second = redis.run(&call).await;
        assert_eq!(once, contents(&redis).await, "{what}");
        assert!(published.len() <= 1, "{what}: {published:?}");
        assert_eq!(redis.published().await, [], "{what}");
        let wanted = match (call.script().name, first.code) {
            ("group_acquire", Code::Done) => Code::AlreadyYours,
            // The tombstone of the first execution remains.
            ("group_acquire", Code::No) if call.args()[6] == "1" => Code::Gone,
            (_, code) => code,
        };
        assert_eq!(second.code, wanted, "{what}");
        if wanted == first.code || wanted == Code::AlreadyYours {
            assert_eq!(first.value, second.value, "{what}");
        }
    }
}

#[tokio::test]
async fn nothing_of_an_owner_of_values_comes_back_after_its_release() {
    let mut redis = Redis::start().await;
    for (before, make) in cases(&redis).await {
        let call = make(prepare(&redis, before).await);
        let what = format!("{} {before:?}", call.script().name);
        redis.run(&call).await;
        let release = values(&["A", "B"]).release(request(10), UNBOUND, &owner(1));
        redis.run(&release).await;
        let ended = contents(&redis).await;
        redis.published().await;
        let code = redis.run(&call).await.code;
        assert_eq!(ended, contents(&redis).await, "{what}");
        assert_eq!(redis.published().await, [], "{what}");
        let us = field(&owner(1));
        let group = ended.iter().find(|(key, _)| key == GROUP);
        assert!(group.is_none_or(|(_, hash)| !format!("{hash:?}").contains(&us)), "{what}");
        match call.script().name {
            "group_acquire" => assert_eq!(code, Code::Gone, "{what}"),
            "group_renew" => assert_eq!(code, Code::Lost, "{what}"),
            _ => {}
        }
    }
}

#[tokio::test]
async fn one_owner_is_granted_once_even_if_java_had_the_values_in_between() {
    let redis = Redis::start().await;
    prepare(&redis, Before::Held).await;
    redis.query::<u64>(&["DEL", GROUP]).await;
    let again = values(&["A", "B"]).acquire(request(13), UNBOUND, &owner(1), lease(60_000), false);
    assert_eq!(redis.run(&again).await.code, Code::Lost);
    let java = Java::new(&redis, H);
    assert_eq!(java.takes(&["A", "B"], 60_000).await, None);
    assert_eq!(redis.run(&again).await.code, Code::Lost);
    assert_eq!(java.unlocks(&["A", "B"], 1).await.number, Some(1));
    assert_eq!(redis.run(&again).await.code, Code::Lost);
    assert!(!redis.dump().await.contains_key(GROUP));
}

#[tokio::test]
async fn a_repeated_forced_end_of_values_does_not_end_the_next_hold() {
    let redis = Redis::start().await;
    prepare(&redis, Before::Held).await;
    let within = bound(redis.now_ms().await + 60_000, 90_000);
    let force = values(&["A", "B"]).force_release(request(1), within);
    assert_eq!(redis.run(&force).await.value, "2");
    assert_eq!(Java::new(&redis, H).takes(&["A"], 60_000).await, None);
    let held = contents(&redis).await;
    let again = redis.run(&force).await;
    assert_eq!((again.code, again.value.as_str(), again.ms), (Code::Done, "2", 1));
    assert_eq!(contents(&redis).await, held);
}
