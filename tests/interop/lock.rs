//! Behaviour that only the plain lock shows.

use std::time::Duration;

use edgelatch::client::{AcquireOptions, Released};
use edgelatch::error::{AcquireError, RefusalKind};
use serde_json::json;

use super::both::{Both, NAME};
use super::exclusive::{ENDLESS, JAVA_ENDLESS, JAVA_LEASE};
use super::kinds::{Fenced, Plain};
use super::peer::ms;
use test_support::test_env::until;

#[tokio::test]
async fn tokens_rise_from_grant_to_grant_of_any_owner() {
    let both = Both::start().await;
    let ours = both.ours::<Plain>();
    let fenced = both.object("a", "fencedLock");
    let mut last = 0;
    for _ in 0..3 {
        let lease = ours.acquire().await.unwrap();
        assert!(lease.token().as_u64() > last);
        assert_eq!(fenced.get::<u64>("getToken").await, lease.token().as_u64());
        lease.release().await.unwrap();

        let token: u64 = fenced.get("lockAndGetToken").await;
        assert!(token > lease.token().as_u64());
        last = fenced.get("tryLockAndGetToken").await;
        assert!(last > token);
        let state = ours.inspect().await.unwrap();
        assert_eq!((state.last_token, state.hold_count), (last, 2));
        fenced.get::<()>("unlock").await;
        fenced.get::<()>("unlock").await;
    }
}

#[tokio::test]
async fn kinds_that_redisson_keeps_in_the_same_hash_exclude_each_other() {
    exclude_each_other(&["spinLock", "fairLock", "fencedLock"]).await;
}

#[tokio::test]
async fn non_reentrant_kinds_exclude_a_plain_lock_since_redisson_4() {
    exclude_each_other(&["nonReentrantLock", "nonReentrantFairLock"]).await;
}

/// Asserts that our plain lock and these kinds of one name exclude each other.
async fn exclude_each_other(kinds: &[&str]) {
    let both = Both::start().await;
    let ours = both.ours::<Plain>();
    for kind in kinds {
        let java = both.object("a", kind);
        let lease = ours.acquire().await.unwrap();
        assert!(!java.get::<bool>("tryLock").await, "{kind}");
        lease.release().await.unwrap();
        assert!(java.get::<bool>("tryLock").await, "{kind}");
        assert!(ours.try_acquire().await.unwrap().is_none(), "{kind}");
        java.get::<()>("unlock").await;
    }
}

/// Redisson's write lock does not see Redisson's own plain lock either: it treats a hash without
/// `mode` as free. edgelatch's release leaves the writer's hold alone.
#[tokio::test]
async fn a_java_write_lock_does_not_see_our_lock_of_its_name_and_outlives_it() {
    let both = Both::start().await;
    let ours = both.ours::<Plain>();
    let lease = ours.acquire().await.unwrap();
    let writer = both.object("a", "writeLock");
    assert!(writer.get::<bool>("tryLock").await);
    assert_eq!(lease.release().await, Ok(Released::Released));
    assert!(writer.get::<bool>("isHeldByCurrentThread").await);
    let field = format!("{}:write", writer.thread.holder().await);
    assert_eq!(both.env.redis.query::<String>(&["HGET", NAME, &field]).await, "1");
    // A plain lock is refused while the writer holds.
    assert!(ours.try_acquire().await.unwrap().is_none());
    writer.get::<()>("unlock").await;
    ours.acquire().await.unwrap().release().await.unwrap();
}

/// A spin lock's release publishes nothing: Redisson's own waiters then sleep until the lease ends,
/// here a day later.
#[tokio::test]
async fn a_spin_lock_that_java_releases_without_a_message_becomes_ours() {
    let both = Both::start().await;
    let spin = both.object("a", "spinLock");
    spin.call("lock", json!([ms(JAVA_ENDLESS)])).value::<()>().await;
    let waiting = both.wait_for(both.ours::<Plain>()).await;
    spin.get::<()>("unlock").await;
    assert_eq!(waiting.await.unwrap().release().await, Ok(Released::Released));
}

#[tokio::test]
async fn each_of_several_waiting_java_services_is_served() {
    let both = Both::start().await;
    let options = AcquireOptions::new().lease(Duration::from_secs(3_600));
    let lease = both.ours::<Plain>().acquire_with(options).await.unwrap();
    let other = both.another(json!({})).await;
    let waiters = [(&both.java, "a"), (&both.java, "b"), (&other, "a"), (&other, "b")];
    let mut waiting = Vec::new();
    for (service, thread) in waiters {
        let java = service.thread(thread).object(json!({ "kind": "lock", "name": NAME }));
        // Both calls at once, so that a thread releases what it has acquired.
        let (lock, unlock) = (java.call("lock", json!([])), java.call("unlock", json!([])));
        java.thread.waits().await;
        waiting.push((lock, unlock));
    }
    lease.release().await.unwrap();
    for (lock, unlock) in waiting {
        lock.value::<()>().await;
        unlock.value::<()>().await;
    }
    both.env.assert_nothing_is_held("several").await;
}

/// Redisson's weak point 9: it treats -1 as a token of its own if the lock has no expiry.
/// edgelatch's locks always have one, even with the longest lease.
#[tokio::test]
async fn java_does_not_interpret_our_longest_lease_as_a_grant() {
    let both = Both::start().await;
    let ours = both.ours::<Fenced>();
    let lease = ours.acquire_with(AcquireOptions::new().lease(ENDLESS)).await.unwrap();
    let java = both.object("a", "fencedLock");
    let try_it = async || {
        java.call_with_wait::<Option<i64>>("tryLockAndGetToken", json!([ms(60), ms(-1)])).await
    };
    assert_eq!(try_it().await, None);
    both.env.redis.query::<u64>(&["PERSIST", NAME]).await;
    assert_eq!(try_it().await, Some(-1));
    assert!(!java.get::<bool>("isHeldByCurrentThread").await);
    assert!(lease.is_held().await.unwrap());
}

/// Redisson's weak point 9: `lockAndGetToken` ignores its lease, and `tryLockAndGetToken` waits.
#[tokio::test]
async fn java_holds_a_fenced_lock_for_another_time_than_requested() {
    let both = Both::with(json!({ "lockWatchdogTimeout": 60_000 })).await;
    let (java, ours) = (both.object("a", "fencedLock"), both.ours::<Fenced>());
    java.call("lockAndGetToken", json!([ms(JAVA_ENDLESS)])).value::<u64>().await;
    let state = ours.inspect().await.unwrap();
    assert!(state.remaining.is_some_and(|left| left <= Duration::from_secs(60)), "{state:?}");
    java.get::<()>("unlock").await;
    let lease = ours.acquire_with(AcquireOptions::new().lease(ENDLESS)).await.unwrap();
    let waiting = java.call("tryLockAndGetToken", json!([]));
    let channel = "redisson_lock__channel:{job}";
    until(async || {
        let (_, listeners): (String, u64) =
            both.env.redis.query(&["PUBSUB", "NUMSUB", channel]).await;
        listeners > 0
    })
    .await;
    assert!(!waiting.has_come());
    lease.release().await.unwrap();
    assert!(waiting.value::<u64>().await > lease.token().as_u64());
}

/// S95: Redisson's weak point 9: after its token key is deleted, tokens restart at 1. edgelatch's
/// tokens follow Redis' clock.
#[tokio::test]
async fn our_tokens_rise_although_the_last_one_was_deleted() {
    let both = Both::start().await;
    let ours = both.ours::<Fenced>();
    let lease = ours.acquire().await.unwrap();
    lease.release().await.unwrap();
    both.env.redis.query::<u64>(&["DEL", "redisson_lock_token:{job}"]).await;
    assert!(ours.acquire().await.unwrap().token() > lease.token());
}

/// Redisson's weak point 25: data of another kind under the lock's name. Both sides refuse, and
/// neither changes it.
#[tokio::test]
async fn data_under_the_name_of_a_lock_stays_unchanged() {
    let both = Both::start().await;
    both.env.redis.query::<String>(&["SET", NAME, "data"]).await;
    let refused = both.ours::<Plain>().acquire().await.unwrap_err();
    let AcquireError::Refused(refusal) = refused.kind else { panic!("{refused:?}") };
    assert_eq!(refusal.kind(), RefusalKind::WrongType);
    let thrown = both.java::<Plain>("a").call("tryLock", json!([])).thrown().await;
    assert!(thrown.message.contains("WRONGTYPE"), "{thrown:?}");
    assert_eq!(both.env.redis.query::<String>(&["GET", NAME]).await, "data");
}

/// Redisson's weak point 3: a Java thread is not notified that its lock was lost before it unlocks.
/// edgelatch's holder is.
#[tokio::test]
async fn java_works_on_after_a_loss_and_releases_nothing_of_ours() {
    let both = Both::with(json!({ "lockWatchdogTimeout": JAVA_LEASE })).await;
    let java = both.java::<Plain>("a");
    java.get::<()>("lock").await;
    both.env.redis.query::<u64>(&["DEL", NAME]).await;
    let lease = both.ours::<Plain>().acquire().await.unwrap();
    // Its watchdog has run and found another owner's hold.
    let beside = both.java.thread("b").object(json!({ "kind": "lock", "name": "beside" }));
    beside.get::<()>("lock").await;
    let left = async || both.env.redis.query::<i64>(&["PTTL", "beside"]).await;
    let (mut last, mut renewals) = (left().await, 0);
    until(async || {
        let now = left().await;
        if now < 0 {
            // The machine was too slow for Java to renew it.
            beside.get::<()>("lock").await;
        }
        renewals += u32::from(now > last && last > 0);
        last = now;
        renewals == 2
    })
    .await;
    assert!(both.pttl().await <= 30_000);
    assert!(java.call("unlock", json!([])).thrown().await.is_not_the_holder());
    assert!(lease.is_held().await.unwrap());
    assert_eq!(lease.release().await, Ok(Released::Released));
}
