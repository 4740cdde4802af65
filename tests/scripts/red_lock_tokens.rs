//! The calls of a red lock's node beyond those of a plain lock: to store a proposed token, to raise
//! it, and not to vote soon after its start. On a real Redis, compared with the model.

use std::time::Duration;

use edgelatch_proto::machine::{
    AcquireQuorum, AcquireQuorumSpec, CallId, Entropy, Input, Machine as _, Output,
};
use edgelatch_proto::name::LockName;
use edgelatch_proto::protocol::calls::{LockCalls, Member};
use edgelatch_proto::protocol::reply::{Code, Reply, ServerClock};
use edgelatch_proto::protocol::script::{Publish, ScriptCall};
use edgelatch_proto::time::Instant;
use edgelatch_proto::timing::{RejoinDelay, WaitPolicy};

use super::differential::pair::Pair;
use test_support::calls::{UNBOUND, lease, lock, owner, request};
use test_support::redis::{Content, Keyspace, Redis};
use test_support::script_model::Value;
use test_support::test_env::until;

pub(super) const TOKEN_KEY: &str = "redisson_lock_token:{job}";
const START: Instant = Instant::from_millis(0, 0);

fn node() -> LockCalls {
    LockCalls::new(LockName::parse("job").unwrap(), Publish::Plain)
}

/// A vote of three nodes and its first calls. Each vote by `who` has the same owners; its proposal
/// comes from the clock `clock_ms`.
fn vote(
    who: u8,
    node: LockCalls,
    clock_ms: Option<u64>,
) -> (AcquireQuorum, Vec<(CallId, ScriptCall)>) {
    let spec = AcquireQuorumSpec::new(vec![node; 3], WaitPolicy::Once);
    let clocks = vec![clock_ms.map(|ms| ServerClock::new(ms, START)); 3];
    let mut vote = AcquireQuorum::new(spec, Entropy::new([who; 32]), clocks, START);
    let mut calls = Vec::new();
    while let Output::Call { call, script, .. } = vote.poll(START) {
        calls.push((call, script));
    }
    (vote, calls)
}

/// The acquisition of the first node, with the proposal of this clock.
fn acquire(node: LockCalls, clock_ms: Option<u64>) -> ScriptCall {
    acquire_for(7, node, clock_ms)
}

/// The acquisition of the first node by voter `who`.
pub(super) fn acquire_for(who: u8, node: LockCalls, clock_ms: Option<u64>) -> ScriptCall {
    vote(who, node, clock_ms).1.swap_remove(0).1
}

/// The call that raises the first node, which has replied `granted`, to `token`.
fn raise(node: LockCalls, clock_ms: Option<u64>, granted: &Reply, token: u64) -> ScriptCall {
    raise_for(7, node, clock_ms, granted, token)
}

/// The call by voter `who` that raises the first node, which has replied `granted`, to `token`.
pub(super) fn raise_for(
    who: u8,
    node: LockCalls,
    clock_ms: Option<u64>,
    granted: &Reply,
    token: u64,
) -> ScriptCall {
    let (mut vote, calls) = vote(who, node, clock_ms);
    // A vote raises a token only as far as the nodes' clocks allow.
    let granted = &Reply { server_ms: granted.server_ms.max(token / 1000), ..granted.clone() };
    vote.handle(Input::Reply { call: calls[0].0, reply: granted.clone() }, START);
    let reply = Reply { value: token.to_string(), ..granted.clone() };
    vote.handle(Input::Reply { call: calls[1].0, reply }, START);
    // The third node does not reply.
    let Output::Timeout { until, .. } = vote.poll(START) else { panic!("it waits for a reply") };
    vote.handle(Input::Timeout, until);
    let Output::Call { script, .. } = vote.poll(until) else { panic!("it raises what is smaller") };
    assert_eq!(script.script().name, "lock_raise");
    script
}

async fn stored(redis: &Redis) -> u64 {
    redis.query(&["GET", TOKEN_KEY]).await
}

#[tokio::test]
async fn a_proposal_is_stored_where_it_is_above_the_last_and_not_ahead_of_the_clock() {
    let redis = Redis::start().await;
    for (ahead, last, taken) in [(500, None, true), (500, Some(7), true), (5_000, None, false)] {
        let mut pair = Pair::new(&redis).await;
        if let Some(last) = last {
            pair.write(TOKEN_KEY, Value::Text(u64::to_string(&last)), None).await;
        }
        let clock_ms = redis.now_ms().await + ahead;
        let reply = pair.call(&acquire(node(), Some(clock_ms)), "propose").await;
        let proposal = (clock_ms + 1) * 1000;
        assert_eq!(reply.value.parse::<u64>().unwrap() == proposal, taken, "{ahead}");
        assert_eq!(stored(&redis).await.to_string(), reply.value);
    }
    // A proposal that is not above the last token is not used.
    let mut pair = Pair::new(&redis).await;
    let far = (redis.now_ms().await + 60_000) * 1000;
    pair.write(TOKEN_KEY, Value::Text(far.to_string()), None).await;
    let reply = pair.call(&acquire(node(), Some(redis.now_ms().await)), "too small").await;
    assert_eq!(reply.value, (far + 1).to_string());
}

#[tokio::test]
async fn a_plain_lock_sends_no_arguments_of_a_node() {
    let plain = lock("job").acquire(request(1), UNBOUND, &owner(1), lease(30_000), false);
    assert_eq!(plain.args().len(), 8);
    assert_eq!(acquire(node(), None).args().len(), 8, "without a proposal it is a plain lock");
    assert_eq!(acquire(node(), Some(1)).args().len(), 10);
    assert_eq!(acquire(node().not_before(delay(1)), Some(1)).args().len(), 11);
}

#[tokio::test]
async fn a_raise_stores_a_larger_token_and_keeps_all_ends() {
    let redis = Redis::start().await;
    for fenced in [false, true] {
        let member = Member { name: LockName::parse("job").unwrap(), fenced };
        let node = LockCalls::of_several(member, Vec::new(), Publish::Plain);
        let mut pair = Pair::new(&redis).await;
        let granted = pair.call(&acquire(node.clone(), None), "acquire").await;
        let larger = granted.value.parse::<u64>().unwrap() + 1_000;
        let call = raise(node, None, &granted, larger);
        let latch = call.keys()[0].clone();
        let before = redis.dump().await;
        for _ in 0..2 {
            let reply = pair.call(&call, "raise").await;
            assert_eq!((reply.code, reply.value), (Code::Done, larger.to_string()));
        }
        let after = redis.dump().await;
        assert_eq!(after[&latch].value, Content::Text(larger.to_string()));
        assert_eq!(after[&latch].ends_at, before[&latch].ends_at);
        let (hold, held) = (&after["job"], &before["job"]);
        assert_eq!((&hold.value, hold.ends_at), (&held.value, held.ends_at));
        assert_eq!(after[TOKEN_KEY].ttl == -1, fenced);
    }
}

#[tokio::test]
async fn a_late_raise_changes_nothing_where_a_larger_token_is_stored() {
    let redis = Redis::start().await;
    let mut pair = Pair::new(&redis).await;
    let granted = pair.call(&acquire(node(), None), "acquire").await;
    let token = granted.value.parse::<u64>().unwrap();
    let (small, large) =
        (raise(node(), None, &granted, token + 10), raise(node(), None, &granted, token + 20));
    pair.call(&large, "the larger").await;
    let reply = pair.call(&small, "the smaller").await;
    assert_eq!((reply.code, reply.value), (Code::Done, (token + 20).to_string()));
    assert_eq!(stored(&redis).await, token + 20);
    // The hold can be renewed with the stored token, and released.
    let again = pair.call(&acquire(node(), None), "again").await;
    assert_eq!((again.code, again.value), (Code::AlreadyYours, (token + 20).to_string()));
}

/// Guards would reject the tokens of all later holders.
#[tokio::test]
async fn a_token_from_the_future_is_not_stored() {
    let redis = Redis::start().await;
    let mut pair = Pair::new(&redis).await;
    let granted = pair.call(&acquire(node(), None), "acquire").await;
    let token = granted.value.parse::<u64>().unwrap();
    for (ahead, believed) in [(3_600_000_000, false), (120_000_000, false), (30_000_000, true)] {
        let before = redis.dump().await;
        let call = raise(node(), None, &granted, token + ahead);
        let reply = pair.call(&call, "raise").await;
        if believed {
            assert_eq!((reply.code, stored(&redis).await), (Code::Done, token + ahead));
        } else {
            assert_eq!(reply.code, Code::TokenAhead);
            let newest = reply.value.parse::<u64>().unwrap();
            assert!((token..token + 90_000_000).contains(&newest), "{newest}");
            assert_eq!(stored(&redis).await, token);
            let ends = |key: &str, all: &Keyspace| all[key].ends_at;
            assert_eq!(ends(TOKEN_KEY, &before), ends(TOKEN_KEY, &redis.dump().await));
        }
    }
    // The hold exists all the same, and its release ends it.
    let again = pair.call(&acquire(node(), None), "again").await;
    assert_eq!(again.code, Code::AlreadyYours);
}

/// Redis' clock was set back: tokens continue above the last one.
#[tokio::test]
async fn a_token_that_is_ahead_already_rises_and_may_be_stored_again() {
    let redis = Redis::start().await;
    let mut pair = Pair::new(&redis).await;
    let ahead = (redis.now_ms().await + 3_600_000) * 1000;
    let ends_at = redis.now_ms().await + 600_000;
    pair.write(TOKEN_KEY, Value::Text(ahead.to_string()), Some(ends_at)).await;
    let granted = pair.call(&acquire(node(), None), "acquire").await;
    assert_eq!((granted.code, granted.value.parse()), (Code::Done, Ok(ahead + 1)));
    for (by, code) in [(0, Code::Done), (1, Code::TokenAhead)] {
        let call =
            raise(node(), None, &Reply { value: "1".into(), ..granted.clone() }, ahead + 1 + by);
        assert_eq!(pair.call(&call, "raise").await.code, code);
        assert_eq!(stored(&redis).await, ahead + 1);
    }
}

/// If the last token expired while it is ahead of the clock, the next token would be smaller.
#[tokio::test]
async fn no_request_shortens_for_how_long_the_last_token_is_kept() {
    let redis = Redis::start().await;
    let granted = redis.run(&acquire(node(), None)).await;
    let token = granted.value.parse::<u64>().unwrap();
    let call = raise(node(), None, &granted, token + 30_000_000);
    for before_ms in [86_000_000, 1_000] {
        redis.query::<u64>(&["PEXPIRE", TOKEN_KEY, &before_ms.to_string()]).await;
        run_keeping(&redis, &call, 1).await;
        let left: u64 = redis.query(&["PTTL", TOKEN_KEY]).await;
        // Until the clock has passed it, at least.
        assert!(left > (before_ms - 1_000).max(20_000), "{left}");
    }
}

/// Runs a raise that keeps the token for `kept_ms` milliseconds.
async fn run_keeping(redis: &Redis, call: &ScriptCall, kept_ms: u64) {
    let mut eval = redis::cmd("EVAL");
    eval.arg(call.source(false)).arg(call.keys().len()).arg(call.keys());
    let (args, last) = call.args().split_at(call.args().len() - 1);
    assert_eq!(last.len(), 1);
    eval.arg(args).arg(kept_ms);
    redis.send::<redis::Value>(eval).await.unwrap();
}

#[tokio::test]
async fn the_token_of_a_lost_hold_is_not_raised() {
    let redis = Redis::start().await;
    let mut pair = Pair::new(&redis).await;
    let granted = pair.call(&acquire(node(), None), "acquire").await;
    let token = granted.value.parse::<u64>().unwrap();
    let call = raise(node(), None, &granted, token + 10);
    pair.write("job", Value::Hash([("java:1".into(), "1".into())].into()), None).await;
    assert_eq!(pair.call(&call, "held by another").await.code, Code::Lost);
    pair.write(&call.keys()[0], Value::Text("x1".into()), None).await;
    assert_eq!(pair.call(&call, "ended").await.code, Code::Lost);
    let mut pair = Pair::new(&redis).await;
    assert_eq!(pair.call(&call, "never granted").await.code, Code::Lost);
    assert_eq!(redis.dump().await.len(), 0);
}

#[tokio::test]
async fn a_raise_after_its_bound_is_not_done() {
    let redis = Redis::start().await;
    let mut pair = Pair::new(&redis).await;
    // A voter that knew a clock: all its calls have a bound, here long ago.
    let granted = pair.call(&acquire(node(), None), "acquire").await;
    let token = granted.value.parse::<u64>().unwrap();
    let call = raise(node(), Some(1_000), &granted, token + 10);
    assert_eq!(pair.call(&call, "late").await.code, Code::Late);
    assert_eq!(stored(&redis).await, token);
}

#[tokio::test]
async fn a_redis_that_is_too_young_grants_nothing() {
    let redis = Redis::start().await;
    let young = acquire(node().not_before(delay(3_600)), None);
    let reply = redis.run(&young).await;
    assert_eq!((reply.code, &*reply.value), (Code::TooYoung, "0"));
    assert!((3_000_000..=3_601_000).contains(&reply.ms), "{}", reply.ms);
    // It was the only try, so its owner has a tombstone.
    let keys: Vec<String> = redis.dump().await.into_keys().collect();
    assert_eq!(keys, [young.keys()[0].clone()]);
    assert_eq!(redis.run(&young).await.code, Code::Gone);

    // Not before it has been up for the delay, which takes one second more, since Redis counts
    // whole seconds.
    let old = acquire(node().not_before(delay(1)), None);
    until(async || {
        redis.query::<String>(&["FLUSHALL"]).await;
        let counted = uptime(&redis).await;
        let granted = redis.run(&old).await.code == Code::Done;
        assert!(!granted || uptime(&redis).await >= 2, "{counted}");
        granted
    })
    .await;
}

/// The uptime of Redis in whole seconds.
async fn uptime(redis: &Redis) -> u64 {
    let info: String = redis.query(&["INFO", "server"]).await;
    let count = info.lines().find_map(|line| line.strip_prefix("uptime_in_seconds:"));
    count.unwrap().parse().unwrap()
}

fn delay(seconds: u64) -> RejoinDelay {
    RejoinDelay::new(Duration::from_secs(seconds)).unwrap()
}
