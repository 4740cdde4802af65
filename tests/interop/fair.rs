//! One queue for both sides.

use std::time::Duration;

use edgelatch::Publish;
use edgelatch::client::{AcquireOptions, FairSettings, Released};
use edgelatch::error::AcquireError;
use edgelatch::name::LockName;
use edgelatch_proto::protocol::calls::FairCalls;
use serde_json::json;
use tokio::sync::oneshot;

use super::both::{Both, NAME};
use super::exclusive::{ENDLESS, JAVA_ENDLESS, JAVA_LEASE};
use super::kinds::{Fair, Ours};
use super::order::Watch;
use super::peer::{Answer, Object, ms};
use test_support::calls::request;
use test_support::test_env::until;

const QUEUE: &str = "redisson_lock_queue:{job}";

/// An edgelatch fair lock with settings that detect dead waiters soon.
fn brisk(both: &Both) -> Ours {
    let seconds = Duration::from_secs;
    let settings = FairSettings::default().life(seconds(1)).unwrap().skew(seconds(0)).unwrap();
    let settings = settings.grace(seconds(3), seconds(3)).unwrap();
    both.env.client().fair_lock(NAME, settings).unwrap()
}

fn java(both: &Both, thread: &str) -> Object {
    both.object(thread, "fairLock")
}

async fn queue(both: &Both) -> Vec<String> {
    both.env.redis.query(&["LRANGE", QUEUE, "0", "-1"]).await
}

async fn so_many_wait(both: &Both, count: usize) {
    until(async || queue(both).await.len() == count).await;
}

/// Starts a Java thread that waits for `wait` ms, and returns once it is alone in the queue.
/// Doubles the time if the thread left before it was seen.
async fn java_waits_for_a_while(both: &Both, method: &str, mut wait: i64) -> Answer {
    loop {
        let left = java(both, "leaver").call(method, json!([ms(wait), ms(-1)]));
        until(async || queue(both).await.len() == 1 || left.has_come()).await;
        if !left.has_come() {
            return left;
        }
        left.refusal().await;
        wait *= 2;
    }
}

/// The waiters that edgelatch's queue query reports, in order: whether each is edgelatch's own.
async fn reported_places(both: &Both) -> Vec<bool> {
    let name = LockName::parse(NAME).unwrap();
    let calls = FairCalls::new(name, FairSettings::default(), Publish::Plain);
    let value = both.env.redis.run(&calls.queue(request(1), None)).await.value;
    let numbers: Vec<u64> = value.split(',').map(|number| number.parse().unwrap()).collect();
    let (counts, waiters) = numbers.split_at(2);
    assert_eq!(counts, [waiters.len() as u64 / 2, 0], "{value}");
    waiters.chunks(2).map(|waiter| waiter[0] == 1).collect()
}

/// A Java thread that holds the lock.
async fn held_by_java(both: &Both) -> Object {
    let holder = java(both, "holder");
    holder.call("lock", json!([ms(JAVA_ENDLESS)])).value::<()>().await;
    holder
}

#[tokio::test]
async fn waiters_of_both_sides_share_one_queue_and_are_served_in_order() {
    let both = Both::start().await;
    let watch = Watch::start(&both).await;
    let holder =
        both.ours::<Fair>().acquire_with(AcquireOptions::new().lease(ENDLESS)).await.unwrap();
    let (mut theirs, mut ours) = (Vec::new(), Vec::new());
    for place in 0..6 {
        if place % 2 == 0 {
            let waiter = java(&both, &format!("waiter-{place}"));
            let (lock, unlock) = (waiter.call("lock", json!([])), waiter.call("unlock", json!([])));
            theirs.push((lock, unlock));
        } else {
            let waiting = both.wait_for(both.ours::<Fair>()).await;
            ours.push(tokio::spawn(async move { waiting.await.unwrap().release().await }));
        }
        so_many_wait(&both, place + 1).await;
    }
    let arrived = queue(&both).await;
    let places: Vec<bool> = arrived.iter().map(|holder| is_ours(holder)).collect();
    assert_eq!(places, [false, true, false, true, false, true]);
    assert_eq!(reported_places(&both).await, places);
    holder.release().await.unwrap();
    for (lock, unlock) in theirs {
        lock.value::<()>().await;
        unlock.value::<()>().await;
    }
    for waiter in ours {
        assert_eq!(waiter.await.unwrap(), Ok(Released::Released));
    }
    let turns = watch.end(&both).await;
    assert_eq!(turns.granted[1..], arrived);
    assert!(turns.violations.is_empty(), "{turns:?}");
}

#[tokio::test]
async fn a_waiter_of_ours_that_leaves_moves_java_s_up() {
    let both = Both::start().await;
    let holder = held_by_java(&both).await;
    let (leave, left) = oneshot::channel();
    let ours = both.ours::<Fair>();
    let leaver = tokio::spawn(async move {
        let left = async { left.await.unwrap() };
        ours.acquire_cancellable(AcquireOptions::new().wait_until_cancelled(), left).await
    });
    so_many_wait(&both, 1).await;
    let next = java(&both, "next");
    let waiting = next.call("lock", json!([]));
    so_many_wait(&both, 2).await;
    leave.send(()).unwrap();
    let outcome = leaver.await.unwrap().unwrap_err();
    assert_eq!(outcome, AcquireError::Cancelled { held_at_most: None });
    let left = queue(&both).await;
    assert!(left.len() == 1 && !is_ours(&left[0]), "{left:?}");
    holder.get::<()>("unlock").await;
    waiting.value::<()>().await;
}

#[tokio::test]
async fn a_waiter_of_java_that_leaves_moves_ours_up() {
    let both = Both::start().await;
    let holder = held_by_java(&both).await;
    let left = java_waits_for_a_while(&both, "tryLock", 1_000).await;
    let waiting = both.wait_for(both.ours::<Fair>()).await;
    left.refusal().await;
    until(async || matches!(queue(&both).await.as_slice(), [only] if is_ours(only))).await;
    holder.get::<()>("unlock").await;
    assert_eq!(waiting.await.unwrap().release().await, Ok(Released::Released));
}

/// Redisson's weak point 16: a waiter that leaves an asynchronous acquisition lowers the scores of
/// all waiters behind it by 300 s, and the next caller removes them as dead. edgelatch's waiters
/// keep their places.
#[tokio::test]
async fn an_asynchronous_waiter_of_java_that_leaves_costs_us_no_place() {
    let both = Both::start().await;
    let watch = Watch::start(&both).await;
    let holder = held_by_java(&both).await;
    let left = java_waits_for_a_while(&both, "tryLockAsync", 2_000).await;
    let waiting = both.wait_for(both.ours::<Fair>()).await;
    left.refusal().await;
    // Every try sweeps the queue.
    assert!(!java(&both, "other").get::<bool>("tryLock").await);
    let rival = java(&both, "rival");
    let next = rival.call("lock", json!([]));
    until(async || queue(&both).await.iter().any(|waiter| !is_ours(waiter))).await;
    until(async || queue(&both).await.first().is_some_and(|waiter| is_ours(waiter))).await;
    holder.get::<()>("unlock").await;
    assert_eq!(waiting.await.unwrap().release().await, Ok(Released::Released));
    next.value::<()>().await;
    let turns = watch.end(&both).await;
    assert_eq!(
        turns.granted.iter().map(|holder| is_ours(holder)).collect::<Vec<_>>(),
        [false, true, false]
    );
}

/// S90: No message wakes the Java waiter: it retries when the hold that it knows of would have
/// expired.
#[tokio::test]
async fn a_dead_waiter_of_ours_does_not_block_java_s_waiters() {
    let both = Both::start().await;
    let holder = held_by_java(&both).await;
    let dead = both.wait_for(brisk(&both)).await;
    so_many_wait(&both, 1).await;
    dead.abort();
    both.shorten(JAVA_LEASE).await;
    let next = java(&both, "next");
    let waiting = next.call("lock", json!([]));
    let queues = async || queue(&both).await.iter().any(|waiter| !is_ours(waiter));
    // On a slow machine the hold may have expired before.
    until(async || waiting.has_come() || queues().await).await;
    holder.unlock_unless_ended().await;
    waiting.value::<()>().await;
}

/// Redisson's weak point 16: Redisson would wait five minutes for a dead waiter of its own.
#[tokio::test]
async fn a_dead_waiter_of_java_does_not_block_our_waiters() {
    let both = Both::start().await;
    let holder =
        both.ours::<Fair>().acquire_with(AcquireOptions::new().lease(ENDLESS)).await.unwrap();
    let dies = both.another(json!({})).await;
    let dead = dies.thread("dead").object(json!({ "kind": "fairLock", "name": NAME }));
    let _never = dead.call("lock", json!([]));
    so_many_wait(&both, 1).await;
    let waiting = both.wait_for(brisk(&both)).await;
    so_many_wait(&both, 2).await;
    drop((dead, dies));
    holder.release().await.unwrap();
    assert_eq!(waiting.await.unwrap().release().await, Ok(Released::Released));
}

/// Redisson's unlock of an expired hold succeeds while no client holds the lock. An edgelatch
/// holder is not disturbed.
#[tokio::test]
async fn java_releases_an_expired_permit_without_effect_on_our_waiters() {
    let both = Both::start().await;
    let late = java(&both, "late");
    late.call("lock", json!([ms(400)])).value::<()>().await;
    until(async || both.env.redis.query::<u64>(&["EXISTS", NAME]).await == 0).await;
    late.get::<()>("unlock").await;
    let lease = both.ours::<Fair>().acquire().await.unwrap();
    assert!(late.call("unlock", json!([])).thrown().await.is_not_the_holder());
    assert!(lease.is_held().await.unwrap());
    assert_eq!(lease.release().await, Ok(Released::Released));
}

/// edgelatch's owners have a UUID of version 8.
fn is_ours(holder: &str) -> bool {
    holder.as_bytes()[14] == b'8'
}
