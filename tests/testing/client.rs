//! Clients of a gateway in memory: locks, waits and streams in Tokio's paused clock.

use std::time::Duration;

use edgelatch::AcquireOptions;
use edgelatch::client::{GuardedWrite, LeaseState, UserScript};
use edgelatch::error::{EvalError, GuardError};
use edgelatch::testing::{HoldOptions, TestGateway};
use edgelatch::timing::GuardMemory;
use tokio::time::Instant;

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test(start_paused = true)]
async fn clients_of_one_gateway_exclude_each_other() {
    let gateway = TestGateway::new();
    let (lock, same) =
        (gateway.client().lock("report").unwrap(), gateway.client().lock("report").unwrap());
    let lease = lock.try_acquire().await.unwrap().unwrap();
    assert!(same.try_acquire().await.unwrap().is_none());
    lease.release().await.unwrap();
    let next = same.try_acquire().await.unwrap().unwrap();
    assert!(next.token() > lease.token());
}

#[tokio::test(start_paused = true)]
async fn a_release_wakes_a_waiter_by_its_stream() {
    let gateway = TestGateway::new();
    let lock = gateway.client().lock("report").unwrap();
    let other = gateway.hold("report", HoldOptions::default()).unwrap();
    let began_at = Instant::now();
    let release = async {
        tokio::time::sleep(Duration::from_secs(4)).await;
        assert!(other.release());
    };
    let (lease, ()) = tokio::join!(lock.acquire(), release);
    // By virtual time: without a stream, the waiter would sleep until its next poll.
    assert!(began_at.elapsed() < Duration::from_secs(5));
    assert!(lease.unwrap().remaining() > Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_waiter_gets_the_lock_when_the_lease_of_another_client_ends() {
    let gateway = TestGateway::new();
    let lock = gateway.client().lock("report").unwrap();
    let options = HoldOptions { lease: Duration::from_secs(20), ..HoldOptions::default() };
    let other = gateway.hold("report", options).unwrap();
    let lease = lock.acquire().await.unwrap();
    assert!(lease.token() > other.token());
    assert!(!other.release());
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_renewed_while_work_runs() {
    let gateway = TestGateway::new();
    let lock = gateway.client().lock("report").unwrap();
    let held = lock.run(async |_| {
        tokio::time::sleep(10 * MINUTE).await;
        gateway.held().len()
    });
    assert_eq!(held.await.unwrap(), 1);
    assert!(gateway.held().is_empty());
}

#[tokio::test(start_paused = true)]
async fn calls_of_one_turn_share_a_request() {
    let gateway = TestGateway::new();
    let client = gateway.client();
    let [one, two] = ["one", "two"].map(|name| client.lock(name).unwrap());
    // A refusal concerns a whole request: both calls are refused, and both retry.
    gateway.refuse(1);
    let (one, two) = tokio::join!(one.acquire(), two.acquire());
    assert!(one.is_ok() && two.is_ok());
    assert_eq!(gateway.held().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn several_gateways_make_a_red_lock() {
    let gateways = ["a.test", "b.test", "c.test"].map(TestGateway::with_host);
    let clients = gateways.each_ref().map(TestGateway::client);
    gateways[2].set_down(true);
    let locks = clients.each_ref().map(|client| client.lock("report").unwrap());
    let lock = clients[0].red_lock(locks).unwrap();
    let lease = lock.acquire().await.unwrap();
    let held = gateways.each_ref().map(|gateway| gateway.held().len());
    assert_eq!(held, [1, 1, 0]);
    lease.release().await.unwrap();
    assert!(gateways.iter().all(|gateway| gateway.held().is_empty()));
}

#[tokio::test(start_paused = true)]
async fn a_lease_waits_for_as_many_replicas_as_it_requires() {
    let gateway = TestGateway::new();
    let lock = gateway.client().lock("report").unwrap();
    let lease = lock.acquire_with(AcquireOptions::new().replicas(2)).await.unwrap();
    assert_eq!(lease.state(), LeaseState::Held);
}

#[tokio::test(start_paused = true)]
async fn a_guard_refuses_the_write_of_an_older_lease() {
    let gateway = TestGateway::new();
    let client = gateway.client();
    let lock = client.lock("report").unwrap();
    let guard = client.guard("report:total", GuardMemory::DEFAULT).unwrap();
    let set = |value: &str| GuardedWrite::set(value, None);
    let old = lock.acquire().await.unwrap();
    guard.write(&old, None, &set("1")).await.unwrap();
    assert!(gateway.expire("report"));
    let new = gateway.client().lock("report").unwrap().acquire().await.unwrap();
    guard.write(&new, None, &set("2")).await.unwrap();
    let error = guard.write(&old, None, &set("3")).await.unwrap_err();
    assert!(matches!(error.kind, GuardError::Stale { .. }), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn a_script_of_the_caller_fails_with_the_reason() {
    let gateway = TestGateway::new();
    let lease = gateway.client().lock("report").unwrap().acquire().await.unwrap();
    let script = UserScript::new("return 1", Vec::new(), Vec::new()).unwrap();
    let error = lease.eval(&script).await.unwrap_err();
    assert!(matches!(error.kind, EvalError::ScriptFailed(_)), "{error:?}");
    assert!(error.to_string().contains("runs no Lua"), "{error}");
}
