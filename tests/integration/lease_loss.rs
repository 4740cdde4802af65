//! How a holder is notified that the lock is lost.

use std::time::Duration;

use edgelatch::client::{AcquireOptions, GuardedWrite, LeaseEnd, LeaseState, Released, RunError};
use edgelatch::error::{GuardError, LossReason, RequestError};
use edgelatch::timing::GuardMemory;

use test_support::faults::{Fault, FaultResponse};
use test_support::test_env::{TestEnv, until, until_in_virtual_time};

const THIRD: Duration = Duration::from_secs(10);

/// S26, S64.
#[tokio::test]
async fn a_hold_that_is_gone_is_found_out_by_the_next_renewal() {
    let env = TestEnv::new().await;
    let (client, host) = env.virtual_client();
    let lease = client.lock("job").unwrap().acquire().await.unwrap();
    let lost = tokio::spawn(lease.lost());
    env.redis.query::<u64>(&["DEL", "job"]).await;
    host.pass(THIRD);
    assert_eq!(lease.keep().await, LeaseEnd::Lost(LossReason::Gone));
    assert_eq!(lost.await.unwrap(), LossReason::Gone);
    assert_eq!(lease.state(), LeaseState::Lost(LossReason::Gone));
    assert!(lease.remaining().is_zero());
    assert_eq!(lease.release().await, Ok(Released::WasLost));
    env.assert_nothing_is_held("gone").await;
}

/// S62, S68.
#[tokio::test]
async fn a_redis_that_lost_its_data_grants_a_newer_token_and_the_older_holder_is_notified() {
    for restarts in [true, false] {
        let mut env = TestEnv::new().await;
        let (client, host) = env.virtual_client();
        let lease = client.lock("job").unwrap().acquire().await.unwrap();
        let kept = tokio::spawn(lease.keep());
        if restarts {
            env.crash().await;
        } else {
            env.redis.query::<String>(&["FLUSHALL"]).await;
        }
        let next = env.client().lock("job").unwrap().acquire().await.unwrap();
        assert!(next.token() > lease.token());
        host.pass(THIRD);
        until_in_virtual_time(&env, &host, THIRD, || kept.is_finished()).await;
        assert_eq!(kept.await.unwrap(), LeaseEnd::Lost(LossReason::Gone));
        assert_eq!(lease.release().await, Ok(Released::WasLost));
        assert_eq!(next.is_held().await, Ok(true));
        assert_eq!(next.release().await, Ok(Released::Released));
        env.assert_nothing_is_held("without its data").await;
    }
}

/// S26.
#[tokio::test]
async fn a_holder_from_before_a_jump_of_redis_clock_is_fenced_and_notified() {
    let env = TestEnv::new().await;
    let (client, host) = env.virtual_client();
    let lease = client.lock("job").unwrap().acquire().await.unwrap();
    client
        .guard("total", GuardMemory::DEFAULT)
        .unwrap()
        .write(&lease, None, &GuardedWrite::claim())
        .await
        .unwrap();
    let kept = tokio::spawn(lease.keep());
    env.proxy.set_clocks(|clocks| clocks.time = 40);
    // As Redis does with a key that has expired by its clock.
    env.redis.query::<u64>(&["DEL", "job"]).await;
    let there = env.client();
    let next = there.lock("job").unwrap().acquire().await.unwrap();
    assert!(next.token() > lease.token());
    let guard = there.guard("total", GuardMemory::DEFAULT).unwrap();
    guard.write(&next, None, &GuardedWrite::claim()).await.unwrap();
    let refused = client.guard("total", GuardMemory::DEFAULT).unwrap();
    let refused = refused.write(&lease, None, &GuardedWrite::claim()).await.unwrap_err();
    assert_eq!(refused, GuardError::Stale { newest: next.token().as_u64() });
    assert_eq!(lease.state(), LeaseState::Held);
    // The first renewal comes after its bound by that clock, and receives the current time.
    host.pass(THIRD);
    until_in_virtual_time(&env, &host, Duration::from_millis(10), || kept.is_finished()).await;
    assert_eq!(kept.await.unwrap(), LeaseEnd::Lost(LossReason::Gone));
    assert!(env.proxy.count("lock_renew") <= 2);
    assert_eq!(next.release().await, Ok(Released::Released));
}

/// S27.
#[tokio::test]
async fn tokens_rise_by_one_while_redis_clock_is_behind_and_a_hold_continues() {
    let env = TestEnv::new().await;
    let lock = env.client().lock("job").unwrap();
    let lease = lock.acquire().await.unwrap();
    env.proxy.set_clocks(|clocks| clocks.time = -600);
    assert_eq!(lease.renew(None).await, Ok(()));
    let mut token = lease.token().as_u64();
    assert_eq!(lease.release().await, Ok(Released::Released));
    for _ in 0..3 {
        let next = env.client().lock("job").unwrap().acquire().await.unwrap();
        assert_eq!(next.token().as_u64(), token + 1);
        token += 1;
        assert_eq!(next.release().await, Ok(Released::Released));
    }
    env.assert_nothing_is_held("set back").await;
}

/// S25.
#[tokio::test]
async fn a_query_reports_that_a_hold_is_gone() {
    let env = TestEnv::new().await;
    let lock = env.client().lock("job").unwrap();
    let lease = lock.acquire().await.unwrap();
    env.redis.query::<u64>(&["DEL", "job"]).await;
    assert_eq!(lease.is_held().await, Ok(false));
    assert_eq!(lease.lost().await, LossReason::Gone);

    let lease = lock.acquire().await.unwrap();
    env.redis.query::<u64>(&["DEL", "job"]).await;
    assert_eq!(lease.renew(None).await.unwrap_err(), RequestError::Lost(LossReason::Gone));
    assert_eq!(lease.keep().await, LeaseEnd::Lost(LossReason::Gone));

    let lease = lock.acquire().await.unwrap();
    env.redis.query::<u64>(&["DEL", "job"]).await;
    assert_eq!(lease.release().await, Ok(Released::WasLost));
    assert_eq!(lease.state(), LeaseState::Lost(LossReason::Gone));
}

/// S71.
#[tokio::test]
async fn a_hold_that_was_ended_by_force_is_lost() {
    let env = TestEnv::new().await;
    let lock = env.client().lock("job").unwrap();
    let lease = lock.acquire().await.unwrap();
    let other = env.client().lock("job").unwrap();
    assert_eq!(other.force_release().await, Ok(true));
    assert_eq!(other.force_release().await, Ok(false));
    assert_eq!(lease.is_held().await, Ok(false));
    assert_eq!(lease.release().await, Ok(Released::WasLost));
}

/// S39.
#[tokio::test]
async fn a_lease_that_is_not_renewed_is_lost_when_it_expires() {
    let env = TestEnv::new().await;
    let (client, host) = env.virtual_client();
    let options = AcquireOptions::new().lease(Duration::from_millis(100));
    let lease = client.lock("job").unwrap().acquire_with(options).await.unwrap();
    let lost = tokio::spawn(lease.lost());
    host.pass(Duration::from_millis(96));
    assert_eq!(lease.remaining(), Duration::from_millis(1));
    host.pass(Duration::from_millis(1));
    assert_eq!(lost.await.unwrap(), LossReason::Expired);
    assert!(lease.remaining().is_zero());
    assert_eq!(lease.renew(None).await.unwrap_err(), RequestError::Lost(LossReason::Expired));
}

/// S55.
#[tokio::test]
async fn a_loss_is_noticed_in_time_although_the_gateway_is_silent() {
    for response in [FaultResponse::Silence, FaultResponse::Bytes(Vec::new())] {
        let env = TestEnv::new().await;
        let (client, host) = env.virtual_client();
        let lease = client.lock("job").unwrap().acquire().await.unwrap();
        env.proxy.plan(move |_| Fault::not_executed(response.clone()));
        let (kept, lost) = (tokio::spawn(lease.keep()), tokio::spawn(lease.lost()));
        host.pass(THIRD);
        until(async || env.proxy.count("lock_renew") >= 1).await;
        assert!(!lease.remaining().is_zero());
        host.pass(THIRD * 2);
        assert_eq!(kept.await.unwrap(), LeaseEnd::Lost(LossReason::Expired));
        assert_eq!(lost.await.unwrap(), LossReason::Expired);
        assert!(env.proxy.count("lock_renew") >= 1);
        drop(lease);
    }
}

#[tokio::test]
async fn run_returns_the_loss_together_with_the_work_s_result() {
    let env = TestEnv::new().await;
    let lock = env.client().lock("job").unwrap();
    let outcome = lock
        .run(async |lease| {
            env.redis.query::<u64>(&["DEL", "job"]).await;
            lease.is_held().await.unwrap();
            7
        })
        .await;
    assert!(matches!(outcome, Err(RunError::Lost { result: 7, .. })), "{outcome:?}");
    env.assert_nothing_is_held("run").await;
}

/// S83.
#[tokio::test]
async fn run_reports_a_loss_while_its_work_runs() {
    let env = TestEnv::new().await;
    let (client, host) = env.virtual_client();
    let lock = client.lock("job").unwrap();
    let outcome = lock
        .run(async |lease| {
            env.redis.query::<u64>(&["DEL", "job"]).await;
            host.pass(THIRD);
            lease.lost().await
        })
        .await;
    assert!(matches!(outcome, Err(RunError::Lost { result: LossReason::Gone, .. })), "{outcome:?}");
}

#[tokio::test]
async fn run_does_not_begin_the_work_without_the_lock() {
    let env = TestEnv::new().await;
    let held = env.client().lock("job").unwrap().acquire().await.unwrap();
    let options = AcquireOptions::new().wait(Duration::from_millis(20));
    let lock = env.client().lock("job").unwrap();
    let outcome = lock.run_with(options, async |_| panic!("it is held")).await;
    assert!(matches!(outcome, Err(RunError::Acquire(_))));
    held.release().await.unwrap();
}
