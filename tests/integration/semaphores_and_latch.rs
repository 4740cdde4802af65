//! Semaphores and latches.

use std::time::Duration;

use edgelatch::Error;
use edgelatch::client::{AcquireOptions, Released};
use edgelatch::error::{AcquireError, RequestError};
use edgelatch::name::PermitId;
use edgelatch::timing::PeerSkew;

use test_support::faults::{Fault, FaultResponse};
use test_support::test_env::{TestEnv, until};

#[tokio::test]
async fn permits_are_acquired_and_released_once() {
    let env = TestEnv::new().await;
    let pool = env.client().semaphore("pool").unwrap();
    assert_eq!(pool.available_permits().await, Ok(0));
    assert_eq!(pool.try_acquire(1).await.unwrap_err(), AcquireError::NotSetUp);
    assert_eq!(pool.acquire(1).await.unwrap_err(), AcquireError::NotSetUp);
    assert!(pool.try_set_permits(5, None).await.unwrap());
    assert!(!pool.try_set_permits(7, None).await.unwrap());
    let three = pool.acquire(3).await.unwrap();
    assert!(pool.try_acquire(3).await.unwrap().is_none());
    let two = pool.try_acquire(2).await.unwrap().unwrap();
    assert_eq!(pool.available_permits().await, Ok(0));
    let state = pool.inspect().await.unwrap();
    assert_eq!((state.leases, state.held), (2, 5));
    assert_eq!(three.release().await, Ok(Released::Released));
    assert_eq!(three.release().await, Ok(Released::Released));
    assert_eq!(pool.available_permits().await, Ok(3));
    two.release().await.unwrap();

    assert_eq!(pool.add_permits(2).await, Ok(7));
    assert_eq!(pool.add_permits(-1).await, Ok(6));
    pool.release(1).await.unwrap();
    assert!(pool.release_if_exists(1).await.unwrap());
    assert_eq!(pool.drain_permits().await, Ok(8));
    assert_eq!(pool.drain_permits().await, Ok(0));
    let absent = env.client().semaphore("absent").unwrap();
    assert!(!absent.release_if_exists(1).await.unwrap());
    assert!(pool.permits(0).is_err());
}

/// S29.
#[tokio::test]
async fn a_permit_without_a_lease_has_no_end_and_one_with_a_lease_has() {
    let env = TestEnv::new().await;
    let pool = env.client().semaphore("pool").unwrap();
    pool.try_set_permits(2, None).await.unwrap();
    let endless = pool.acquire(1).await.unwrap();
    assert!(endless.remaining() > Duration::from_secs(365 * 24 * 60 * 60));
    // Redis ends the hold in real time. The holder's time stands still, so that no grant comes too
    // late.
    let (client, host) = env.virtual_client();
    let time = Duration::from_millis(300);
    let permit = client.semaphore("pool").unwrap().permits(1).unwrap();
    let short = permit.acquire_with(AcquireOptions::new().lease(time)).await.unwrap();
    host.pass(time);
    assert_eq!(short.lost().await, edgelatch::error::LossReason::Expired);
    // The next caller gets its permit.
    let waits = AcquireOptions::new().wait(Duration::from_secs(20));
    let next = pool.permits(1).unwrap().acquire_with(waits).await.unwrap();
    assert_eq!(short.release().await, Ok(Released::WasLost));
    assert_eq!(pool.available_permits().await, Ok(0));
    next.release().await.unwrap();
    endless.release().await.unwrap();
    assert_eq!(pool.available_permits().await, Ok(2));
}

#[tokio::test]
async fn a_waiter_acquires_permits_that_another_client_releases() {
    let env = TestEnv::new().await;
    let pool = env.client().semaphore("pool").unwrap();
    pool.try_set_permits(1, None).await.unwrap();
    let held = pool.acquire(1).await.unwrap();
    let (next, released) = tokio::join!(pool.acquire(1), held.release());
    released.unwrap();
    next.unwrap().release().await.unwrap();
    assert_eq!(pool.available_permits().await, Ok(1));
}

#[tokio::test]
async fn permits_are_added_once_by_a_repeated_request() {
    let env = TestEnv::new().await;
    let (client, host) = env.virtual_client_with_timeout(5_000);
    let pool = client.semaphore("pool").unwrap();
    assert_eq!(pool.try_set_permits(1, None).await, Ok(true));
    // Executed without a response: the client retries under the same id.
    env.proxy.plan(|seen| match (seen.script, seen.number) {
        ("semaphore_change", 1) => Fault::executed(FaultResponse::Silence),
        _ => Fault::none(),
    });
    assert_eq!(env.in_virtual_time(&host, pool.add_permits(2)).await, Ok(3));
    assert_eq!(env.proxy.count("semaphore_change"), 2);
    assert_eq!(pool.available_permits().await, Ok(3));
}

/// The error of a change that Redisson could not read, and what is left.
#[tokio::test]
async fn permits_beyond_a_java_int_are_refused() {
    let env = TestEnv::new().await;
    let (pool, seats) = (env.client().semaphore("pool").unwrap(), env.client());
    let seats = seats.permit_expirable_semaphore("seats", PeerSkew::DEFAULT).unwrap();
    assert_eq!(pool.add_permits(i32::MAX).await, Ok(i64::from(i32::MAX)));
    assert_eq!(seats.add_permits(i32::MAX).await, Ok(i64::from(i32::MAX)));
    let held = pool.acquire(5).await.unwrap();
    let refused = [
        pool.release(1).await,
        pool.release_if_exists(1).await.map(drop),
        seats.add_permits(1).await.map(drop),
    ];
    for refused in refused {
        let error = refused.unwrap_err();
        let RequestError::Refused(refusal) = &error.kind else { panic!("{error:?}") };
        assert_eq!(refusal.code(), "LIMIT");
        assert!(error.to_string().contains("the object has reached its limit"), "{error}");
    }
    held.release().await.unwrap();
    assert_eq!(pool.available_permits().await, Ok(i64::from(i32::MAX)));
    assert_eq!(pool.add_permits(-i32::MAX).await, Ok(0));
    assert_eq!(pool.add_permits(i32::MIN).await, Ok(i64::from(i32::MIN)));
    assert!(pool.add_permits(-1).await.is_err());
}

#[tokio::test]
async fn an_unanswered_call_is_cancelled_and_proven_not_executed() {
    let env = TestEnv::new().await;
    let (client, host) = env.virtual_client_with_timeout(5_000);
    let pool = client.semaphore("pool").unwrap();
    assert_eq!(pool.try_set_permits(1, None).await, Ok(true));
    env.proxy.plan(|seen| match seen.script {
        "semaphore_change" => Fault::not_executed(FaultResponse::Silence),
        _ => Fault::none(),
    });
    let outcome = env.in_virtual_time(&host, pool.add_permits(2)).await;
    assert!(
        matches!(outcome, Err(Error { kind: RequestError::NotExecuted(_), .. })),
        "{outcome:?}"
    );
    env.proxy.plan(|_| Fault::none());
    assert_eq!(pool.available_permits().await, Ok(1));
}

#[tokio::test]
async fn any_client_can_return_an_expirable_permit_by_its_id() {
    let env = TestEnv::new().await;
    let seats = env.client().permit_expirable_semaphore("seats", PeerSkew::DEFAULT).unwrap();
    assert!(seats.try_set_permits(4).await.unwrap());
    let options = AcquireOptions::new().lease(Duration::from_secs(20));
    let lease = seats.permits(3).unwrap().acquire_with(options).await.unwrap();
    let ids = lease.permit_ids();
    assert_eq!(ids.len(), 3);
    let state = seats.inspect(&ids).await.unwrap();
    assert_eq!((state.available, state.acquired, state.total), (1, 3, 4));
    assert!(state.are_held && state.remaining.unwrap() > Duration::from_secs(10));
    assert!(seats.update_lease_time(&ids, Some(Duration::from_secs(100))).await.unwrap());
    assert!(seats.inspect(&ids).await.unwrap().remaining.unwrap() > Duration::from_secs(90));

    // By another client that was passed the permit's id.
    let handed = PermitId::parse(&ids[0].to_text()).unwrap();
    let others = env.client().permit_expirable_semaphore("seats", PeerSkew::DEFAULT).unwrap();
    assert_eq!(others.release(&[handed]).await, Ok(1));
    assert_eq!(others.release(&[handed]).await, Ok(0));
    assert_eq!(seats.inspect(&[]).await.unwrap().available, 2);
    assert!(!lease.is_held().await.unwrap());
    lease.release().await.unwrap();
    assert_eq!(seats.inspect(&[]).await.unwrap().available, 4);
    assert_eq!(seats.set_permits(2).await, Ok(2));
    assert_eq!(seats.add_permits(1).await, Ok(3));
    let rest = seats.acquire(3).await.unwrap();
    assert!(seats.try_acquire(1).await.unwrap().is_none());
    assert!(seats.force_release().await.unwrap());
    assert_eq!(rest.release().await, Ok(Released::WasLost));
    assert!(seats.permits(0).is_err() && seats.permits(1001).is_err());
}

#[tokio::test]
async fn a_latch_opens_when_it_was_counted_down() {
    let env = TestEnv::new().await;
    let latch = env.client().count_down_latch("gate").unwrap();
    latch.wait().await.unwrap();
    assert!(latch.try_set_count(2).await.unwrap());
    assert!(!latch.try_set_count(9).await.unwrap());
    let (client, host) = env.virtual_client();
    let options = AcquireOptions::new().wait(Duration::from_millis(60));
    let waits = client.count_down_latch("gate").unwrap();
    let closed = env.in_virtual_time(&host, waits.wait_with(options)).await;
    assert_eq!(closed.unwrap_err(), AcquireError::Busy { remaining: None });
    assert_eq!(latch.count_down().await, Ok(1));
    assert_eq!(latch.count().await, Ok(1));
    let (waited, left) = tokio::join!(latch.wait(), latch.count_down());
    assert_eq!((waited, left), (Ok(()), Ok(0)));
    assert_eq!(latch.count_down().await, Ok(0));
    assert!(latch.try_set_count(3).await.unwrap());
    let (waited, deleted) = tokio::join!(latch.wait(), latch.delete());
    assert_eq!((waited, deleted), (Ok(()), Ok(true)));
    assert_eq!(latch.delete().await, Ok(false));
}

#[tokio::test]
async fn a_latch_is_not_open_because_the_gateway_is_silent_and_a_wait_can_be_cancelled() {
    let env = TestEnv::with(|_| Fault::not_executed(FaultResponse::Silence)).await;
    let (client, host) = env.virtual_client_with_timeout(100);
    let latch = client.count_down_latch("gate").unwrap();
    let options = AcquireOptions::new().wait(Duration::from_millis(10));
    let waited = env.in_virtual_time(&host, latch.wait_with(options)).await;
    assert!(matches!(waited, Err(Error { kind: AcquireError::Unreachable(_), .. })), "{waited:?}");
    let before = env.proxy.calls().len();
    let asked = until(async || env.proxy.calls().len() > before + 1);
    let endless = AcquireOptions::new().wait_until_cancelled();
    let outcome = env.in_virtual_time(&host, latch.wait_cancellable(endless, asked)).await;
    assert_eq!(outcome.unwrap_err(), AcquireError::Cancelled { held_at_most: None });
}
