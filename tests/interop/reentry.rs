//! A holder that acquires again: re-entry, and the kinds that refuse it.

use edgelatch::client::{AcquireOptions, Released};
use edgelatch::error::AcquireError;
use serde_json::json;

use super::both::Both;
use super::exclusive::{ENDLESS, JAVA_ENDLESS};
use super::kinds::Exclusive;
use super::peer::ms;

pub(crate) async fn java_enters_again_while_we_wait<K: Exclusive>() {
    let both = Both::of::<K>().await;
    let (java, ours) = (both.java::<K>("a"), both.ours::<K>());
    java.get::<()>("lock").await;
    let waiting = both.wait_for(both.ours::<K>()).await;
    assert!(java.get::<bool>("tryLock").await);
    java.get::<()>("unlock").await;
    assert!(ours.try_acquire().await.unwrap().is_none());
    assert!(!waiting.is_finished());
    java.get::<()>("unlock").await;
    assert_eq!(waiting.await.unwrap().release().await, Ok(Released::Released));
}

pub(crate) async fn we_enter_again_while_java_waits<K: Exclusive>() {
    let both = Both::of::<K>().await;
    let ours = both.ours_as_one_owner::<K>();
    let options = AcquireOptions::new().lease(ENDLESS);
    let outer = ours.acquire_with(options).await.unwrap();
    let inner = ours.acquire_with(options).await.unwrap();
    assert_eq!(inner.token(), outer.token());
    let java = both.java::<K>("a");
    let waiting = java.call("lock", json!([]));
    java.thread.waits().await;
    assert_eq!(outer.release().await, Ok(Released::Released));
    assert!(inner.is_held().await.unwrap() && !waiting.has_come());
    assert_eq!(inner.release().await, Ok(Released::Released));
    waiting.value::<()>().await;
}

pub(crate) async fn java_gets_the_reply_that_it_holds_the_lock_already<K: Exclusive>() {
    let both = Both::of::<K>().await;
    let java = both.java::<K>("a");
    java.call("lock", json!([ms(JAVA_ENDLESS)])).value::<()>().await;
    let waiting = both.wait_for(both.ours::<K>()).await;
    for again in ["lock", "tryLock"] {
        let thrown = java.call(again, json!([])).thrown().await;
        assert_eq!(thrown.cause, "java.lang.IllegalMonitorStateException", "{thrown:?}");
        assert!(!thrown.is_not_the_holder(), "{thrown:?}");
    }
    assert_eq!(java.get::<u64>("getHoldCount").await, 1);
    assert!(!waiting.is_finished());
    java.get::<()>("unlock").await;
    assert_eq!(waiting.await.unwrap().release().await, Ok(Released::Released));
}

pub(crate) async fn our_client_gets_the_reply_that_it_holds_the_lock_already<K: Exclusive>() {
    let both = Both::of::<K>().await;
    let ours = both.ours_as_one_owner::<K>();
    let lease = ours.acquire_with(AcquireOptions::new().lease(ENDLESS)).await.unwrap();
    let java = both.java::<K>("a");
    let waiting = java.call("lock", json!([]));
    java.thread.waits().await;
    assert_eq!(ours.acquire().await.unwrap_err(), AcquireError::HeldAlready);
    assert_eq!(ours.try_acquire().await.unwrap_err(), AcquireError::HeldAlready);
    assert!(lease.is_held().await.unwrap() && !waiting.has_come());
    assert_eq!(lease.release().await, Ok(Released::Released));
    waiting.value::<()>().await;
}
