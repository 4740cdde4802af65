//! Permits that both sides acquire and release.

use std::time::Duration;

use edgelatch::client::{AcquireOptions, Released, Semaphore};
use edgelatch::error::{AcquireError, LossReason};
use edgelatch::host::TokioHost;
use edgelatch::transport::Reqwest;
use serde_json::{Value, json};

use super::both::{Both, NAME};
use super::contention::Contest;
use super::exclusive::SHORT;
use super::peer::{Object, ms};
use test_support::slow_machine::in_time;
use test_support::test_env::until;

fn pool(both: &Both) -> Semaphore<Reqwest, TokioHost> {
    both.env.client().semaphore(NAME).unwrap()
}

fn java(both: &Both, thread: &str) -> Object {
    both.object(thread, "semaphore")
}

#[tokio::test]
async fn both_sides_count_the_same_permits() {
    let both = Both::start().await;
    let (ours, java) = (pool(&both), java(&both, "a"));
    assert!(java.call("trySetPermits", json!([5])).value::<bool>().await);
    assert!(!ours.try_set_permits(9, None).await.unwrap());
    let two = ours.acquire(2).await.unwrap();
    assert_eq!(java.get::<i64>("availablePermits").await, 3);
    assert!(!java.call("tryAcquire", json!([4])).value::<bool>().await);
    java.call("acquire", json!([3])).value::<()>().await;
    assert_eq!(ours.available_permits().await, Ok(0));
    assert!(ours.try_acquire(1).await.unwrap().is_none());
    java.call("release", json!([3])).value::<()>().await;
    assert_eq!(two.release().await, Ok(Released::Released));
    assert_eq!(java.get::<i64>("availablePermits").await, 5);

    assert_eq!(ours.add_permits(2).await, Ok(7));
    java.call("addPermits", json!([-1])).value::<()>().await;
    assert!(ours.release_if_exists(2).await.unwrap());
    assert_eq!(ours.available_permits().await, Ok(8));
    assert_eq!(java.get::<i64>("drainPermits").await, 8);
    ours.release(2).await.unwrap();
    assert_eq!(java.get::<i64>("availablePermits").await, 2);
    assert_eq!(ours.drain_permits().await, Ok(2));
    assert_eq!(java.get::<i64>("drainPermits").await, 0);
    assert!(!java.call("trySetPermits", json!([1])).value::<bool>().await);
}

#[tokio::test]
async fn java_releases_a_permit_if_the_semaphore_exists_since_redisson_4() {
    let both = Both::start().await;
    let (ours, java) = (pool(&both), java(&both, "a"));
    assert!(!java.call("releaseIfExists", json!([1])).value::<bool>().await);
    ours.try_set_permits(1, None).await.unwrap();
    assert!(java.call("releaseIfExists", json!([1])).value::<bool>().await);
    assert_eq!(ours.available_permits().await, Ok(2));
}

#[tokio::test]
async fn a_wait_ends_on_each_side_while_the_other_holds_all() {
    let both = Both::start().await;
    let (ours, java) = (pool(&both), java(&both, "a"));
    ours.try_set_permits(1, None).await.unwrap();
    let lease = ours.acquire(1).await.unwrap();
    assert!(!java.call_with_wait::<bool>("tryAcquire", json!([1, ms(60)])).await);
    lease.release().await.unwrap();
    assert!(java.call("tryAcquire", json!([1, ms(60)])).value::<bool>().await);
    let permit = ours.permits(1).unwrap();
    let refused = in_time(Duration::from_millis(60), async |time| {
        permit.acquire_with(AcquireOptions::new().wait(time)).await
    });
    assert_eq!(refused.await.unwrap_err(), AcquireError::Busy { remaining: None });
}

#[tokio::test]
async fn each_call_that_makes_permits_available_wakes_java() {
    let both = Both::start().await;
    let (ours, java) = (pool(&both), java(&both, "a"));
    let waits = async |permits: u32| {
        let waiting = java.call("acquire", json!([permits]));
        java.thread.waits().await;
        waiting
    };
    let waiting = waits(1).await;
    assert!(ours.try_set_permits(1, None).await.unwrap());
    waiting.value::<()>().await;

    let waiting = waits(2).await;
    assert_eq!(ours.add_permits(2).await, Ok(2));
    waiting.value::<()>().await;

    // Fewer than no permits. Redisson must not receive this number: it would unsubscribe.
    let waiting = waits(2).await;
    assert_eq!(ours.add_permits(-3).await, Ok(-3));
    ours.release(4).await.unwrap();
    java.thread.waits().await;
    assert!(!waiting.has_come());
    assert!(ours.release_if_exists(1).await.unwrap());
    waiting.value::<()>().await;

    ours.release(3).await.unwrap();
    let (two, one) = (ours.acquire(2).await.unwrap(), ours.acquire(1).await.unwrap());
    let waiting = waits(3).await;
    assert_eq!(one.release().await, Ok(Released::Released));
    java.thread.waits().await;
    assert!(!waiting.has_come());
    assert_eq!(two.release().await, Ok(Released::Released));
    waiting.value::<()>().await;

    ours.release(1).await.unwrap();
    let lease = ours.acquire(1).await.unwrap();
    let waiting = waits(1).await;
    assert_eq!(ours.force_release().await, Ok(true));
    waiting.value::<()>().await;
    assert_eq!(lease.release().await, Ok(Released::WasLost));
    assert_eq!(ours.available_permits().await, Ok(0));
}

#[tokio::test]
async fn permits_that_java_releases_become_ours() {
    let both = Both::start().await;
    let (ours, java) = (pool(&both), java(&both, "a"));
    java.call("trySetPermits", json!([2])).value::<bool>().await;
    java.call("acquire", json!([2])).value::<()>().await;
    let waiting = both.wait_for(ours.permits(2).unwrap()).await;
    java.get::<()>("release").await;
    assert!(ours.permits(2).unwrap().try_acquire().await.unwrap().is_none());
    assert!(!waiting.is_finished());
    java.get::<()>("release").await;
    waiting.await.unwrap().release().await.unwrap();
    assert_eq!(java.get::<i64>("availablePermits").await, 2);
}

/// Redisson has no leases of permits. An expired permit of edgelatch's returns to the semaphore at
/// the next acquisition of an edgelatch client.
#[tokio::test]
async fn an_expired_permit_of_ours_becomes_java_s_at_our_next_call() {
    let both = Both::start().await;
    let (ours, java) = (pool(&both), java(&both, "a"));
    ours.try_set_permits(1, None).await.unwrap();
    let permit = ours.permits(1).unwrap();
    let (client, host) = both.env.virtual_client();
    let short = client.semaphore(NAME).unwrap().permits(1).unwrap();
    let taking = short.acquire_with(AcquireOptions::new().lease(SHORT));
    let lease = both.in_virtual_time(&host, taking).await.unwrap();
    let ends = redis_ms(&both).await + SHORT.as_millis();
    // Both calls at once, so that the thread releases what it has acquired.
    let (taken, given) = (java.call("acquire", json!([])), java.call("release", json!([])));
    java.thread.waits().await;
    host.pass(SHORT);
    assert_eq!(lease.lost().await, LossReason::Expired);
    until(async || redis_ms(&both).await > ends).await;
    assert!(!taken.has_come());
    let next = permit.acquire_with(AcquireOptions::new().wait_until_cancelled()).await.unwrap();
    assert_eq!(next.release().await, Ok(Released::Released));
    taken.value::<()>().await;
    given.value::<()>().await;
    assert_eq!(lease.release().await, Ok(Released::WasLost));
    assert_eq!(ours.available_permits().await, Ok(1));
}

/// Redis' clock, in milliseconds.
async fn redis_ms(both: &Both) -> u128 {
    let [seconds, micros] = both.env.redis.query::<[u128; 2]>(&["TIME"]).await;
    seconds * 1_000 + micros / 1_000
}

/// Redisson's weak point 20: permits of a dead Java holder are lost, and no client can detect it.
/// Adding permits replaces them.
#[tokio::test]
async fn permits_of_a_java_service_that_dies_are_lost_until_they_are_added() {
    let both = Both::start().await;
    let ours = pool(&both);
    ours.try_set_permits(1, None).await.unwrap();
    let dies = both.another(json!({})).await;
    let dead = dies.thread("a").object(json!({ "kind": "semaphore", "name": NAME }));
    dead.get::<()>("acquire").await;
    drop((dead, dies));
    assert!(ours.try_acquire(1).await.unwrap().is_none());
    assert_eq!(ours.force_release().await, Ok(false));
    let waiting = both.wait_for(ours.permits(1).unwrap()).await;
    ours.add_permits(1).await.unwrap();
    waiting.await.unwrap().release().await.unwrap();
}

/// Redisson's weak point 20: its `addPermits` and `drainPermits` remove the semaphore's expiry;
/// edgelatch's calls keep it.
#[tokio::test]
async fn our_calls_keep_the_expiry_of_a_semaphore_and_java_s_remove_it() {
    let both = Both::start().await;
    let (ours, java) = (pool(&both), java(&both, "a"));
    for (change, arguments) in [("addPermits", json!([1])), ("drainPermits", json!([]))] {
        assert!(ours.try_set_permits(3, Some(Duration::from_secs(600))).await.unwrap());
        ours.add_permits(2).await.unwrap();
        ours.drain_permits().await.unwrap();
        ours.release(1).await.unwrap();
        ours.acquire(1).await.unwrap().release().await.unwrap();
        assert!(both.pttl().await > 500_000);
        java.get::<()>("acquire").await;
        java.get::<()>("release").await;
        assert!(both.pttl().await > 500_000);
        java.call(change, arguments).value::<Value>().await;
        assert_eq!(both.pttl().await, -1);
        both.env.redis.query::<u64>(&["DEL", NAME]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_sides_contend_and_no_more_are_inside_than_there_are_permits() {
    let both = Both::start().await;
    let ours = pool(&both);
    ours.try_set_permits(2, None).await.unwrap();
    let contest = Contest {
        java: json!({ "kind": "semaphore", "name": NAME }),
        take: "acquire",
        give: json!({ "method": "release", "args": [] }),
        contenders: 3,
        gauge: "inside",
        most: 2,
        without: None,
        counter: None,
    };
    let permit = || both.direct_client().semaphore(NAME).unwrap().permits(1).unwrap();
    contest.run(&both, permit).await;
    assert_eq!(ours.available_permits().await, Ok(2));
    assert_eq!(ours.inspect().await.unwrap().leases, 0);
}
