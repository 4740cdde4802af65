//! Detects when Redis' clock or the tokens of a name go back.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use edgelatch::client::{ClientEvent, Released};
use edgelatch::error::AcquireError;
use futures_core::Stream as _;

use test_support::test_env::TestEnv;

/// S27, S57.
#[tokio::test]
async fn a_step_back_of_redis_clock_is_reported_once() {
    let env = TestEnv::new().await;
    let client = env.client();
    let mut events = client.events();
    let mut next_event = async || {
        poll_fn(|cx| match Pin::new(&mut events).poll_next(cx) {
            Poll::Ready(event) => Poll::Ready(event),
            Poll::Pending => Poll::Ready(None),
        })
        .await
    };
    let lease = client.lock("job").unwrap().acquire().await.unwrap();
    assert_eq!(next_event().await, None);
    env.proxy.set_clocks(|clocks| clocks.time = -600);
    assert_eq!(lease.renew(None).await, Ok(()));
    let Some(ClientEvent::ClockSetBack { by }) = next_event().await else {
        panic!("nothing was told")
    };
    assert!((Duration::from_secs(500)..=Duration::from_secs(600)).contains(&by), "{by:?}");
    assert_eq!(lease.renew(None).await, Ok(()));
    assert_eq!(next_event().await, None, "it was told");
    assert_eq!(lease.release().await, Ok(Released::Released));
}

/// S57.
#[tokio::test]
async fn a_grant_of_another_redis_with_an_older_token_is_released() {
    let mut env = TestEnv::new().await;
    let client = env.client();
    let (one, other) = (client.lock("job").unwrap(), client.lock("other").unwrap());
    let lease = one.acquire().await.unwrap();
    let newest = lease.token().as_u64();
    assert_eq!(lease.release().await, Ok(Released::Released));
    let both = client.multi_lock([one.clone(), other]).unwrap();
    let before = both.acquire().await.unwrap();
    let newest_of_both = before.token().as_u64();
    assert!(newest_of_both > newest);
    assert_eq!(before.release().await, Ok(Released::Released));

    env.crash().await;
    env.proxy.set_clocks(|clocks| clocks.time = -600);
    let fell = AcquireError::TokenRegressed { newest: newest_of_both };
    assert_eq!(one.acquire().await.unwrap_err(), fell);
    assert_eq!(one.try_acquire().await.unwrap_err(), fell);
    assert_eq!(both.try_acquire().await.unwrap_err(), fell);
    env.assert_nothing_is_held("given back").await;

    // For a lock that a client was never granted, no token has fallen.
    for lock in [client.lock("third").unwrap(), env.client().lock("job").unwrap()] {
        let lease = lock.acquire().await.unwrap();
        assert!(lease.token().as_u64() < newest);
        assert_eq!(lease.release().await, Ok(Released::Released));
    }
    // Redis' clock is right again.
    env.proxy.set_clocks(|clocks| clocks.time = 0);
    let lease = one.acquire().await.unwrap();
    assert!(lease.token().as_u64() > newest_of_both);
    assert_eq!(lease.release().await, Ok(Released::Released));
}
