//! Both sides query a lock that is one hash, and forcibly end the other's hold.

use std::time::Duration;

use edgelatch::client::{AcquireOptions, Released};
use edgelatch::error::LossReason;
use serde_json::json;

use super::both::Both;
use super::exclusive::ENDLESS;
use super::kinds::Exclusive;

pub(crate) async fn java_reads_what_we_hold<K: Exclusive>() {
    let both = Both::of::<K>().await;
    let java = both.java::<K>("a");
    assert!(!java.get::<bool>("isLocked").await);
    let lease = both.ours::<K>().acquire().await.unwrap();
    assert!(java.get::<bool>("isLocked").await);
    assert_eq!(java.get::<u64>("getHoldCount").await, 0);
    assert!((1..=30_000).contains(&java.get::<i64>("remainTimeToLive").await));
    lease.renew(Some(Duration::from_secs(600))).await.unwrap();
    assert!((500_000..=600_000).contains(&java.get::<i64>("remainTimeToLive").await));
    assert_eq!(lease.release().await, Ok(Released::Released));
    assert!(!java.get::<bool>("isLocked").await);
    assert!(java.get::<i64>("remainTimeToLive").await < 0);
}

pub(crate) async fn we_read_what_java_holds<K: Exclusive>() {
    let both = Both::of::<K>().await;
    let (java, ours) = (both.java::<K>("a"), both.ours::<K>());
    let free = ours.inspect().await.unwrap();
    assert_eq!((free.is_locked, free.hold_count, free.remaining), (false, 0, None));
    java.get::<()>("lock").await;
    let state = ours.inspect().await.unwrap();
    assert_eq!((state.is_locked, state.hold_count), (true, 1));
    assert!(state.remaining.is_some_and(|left| left <= Duration::from_secs(30)));
    assert_eq!(java.get::<u64>("getHoldCount").await, 1);
    java.get::<()>("unlock").await;
    assert!(!ours.inspect().await.unwrap().is_locked);
}

pub(crate) async fn our_forced_release_wakes_java<K: Exclusive>() {
    let both = Both::of::<K>().await;
    let ours = both.ours::<K>();
    let lease = ours.acquire_with(AcquireOptions::new().lease(ENDLESS)).await.unwrap();
    let java = both.java::<K>("a");
    let waiting = java.call("lock", json!([]));
    java.thread.waits().await;
    assert_eq!(ours.force_release().await, Ok(true));
    waiting.value::<()>().await;
    assert_eq!(lease.release().await, Ok(Released::WasLost));
    assert!(java.get::<bool>("isHeldByCurrentThread").await);
}

/// S71.
pub(crate) async fn java_ends_our_hold_by_force_and_our_holder_is_notified<K: Exclusive>() {
    let both = Both::of::<K>().await;
    let java = both.java::<K>("a");
    let lease = both.ours::<K>().acquire().await.unwrap();
    let waiting = both.wait_for(both.ours::<K>()).await;
    assert!(java.get::<bool>("forceUnlock").await);
    let next = waiting.await.unwrap();
    assert!(!lease.is_held().await.unwrap());
    assert_eq!(lease.lost().await, LossReason::Gone);
    assert_eq!(lease.release().await, Ok(Released::WasLost));
    assert!(next.is_held().await.unwrap());
    assert_eq!(next.release().await, Ok(Released::Released));
    assert!(!java.get::<bool>("forceUnlock").await);
}

pub(crate) async fn we_end_a_hold_of_java_by_force_and_it_is_notified<K: Exclusive>() {
    let both = Both::of::<K>().await;
    let (java, ours) = (both.java::<K>("a"), both.ours::<K>());
    java.get::<()>("lock").await;
    assert_eq!(ours.force_release().await, Ok(true));
    assert_eq!(ours.force_release().await, Ok(false));
    let lease = ours.acquire().await.unwrap();
    assert!(!java.get::<bool>("isHeldByCurrentThread").await);
    assert!(java.call("unlock", json!([])).thrown().await.is_not_the_holder());
    assert!(lease.is_held().await.unwrap());
}

pub(crate) async fn we_read_how_often_java_holds_it<K: Exclusive>() {
    let both = Both::of::<K>().await;
    let (java, ours) = (both.java::<K>("a"), both.ours::<K>());
    java.get::<()>("lock").await;
    assert!(java.get::<bool>("tryLock").await);
    assert_eq!(ours.inspect().await.unwrap().hold_count, 2);
    java.get::<()>("unlock").await;
    assert_eq!(java.get::<u64>("getHoldCount").await, 1);
    assert_eq!(ours.inspect().await.unwrap().hold_count, 1);
}
