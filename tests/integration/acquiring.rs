//! Acquires a lock, releases it, and waits for it.

use std::future::ready;
use std::time::Duration;

use edgelatch::Error;
use edgelatch::client::{AcquireOptions, Released};
use edgelatch::error::AcquireError;

use test_support::faults::{Fault, no_script};
use test_support::test_env::TestEnv;

#[tokio::test]
async fn a_free_lock_costs_one_request_to_acquire_and_one_to_release() {
    let env = TestEnv::new().await;
    let lock = env.client().lock("job").unwrap();
    let lease = lock.acquire().await.unwrap();
    assert_eq!(env.proxy.calls().len(), 1);
    assert_eq!((lease.name().as_str(), lease.hold_count()), ("job", 1));
    assert!(lease.remaining() > Duration::from_secs(20));
    assert_eq!(lease.release().await, Ok(Released::Released));
    assert_eq!(env.proxy.calls().len(), 2);
    env.assert_nothing_is_held("released").await;
}

/// S61.
#[tokio::test]
async fn a_redis_without_scripts_costs_one_request_more_once() {
    let env = TestEnv::with(|seen| match (seen.words[0].as_str(), seen.number) {
        ("EVALSHA", 1) => Fault::not_executed(no_script()),
        _ => Fault::none(),
    })
    .await;
    let lock = env.client().lock("job").unwrap();
    for _ in 0..2 {
        lock.acquire().await.unwrap().release().await.unwrap();
    }
    let sent: Vec<String> =
        env.proxy.calls().into_iter().map(|call| call.words[0].clone()).collect();
    assert_eq!(sent, ["EVALSHA", "EVAL", "EVAL", "EVALSHA", "EVALSHA"]);
}

/// S61.
#[tokio::test]
async fn an_unknown_script_costs_no_request_more_through_our_gateway() {
    let env = TestEnv::new().await;
    env.redis.query::<String>(&["SCRIPT", "FLUSH"]).await;
    env.client().lock("job").unwrap().acquire().await.unwrap().release().await.unwrap();
    assert_eq!(env.proxy.calls().len(), 2);
}

#[tokio::test]
async fn a_held_lock_is_tried_for_in_one_request() {
    let env = TestEnv::new().await;
    let held = env.client().lock("job").unwrap().acquire().await.unwrap();
    env.proxy.plan(|_| Fault::none());
    assert!(env.client().lock("job").unwrap().try_acquire().await.unwrap().is_none());
    assert_eq!(env.proxy.calls().len(), 1);
    held.release().await.unwrap();
    let lease = env.client().lock("job").unwrap().try_acquire().await.unwrap();
    assert_eq!(lease.unwrap().release().await, Ok(Released::Released));
}

#[tokio::test]
async fn a_waiter_gets_the_lock_when_it_is_released() {
    let env = TestEnv::new().await;
    let held = env.client().lock("job").unwrap().acquire().await.unwrap();
    let lock = env.client().lock("job").unwrap();
    let options = AcquireOptions::new().max_requests(10_000);
    let waiter = tokio::spawn(async move { lock.acquire_with(options).await });
    // The waiter has been refused at least twice.
    test_support::test_env::until(async || env.proxy.count("lock_acquire") > 2).await;
    assert!(!waiter.is_finished());
    held.release().await.unwrap();
    let lease = waiter.await.unwrap().unwrap();
    assert!(lease.token() > held.token());
    lease.release().await.unwrap();
}

#[tokio::test]
async fn a_wait_that_is_over_is_busy_and_leaves_only_a_tombstone() {
    let env = TestEnv::new().await;
    let held = env.client().lock("job").unwrap().acquire().await.unwrap();
    let (client, host) = env.virtual_client();
    let lock = client.lock("job").unwrap();
    let options = AcquireOptions::new().wait(Duration::from_millis(100));
    let waited = env.in_virtual_time(&host, lock.acquire_with(options)).await;
    let error = waited.unwrap_err();
    let AcquireError::Busy { remaining: Some(remaining) } = error.kind else { panic!("{error:?}") };
    assert!(remaining <= Duration::from_secs(30));
    assert_eq!(held.release().await, Ok(Released::Released));
    env.assert_nothing_is_held("over").await;
}

#[tokio::test]
async fn a_wait_stays_within_its_budget() {
    let env = TestEnv::new().await;
    let held = env.client().lock("job").unwrap().acquire().await.unwrap();
    env.proxy.plan(|_| Fault::none());
    let (client, host) = env.virtual_client();
    let lock = client.lock("job").unwrap();
    let options = AcquireOptions::new().wait(Duration::from_millis(400)).max_requests(3);
    let waited = env.in_virtual_time(&host, lock.acquire_with(options)).await;
    assert!(matches!(waited, Err(Error { kind: AcquireError::Busy { .. }, .. })), "{waited:?}");
    assert!(env.proxy.calls().len() <= 3);
    held.release().await.unwrap();
}

#[tokio::test]
async fn a_wait_that_is_cancelled_leaves_nothing() {
    let env = TestEnv::new().await;
    let held = env.client().lock("job").unwrap().acquire().await.unwrap();
    let lock = env.client().lock("job").unwrap();
    let asked = async {
        while env.proxy.count("lock_acquire") < 3 {
            tokio::task::yield_now().await;
        }
    };
    let options = AcquireOptions::new().wait_until_cancelled();
    let error = lock.acquire_cancellable(options, asked).await.unwrap_err();
    assert_eq!(error, AcquireError::Cancelled { held_at_most: None });
    held.release().await.unwrap();
    env.assert_nothing_is_held("cancelled").await;
}

#[tokio::test]
async fn an_acquisition_cancelled_before_its_start_sends_no_grantable_request() {
    let env = TestEnv::new().await;
    let lock = env.client().lock("job").unwrap();
    let error = lock.acquire_cancellable(AcquireOptions::new(), ready(())).await.unwrap_err();
    assert_eq!(error, AcquireError::Cancelled { held_at_most: None });
    env.assert_nothing_is_held("cancelled").await;
}

#[tokio::test]
async fn a_hold_of_java_is_waited_for() {
    let env = TestEnv::new().await;
    env.redis.query::<u64>(&["HSET", "job", "8743c9c0-0795-4907-87fd-6c719a6b4586:1", "2"]).await;
    let lock = env.client().lock("job").unwrap();
    assert_eq!(lock.inspect().await.unwrap().hold_count, 2);
    env.redis.query::<u64>(&["PEXPIRE", "job", "300"]).await;
    let lease = lock.acquire().await.unwrap();
    assert_eq!(env.redis.query::<Vec<String>>(&["HVALS", "job"]).await, ["1"]);
    lease.release().await.unwrap();
}

#[tokio::test]
async fn locks_of_other_names_do_not_wait_for_each_other() {
    let env = TestEnv::new().await;
    let client = env.client();
    let mut leases = Vec::new();
    for name in ["a", "b", "{tag}:c", "é/?#% \"", "x/../../flushall"] {
        leases.push(client.lock(name).unwrap().try_acquire().await.unwrap().unwrap());
        assert_eq!(env.redis.query::<u64>(&["EXISTS", name]).await, 1, "{name}");
    }
    for lease in leases {
        assert_eq!(lease.release().await, Ok(Released::Released));
    }
    env.assert_nothing_is_held("names").await;
}
