//! A repeated request, and one after its bound, leave what one execution leaves.

use edgelatch_proto::protocol::reply::Code;
use edgelatch_proto::protocol::script::{Bound, ScriptCall};

use super::vectors::assert_within;
use test_support::calls::{self, UNBOUND, bound, lease, lock, owner, request, token};
use test_support::redis::{Content, Keyspace, Redis};

/// The state before a call.
enum Before {
    Nothing,
    Held,
    HeldByAnother,
    HeldByJava,
}

/// Brings the lock into a state; returns the token of owner 1's hold, or 1.
async fn prepare(redis: &Redis, before: &Before) -> u64 {
    redis.query::<String>(&["FLUSHALL"]).await;
    let holder = match before {
        Before::Nothing => return 1,
        Before::HeldByJava => {
            redis
                .query::<u64>(&["HSET", "job", "8743c9c0-0795-4907-87fd-6c719a6b4586:1", "2"])
                .await;
            redis.query::<u64>(&["PEXPIRE", "job", "60000"]).await;
            return 1;
        }
        Before::Held => owner(1),
        Before::HeldByAnother => owner(2),
    };
    let call = lock("job").acquire(request(900), UNBOUND, &holder, lease(60_000), false);
    redis.run(&call).await.value.parse().unwrap()
}

/// Every script in every state that it distinguishes.
async fn cases(redis: &Redis) -> Vec<(&'static str, Before, Box<dyn Fn(u64) -> ScriptCall>)> {
    let within = bound(redis.now_ms().await + 600_000, 90_000);
    let acquire = |bound: Bound, last: bool| -> Box<dyn Fn(u64) -> ScriptCall> {
        Box::new(move |_| lock("job").acquire(request(1), bound, &owner(1), lease(30_000), last))
    };
    let release = || -> Box<dyn Fn(u64) -> ScriptCall> {
        Box::new(move |_| lock("job").release(request(2), within, &owner(1)))
    };
    let renew = |lease_ms: u64| -> Box<dyn Fn(u64) -> ScriptCall> {
        Box::new(move |grant| {
            lock("job").renew(request(3), within, &owner(1), lease(lease_ms), token(grant))
        })
    };
    let force = || -> Box<dyn Fn(u64) -> ScriptCall> {
        Box::new(move |_| lock("job").force_release(request(4), within))
    };
    let inspect = || -> Box<dyn Fn(u64) -> ScriptCall> {
        Box::new(|_| lock("job").inspect(request(5), Some(owner(1))))
    };
    vec![
        ("acquire a free lock", Before::Nothing, acquire(UNBOUND, false)),
        ("acquire a free lock at the last try", Before::Nothing, acquire(within, true)),
        ("acquire what is held already", Before::Held, acquire(within, false)),
        ("acquire what another holds", Before::HeldByAnother, acquire(within, false)),
        ("acquire at last what another holds", Before::HeldByAnother, acquire(within, true)),
        ("acquire at last what Java holds", Before::HeldByJava, acquire(UNBOUND, true)),
        ("acquire too late", Before::Nothing, acquire(bound(1, 90_000), false)),
        ("release a hold", Before::Held, release()),
        ("abandon what is free", Before::Nothing, release()),
        ("abandon what another holds", Before::HeldByAnother, release()),
        ("renew to more", Before::Held, renew(120_000)),
        ("renew to less", Before::Held, renew(1_000)),
        ("renew what is lost", Before::HeldByAnother, renew(30_000)),
        ("end ours by force", Before::Held, force()),
        ("end Java's by force", Before::HeldByJava, force()),
        ("end nothing by force", Before::Nothing, force()),
        ("query the state", Before::Held, inspect()),
    ]
}

/// S4.
#[tokio::test]
async fn a_repeated_request_is_executed_once() {
    let mut redis = Redis::start().await;
    for (name, before, make) in cases(&redis).await {
        let call = make(prepare(&redis, &before).await);
        redis.published().await;
        let first = redis.run(&call).await;
        let (once, published) = (redis.dump().await, redis.published().await);
        let second = redis.run(&call).await;
        assert_eq!(contents(&once), contents(&redis.dump().await), "{name}");
        assert!(published.len() <= 1, "{name}: {published:?}");
        assert_eq!(redis.published().await, [], "{name}");
        assert_same_answer(name, first.code, second.code);
        if first.code == Code::Done {
            assert_eq!(first.value, second.value, "{name}");
        }
    }
}

/// The second reply equals the first, or says that the first was given.
fn assert_same_answer(name: &str, first: Code, second: Code) {
    let wanted = match (first, name) {
        (Code::Done, "acquire a free lock" | "acquire a free lock at the last try") => {
            Code::AlreadyYours
        }
        // The tombstone of the first execution remains.
        (Code::No, "acquire at last what another holds" | "acquire at last what Java holds") => {
            Code::Gone
        }
        _ => first,
    };
    assert_eq!(second, wanted, "{name}");
}

/// S5.
#[tokio::test]
async fn nothing_of_an_owner_comes_back_after_its_release() {
    let mut redis = Redis::start().await;
    for (name, before, make) in cases(&redis).await {
        let grant = prepare(&redis, &before).await;
        let call = make(grant);
        redis.run(&call).await;
        redis.run(&lock("job").release(request(10), UNBOUND, &owner(1))).await;
        let ended = redis.dump().await;
        redis.published().await;
        let field = calls::field(&owner(1));
        let (answer, again) = (redis.run(&call).await, redis.dump().await);
        assert_eq!(contents(&ended), contents(&again), "{name}");
        assert_eq!(redis.published().await, [], "{name}");
        assert!(!is_field_of(&again, &field), "{name}");
        let script = call.script().name;
        let wanted = match (script, answer.code) {
            ("lock_acquire", Code::Gone) => true,
            ("lock_renew", code) => code == Code::Lost,
            (script, _) => script != "lock_acquire",
        };
        assert!(wanted, "{name}: {:?}", answer.code);
    }
}

/// S13.
#[tokio::test]
async fn a_grant_after_the_release_of_another_owner_is_not_ended_by_its_copies() {
    let redis = Redis::start().await;
    prepare(&redis, &Before::Held).await;
    let release = lock("job").release(request(11), UNBOUND, &owner(1));
    assert_eq!(redis.run(&release).await.code, Code::Done);
    let next = lock("job").acquire(request(12), UNBOUND, &owner(2), lease(60_000), false);
    assert_eq!(redis.run(&next).await.code, Code::Done);
    let held = redis.dump().await;
    for _ in 0..3 {
        assert_eq!(redis.run(&release).await.code, Code::Done);
    }
    assert_eq!(contents(&held), contents(&redis.dump().await));
}

/// S6.
#[tokio::test]
async fn an_owner_is_granted_once_even_if_another_owner_held_the_lock_in_between() {
    let redis = Redis::start().await;
    prepare(&redis, &Before::Held).await;
    // Its lease ends, and Java holds the lock for a while.
    redis.query::<u64>(&["DEL", "job"]).await;
    let again = lock("job").acquire(request(13), UNBOUND, &owner(1), lease(60_000), false);
    assert_eq!(redis.run(&again).await.code, Code::Lost);
    redis.query::<u64>(&["HSET", "job", "java:1", "1"]).await;
    assert_eq!(redis.run(&again).await.code, Code::Lost);
    redis.query::<u64>(&["DEL", "job"]).await;
    assert_eq!(redis.run(&again).await.code, Code::Lost);
    assert!(!redis.dump().await.contains_key("job"));
}

#[tokio::test]
async fn a_repeated_acquisition_restarts_the_lease_and_never_shortens_it() {
    let redis = Redis::start().await;
    prepare(&redis, &Before::Held).await;
    redis.query::<u64>(&["PEXPIRE", "job", "5000"]).await;
    let again = lock("job").acquire(request(14), UNBOUND, &owner(1), lease(30_000), false);
    let before = redis.now_ms().await;
    let reply = redis.run(&again).await;
    assert_eq!(reply.code, Code::AlreadyYours);
    // Redis 7.0 reads its clock anew for each command of a script.
    assert_within(reply.ms, 30_000, redis.now_ms().await - before, "the repeated acquisition");
    redis.query::<u64>(&["PEXPIRE", "job", "90000"]).await;
    assert!(redis.run(&again).await.ms > 30_000);
}

/// Values without expiries, which change by themselves.
fn contents(keyspace: &Keyspace) -> Vec<(&String, &Content)> {
    keyspace.iter().map(|(key, stored)| (key, &stored.value)).collect()
}

fn is_field_of(keyspace: &Keyspace, field: &str) -> bool {
    match keyspace.get("job").map(|stored| &stored.value) {
        Some(Content::Hash(fields)) => fields.contains_key(field),
        _ => false,
    }
}
