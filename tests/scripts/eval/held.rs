//! A caller's script runs once, and only while its lease is held.

use std::time::Duration;

use edgelatch_proto::name::LockName;
use edgelatch_proto::protocol::calls::{
    FairCalls, FairSettings, IdempotentCall, LockCalls, Member, ReadCalls, Target, UserScript,
    WriteCalls,
};
use edgelatch_proto::protocol::reply::Code;
use edgelatch_proto::protocol::script::{Bound, Publish};

use crate::scripts::group;
use test_support::calls::{Calls, bound, lease, owner, request, token};
use test_support::redis::Redis;

/// Increments its key, and fails above its argument.
const COUNT: &str = "local n=redis.call('INCR',KEYS[1]) if n>tonumber(ARGV[1]) then error('too many',0) end return n";

pub(crate) fn count(most: u32) -> UserScript {
    UserScript::new(COUNT, vec!["{job}:count".into()], vec![most.to_string()]).unwrap()
}

fn name(text: &str) -> LockName {
    LockName::parse(text).unwrap()
}

fn member(text: &str) -> Member {
    Member { name: name(text), fenced: false }
}

/// Each kind of target that `eval` accepts, named `job`: a lock, a lock with two further ones, a
/// fair lock, the two sides of a read-write lock, and the values A and B of a group.
pub(crate) fn targets() -> Vec<Target> {
    let plain = Publish::Plain;
    let several = vec![member("{job}:2"), member("{job}:3")];
    vec![
        Target::Lock(LockCalls::new(name("job"), plain)),
        Target::Lock(LockCalls::of_several(member("job"), several, plain)),
        Target::Fair(FairCalls::new(name("job"), FairSettings::default(), plain)),
        Target::Read(ReadCalls::new(name("job"), plain)),
        Target::Write(WriteCalls::new(name("job"), plain)),
        group::calls("job", &["A", "B"]).0,
    ]
}

async fn counted(redis: &Redis) -> u64 {
    redis.query::<Option<u64>>(&["GET", "{job}:count"]).await.unwrap_or(0)
}

/// Redis remembers a request with this bound for at least 90 s.
pub(super) async fn bound_in_ten_minutes(redis: &Redis) -> Bound {
    bound(redis.now_ms().await + 600_000, 90_000)
}

/// Acquires the object for owner 1 by request 1, and returns the fencing token.
pub(super) async fn acquire(redis: &Redis, calls: &Calls, bound: Bound) -> u64 {
    let is_last = true;
    let call = calls.acquire(request(1), bound, &owner(1), lease(600_000), is_last);
    redis.run(&call).await.value.parse().unwrap()
}

#[tokio::test]
async fn a_script_runs_while_a_lease_of_any_kind_is_held_and_not_after() {
    let redis = Redis::start().await;
    for target in targets() {
        redis.query::<String>(&["FLUSHALL"]).await;
        let (calls, bound) = (Calls(target), bound_in_ten_minutes(&redis).await);
        let release = calls.release(request(4), bound, &owner(1));
        let what = release.script().name;
        let fencing = acquire(&redis, &calls, bound).await;
        let eval = |who: u8, fencing: u64| -> IdempotentCall {
            calls.0.eval(owner(who), token(fencing), &count(9)).unwrap()
        };
        // `ms` is 1 in a reply that was recorded earlier.
        let ran = redis.run(&eval(1, fencing).call(request(2), bound)).await;
        assert_eq!((ran.code, ran.value.as_str(), ran.ms), (Code::Done, "1", 0), "{what}");
        // `Lost` is not recorded, so that one request id serves both calls.
        for (who, fencing) in [(2, fencing), (1, fencing + 1)] {
            let lost = redis.run(&eval(who, fencing).call(request(3), bound)).await;
            assert_eq!((lost.code, lost.value.as_str()), (Code::Lost, "0"), "{what}");
        }
        redis.run(&release).await;
        assert_eq!(redis.run(&eval(1, fencing).call(request(5), bound)).await.code, Code::Lost);
        let again = redis.run(&eval(1, fencing).call(request(2), bound)).await;
        assert_eq!((again.code, again.value.as_str(), again.ms), (Code::Done, "1", 1), "{what}");
        assert_eq!(counted(&redis).await, 1, "{what}");
    }
}

#[tokio::test]
async fn a_script_does_not_run_when_a_field_of_the_hold_is_missing_or_another_owner_s() {
    let redis = Redis::start().await;
    // The targets whose holds have several fields.
    let [_, several, .., group] = <[Target; 6]>::try_from(targets()).unwrap();
    for (target, key) in [(several, "{job}:3"), (group, "job")] {
        redis.query::<String>(&["FLUSHALL"]).await;
        let (calls, bound) = (Calls(target), bound_in_ten_minutes(&redis).await);
        let fencing = acquire(&redis, &calls, bound).await;
        if key == "job" {
            // The last argument of a group's release is the field of its last value.
            let field = calls.release(request(9), bound, &owner(1)).args().last().unwrap().clone();
            assert_eq!(redis.query::<u64>(&["HSET", key, &field, "another:1"]).await, 0);
        } else {
            redis.query::<u64>(&["DEL", key]).await;
        }
        let eval = calls.0.eval(owner(1), token(fencing), &count(9)).unwrap();
        assert_eq!(redis.run(&eval.call(request(2), bound)).await.code, Code::Lost, "{key}");
        assert_eq!(counted(&redis).await, 0);
    }
}

#[tokio::test]
async fn a_script_that_may_run_twice_leaves_no_record_and_does_not_run_after_its_bound() {
    let redis = Redis::start().await;
    let (calls, bound) = (test_support::calls::lock("job"), bound_in_ten_minutes(&redis).await);
    let fencing = acquire(&redis, &calls, bound).await;
    let keys = redis.dump().await.len();
    let eval = calls.0.eval(owner(1), token(fencing), &count(9).repeatable()).unwrap();
    for wanted in ["1", "2"] {
        assert_eq!(redis.run(&eval.call(request(2), bound)).await.value, wanted);
    }
    assert_eq!(redis.dump().await.len(), keys + 1);
    // Without a record, an earlier copy may have been executed.
    let passed = Bound { not_after: Some(1), keep: Duration::ZERO };
    assert_eq!(redis.run(&eval.call(request(2), passed)).await.code, Code::Unknown);
    assert_eq!(counted(&redis).await, 2);
}

#[tokio::test]
async fn full_memory_refuses_a_script_with_a_record_before_it_runs_and_one_without_at_its_write() {
    let redis = Redis::start().await;
    let (calls, bound) = (test_support::calls::lock("job"), bound_in_ten_minutes(&redis).await);
    let fencing = acquire(&redis, &calls, bound).await;
    redis.fill().await;
    let before = redis.dump().await;
    let eval = calls.0.eval(owner(1), token(fencing), &count(9)).unwrap();
    let error = redis.cells(&eval.call(request(2), bound)).await.unwrap_err();
    assert!(error.to_string().contains("OOM"), "{error}");
    assert!(before.keys().eq(redis.dump().await.keys()));
    // Without a record the script starts, and Redis refuses its write.
    let eval = calls.0.eval(owner(1), token(fencing), &count(9).repeatable()).unwrap();
    let refused = redis.run(&eval.call(request(3), bound)).await;
    assert_eq!(refused.code, Code::ScriptFailed);
    assert!(refused.value.contains("OOM"), "{}", refused.value);
    // The refused request can still be cancelled: it was not executed and never will be. Redis
    // checks its memory until a script's first write, and that of a cancellation is a deletion.
    let cancel =
        calls.0.eval(owner(1), token(fencing), &count(9)).unwrap().cancel(request(2), bound);
    assert_eq!(redis.run(&cancel).await.code, Code::Gone);
}
