//! Multi-locks on one gateway and on several.

use std::time::Duration;

use edgelatch::Error;
use edgelatch::client::{AcquireOptions, FairSettings, Lock, Released, SpinBackoff};
use edgelatch::error::AcquireError;
use edgelatch::host::TokioHost;
use edgelatch::timing::PeerSkew;
use edgelatch::transport::Reqwest;
use tokio::task::JoinSet;

use test_support::fake_host::FakeHost;
use test_support::faults::{Fault, FaultResponse};
use test_support::test_env::{NativeClient, TestEnv, in_virtual_time};

type NativeLock = Lock<Reqwest, TokioHost>;

fn locks(client: &NativeClient, names: &[&str]) -> Vec<NativeLock> {
    names.iter().map(|name| client.lock(name).unwrap()).collect()
}

#[tokio::test]
async fn locks_of_one_gateway_are_acquired_and_released_in_one_request_each() {
    let env = TestEnv::new().await;
    let client = env.client();
    let all = client.multi_lock(locks(&client, &["b", "a", "c", "a"])).unwrap();
    let lease = all.acquire().await.unwrap();
    assert_eq!(env.proxy.calls().len(), 1);
    for name in ["a", "b", "c"] {
        assert!(client.lock(name).unwrap().try_acquire().await.unwrap().is_none(), "{name}");
        assert_eq!(lease.token_of(name), Some(lease.token()));
    }
    assert_eq!(lease.token_of("d"), None);
    let before = env.proxy.calls().len();
    assert!(lease.is_held().await.unwrap());
    lease.renew(Some(Duration::from_secs(60))).await.unwrap();
    assert_eq!(lease.release().await, Ok(Released::Released));
    assert_eq!(env.proxy.calls().len(), before + 3);
    env.assert_nothing_is_held("several").await;
}

#[tokio::test]
async fn if_one_is_held_none_is_acquired() {
    let env = TestEnv::new().await;
    let client = env.client();
    let held = client.lock("b").unwrap().acquire().await.unwrap();
    let all = client.multi_lock(locks(&client, &["a", "b", "c"])).unwrap();
    assert!(all.try_acquire().await.unwrap().is_none());
    client.lock("a").unwrap().acquire().await.unwrap().release().await.unwrap();
    let (lease, released) = tokio::join!(all.acquire(), held.release());
    released.unwrap();
    lease.unwrap().release().await.unwrap();
    env.assert_nothing_is_held("none").await;
}

#[tokio::test]
async fn a_multi_lock_of_spin_locks_with_one_back_off_waits_by_it() {
    let env = TestEnv::new().await;
    let (client, host) = env.virtual_client();
    let held = client.lock("b").unwrap().acquire().await.unwrap();
    let spin = |name| {
        let pace = SpinBackoff::Constant(Duration::from_secs(60));
        client.spin_lock(name, pace).unwrap()
    };
    let wait = AcquireOptions::new().wait(Duration::from_secs(1));
    for (members, paced) in
        [([spin("a"), spin("b")], true), ([spin("a"), client.lock("b").unwrap()], false)]
    {
        env.proxy.plan(|_| Fault::none());
        let multi = client.multi_lock(members).unwrap();
        let refused = env.in_virtual_time(&host, multi.acquire_with(wait)).await;
        assert!(
            matches!(refused, Err(Error { kind: AcquireError::Busy { .. }, .. })),
            "{refused:?}"
        );
        // The first try and the one at the end of the wait; there is no other within a minute.
        assert_eq!(env.proxy.count("lock_acquire") == 2, paced);
    }
    held.release().await.unwrap();
}

#[tokio::test]
async fn members_may_be_of_any_kind_and_on_several_gateways() {
    let (near, far) = (TestEnv::new().await, TestEnv::new().await);
    let (here, there) = (near.client(), far.client());
    let members = || {
        let shelf = there.read_write_lock("shelf", Default::default()).unwrap();
        [
            here.lock("a").unwrap(),
            there.fenced_lock("b").unwrap(),
            here.fair_lock("c", FairSettings::default()).unwrap(),
            shelf.write().clone(),
            here.group_lock("d", ["1", "2"], PeerSkew::DEFAULT).unwrap(),
        ]
    };
    let lease = here.multi_lock(members()).unwrap().acquire().await.unwrap();
    for (place, member) in members().into_iter().enumerate() {
        assert!(member.try_acquire().await.unwrap().is_none(), "{place}");
        assert!(lease.token_of(member.name().as_str()).is_some(), "{place}");
    }
    assert!(lease.is_held().await.unwrap());
    lease.renew(None).await.unwrap();
    assert_eq!(lease.release().await, Ok(Released::Released));
    near.assert_nothing_is_held("near").await;
    far.assert_nothing_is_held("far").await;
}

#[tokio::test]
async fn losing_one_member_loses_all() {
    let (near, far) = (TestEnv::new().await, TestEnv::new().await);
    let (here, there) = (near.client(), far.client());
    let members = [here.lock("a").unwrap(), there.lock("b").unwrap()];
    let lease = here.multi_lock(members).unwrap().acquire().await.unwrap();
    far.redis.query::<u64>(&["DEL", "b"]).await;
    assert!(!lease.is_held().await.unwrap());
    assert_eq!(lease.lost().await, edgelatch::error::LossReason::Gone);
    assert_eq!(lease.release().await, Ok(Released::WasLost));
    near.assert_nothing_is_held("rest").await;
}

/// S94.
#[tokio::test]
async fn a_silent_gateway_leaves_nothing_held_on_the_other() {
    let (near, far) = (
        TestEnv::new().await,
        TestEnv::with(|_| Fault::not_executed(FaultResponse::Silence)).await,
    );
    let host = FakeHost::new();
    let (here, there) = (near.virtual_client_on(&host), far.virtual_client_on(&host));
    let members = [here.lock("a").unwrap(), there.lock("b").unwrap()];
    let multi = there.multi_lock(members).unwrap();
    let options = AcquireOptions::new().wait(Duration::from_millis(300));
    let is_idle = || near.proxy.is_idle() && far.proxy.is_idle();
    assert!(in_virtual_time(&host, is_idle, multi.acquire_with(options)).await.is_err());
    near.assert_nothing_is_held("near").await;
}

/// S94.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orders_that_differ_do_not_stop_each_other() {
    let (near, far) = (TestEnv::new().await, TestEnv::new().await);
    let mut tasks = JoinSet::new();
    for number in 0..6 {
        let (here, there) = (near.client(), far.client());
        let mut members = vec![
            here.lock("a").unwrap(),
            there.lock("b").unwrap(),
            here.fair_lock("c", FairSettings::default()).unwrap(),
        ];
        members.rotate_left(number % 3);
        if number >= 3 {
            members.reverse();
        }
        tasks.spawn(async move {
            let multi = here.multi_lock(members).unwrap();
            for _ in 0..3 {
                let options = AcquireOptions::new().wait_until_cancelled();
                multi.acquire_with(options).await.unwrap().release().await.unwrap();
            }
        });
    }
    tasks.join_all().await;
    near.assert_nothing_is_held("near").await;
    far.assert_nothing_is_held("far").await;
}

#[tokio::test]
async fn an_owner_re_enters_several_as_one() {
    let env = TestEnv::new().await;
    let owner = env.client().owner();
    let outer = owner.multi_lock(locks(&owner, &["a", "b"])).unwrap().acquire().await.unwrap();
    let inner = owner.multi_lock(locks(&owner, &["b", "a"])).unwrap().acquire().await.unwrap();
    assert_eq!(inner.hold_count(), 2);
    inner.release().await.unwrap();
    outer.release().await.unwrap();
    env.assert_nothing_is_held("owner").await;
}

#[tokio::test]
async fn sets_that_make_no_sense_are_refused() {
    let env = TestEnv::new().await;
    let client = env.client();
    let shelf = client.read_write_lock("a", Default::default()).unwrap();
    let both = [shelf.read().clone(), shelf.write().clone()];
    assert!(client.multi_lock(both).is_err());
    assert!(client.multi_lock([]).is_err());
    assert!(
        client.multi_lock([client.lock("a").unwrap(), client.fenced_lock("a").unwrap()]).is_err()
    );
    let pool = client.semaphore("pool").unwrap().permits(1).unwrap();
    assert!(client.multi_lock([pool]).is_err());
    assert!(client.red_lock(locks(&client, &["a", "b", "c"])).is_err());
    let several = client.multi_lock(locks(&client, &["a", "b"])).unwrap();
    assert!(several.force_release().await.is_err() && several.inspect().await.is_err());
    assert_eq!(env.proxy.calls().len(), 0);
}
