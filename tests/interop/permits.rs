//! Permits with ids, which each side may release and extend for the other.

use std::slice;
use std::time::Duration;

use edgelatch::client::{AcquireOptions, PermitExpirableSemaphore, Released};
use edgelatch::error::{AcquireError, LossReason};
use edgelatch::host::TokioHost;
use edgelatch::name::PermitId;
use edgelatch::timing::PeerSkew;
use edgelatch::transport::Reqwest;
use serde_json::json;

use super::both::{Both, NAME};
use super::contention::Contest;
use super::exclusive::{ENDLESS, JAVA_ENDLESS, SHORT};
use super::peer::{Object, ms};
use test_support::slow_machine::in_time;

fn seats(both: &Both) -> PermitExpirableSemaphore<Reqwest, TokioHost> {
    both.env.client().permit_expirable_semaphore(NAME, PeerSkew::DEFAULT).unwrap()
}

fn java(both: &Both, thread: &str) -> Object {
    both.object(thread, "permitExpirableSemaphore")
}

/// A semaphore with `permits` permits that edgelatch has created, on both sides.
async fn made(both: &Both, permits: u32) -> (PermitExpirableSemaphore<Reqwest, TokioHost>, Object) {
    let ours = seats(both);
    assert!(ours.try_set_permits(permits).await.unwrap());
    (ours, java(both, "a"))
}

/// The available, held and total permits, as Java counts them.
async fn counts(java: &Object) -> [i64; 3] {
    [
        java.get("availablePermits").await,
        java.get("acquiredPermits").await,
        java.get("getPermits").await,
    ]
}

fn texts(ids: &[PermitId]) -> Vec<String> {
    ids.iter().map(|id| id.to_text()).collect()
}

fn parsed(texts: &[String]) -> Vec<PermitId> {
    texts.iter().map(|text| PermitId::parse(text).unwrap()).collect()
}

#[tokio::test]
async fn both_sides_count_the_same_permits() {
    let both = Both::start().await;
    let (ours, java) = made(&both, 5).await;
    assert!(!java.call("trySetPermits", json!([9])).value::<bool>().await);
    let lease = ours.acquire(2).await.unwrap();
    let id: String = java.call("acquire", json!([ms(600_000)])).value().await;
    assert_eq!(counts(&java).await, [2, 3, 5]);
    let state = ours.inspect(&parsed(&[id])).await.unwrap();
    assert_eq!((state.available, state.acquired, state.total), (2, 3, 5));
    assert!(state.are_held && state.remaining.unwrap() > Duration::from_secs(500));
    assert_eq!(java.call("tryAcquire", json!([3])).value::<Vec<String>>().await, [""; 0]);
    assert!(ours.try_acquire(3).await.unwrap().is_none());

    assert_eq!(ours.set_permits(7).await, Ok(4));
    assert_eq!(counts(&java).await, [4, 3, 7]);
    java.call("setPermits", json!([4])).value::<()>().await;
    assert_eq!(ours.inspect(&[]).await.unwrap().available, 1);
    java.call("addPermits", json!([2])).value::<()>().await;
    assert_eq!(ours.add_permits(-1).await, Ok(2));
    lease.release().await.unwrap();
    assert_eq!(counts(&java).await, [4, 1, 5]);
}

#[tokio::test]
async fn each_side_releases_permits_that_the_other_has_acquired() {
    let both = Both::start().await;
    let (ours, java) = made(&both, 4).await;
    let lease = ours.acquire(3).await.unwrap();
    let ids = texts(&lease.permit_ids());
    java.call("release", json!([ids[0]])).value::<()>().await;
    assert!(!java.call("tryRelease", json!([ids[0]])).value::<bool>().await);
    assert_eq!(java.call("tryRelease", json!([ids[1..]])).value::<u64>().await, 2);
    assert!(!lease.is_held().await.unwrap());
    assert_eq!(lease.lost().await, LossReason::Gone);
    assert_eq!(lease.release().await, Ok(Released::WasLost));
    assert_eq!(counts(&java).await, [4, 0, 4]);

    let one: String = java.get("acquire").await;
    let more: Vec<String> = java.call("acquire", json!([3])).value().await;
    assert!(ours.try_acquire(1).await.unwrap().is_none());
    assert_eq!(ours.release(&parsed(&more)).await, Ok(3));
    assert_eq!(ours.release(&parsed(&more)).await, Ok(0));
    assert_eq!(ours.release(&parsed(slice::from_ref(&one))).await, Ok(1));
    let thrown = java.call("release", json!([one])).thrown().await;
    assert_eq!(thrown.cause, "java.lang.IllegalArgumentException", "{thrown:?}");
    assert_eq!(counts(&java).await, [4, 0, 4]);
}

#[tokio::test]
async fn each_side_prolongs_and_shortens_permits_of_the_other() {
    let both = Both::start().await;
    let (ours, java) = made(&both, 2).await;
    let options = AcquireOptions::new().lease(Duration::from_secs(60));
    let lease = ours.permits(1).unwrap().acquire_with(options).await.unwrap();
    let ids = lease.permit_ids();
    let text = ids[0].to_text();
    let left = async || java.call("getLeaseTime", json!([text])).value::<i64>().await;
    assert!((1..=62_000).contains(&left().await));
    assert!(java.call("updateLeaseTime", json!([text, ms(600_000)])).value::<bool>().await);
    assert!(ours.inspect(&ids).await.unwrap().remaining.unwrap() > Duration::from_secs(500));
    lease.renew(Some(Duration::from_secs(1_200))).await.unwrap();
    assert!(left().await > 1_100_000);
    assert!(ours.update_lease_time(&ids, None).await.unwrap());
    assert_eq!(left().await, -1);
    assert_eq!(ours.inspect(&ids).await.unwrap().remaining, None);
    assert_eq!(lease.release().await, Ok(Released::Released));
    assert!(!java.call("updateLeaseTime", json!([text, ms(1_000)])).value::<bool>().await);

    let id: String = java.get("acquire").await;
    let ids = parsed(slice::from_ref(&id));
    assert_eq!(java.call("getLeaseTime", json!([id])).value::<i64>().await, -1);
    assert!(ours.update_lease_time(&ids, Some(Duration::from_secs(100))).await.unwrap());
    let left: i64 = java.call("getLeaseTime", json!([id])).value().await;
    assert!((50_000..=102_000).contains(&left), "{left}");
}

#[tokio::test]
async fn a_wait_ends_on_each_side_while_the_other_holds_all() {
    let both = Both::start().await;
    let (ours, java) = made(&both, 1).await;
    let lease = ours.acquire(1).await.unwrap();
    let nothing: Option<String> = java.call_with_wait("tryAcquire", json!([ms(60), ms(-1)])).await;
    assert_eq!(nothing, None);
    lease.release().await.unwrap();
    let id: Option<String> = java.call("tryAcquire", json!([ms(60), ms(600_000)])).value().await;
    assert!(id.is_some());
    let permit = ours.permits(1).unwrap();
    let refused = in_time(Duration::from_millis(60), async |time| {
        permit.acquire_with(AcquireOptions::new().wait(time)).await
    });
    let refused = refused.await.unwrap_err();
    let AcquireError::Busy { remaining: Some(left) } = refused.kind else { panic!("{refused:?}") };
    assert!(left > Duration::from_secs(500));
}

#[tokio::test]
async fn each_call_that_makes_permits_available_wakes_java() {
    let both = Both::start().await;
    let (ours, java) = made(&both, 2).await;
    let waits = async |permits: u32| {
        let waiting = java.call("acquire", json!([permits, ms(JAVA_ENDLESS)]));
        java.thread.waits().await;
        waiting
    };
    let options = AcquireOptions::new().lease(ENDLESS);
    let lease = ours.permits(2).unwrap().acquire_with(options).await.unwrap();
    let waiting = waits(2).await;
    assert_eq!(lease.release().await, Ok(Released::Released));
    let ids: Vec<String> = waiting.value().await;

    let waiting = waits(1).await;
    assert_eq!(ours.release(&parsed(&ids)).await, Ok(2));
    waiting.value::<Vec<String>>().await;
    java.call("acquire", json!([1])).value::<Vec<String>>().await;
    let waiting = waits(1).await;
    assert_eq!(ours.set_permits(3).await, Ok(1));
    waiting.value::<Vec<String>>().await;
    let waiting = waits(2).await;
    ours.add_permits(1).await.unwrap();
    java.thread.waits().await;
    assert!(!waiting.has_come());
    ours.add_permits(1).await.unwrap();
    waiting.value::<Vec<String>>().await;
    let waiting = waits(5).await;
    assert_eq!(ours.force_release().await, Ok(true));
    waiting.value::<Vec<String>>().await;
    assert_eq!(counts(&java).await, [0, 5, 5]);
}

#[tokio::test]
async fn permits_that_java_releases_become_ours() {
    let both = Both::start().await;
    let (ours, java) = made(&both, 2).await;
    let ids: Vec<String> = java.call("acquire", json!([2])).value().await;
    let waiting = both.wait_for(ours.permits(2).unwrap()).await;
    java.call("release", json!([ids[0]])).value::<()>().await;
    assert!(ours.try_acquire(2).await.unwrap().is_none() && !waiting.is_finished());
    java.call("release", json!([ids[1]])).value::<()>().await;
    waiting.await.unwrap().release().await.unwrap();
    assert_eq!(counts(&java).await, [2, 0, 2]);
}

#[tokio::test]
async fn each_side_acquires_an_expired_permit_of_the_other() {
    let both = Both::start().await;
    let (ours, java) = made(&both, 1).await;
    let permit = ours.permits(1).unwrap();
    let (client, host) = both.env.virtual_client();
    let led = client.permit_expirable_semaphore(NAME, PeerSkew::DEFAULT).unwrap();
    let short = led.permits(1).unwrap();
    let taking = short.acquire_with(AcquireOptions::new().lease(SHORT));
    let lease = both.in_virtual_time(&host, taking).await.unwrap();
    let id: String = java.call("acquire", json!([ms(600)])).value().await;
    host.pass(SHORT);
    assert_eq!(lease.lost().await, LossReason::Expired);
    assert_eq!(lease.release().await, Ok(Released::WasLost));
    let next = permit.acquire().await.unwrap();
    assert!(!java.call("tryRelease", json!([id])).value::<bool>().await);
    assert!(next.is_held().await.unwrap());
    assert_eq!(next.release().await, Ok(Released::Released));
    assert_eq!(counts(&java).await, [1, 0, 1]);
}

/// Redisson's weak point 20: it removes all expired permits with one command, which Redis refuses
/// from some thousands on. edgelatch removes them in slices; after that it works for both sides.
#[tokio::test]
async fn expired_permits_that_overflow_java_s_script_are_removed_by_ours() {
    let both = Both::start().await;
    let (ours, java) = made(&both, 1).await;
    let dead = "for i=1,10000 do redis.call('ZADD',KEYS[1],i,string.format('%016d',i)) end";
    let timeouts = format!("{{{NAME}}}:timeout");
    both.env.redis.query::<Option<u64>>(&["EVAL", dead, "1", &timeouts]).await;
    let thrown = java.call("availablePermits", json!([])).thrown().await;
    assert!(thrown.message.contains("too many results to unpack"), "{thrown:?}");
    let lease = ours.permits(1000).unwrap().acquire().await.unwrap();
    for _ in 0..5 {
        ours.acquire(1).await.unwrap().release().await.unwrap();
    }
    assert_eq!(lease.release().await, Ok(Released::Released));
    assert_eq!(counts(&java).await, [10_001, 0, 10_001]);
}

/// S93.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_sides_contend_and_no_more_are_inside_than_there_are_permits() {
    let both = Both::start().await;
    let (ours, java) = made(&both, 2).await;
    let contest = Contest {
        java: json!({ "kind": "permitExpirableSemaphore", "name": NAME }),
        take: "acquire",
        give: json!({ "method": "release", "args": ["$taken"] }),
        contenders: 3,
        gauge: "inside",
        most: 2,
        without: None,
        counter: None,
    };
    let client = || both.direct_client().permit_expirable_semaphore(NAME, PeerSkew::DEFAULT);
    contest.run(&both, || client().unwrap().permits(1).unwrap()).await;
    assert_eq!(counts(&java).await, [2, 0, 2]);
    assert_eq!(ours.inspect(&[]).await.unwrap().acquired, 0);
}
