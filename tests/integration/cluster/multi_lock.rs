//! Multi-locks whose names are in several slots.

use std::time::Duration;

use edgelatch::client::{AcquireOptions, FairSettings, Released};
use edgelatch::error::AcquireError;
use edgelatch::timing::PeerSkew;
use tokio::task::JoinSet;

use super::env::{RecordingClient, TestEnv};
use super::objects::{RecordingLock, beside};
use test_support::servers::Cluster;
use test_support::slow_machine::in_time;

fn locks(client: &RecordingClient, names: &[String]) -> Vec<RecordingLock> {
    names.iter().map(|name| client.lock(name).unwrap()).collect()
}

/// Two names on each master: each name is in a slot of its own.
fn spread(cluster: &Cluster, start: &str) -> Vec<String> {
    [cluster.keys(&format!("{start}:a:")), cluster.keys(&format!("{start}:b:"))].concat()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_finds_out_once_that_it_is_a_cluster() {
    let cluster = Cluster::shared();
    let env = TestEnv::new(cluster.url()).await;
    let (client, recorder) = env.client();
    let names = spread(&cluster, "found");
    let all = client.multi_lock(locks(&client, &names)).unwrap();
    for round in 0..3 {
        let lease = all.acquire().await.unwrap();
        for name in &names {
            assert!(client.lock(name).unwrap().try_acquire().await.unwrap().is_none(), "{name}");
            assert!(lease.token_of(name).is_some(), "{name}");
        }
        assert!(lease.is_held().await.unwrap());
        lease.renew(Some(Duration::from_secs(60))).await.unwrap();
        assert_eq!(lease.release().await, Ok(Released::Released));
        let redis_errors = recorder.redis_errors();
        assert!(
            redis_errors.len() == 1 && redis_errors[0].starts_with("CROSSSLOT"),
            "{round}: {redis_errors:?}"
        );
    }
    // Other objects and clones of the client know it too.
    client
        .clone()
        .multi_lock(locks(&client, &names[1..]))
        .unwrap()
        .try_acquire()
        .await
        .unwrap()
        .unwrap()
        .release()
        .await
        .unwrap();
    assert_eq!(recorder.redis_errors().len(), 1);
    assert_free(&client, &names).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locks_of_one_slot_are_acquired_in_one_request_and_a_tag_puts_them_there() {
    let cluster = Cluster::shared();
    let env = TestEnv::new(cluster.url()).await;
    let (client, recorder) = env.client();
    let names = ["tagged", "{tagged}:1", "2{tagged}", "{tagged} 3"].map(str::to_owned);
    let all = client.multi_lock(locks(&client, &names)).unwrap();
    all.acquire().await.unwrap().release().await.unwrap();
    let before = recorder.count();
    all.acquire().await.unwrap().release().await.unwrap();
    assert_eq!((recorder.count(), recorder.redis_errors()), (before + 2, vec![]));
}

// Slow: the servers of a real Redis Cluster have to start.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn if_one_slot_is_busy_nothing_is_acquired_in_the_others() {
    let cluster = Cluster::shared();
    let env = TestEnv::new(cluster.url()).await;
    let (client, _) = env.client();
    let names = spread(&cluster, "busy");
    for held in &names {
        let lease = client.lock(held).unwrap().acquire().await.unwrap();
        let all = client.multi_lock(locks(&client, &names)).unwrap();
        assert!(all.try_acquire().await.unwrap().is_none(), "{held}");
        let waited = in_time(Duration::from_millis(200), async |time| {
            all.acquire_with(AcquireOptions::new().wait(time)).await
        });
        let waited = waited.await.unwrap_err();
        assert!(matches!(waited.kind, AcquireError::Busy { .. }), "{held}: {waited:?}");
        let others: Vec<String> = names.iter().filter(|name| *name != held).cloned().collect();
        assert_free(&client, &others).await;
        // The default of 40 requests is too few for six parts: none would be left between the first
        // try and the last.
        let options = AcquireOptions::new().max_requests(1_000);
        let (all, released) = tokio::join!(all.acquire_with(options), lease.release());
        released.unwrap();
        all.unwrap().release().await.unwrap();
    }
    assert_free(&client, &names).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_of_any_kind_in_any_slot_are_one_lock() {
    let cluster = Cluster::shared();
    let env = TestEnv::new(cluster.url()).await;
    let (client, recorder) = env.client();
    let [a, b, c, d, e, f]: [String; 6] = spread(&cluster, "mixed").try_into().unwrap();
    let members = || {
        [
            client.lock(&a).unwrap(),
            client.fenced_lock(&b).unwrap(),
            client.fair_lock(&c, FairSettings::default()).unwrap(),
            client.read_write_lock(&d, Default::default()).unwrap().write().clone(),
            client.read_write_lock(&e, Default::default()).unwrap().read().clone(),
            client.group_lock(&f, ["1", "2"], PeerSkew::DEFAULT).unwrap(),
            client.lock(&format!("{}:g", beside(&a))).unwrap(),
        ]
    };
    for _ in 0..2 {
        let lease = client.multi_lock(members()).unwrap().acquire().await.unwrap();
        for (place, member) in members().into_iter().enumerate() {
            // Readers share the lock.
            assert_eq!(member.try_acquire().await.unwrap().is_some(), place == 4, "{place}");
        }
        assert!(lease.is_held().await.unwrap());
        lease.renew(None).await.unwrap();
        assert_eq!(lease.release().await, Ok(Released::Released));
        client
            .read_write_lock(&e, Default::default())
            .unwrap()
            .read()
            .force_release()
            .await
            .unwrap();
    }
    let crossing = recorder.redis_errors();
    assert!(crossing.len() <= 1 && crossing.iter().all(|text| text.starts_with("CROSSSLOT")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orders_that_differ_do_not_stop_each_other_across_slots() {
    let cluster = Cluster::shared();
    let env = TestEnv::new(cluster.url()).await;
    let names = spread(&cluster, "ordered");
    let counter = beside(&names[0]);
    let mut tasks = JoinSet::new();
    for number in 0..4 {
        let (client, _) = env.client();
        let mut members = locks(&client, &names);
        members.rotate_left(number);
        if number % 2 == 1 {
            members.reverse();
        }
        let script = edgelatch::client::GuardedWrite::set(number.to_string(), None);
        let guard = client.guard(&counter, edgelatch::timing::GuardMemory::DEFAULT).unwrap();
        let first = names[0].clone();
        tasks.spawn(async move {
            let all = client.multi_lock(members).unwrap();
            let mut tokens = Vec::new();
            for _ in 0..3 {
                let options = AcquireOptions::new().wait_until_cancelled();
                let lease = all.acquire_with(options).await.unwrap();
                // No newer token was stored, so no other client holds it.
                guard.write(&lease, Some(&first), &script).await.unwrap();
                tokens.push(lease.token_of(&first).unwrap());
                assert_eq!(lease.release().await, Ok(Released::Released));
            }
            tokens
        });
    }
    let bounded = tokio::time::timeout(Duration::from_secs(300), tasks.join_all());
    let mut tokens = bounded.await.unwrap().concat();
    tokens.sort_unstable();
    tokens.dedup();
    assert_eq!(tokens.len(), 12);
    assert_free(&env.client().0, &names).await;
}

/// Asserts that no client holds any of them.
async fn assert_free(client: &RecordingClient, names: &[String]) {
    for name in names {
        assert!(!client.lock(name).unwrap().inspect().await.unwrap().is_locked, "{name}");
    }
}
