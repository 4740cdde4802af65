//! Re-entry: acquisitions through one owner share one hold.

use std::time::Duration;

use edgelatch::client::{AcquireOptions, LeaseState, Released};
use edgelatch::error::AcquireError;

use test_support::faults::{Fault, FaultResponse};
use test_support::test_env::TestEnv;

/// S92.
#[tokio::test]
async fn a_reentrant_acquisition_sends_no_request_and_the_last_release_ends_the_hold() {
    let env = TestEnv::new().await;
    let owner = env.client().owner();
    let lock = owner.lock("job").unwrap();
    let outer = lock.acquire().await.unwrap();
    let inner = owner.clone().lock("job").unwrap().try_acquire().await.unwrap().unwrap();
    assert_eq!(env.proxy.calls().len(), 1);
    assert_eq!((outer.token(), outer.hold_count()), (inner.token(), 2));
    assert_eq!(env.redis.query::<Vec<String>>(&["HVALS", "job"]).await, ["1"]);

    assert_eq!(outer.release().await, Ok(Released::Released));
    assert_eq!(env.proxy.calls().len(), 1);
    assert_eq!(inner.hold_count(), 1);
    assert_eq!(inner.release().await, Ok(Released::Released));
    assert_eq!(env.proxy.calls().len(), 2);
    env.assert_nothing_is_held("owner").await;

    let next = lock.acquire().await.unwrap();
    assert!(next.token() > inner.token());
    next.release().await.unwrap();
}

/// A lease that is released or dropped first takes nothing away from the others.
#[tokio::test]
async fn a_hold_outlives_the_first_of_its_leases() {
    let env = TestEnv::new().await;
    for is_released in [true, false] {
        let lock = env.client().owner().lock("job").unwrap();
        let first = lock.acquire().await.unwrap();
        let second = lock.acquire().await.unwrap();
        if is_released {
            assert_eq!(first.release().await, Ok(Released::Released));
        }
        drop(first);
        assert_eq!((second.hold_count(), second.state()), (1, LeaseState::Held));
        assert!(!second.remaining().is_zero());
        second.renew(None).await.unwrap();
        assert_eq!(second.release().await, Ok(Released::Released));
        env.assert_nothing_is_held("owner").await;
    }
}

#[tokio::test]
async fn two_owners_exclude_each_other() {
    let env = TestEnv::new().await;
    let client = env.client();
    let held = client.owner().lock("job").unwrap().acquire().await.unwrap();
    assert!(client.owner().lock("job").unwrap().try_acquire().await.unwrap().is_none());
    assert!(client.lock("job").unwrap().try_acquire().await.unwrap().is_none());
    held.release().await.unwrap();
}

#[tokio::test]
async fn acquisitions_of_one_owner_at_the_same_time_share_one_grant() {
    let env = TestEnv::new().await;
    let owner = env.client().owner();
    let (one, two) = (owner.lock("job").unwrap(), owner.lock("job").unwrap());
    let three = owner.lock("job").unwrap();
    let (one, two, three) = tokio::join!(one.acquire(), two.acquire(), three.acquire());
    let leases = [one.unwrap(), two.unwrap(), three.unwrap()];
    assert_eq!(env.proxy.count("lock_acquire"), 1);
    assert!(leases.iter().all(|lease| lease.token() == leases[0].token()));
    assert_eq!(leases[2].hold_count(), 3);
    for lease in &leases {
        assert_eq!(lease.release().await, Ok(Released::Released));
    }
    assert_eq!(env.proxy.count("lock_release"), 1);
    env.assert_nothing_is_held("together").await;
}

#[tokio::test]
async fn if_the_first_acquisition_of_an_owner_fails_the_next_one_is_sent() {
    let env = TestEnv::with(|seen| match (seen.script, seen.number) {
        ("lock_acquire", 1) => {
            Fault::not_executed(test_support::faults::json(400, r#"{"error":"ERR no"}"#))
        }
        _ => Fault::none(),
    })
    .await;
    let owner = env.client().owner();
    let (one, two) = (owner.lock("job").unwrap(), owner.lock("job").unwrap());
    let (one, two) = tokio::join!(one.acquire(), two.acquire());
    assert!(matches!(one.unwrap_err().kind, AcquireError::Refused(_)));
    assert_eq!(two.unwrap().release().await, Ok(Released::Released));
}

#[tokio::test]
async fn a_wait_for_the_own_owner_can_end_as_busy_or_cancelled() {
    let env = TestEnv::with(|_| Fault::not_executed(FaultResponse::Silence)).await;
    let owner = env.client().owner();
    let (slow, quick) = (owner.lock("job").unwrap(), owner.lock("job").unwrap());
    let never_ends = slow.acquire();
    let others = async {
        let options = AcquireOptions::new().wait(Duration::from_millis(30));
        let busy = quick.acquire_with(options).await.unwrap_err();
        assert_eq!(busy, AcquireError::Busy { remaining: None });
        assert!(quick.try_acquire().await.unwrap().is_none());
        let at_once = std::future::ready(());
        let options = AcquireOptions::new();
        let cancelled = quick.acquire_cancellable(options, at_once).await.unwrap_err();
        assert_eq!(cancelled, AcquireError::Cancelled { held_at_most: None });
    };
    tokio::select! {
        biased;
        _ = never_ends => panic!("the gateway is silent"),
        () = others => {}
    }
}

#[tokio::test]
async fn a_dropped_acquisition_does_not_block_the_next_one_of_its_owner() {
    let env = TestEnv::with(|_| Fault::not_executed(FaultResponse::Silence)).await;
    let owner = env.client().owner();
    let lock = owner.lock("job").unwrap();
    let asked = async {
        while env.proxy.calls().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        _ = lock.acquire() => panic!("the gateway is silent"),
        () = asked => {}
    }
    env.proxy.plan(|_| Fault::none());
    assert_eq!(lock.acquire().await.unwrap().release().await, Ok(Released::Released));
}

#[tokio::test]
async fn a_hold_that_was_lost_is_not_entered_again() {
    let env = TestEnv::new().await;
    let lock = env.client().owner().lock("job").unwrap();
    let lost = lock.acquire().await.unwrap();
    env.redis.query::<u64>(&["DEL", "job"]).await;
    assert_eq!(lost.is_held().await, Ok(false));
    let next = lock.acquire().await.unwrap();
    assert!(next.token() > lost.token());
    assert_eq!(next.hold_count(), 1);
    assert_eq!(lost.release().await, Ok(Released::WasLost));
    assert_eq!(next.is_held().await, Ok(true));
    next.release().await.unwrap();
}

#[tokio::test]
async fn a_repeated_release_of_a_shared_hold_that_was_lost_reports_the_loss() {
    let env = TestEnv::new().await;
    let lock = env.client().owner().lock("job").unwrap();
    let (outer, inner) = (lock.acquire().await.unwrap(), lock.acquire().await.unwrap());
    env.redis.query::<u64>(&["DEL", "job"]).await;
    assert_eq!(inner.is_held().await, Ok(false));
    for _ in 0..2 {
        assert_eq!(outer.release().await, Ok(Released::WasLost));
    }
    assert_eq!(inner.release().await, Ok(Released::WasLost));
}
