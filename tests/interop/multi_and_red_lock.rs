//! Multi-locks, and red locks on several Redis servers.

use edgelatch::client::{AcquireOptions, Released};
use serde_json::json;

use super::both::{Both, NAME};
use super::exclusive::{ENDLESS, JAVA_ENDLESS};
use super::kinds::{MultiOfThree, MultiOfTwo, Ours, Plain, Red, members};
use super::peer::ms;

/// One of the members as a single edgelatch lock.
fn member(both: &Both, place: usize) -> Ours {
    both.env.client().lock(&members(NAME)[place]).unwrap()
}

#[tokio::test]
async fn a_member_that_java_holds_keeps_us_from_all_and_leaves_the_others_free() {
    let both = Both::start().await;
    let name = &members(NAME)[1];
    let java = both.java.thread("a").object(json!({ "kind": "lock", "name": name }));
    java.call("lock", json!([ms(JAVA_ENDLESS)])).value::<()>().await;
    let ours = both.ours::<MultiOfTwo>();
    assert!(ours.try_acquire().await.unwrap().is_none());
    let waiting = both.wait_for(ours).await;
    assert!(both.java::<Plain>("b").get::<bool>("tryLock").await);
    both.java::<Plain>("b").get::<()>("unlock").await;
    java.get::<()>("unlock").await;
    let lease = waiting.await.unwrap();
    assert!(!java.get::<bool>("tryLock").await);
    assert_eq!(lease.release().await, Ok(Released::Released));
}

#[tokio::test]
async fn a_member_that_we_hold_keeps_java_from_all() {
    let both = Both::start().await;
    let options = AcquireOptions::new().lease(ENDLESS);
    let lease = member(&both, 1).acquire_with(options).await.unwrap();
    let java = both.java::<MultiOfTwo>("a");
    assert!(!java.get::<bool>("tryLock").await);
    member(&both, 0).try_acquire().await.unwrap().unwrap().release().await.unwrap();
    let waiting = java.call("lock", json!([]));
    java.thread.waits().await;
    assert_eq!(lease.release().await, Ok(Released::Released));
    waiting.value::<()>().await;
    for place in 0..2 {
        assert!(member(&both, place).try_acquire().await.unwrap().is_none());
    }
    java.get::<()>("unlock").await;
}

/// Redisson's weak point 12: it stops the release at the first member that it has lost. edgelatch
/// releases all members.
#[tokio::test]
async fn java_keeps_the_rest_when_it_has_lost_one_member_and_we_do_not() {
    let both = Both::start().await;
    let java = both.java::<MultiOfTwo>("a");
    java.get::<()>("lock").await;
    assert_eq!(member(&both, 0).force_release().await, Ok(true));
    assert!(java.call("unlock", json!([])).thrown().await.is_not_the_holder());
    assert!(member(&both, 1).try_acquire().await.unwrap().is_none());
    assert_eq!(member(&both, 1).force_release().await, Ok(true));

    let lease = both.ours::<MultiOfTwo>().acquire().await.unwrap();
    assert!(both.java::<Plain>("a").get::<bool>("forceUnlock").await);
    assert!(!lease.is_held().await.unwrap());
    assert_eq!(lease.release().await, Ok(Released::WasLost));
    assert!(java.get::<bool>("tryLock").await);
}

#[tokio::test]
async fn both_sides_read_the_members_of_several_kinds() {
    let both = Both::start().await;
    let [first, second, third] = members(NAME);
    let kinds = [("lock", &first), ("fencedLock", &second), ("writeLock", &third)];
    let objects = kinds
        .map(|(kind, name)| both.java.thread("a").object(json!({ "kind": kind, "name": name })));
    let lease = both.ours::<MultiOfThree>().acquire().await.unwrap();
    for object in &objects {
        assert!(object.get::<bool>("isLocked").await);
        assert!((1..=30_000).contains(&object.get::<i64>("remainTimeToLive").await));
    }
    let token = lease.token_of(&second).unwrap();
    assert_eq!(objects[1].get::<u64>("getToken").await, token.as_u64());
    assert_eq!(lease.release().await, Ok(Released::Released));

    both.java::<MultiOfThree>("a").get::<()>("lock").await;
    for object in &objects {
        assert_eq!(object.get::<u64>("getHoldCount").await, 1);
    }
    let last = member(&both, 1).inspect().await.unwrap().last_token;
    assert!(last > token.as_u64());
    both.java::<MultiOfThree>("a").get::<()>("unlock").await;
    let next = both.ours::<MultiOfThree>().acquire().await.unwrap();
    assert!(next.token_of(&second).unwrap().as_u64() > last);
}

#[tokio::test]
async fn another_client_s_minority_stops_no_acquisition_and_its_majority_does() {
    let both = Both::of::<Red>().await;
    let (java, ours) = (both.java::<Red>("a"), both.ours::<Red>());
    let others = both.ours_of_each_node();
    let minority = others[0].acquire().await.unwrap();
    let lease = ours.acquire().await.unwrap();
    assert!(!java.get::<bool>("tryLock").await);
    assert_eq!(lease.release().await, Ok(Released::Released));
    assert!(java.get::<bool>("tryLock").await);
    assert!(ours.try_acquire().await.unwrap().is_none());
    java.get::<()>("unlock").await;

    let majority = others[2].acquire().await.unwrap();
    assert!(!java.get::<bool>("tryLock").await);
    assert!(ours.try_acquire().await.unwrap().is_none());
    // Neither leaves a hold on the Redis server between them.
    others[1].try_acquire().await.unwrap().unwrap().release().await.unwrap();
    minority.release().await.unwrap();
    majority.release().await.unwrap();
}
