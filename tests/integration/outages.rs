//! A hold while its gateway is down. The holder's time stands still.

use std::time::Duration;

use edgelatch::Error;
use edgelatch::client::{LeaseEnd, LeaseState, Released};
use edgelatch::error::{AcquireError, LossReason, RefusalKind, ReleaseError};

use test_support::faults::{Fault, FaultResponse, json};
use test_support::test_env::{TestEnv, until, until_in_virtual_time};

const THIRD: Duration = Duration::from_secs(10);
const STEP: Duration = Duration::from_millis(20);

/// S55.
#[tokio::test]
async fn a_hold_outlives_a_gateway_that_comes_back_before_its_end() {
    let env = TestEnv::with(|seen| match (seen.script, seen.number) {
        ("lock_renew", 1..=6) => Fault::not_executed(FaultResponse::Bytes(Vec::new())),
        _ => Fault::none(),
    })
    .await;
    let (client, host) = env.virtual_client();
    let lease = client.lock("job").unwrap().acquire().await.unwrap();
    let kept = tokio::spawn(lease.keep());
    host.pass(THIRD);
    until(async || lease.state() == LeaseState::Unknown).await;
    assert!(lease.remaining() < THIRD * 2);
    until_in_virtual_time(&env, &host, STEP, || lease.state() == LeaseState::Renewed).await;
    assert_eq!(env.proxy.count("lock_renew"), 7);
    assert!(lease.remaining() > THIRD * 2);
    // The holder goes on: after a third of the lease it renews as usual.
    host.pass(THIRD);
    until(async || env.proxy.count("lock_renew") == 8).await;
    assert_eq!(lease.release().await, Ok(Released::Released));
    assert_eq!(kept.await.unwrap(), LeaseEnd::Released);
    env.assert_nothing_is_held("back").await;
}

/// S45.
#[tokio::test]
async fn a_token_that_is_no_longer_accepted_costs_the_hold_and_few_requests() {
    let env = TestEnv::with(|seen| match (seen.script, seen.number) {
        ("lock_renew", 3..) => Fault::not_executed(json(401, r#"{"error":"Unauthorized"}"#)),
        _ => Fault::none(),
    })
    .await;
    let (client, host) = env.virtual_client();
    let lease = client.lock("job").unwrap().acquire().await.unwrap();
    let kept = tokio::spawn(lease.keep());
    for number in 1..=2 {
        host.pass(THIRD);
        until(async || env.proxy.count("lock_renew") == number).await;
        until(async || lease.remaining() > THIRD * 2).await;
    }
    host.pass(THIRD);
    until(async || lease.state() == LeaseState::Unknown).await;
    until_in_virtual_time(&env, &host, STEP, || kept.is_finished()).await;
    assert_eq!(kept.await.unwrap(), LeaseEnd::Lost(LossReason::Expired));
    // About once a second on average, in twenty seconds.
    let refused = env.proxy.count("lock_renew") - 2;
    assert!((5..=60).contains(&refused), "{refused}");
}

/// S14.
#[tokio::test]
async fn a_hold_whose_release_never_arrives_is_not_renewed() {
    let env = TestEnv::with(|seen| match seen.script {
        "lock_release" => Fault::not_executed(FaultResponse::Bytes(Vec::new())),
        _ => Fault::none(),
    })
    .await;
    let (client, host) = env.virtual_client();
    let lease = client.lock("job").unwrap().acquire().await.unwrap();
    let kept = tokio::spawn(lease.keep());
    host.pass(THIRD);
    until(async || lease.state() == LeaseState::Renewed).await;
    let released = tokio::spawn(async move { (lease.release().await, lease) });
    until_in_virtual_time(&env, &host, STEP, || released.is_finished()).await;
    let (outcome, lease) = released.await.unwrap();
    assert!(
        matches!(outcome, Err(Error { kind: ReleaseError::Unknown { .. }, .. })),
        "{outcome:?}"
    );
    assert_eq!(kept.await.unwrap(), LeaseEnd::Released);
    let mut looks = 0;
    until_in_virtual_time(&env, &host, THIRD, || {
        looks += 1;
        looks > 1_000
    })
    .await;
    assert_eq!((env.proxy.count("lock_renew"), env.proxy.count("lock_release")), (1, 5));
    // The hold still exists, and expires by itself.
    assert!(env.redis.query::<i64>(&["PTTL", "job"]).await > 0);
    drop(lease);
}

/// S66.
#[tokio::test]
async fn in_a_redis_that_is_full_what_is_held_is_renewed_and_released() {
    let env = TestEnv::new().await;
    let job = env.client().lock("job").unwrap();
    let lease = job.acquire().await.unwrap();
    env.redis.fill().await;
    lease.renew(None).await.unwrap();
    assert_eq!(lease.release().await, Ok(Released::Released));
    env.assert_nothing_is_held("full").await;
    match job.acquire().await.unwrap_err().kind {
        AcquireError::Refused(refusal) => assert_eq!(refusal.kind(), RefusalKind::OutOfMemory),
        other => panic!("{other:?}"),
    }
}
