//! The cases of an exclusive object, for any kind of it. `table.rs` names the kinds.

use std::time::Duration;

use edgelatch::client::{AcquireOptions, Released};
use edgelatch::error::{AcquireError, LossReason};
use serde_json::json;

use super::both::{Both, NAME};
use super::kinds::Exclusive;
use super::peer::{Object, ms};
use test_support::slow_machine::in_time;
use test_support::test_env::until;

/// A lease that no test waits for: a waiter that acquires the object was notified of its release.
pub(crate) const ENDLESS: Duration = Duration::from_secs(24 * 60 * 60);
/// The value of [`ENDLESS`] for Java, in milliseconds.
pub(crate) const JAVA_ENDLESS: i64 = 86_400_000;
/// A lease whose expiry in Redis the tests wait for. The client's time stands still meanwhile, so
/// that no grant comes too late.
pub(crate) const SHORT: Duration = Duration::from_millis(1_500);
/// Java's lease, in milliseconds: it renews after a third of it, unless the machine is too slow.
pub(crate) const JAVA_LEASE: i64 = 2_400;
/// Java's leases for slower and slower machines. The slowest must let Java renew within a third of
/// the last.
pub(crate) const JAVA_LEASES: [i64; 4] =
    [JAVA_LEASE, 2 * JAVA_LEASE, 4 * JAVA_LEASE, 8 * JAVA_LEASE];

pub(crate) async fn java_is_refused_while_we_hold<K: Exclusive>() {
    let both = Both::of::<K>().await;
    let (java, ours) = (both.java::<K>("a"), both.ours::<K>());
    let lease = ours.acquire().await.unwrap();
    assert!(!java.get::<bool>("tryLock").await);
    assert!(!java.call_with_wait::<bool>("tryLock", json!([ms(60), ms(-1)])).await);
    assert!(!java.get::<bool>("isHeldByCurrentThread").await);
    gives_back_what_it_does_not_hold::<K>(&java).await;

    assert!(lease.is_held().await.unwrap());
    assert_eq!(lease.release().await, Ok(Released::Released));
    assert!(java.get::<bool>("tryLock").await);
    java.get::<()>("unlock").await;
}

pub(crate) async fn we_are_refused_while_java_holds<K: Exclusive>() {
    let both = Both::of::<K>().await;
    let (java, ours) = (both.java::<K>("a"), both.ours::<K>());
    java.get::<()>("lock").await;
    assert!(ours.try_acquire().await.unwrap().is_none());
    let waited = in_time(Duration::from_millis(60), async |time| {
        ours.acquire_with(AcquireOptions::new().wait(time)).await
    });
    let AcquireError::Busy { remaining } = waited.await.unwrap_err().kind else {
        panic!("it is held")
    };
    assert!(remaining.is_some_and(|left| left <= Duration::from_secs(30)));
    java.get::<()>("unlock").await;
    let lease = ours.try_acquire().await.unwrap().unwrap();
    assert_eq!(lease.release().await, Ok(Released::Released));
}

/// S87.
pub(crate) async fn we_acquire_the_lock_after_java_unlocks<K: Exclusive>() {
    let both = Both::of::<K>().await;
    let java = both.java::<K>("a");
    java.call("lock", json!([ms(JAVA_ENDLESS)])).value::<()>().await;
    let waiting = both.wait_for(both.ours::<K>()).await;
    java.get::<()>("unlock").await;
    let lease = waiting.await.unwrap();
    assert!(!java.get::<bool>("tryLock").await);
    assert_eq!(lease.release().await, Ok(Released::Released));
}

pub(crate) async fn java_acquires_the_lock_when_our_lease_has_expired<K: Exclusive>() {
    let both = Both::of::<K>().await;
    let options = AcquireOptions::new().lease(SHORT);
    let (ours, host) = both.ours_led::<K>();
    let lease = both.in_virtual_time(&host, ours.acquire_with(options)).await.unwrap();
    let java = both.java::<K>("a");
    java.get::<()>("lock").await;
    host.pass(SHORT);
    assert_eq!(lease.lost().await, LossReason::Expired);
    assert_eq!(lease.release().await, Ok(Released::WasLost));
    assert!(both.java_holds::<K>("a").await);
    java.get::<()>("unlock").await;
}

pub(crate) async fn we_acquire_the_lock_when_the_lease_of_java_has_expired<K: Exclusive>() {
    let both = Both::of::<K>().await;
    let (java, ours) = (both.java::<K>("a"), both.ours::<K>());
    java.call("lock", json!([ms(400)])).value::<()>().await;
    let lease = ours.acquire().await.unwrap();
    assert!(!java.get::<bool>("isHeldByCurrentThread").await);
    gives_back_what_it_does_not_hold::<K>(&java).await;
    assert!(lease.is_held().await.unwrap());
    assert_eq!(lease.release().await, Ok(Released::Released));
}

/// S87.
pub(crate) async fn java_renews_while_we_wait<K: Exclusive>() {
    for java_lease in JAVA_LEASES {
        let both = Both::of_with::<K>(json!({ "lockWatchdogTimeout": java_lease })).await;
        let java = both.java::<K>("a");
        java.get::<()>("lock").await;
        let waiting = both.wait_for(both.ours::<K>()).await;
        // Enough renewals for its first lease to have ended.
        both.renewed(4).await;
        let waits = !waiting.is_finished();
        let unlocked = java.call("unlock", json!([])).outcome().await;
        if both.has_expired().await {
            // The machine is too slow for Java to renew so often.
            continue;
        }
        assert!(waits);
        unlocked.unwrap();
        return assert_eq!(waiting.await.unwrap().release().await, Ok(Released::Released));
    }
    panic!("Java renews too late");
}

pub(crate) async fn a_java_service_that_dies_leaves_its_hold_to_us<K: Exclusive>() {
    let both = Both::of::<K>().await;
    let dies = both.another(json!({ "lockWatchdogTimeout": JAVA_LEASE })).await;
    dies.thread("a").object(K::java(&dies, NAME)).get::<()>("lock").await;
    let waiting = both.wait_for(both.ours::<K>()).await;
    drop(dies);
    assert_eq!(waiting.await.unwrap().release().await, Ok(Released::Released));
}

/// S88.
pub(crate) async fn our_release_wakes_java<K: Exclusive>() {
    let both = Both::of::<K>().await;
    let options = AcquireOptions::new().lease(ENDLESS);
    let lease = both.ours::<K>().acquire_with(options).await.unwrap();
    let java = both.java::<K>("a");
    let waiting = java.call("lock", json!([]));
    java.thread.waits().await;
    assert!(!waiting.has_come());
    assert_eq!(lease.release().await, Ok(Released::Released));
    waiting.value::<()>().await;
    assert!(both.java_holds::<K>("a").await);
    java.get::<()>("unlock").await;
}

/// S88.
pub(crate) async fn we_renew_while_java_waits<K: Exclusive>() {
    let both = Both::of::<K>().await;
    let (ours, host) = both.ours_led::<K>();
    let lease = ours.acquire().await.unwrap();
    let java = both.java::<K>("a");
    let waiting = java.call("lock", json!([]));
    java.thread.waits().await;
    let renewed = async {
        for _ in 0..3 {
            // Time passes for the client but not in Redis, so the test shortens the hold in Redis.
            both.shorten(20_000).await;
            host.pass(Duration::from_secs(10));
            // Most Redis servers have executed the renewal, and the client has received the reply.
            until(async || both.longer_than(20_000).await > K::NODES / 2).await;
            until(async || lease.remaining() > Duration::from_secs(25)).await;
        }
    };
    tokio::select! {
        end = lease.keep() => panic!("{end:?}"),
        () = renewed => {}
    }
    assert!(!waiting.has_come());
    assert_eq!(lease.release().await, Ok(Released::Released));
    waiting.value::<()>().await;
}

async fn gives_back_what_it_does_not_hold<K: Exclusive>(java: &Object) {
    let answer = java.call("unlock", json!([]));
    if K::KNOWS_STRANGERS {
        assert!(answer.thrown().await.is_not_the_holder());
    } else {
        answer.value::<()>().await;
    }
}
