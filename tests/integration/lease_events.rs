//! The stream of a lease's events.

use std::future::poll_fn;
use std::pin::Pin;

use edgelatch::client::{Events, LeaseState, Situation};
use edgelatch::error::LossReason;
use futures_core::Stream;

use edgelatch::host::TokioHost;
use edgelatch::transport::Reqwest;
use test_support::test_env::TestEnv;

async fn next(events: &mut Events<Reqwest, TokioHost>) -> Option<Situation> {
    poll_fn(|cx| Pin::new(&mut *events).poll_next(cx)).await
}

/// S80.
#[tokio::test]
async fn renewals_and_a_release_are_the_only_events() {
    let env = TestEnv::new().await;
    let lease = env.client().lock("job").unwrap().acquire().await.unwrap();
    let mut events = lease.events();
    assert_eq!(next(&mut events).await.unwrap().state, LeaseState::Held);
    let (event, renewed) = tokio::join!(next(&mut events), lease.renew(None));
    assert_eq!((event.unwrap().state, renewed), (LeaseState::Renewed, Ok(())));
    let (event, released) = tokio::join!(next(&mut events), lease.release());
    assert!(event.unwrap().released && released.is_ok());
    assert_eq!(next(&mut events).await, None);
}

#[tokio::test]
async fn a_loss_is_the_last_event_of_a_lease() {
    let env = TestEnv::new().await;
    let lease = env.client().lock("job").unwrap().acquire().await.unwrap();
    let mut events = lease.events();
    next(&mut events).await.unwrap();
    env.redis.query::<u64>(&["DEL", "job"]).await;
    let (event, held) = tokio::join!(next(&mut events), lease.is_held());
    assert_eq!((event.unwrap().state, held), (LeaseState::Lost(LossReason::Gone), Ok(false)));
    assert_eq!(next(&mut events).await, None);
}

/// The leases of one owner wait for the changes of one hold.
#[tokio::test]
async fn a_lease_that_is_dropped_takes_no_event_from_another_lease_of_its_hold() {
    let env = TestEnv::new().await;
    let lock = env.client().owner().lock("job").unwrap();
    let [kept, dropped] = [lock.acquire().await.unwrap(), lock.acquire().await.unwrap()];
    dropped.release().await.unwrap();
    let mut events = kept.events();
    next(&mut events).await.unwrap();
    let waiting = tokio::spawn(async move { next(&mut events).await });
    tokio::task::yield_now().await;
    drop(dropped);
    env.redis.query::<u64>(&["DEL", "job"]).await;
    assert_eq!(kept.is_held().await, Ok(false));
    tokio::task::yield_now().await;
    assert!(waiting.is_finished(), "it was not woken");
    assert_eq!(waiting.await.unwrap().unwrap().state, LeaseState::Lost(LossReason::Gone));
}
