//! The replies of a guard, case by case.

use edgelatch_proto::name::GuardKey;
use edgelatch_proto::protocol::calls::{GuardCalls, GuardedWrite, Stamp};
use edgelatch_proto::protocol::reply::{Code, Reply};
use edgelatch_proto::protocol::script::{Bound, ScriptCall};
use edgelatch_proto::timing::{GuardMemory, LifeTime};
use std::time::Duration;

use test_support::calls::{UNBOUND, bound, field, owner, request, token};
use test_support::redis::{Redis, run_on};

pub(crate) const KEY: &str = "{invoice:42}:total";
const FENCE: &str = "el:{invoice:42}:total:fence";

pub(crate) fn guard(memory: GuardMemory) -> GuardCalls {
    GuardCalls::new(GuardKey::parse(KEY).unwrap(), memory)
}

pub(crate) fn minutes(minutes: u64) -> GuardMemory {
    GuardMemory::new(Duration::from_secs(minutes * 60)).unwrap()
}

pub(crate) fn set(value: &str) -> GuardedWrite {
    GuardedWrite::set(value, None)
}

pub(crate) fn stamp(number: u64, who: u8, write: u64) -> Stamp {
    Stamp { token: token(number), owner: owner(who), number: write }
}

/// A write with an endless memory, which allows small tokens.
fn write(of: (u64, u8, u64), write: &GuardedWrite) -> ScriptCall {
    guard(GuardMemory::FOR_EVER).write(request(1), UNBOUND, stamp(of.0, of.1, of.2), write)
}

async fn run(redis: &Redis, call: &ScriptCall) -> (Code, String, i64) {
    let Reply { code, value, ms, .. } = redis.run(call).await;
    (code, value, ms)
}

async fn value(redis: &Redis) -> Option<String> {
    redis.query(&["GET", KEY]).await
}

#[tokio::test]
async fn a_write_is_refused_once_a_newer_token_was_seen() {
    let redis = Redis::start().await;
    assert_eq!(run(&redis, &write((7, 1, 1), &set("a"))).await, (Code::Done, "7".into(), 0));
    assert_eq!(run(&redis, &write((9, 2, 1), &set("b"))).await, (Code::Done, "9".into(), 0));
    for stale in [1, 7, 8] {
        let late = write((stale, 1, 5), &set("stale"));
        assert_eq!(run(&redis, &late).await, (Code::No, "9".into(), 0), "{stale}");
        let late = write((stale, 1, 5), &GuardedWrite::delete());
        assert_eq!(run(&redis, &late).await.0, Code::No);
    }
    assert_eq!(value(&redis).await.as_deref(), Some("b"));
    let fence = format!("9:1:{}", field(&owner(2)));
    assert_eq!(redis.query::<String>(&["GET", FENCE]).await, fence);
}

#[tokio::test]
async fn an_equal_token_of_another_lease_is_refused_with_its_own_reason() {
    let redis = Redis::start().await;
    run(&redis, &write((7, 1, 1), &set("first"))).await;
    let clash = write((7, 2, 1), &set("second"));
    assert_eq!(run(&redis, &clash).await, (Code::No, "7".into(), 1));
    assert_eq!(value(&redis).await.as_deref(), Some("first"));
}

#[tokio::test]
async fn a_repeated_write_is_executed_once_and_a_superseded_one_never() {
    let redis = Redis::start().await;
    let (first, second) = (write((7, 1, 1), &set("1")), write((7, 1, 2), &set("2")));
    assert_eq!(run(&redis, &first).await.0, Code::Done);
    // Another program writes without the guard: the copy must not undo that.
    redis.query::<String>(&["SET", KEY, "x"]).await;
    assert_eq!(run(&redis, &first).await, (Code::AlreadyYours, "7".into(), 0));
    assert_eq!(value(&redis).await.as_deref(), Some("x"));
    assert_eq!(run(&redis, &second).await.0, Code::Done);
    assert_eq!(run(&redis, &first).await, (Code::Superseded, "7".into(), 0));
    assert_eq!(value(&redis).await.as_deref(), Some("2"));
    assert_eq!(run(&redis, &write((7, 1, 9), &GuardedWrite::delete())).await.0, Code::Done);
    assert_eq!(value(&redis).await, None);
    assert_eq!(run(&redis, &write((7, 1, 9), &GuardedWrite::delete())).await.0, Code::AlreadyYours);
}

#[tokio::test]
async fn a_claim_writes_no_value_and_bars_older_tokens() {
    let redis = Redis::start().await;
    run(&redis, &write((7, 1, 1), &set("old"))).await;
    assert_eq!(run(&redis, &write((9, 2, 1), &GuardedWrite::claim())).await.0, Code::Done);
    assert_eq!(value(&redis).await.as_deref(), Some("old"));
    assert_eq!(run(&redis, &write((7, 1, 2), &set("stale"))).await.0, Code::No);
    assert_eq!(run(&redis, &write((9, 2, 2), &set("new"))).await.0, Code::Done);
}

#[tokio::test]
async fn a_guarded_value_has_the_requested_expiry() {
    let redis = Redis::start().await;
    let life = LifeTime::new(Duration::from_millis(50_000)).unwrap();
    run(&redis, &write((1, 1, 1), &GuardedWrite::set("", Some(life)))).await;
    let left: i64 = redis.query(&["PTTL", KEY]).await;
    assert!(left > 40_000 && left <= 50_000);
    run(&redis, &write((1, 1, 2), &set("é\n\"{}"))).await;
    assert_eq!(redis.query::<i64>(&["PTTL", KEY]).await, -1);
    assert_eq!(value(&redis).await.as_deref(), Some("é\n\"{}"));
}

#[tokio::test]
async fn a_fence_is_remembered_for_longer_than_a_token_may_be_old() {
    let redis = Redis::start().await;
    let now = redis.now_ms().await;
    let micros = now * 1_000;
    let write = |number: u64, count: u64, memory: GuardMemory| {
        guard(memory).write(request(1), UNBOUND, stamp(number, 1, count), &set("x"))
    };
    let left = async || redis.query::<i64>(&["PTTL", FENCE]).await;
    assert_eq!(run(&redis, &write(micros, 1, minutes(10))).await.0, Code::Done);
    let ms = left().await;
    assert!(ms > 650_000 && ms <= 660_000, "{ms}");
    // Another writer's shorter memory does not shorten it; a longer one extends it.
    run(&redis, &write(micros, 2, minutes(1))).await;
    assert!(left().await > 600_000);
    run(&redis, &write(micros, 3, GuardMemory::FOR_EVER)).await;
    assert_eq!(left().await, -1);
    run(&redis, &write(micros, 4, minutes(10))).await;
    assert_eq!(left().await, -1);
}

#[tokio::test]
async fn a_token_that_a_forgotten_fence_might_have_refused_is_too_old() {
    let redis = Redis::start().await;
    let micros = redis.now_ms().await * 1_000;
    let write = |number: u64, memory: GuardMemory| {
        guard(memory).write(request(1), UNBOUND, stamp(number, 1, 1), &set("x"))
    };
    let (code, oldest, _) = run(&redis, &write(micros - 600_000_000, minutes(10))).await;
    assert_eq!(code, Code::TooOld);
    let oldest: u64 = oldest.parse().unwrap();
    assert!((micros - 600_000_000..micros).contains(&oldest));
    let (code, newest, _) = run(&redis, &write(micros + 120_000_000, minutes(10))).await;
    assert_eq!(code, Code::TokenAhead);
    assert!(newest.parse::<u64>().unwrap() < micros + 120_000_000);
    assert!(redis.dump().await.is_empty());
    // A counter is not a time: only an endless memory can judge it.
    assert_eq!(run(&redis, &write(5, minutes(10))).await.0, Code::TooOld);
    assert_eq!(run(&redis, &write(5, GuardMemory::FOR_EVER)).await.0, Code::Done);
}

/// A fence without an expiry would lock out every later writer for ever.
#[tokio::test]
async fn a_token_from_the_future_is_refused_by_a_memory_without_an_end_too() {
    let redis = Redis::start().await;
    let micros = redis.now_ms().await * 1_000;
    for memory in [minutes(10), GuardMemory::FOR_EVER] {
        for what in [set("x"), GuardedWrite::delete(), GuardedWrite::claim()] {
            for ahead in [120_000_000, (1 << 53) - 1 - micros] {
                let stamp = stamp(micros + ahead, 1, 1);
                let call = guard(memory).write(request(1), UNBOUND, stamp, &what);
                let (code, newest, _) = run(&redis, &call).await;
                assert_eq!(code, Code::TokenAhead);
                let newest = newest.parse::<u64>().unwrap();
                assert!((micros..=micros + 90_000_000).contains(&newest), "{newest}");
                assert!(redis.dump().await.is_empty());
            }
        }
    }
    // Clocks may differ by less.
    let near = micros + 30_000_000;
    assert_eq!(run(&redis, &write((near, 1, 1), &set("x"))).await.0, Code::Done);
}

#[tokio::test]
async fn a_late_write_is_not_executed_but_an_earlier_result_is_returned() {
    let redis = Redis::start().await;
    let passed = bound(redis.now_ms().await - 1, 0);
    let write = |of: (u64, u8, u64), bound: Bound| {
        let stamp = stamp(of.0, of.1, of.2);
        guard(GuardMemory::FOR_EVER).write(request(1), bound, stamp, &set("x"))
    };
    assert_eq!(run(&redis, &write((7, 1, 1), passed)).await.0, Code::Late);
    assert!(redis.dump().await.is_empty());
    run(&redis, &write((7, 1, 2), UNBOUND)).await;
    assert_eq!(run(&redis, &write((7, 1, 2), passed)).await.0, Code::AlreadyYours);
    assert_eq!(run(&redis, &write((7, 1, 1), passed)).await.0, Code::Superseded);
    assert_eq!(run(&redis, &write((6, 1, 1), passed)).await.0, Code::No);
    assert_eq!(run(&redis, &write((8, 1, 1), passed)).await.0, Code::Late);
}

#[tokio::test]
async fn the_newest_token_is_returned() {
    let redis = Redis::start().await;
    let guard = guard(minutes(10));
    assert_eq!(run(&redis, &guard.newest(request(2))).await, (Code::No, "0".into(), -2));
    let micros = redis.now_ms().await * 1_000;
    redis.run(&guard.write(request(1), UNBOUND, stamp(micros, 1, 1), &GuardedWrite::claim())).await;
    let (code, newest, left) = run(&redis, &guard.newest(request(2))).await;
    assert_eq!((code, newest), (Code::Done, micros.to_string()));
    assert!(left > 600_000);
}

#[tokio::test]
async fn with_full_memory_a_write_is_refused_whole_and_a_deletion_passes() {
    let redis = Redis::start().await;
    run(&redis, &write((7, 1, 1), &set("a"))).await;
    redis.fill().await;
    let before = redis.dump().await;
    for what in [set("b"), GuardedWrite::claim()] {
        let error = redis.cells(&write((9, 2, 1), &what)).await.unwrap_err();
        assert!(error.to_string().contains("OOM"), "{error}");
        assert_eq!(redis.dump().await, before);
    }
    assert_eq!(run(&redis, &write((9, 2, 1), &GuardedWrite::delete())).await.0, Code::Done);
    assert_eq!(run(&redis, &write((7, 1, 2), &GuardedWrite::delete())).await.0, Code::No);
}

#[tokio::test]
async fn a_fence_of_another_form_is_refused_and_left_alone() {
    let redis = Redis::start().await;
    for words in [["SET", FENCE, "garbage"], ["RPUSH", FENCE, "list"]] {
        redis.query::<String>(&["FLUSHALL"]).await;
        redis.query::<redis::Value>(&words).await;
        let before = redis.dump().await;
        assert!(redis.cells(&write((9, 2, 1), &set("b"))).await.is_err());
        assert_eq!(redis.dump().await, before);
    }
}

#[tokio::test]
async fn a_user_without_the_rights_writes_neither_key_nor_fence() {
    let redis = Redis::start().await;
    for rights in [
        vec!["+@all", "~el:*"],
        vec!["+@all", "~{invoice:42}:total"],
        vec!["+@all", "~*", "-set"],
        vec!["+@all", "~*", "-pttl"],
        vec!["+@all", "~*", "-get"],
    ] {
        let mut worker = redis.user(&rights).await;
        assert!(run_on(&mut worker, &write((7, 1, 1), &set("a"))).await.is_err(), "{rights:?}");
        assert!(redis.dump().await.is_empty(), "{rights:?}");
    }
}
