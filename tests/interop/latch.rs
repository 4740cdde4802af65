//! A count-down latch that both sides count down and wait for.

use std::time::Duration;

use edgelatch::Error;
use edgelatch::client::{AcquireOptions, CountDownLatch};
use edgelatch::error::AcquireError;
use edgelatch::host::TokioHost;
use edgelatch::transport::Reqwest;
use serde_json::json;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;

use super::both::{Both, NAME};
use super::contention::time;
use super::peer::{Object, ms};
use test_support::slow_machine::in_time;
use test_support::test_env::until;

fn gate(both: &Both) -> CountDownLatch<Reqwest, TokioHost> {
    both.env.client().count_down_latch(NAME).unwrap()
}

fn java(both: &Both, thread: &str) -> Object {
    both.object(thread, "countDownLatch")
}

/// Starts an edgelatch waiter; returns once it has sent one request.
async fn we_wait(both: &Both) -> JoinHandle<Result<(), Error<AcquireError>>> {
    let asked = both.env.proxy.calls().len();
    let ours = gate(both);
    let options = AcquireOptions::new().wait_until_cancelled();
    let waiting = tokio::spawn(async move { ours.wait_with(options).await });
    until(async || both.env.proxy.calls().len() > asked).await;
    waiting
}

#[tokio::test]
async fn both_sides_count_the_same_latch_down() {
    let both = Both::start().await;
    let (ours, java) = (gate(&both), java(&both, "a"));
    assert!(java.call("trySetCount", json!([3])).value::<bool>().await);
    assert!(!ours.try_set_count(9).await.unwrap());
    assert_eq!(ours.count_down().await, Ok(2));
    java.get::<()>("countDown").await;
    assert_eq!((ours.count().await, java.get::<u64>("getCount").await), (Ok(1), 1));
    assert_eq!(ours.count_down().await, Ok(0));
    java.get::<()>("countDown").await;
    assert_eq!((ours.count().await, java.get::<u64>("getCount").await), (Ok(0), 0));
    assert!(ours.try_set_count(2).await.unwrap());
    assert!(!java.call("trySetCount", json!([9])).value::<bool>().await);
    assert_eq!(java.get::<u64>("getCount").await, 2);
}

#[tokio::test]
async fn a_wait_ends_on_each_side_while_it_is_closed() {
    let both = Both::start().await;
    let (ours, java) = (gate(&both), java(&both, "a"));
    ours.try_set_count(1).await.unwrap();
    assert!(!java.call_with_wait::<bool>("await", json!([ms(60)])).await);
    let short = Duration::from_millis(60);
    let wait = async |time| ours.wait_with(AcquireOptions::new().wait(time)).await;
    let over = in_time(short, wait).await.unwrap_err();
    assert_eq!(over, AcquireError::Busy { remaining: None });
    ours.count_down().await.unwrap();
    assert!(java.call("await", json!([ms(60)])).value::<bool>().await);
    in_time(short, wait).await.unwrap();
}

#[tokio::test]
async fn our_last_count_ends_every_wait_of_java() {
    let both = Both::start().await;
    let other = both.another(json!({})).await;
    let ours = gate(&both);
    // Twice: the latch is set again after clients have passed it.
    for _ in 0..2 {
        ours.try_set_count(2).await.unwrap();
        let mut waiting = Vec::new();
        for (service, thread) in [(&both.java, "a"), (&both.java, "b"), (&other, "a")] {
            let java =
                service.thread(thread).object(json!({ "kind": "countDownLatch", "name": NAME }));
            waiting.push(java.call("await", json!([])));
            java.thread.waits().await;
        }
        assert_eq!(ours.count_down().await, Ok(1));
        assert!(waiting.iter().all(|answer| !answer.has_come()));
        assert_eq!(ours.count_down().await, Ok(0));
        for answer in waiting {
            answer.value::<()>().await;
        }
    }
}

#[tokio::test]
async fn the_last_count_of_java_ends_our_waits() {
    let both = Both::start().await;
    let java = java(&both, "a");
    java.call("trySetCount", json!([2])).value::<bool>().await;
    let waiting = we_wait(&both).await;
    java.get::<()>("countDown").await;
    assert!(!waiting.is_finished());
    java.get::<()>("countDown").await;
    assert_eq!(waiting.await.unwrap(), Ok(()));
}

#[tokio::test]
async fn deleting_a_latch_ends_the_waits_of_both_sides() {
    let both = Both::start().await;
    let (ours, java) = (gate(&both), java(&both, "a"));
    java.call("trySetCount", json!([5])).value::<bool>().await;
    let theirs = java.call("await", json!([]));
    java.thread.waits().await;
    let mine = we_wait(&both).await;
    assert_eq!(ours.delete().await, Ok(true));
    theirs.value::<()>().await;
    assert_eq!(mine.await.unwrap(), Ok(()));
}

/// Redisson's weak point 14: when it deletes a latch, it notifies waiters that the latch is closed.
/// edgelatch's waiters query it and go on; Redisson's own wake, find their latch closed, and sleep
/// until the next latch of that name opens.
#[tokio::test]
async fn a_latch_that_java_deletes_ends_our_waits_and_not_java_s() {
    let both = Both::start().await;
    let (ours, java) = (gate(&both), java(&both, "a"));
    ours.try_set_count(1).await.unwrap();
    let theirs = java.call("await", json!([]));
    java.thread.waits().await;
    let mine = we_wait(&both).await;
    assert!(both.object("b", "countDownLatch").get::<bool>("delete").await);
    assert_eq!(mine.await.unwrap(), Ok(()));
    java.thread.waits().await;
    assert!(!theirs.has_come());
    ours.try_set_count(1).await.unwrap();
    ours.count_down().await.unwrap();
    theirs.value::<()>().await;
}

/// Each client of both sides counts each latch down once and waits for it; Redis must count each
/// exactly once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_sides_count_down_together_and_each_count_once() {
    const EACH: u64 = 3;
    let both = Both::start().await;
    let (first, end) = (gate(&both), Instant::now() + time());
    let mut rounds = 0;
    while Instant::now() < end {
        assert!(first.try_set_count(2 * EACH + 1).await.unwrap());
        let mut theirs = Vec::new();
        let mut ours = JoinSet::new();
        for number in 0..EACH {
            let java = java(&both, &format!("thread-{number}"));
            theirs.push(java.call("countDown", json!([])));
            theirs.push(java.call("await", json!([])));
            let gate = both.direct_client().count_down_latch(NAME).unwrap();
            ours.spawn(async move {
                let left = gate.count_down().await.unwrap();
                gate.wait_with(AcquireOptions::new().wait_until_cancelled()).await.unwrap();
                left
            });
        }
        until(async || first.count().await.unwrap() == 1).await;
        assert!(theirs.iter().skip(1).step_by(2).all(|waiting| !waiting.has_come()));
        assert_eq!(first.count_down().await, Ok(0));
        for answer in theirs {
            answer.value::<()>().await;
        }
        let mut left = ours.join_all().await;
        left.sort_unstable();
        left.dedup();
        assert_eq!(left.len() as u64, EACH, "each has made another count");
        rounds += 1;
    }
    println!("{rounds} latches");
    assert!(rounds > 0 && both.env.redis.query::<u64>(&["EXISTS", NAME]).await == 0);
}
