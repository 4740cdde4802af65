//! The behaviour that is specific to each kind of lock.

use std::time::Duration;

use edgelatch::Error;
use edgelatch::client::{AcquireOptions, FairSettings, Lock, Released, SpinBackoff};
use edgelatch::error::AcquireError;
use edgelatch::host::TokioHost;
use edgelatch::timing::PeerSkew;
use edgelatch::transport::Reqwest;
use tokio::task::JoinSet;

use test_support::redis::Redis;
use test_support::test_env::{NativeClient, TestEnv, until};
use test_support::webdis::Webdis;

type NativeLock = Lock<Reqwest, TokioHost>;

/// One lock of each kind that excludes all other clients.
fn kinds(client: &NativeClient) -> [(&'static str, NativeLock); 9] {
    let fair = FairSettings::default();
    let group = client.group_lock("group", ["one", "two"], PeerSkew::DEFAULT);
    let read_write = client.read_write_lock("shelf", Default::default()).unwrap();
    [
        ("lock", client.lock("job").unwrap()),
        ("non-reentrant", client.non_reentrant_lock("job").unwrap()),
        ("spin", client.spin_lock("job", SpinBackoff::default()).unwrap()),
        ("constant spin", client.spin_lock("job", SpinBackoff::CONSTANT).unwrap()),
        ("fenced", client.fenced_lock("job").unwrap()),
        ("fair", client.fair_lock("job", fair).unwrap()),
        ("non-reentrant fair", client.non_reentrant_fair_lock("job", fair).unwrap()),
        ("write", read_write.write().clone()),
        ("group", group.unwrap()),
    ]
}

#[tokio::test]
async fn every_kind_is_held_by_one_client_notified_and_released() {
    let env = TestEnv::new().await;
    every_kind_is_held_by_one(&env.client(), &env.client()).await;
}

#[tokio::test]
async fn every_kind_is_held_by_one_over_webdis_too() {
    let redis = Redis::start().await;
    let webdis = Webdis::start(&redis).await;
    let client = || NativeClient::connect(webdis.gateway());
    every_kind_is_held_by_one(&client(), &client()).await;
}

async fn every_kind_is_held_by_one(one: &NativeClient, another: &NativeClient) {
    let (mine, other) = (kinds(one), kinds(another));
    for ((kind, lock), (_, rival)) in mine.iter().zip(&other) {
        let lease = lock.acquire().await.unwrap();
        assert!(rival.try_acquire().await.unwrap().is_none(), "{kind}");
        let state = rival.inspect().await.unwrap();
        assert!(state.is_locked && state.hold_count == 1, "{kind}: {state:?}");
        assert_eq!(state.last_token, lease.token().as_u64(), "{kind}");
        assert!(lease.is_held().await.unwrap(), "{kind}");
        lease.renew(Some(Duration::from_secs(60))).await.unwrap();
        assert!(rival.inspect().await.unwrap().remaining.unwrap().as_secs() > 50, "{kind}");
        let waits = AcquireOptions::new().wait(Duration::from_secs(20));
        let (next, released) = tokio::join!(rival.acquire_with(waits), lease.release());
        assert_eq!(released, Ok(Released::Released), "{kind}");
        let next = next.unwrap();
        assert!(next.token() > lease.token(), "{kind}");
        assert!(lock.force_release().await.unwrap(), "{kind}");
        assert!(!next.is_held().await.unwrap(), "{kind}");
        assert_eq!(next.release().await, Ok(Released::WasLost), "{kind}");
        assert!(!lock.force_release().await.unwrap(), "{kind}");
    }
}

#[tokio::test]
async fn kinds_of_one_name_exclude_each_other() {
    let env = TestEnv::new().await;
    let kinds = kinds(&env.client());
    for (kind, lock) in &kinds[..7] {
        let lease = lock.acquire().await.unwrap();
        for (other, rival) in &kinds[..7] {
            assert!(rival.try_acquire().await.unwrap().is_none(), "{kind} {other}");
        }
        lease.release().await.unwrap();
    }
}

#[tokio::test]
async fn an_owner_acquires_a_non_reentrant_lock_once() {
    let env = TestEnv::new().await;
    let owner = env.client().owner();
    let lock = owner.non_reentrant_lock("job").unwrap();
    let lease = lock.acquire().await.unwrap();
    assert_eq!(lock.acquire().await.unwrap_err(), AcquireError::HeldAlready);
    assert_eq!(lock.try_acquire().await.unwrap_err(), AcquireError::HeldAlready);
    // The re-entrant kind can be acquired again, since it is the same owner.
    let again = owner.fair_lock("job", FairSettings::default()).unwrap().acquire().await.unwrap();
    assert_eq!((again.token(), lease.hold_count()), (lease.token(), 2));
    again.release().await.unwrap();
    lease.release().await.unwrap();
    lock.acquire().await.unwrap().release().await.unwrap();
    env.assert_nothing_is_held("once").await;
}

/// S95.
#[tokio::test]
async fn a_fenced_lock_s_token_stays_and_continues_java_s() {
    let env = TestEnv::new().await;
    let key = "redisson_lock_token:{job}";
    let lock = env.client().fenced_lock("job").unwrap();
    lock.acquire().await.unwrap().release().await.unwrap();
    assert_eq!(env.redis.query::<i64>(&["PTTL", key]).await, -1);
    let far = (1_u64 << 52) + 5;
    env.redis.query::<String>(&["SET", key, &far.to_string()]).await;
    let lease = lock.acquire().await.unwrap();
    assert_eq!(lease.token().as_u64(), far + 1);
    assert_eq!(env.redis.query::<u64>(&["INCR", key]).await, far + 2);
    lease.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fair_lock_serves_in_the_order_of_arrival() {
    let env = TestEnv::new().await;
    let client = env.client();
    let lock = client.fair_lock("job", FairSettings::default()).unwrap();
    let first = lock.acquire().await.unwrap();
    let mut waiters = JoinSet::new();
    for place in 0..8_usize {
        let lock = lock.clone();
        waiters.spawn(async move {
            let options = AcquireOptions::new().wait_until_cancelled();
            let lease = lock.acquire_with(options).await.unwrap();
            let token = lease.token();
            lease.release().await.unwrap();
            (token, place)
        });
        // The next waiter starts once this one is in the queue.
        let queue = "redisson_lock_queue:{job}";
        until(async || env.redis.query::<usize>(&["LLEN", queue]).await == place + 1).await;
    }
    first.release().await.unwrap();
    let mut served = waiters.join_all().await;
    served.sort_unstable();
    let places: Vec<usize> = served.into_iter().map(|(_, place)| place).collect();
    assert_eq!(places, (0..8).collect::<Vec<_>>());
    env.assert_nothing_is_held("fair").await;
}

#[tokio::test]
async fn a_waiter_that_leaves_the_queue_is_removed_at_once() {
    let env = TestEnv::new().await;
    let client = env.client();
    let lock = client.fair_lock("job", FairSettings::default()).unwrap();
    let held = lock.acquire().await.unwrap();
    let queue = "redisson_lock_queue:{job}";
    let queued = until(async || env.redis.query::<usize>(&["LLEN", queue]).await == 1);
    let outcome = lock.acquire_cancellable(AcquireOptions::new(), queued).await.unwrap_err();
    assert_eq!(outcome, AcquireError::Cancelled { held_at_most: None });
    assert_eq!(env.redis.query::<usize>(&["LLEN", queue]).await, 0);
    let (led, host) = env.virtual_client();
    let waits = led.fair_lock("job", FairSettings::default()).unwrap();
    let options = AcquireOptions::new().wait(Duration::from_millis(50));
    let waited = env.in_virtual_time(&host, waits.acquire_with(options)).await;
    assert!(matches!(waited, Err(Error { kind: AcquireError::Busy { .. }, .. })), "{waited:?}");
    assert_eq!(env.redis.query::<usize>(&["LLEN", queue]).await, 0);
    held.release().await.unwrap();
    env.assert_nothing_is_held("left").await;
}

#[tokio::test]
async fn values_of_a_group_that_do_not_meet_are_held_side_by_side() {
    let env = TestEnv::new().await;
    let client = env.client();
    let group = |values: &[&str]| client.group_lock("group", values, PeerSkew::DEFAULT).unwrap();
    let (left, right) = (group(&["a", "b"]), group(&["c"]));
    let (one, two) = (left.acquire().await.unwrap(), right.acquire().await.unwrap());
    assert!(group(&["b", "c"]).try_acquire().await.unwrap().is_none());
    one.release().await.unwrap();
    assert!(group(&["b", "c"]).try_acquire().await.unwrap().is_none());
    two.release().await.unwrap();
    group(&["b", "c"]).acquire().await.unwrap().release().await.unwrap();
    env.assert_nothing_is_held("group").await;
    assert!(client.group_lock("group", Vec::<&str>::new(), PeerSkew::DEFAULT).is_err());
}
