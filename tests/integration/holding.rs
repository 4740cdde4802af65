//! Operations and queries of a holder.

use std::time::Duration;

use edgelatch::client::{AcquireOptions, Lease, LeaseEnd, LeaseState, Released};
use edgelatch::error::{LossReason, RequestError};
use edgelatch::transport::Reqwest;

use test_support::fake_host::FakeHost;
use test_support::faults::Fault;
use test_support::test_env::{NativeClient, TestEnv, until};

fn is_send<T: Send>(value: T) -> T {
    value
}

#[tokio::test]
async fn every_future_may_move_between_threads() {
    fn is_send_and_sync<T: Send + Sync>() {}
    is_send_and_sync::<NativeClient>();
    let env = TestEnv::new().await;
    let client = env.client();
    let lock = client.lock("job").unwrap();
    let owner = client.owner();
    let reentrant = owner.lock("other").unwrap();
    let lease = is_send(lock.acquire()).await.unwrap();
    is_send(reentrant.acquire()).await.unwrap().release().await.unwrap();
    assert!(is_send(lock.try_acquire()).await.unwrap().is_none());
    assert!(is_send(lock.inspect()).await.unwrap().is_locked);
    is_send(lease.renew(None)).await.unwrap();
    assert!(is_send(lease.is_held()).await.unwrap());
    drop((is_send(lease.keep()), is_send(lease.lost())));
    is_send(lease.release()).await.unwrap();
    assert!(!is_send(lock.force_release()).await.unwrap());
    let never = std::future::pending();
    let cancellable = lock.acquire_cancellable(AcquireOptions::new(), never);
    is_send(cancellable).await.unwrap().release().await.unwrap();
}

/// The remaining time of a fresh lease of 30 s, less the allowance for drift.
const FRESH: Duration = Duration::from_millis(29_698);
const THIRD: Duration = Duration::from_secs(10);

#[tokio::test]
async fn a_kept_hold_is_renewed_at_every_third_until_it_is_released() {
    let env = TestEnv::new().await;
    let (client, host) = env.virtual_client();
    let lease = client.lock("job").unwrap().acquire().await.unwrap();
    assert_eq!((lease.remaining(), lease.state()), (FRESH, LeaseState::Held));
    let kept = tokio::spawn(lease.keep());
    for renewals in 1..=4 {
        host.pass(THIRD);
        until(async || lease.remaining() == FRESH).await;
        assert_eq!(lease.state(), LeaseState::Renewed);
        assert_eq!(env.proxy.count("lock_renew"), renewals);
    }
    assert_eq!(lease.release().await, Ok(Released::Released));
    assert_eq!(kept.await.unwrap(), LeaseEnd::Released);
    assert!(lease.remaining().is_zero());
    env.assert_nothing_is_held("kept").await;
}

#[tokio::test]
async fn a_fixed_lease_is_not_renewed() {
    let env = TestEnv::new().await;
    let (client, host) = env.virtual_client();
    let options = AcquireOptions::new().lease(Duration::from_secs(20));
    let lease = client.lock("job").unwrap().acquire_with(options).await.unwrap();
    let kept = tokio::spawn(lease.keep());
    for _ in 0..20 {
        host.pass(Duration::from_secs(1));
        tokio::task::yield_now().await;
    }
    assert_eq!(kept.await.unwrap(), LeaseEnd::Lost(LossReason::Expired));
    assert_eq!(env.proxy.count("lock_renew"), 0);
}

#[tokio::test]
async fn run_renews_beside_the_work_and_releases_after_it() {
    let env = TestEnv::new().await;
    let (client, host) = env.virtual_client();
    let work = async |lease: &Lease<Reqwest, FakeHost>| {
        for _ in 0..4 {
            host.pass(THIRD);
            until(async || lease.remaining() == FRESH).await;
        }
        env.proxy.count("lock_renew")
    };
    assert_eq!(client.lock("job").unwrap().run(work).await.unwrap(), 4);
    env.assert_nothing_is_held("run").await;
}

/// S10, S28.
#[tokio::test]
async fn a_renewal_on_demand_prolongs_and_never_shortens() {
    let env = TestEnv::new().await;
    let options = AcquireOptions::new().lease(Duration::from_secs(60));
    let lease = env.client().lock("job").unwrap().acquire_with(options).await.unwrap();
    lease.renew(Some(Duration::from_secs(600))).await.unwrap();
    assert!(lease.remaining() > Duration::from_secs(500));
    lease.renew(Some(Duration::from_secs(1))).await.unwrap();
    assert!(lease.remaining() > Duration::from_secs(500));
    let left: u64 = env.redis.query(&["PTTL", "job"]).await;
    assert!(left > 500_000);
    lease.release().await.unwrap();
    let gone = lease.renew(None).await.unwrap_err();
    assert_eq!(gone, RequestError::Lost(LossReason::Gone));
}

/// S80.
#[tokio::test]
async fn a_repeated_release_sends_one_request_and_has_one_result() {
    let env = TestEnv::new().await;
    let lease = env.client().lock("job").unwrap().acquire().await.unwrap();
    let (first, second) = tokio::join!(lease.release(), lease.release());
    assert_eq!((first, second), (Ok(Released::Released), Ok(Released::Released)));
    assert_eq!(lease.release().await, Ok(Released::Released));
    assert_eq!(env.proxy.count("lock_release"), 1);
}

/// S82.
#[tokio::test]
async fn a_lease_that_is_dropped_is_no_longer_renewed_and_watched_to_its_end() {
    let env = TestEnv::new().await;
    let (client, host) = env.virtual_client();
    let lease = client.lock("job").unwrap().acquire().await.unwrap();
    let kept = tokio::spawn(lease.keep());
    host.pass(THIRD);
    until(async || lease.remaining() == FRESH).await;
    drop(lease);
    for _ in 0..40 {
        host.pass(Duration::from_secs(1));
        tokio::task::yield_now().await;
    }
    assert_eq!(kept.await.unwrap(), LeaseEnd::Lost(LossReason::Expired));
    assert_eq!(env.proxy.count("lock_renew"), 1);
    assert_eq!(env.proxy.count("lock_release"), 0);
    assert_eq!(env.redis.query::<u64>(&["EXISTS", "job"]).await, 1);
}

#[tokio::test]
async fn the_state_of_a_lock_is_returned() {
    let env = TestEnv::new().await;
    let lock = env.client().lock("job").unwrap();
    let free = lock.inspect().await.unwrap();
    assert_eq!((free.is_locked, free.hold_count, free.remaining), (false, 0, None));
    assert_eq!((free.last_token, free.is_held), (0, false));
    let lease = lock.acquire().await.unwrap();
    let held = lock.inspect().await.unwrap();
    assert!(held.is_locked && held.remaining.is_some_and(|left| left <= Duration::from_secs(30)));
    assert_eq!((held.hold_count, held.last_token), (1, lease.token().as_u64()));
    assert_eq!(lease.is_held().await, Ok(true));
    lease.release().await.unwrap();
    let ended = lock.inspect().await.unwrap();
    assert_eq!((ended.is_locked, ended.last_token), (false, lease.token().as_u64()));
}

/// S86.
#[tokio::test]
async fn a_dropped_client_leaves_nothing_running() {
    let env = TestEnv::new().await;
    let before = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let (client, host) = env.virtual_client();
    let lease = client.lock("job").unwrap().acquire().await.unwrap();
    let kept = tokio::spawn(lease.keep());
    host.pass(THIRD);
    until(async || lease.remaining() == FRESH).await;
    lease.release().await.unwrap();
    kept.await.unwrap();
    drop((client, lease));
    env.proxy.plan(|_| Fault::none());
    // The remaining tasks belong to the gateway and the connections, and end by themselves.
    let metrics = tokio::runtime::Handle::current().metrics();
    until(async || metrics.num_alive_tasks() <= before).await;
    assert!(env.proxy.calls().is_empty());
}
