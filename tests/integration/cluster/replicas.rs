//! Grants that have to be with replicas, on real ones.

use std::time::Duration;

use edgelatch::client::{AcquireOptions, Client};
use edgelatch::error::{AcquireError, RefusalKind};
use edgelatch::host::TokioHost;
use edgelatch::protocol::gateway::Gateway;
use edgelatch::timing::AttemptTime;
use tokio::task::block_in_place;

use super::load::{pool, seats, takes};
use super::objects::NotedLock;
use super::stand::{Noted, NotedClient, Stand};
use test_support::redis::TOKEN;
use test_support::servers::{Cluster, Sentinels};

fn with(replicas: u8) -> AcquireOptions {
    AcquireOptions::new().replicas(replicas)
}

/// Nobody holds any of them: others take them at once.
async fn assert_free(client: &NotedClient, tag: &str) {
    for (kind, lock) in takes(client, tag) {
        let lease = lock.try_acquire().await.unwrap();
        lease.unwrap_or_else(|| panic!("{kind}")).release().await.unwrap();
    }
}

/// S63.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_grant_that_too_few_replicas_have_is_given_back() {
    let sentinels = block_in_place(Sentinels::start);
    let stand = Stand::new(sentinels.url()).await;
    let (client, noted) = stand.client();
    pool(&client, "all").try_set_permits(1, None).await.unwrap();
    seats(&client, "all").try_set_permits(1).await.unwrap();
    for (kind, lock) in takes(&client, "all") {
        // Known to Redis from here on.
        lock.acquire().await.unwrap().release().await.unwrap();
        let before = noted.count();
        let lease = lock.acquire_with(with(2)).await.unwrap();
        // One request, as the one that is refused and the one that releases it.
        assert!(lock.try_acquire_with(with(1)).await.unwrap().is_none(), "{kind}");
        lease.release().await.unwrap();
        assert_eq!(noted.count(), before + 3, "{kind}: {:?}", noted.said());
    }
    // There are two.
    let short = short(&stand);
    let error = short.lock("three").unwrap().acquire_with(with(3)).await.unwrap_err();
    assert_eq!(error, AcquireError::NotReplicated { acknowledged: 2 });

    let hanging = sentinels.replicas()[0];
    hanging.hang();
    for (kind, lock) in takes(&short, "all") {
        lock.acquire_with(with(1)).await.unwrap().release().await.unwrap();
        let error = lock.acquire_with(with(2)).await.unwrap_err();
        assert_eq!(error, AcquireError::NotReplicated { acknowledged: 1 }, "{kind}");
        let error = lock.try_acquire_with(with(2)).await.unwrap_err();
        assert_eq!(error, AcquireError::NotReplicated { acknowledged: 1 }, "{kind}");
    }
    assert_free(&client, "all").await;
    hanging.go_on();
    for (_, lock) in takes(&client, "all") {
        lock.acquire_with(with(2)).await.unwrap().release().await.unwrap();
    }
    assert_eq!(noted.complaints(), Vec::<String>::new());
}

/// A client whose attempts are short, and so its waits for replicas.
fn short(stand: &Stand) -> NotedClient {
    let attempt = AttemptTime::new(Duration::from_secs(1)).unwrap();
    stand.client_with(|gateway| gateway.request_timeout(attempt)).0
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_locks_in_several_slots_are_all_replicated_or_none_is_held() {
    let cluster = block_in_place(|| Cluster::start(Duration::from_secs(15)));
    let stand = Stand::new(cluster.url()).await;
    let (client, _) = stand.client();
    let names = cluster.keys("replicated:");
    let locks =
        || -> Vec<NotedLock> { names.iter().map(|name| client.lock(name).unwrap()).collect() };
    let all = client.multi_lock(locks()).unwrap();
    all.acquire_with(with(1)).await.unwrap().release().await.unwrap();
    let error = all.acquire_with(with(2)).await.unwrap_err();
    assert_eq!(error, AcquireError::NotReplicated { acknowledged: 1 });
    let (_, replica) = cluster.places(&names[1]);
    cluster.servers()[replica].hang();
    let error = all.acquire_with(with(1)).await.unwrap_err();
    assert_eq!(error, AcquireError::NotReplicated { acknowledged: 0 });
    for lock in locks() {
        lock.try_acquire().await.unwrap().unwrap().release().await.unwrap();
    }
    // Where the others are, nothing is wrong.
    client.lock(&names[0]).unwrap().acquire_with(with(1)).await.unwrap().release().await.unwrap();
    cluster.servers()[replica].go_on();
    all.acquire_with(with(1)).await.unwrap().release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_without_lists_is_told_of() {
    let cluster = Cluster::shared();
    let stand = Stand::new(cluster.url()).await;
    let noted = Noted::without_lists();
    let gateway = Gateway::upstash(&stand.url(), TOKEN).unwrap();
    let client = Client::new(gateway, noted.clone(), TokioHost::new());
    let lock = client.lock("without lists").unwrap();
    let Err(AcquireError::Refused(refusal)) = lock.acquire_with(with(1)).await else {
        panic!("not refused")
    };
    assert_eq!(refusal.kind(), RefusalKind::Unsupported);
    assert_eq!(refusal.to_string(), "the gateway has no way to wait for replicas");
    assert_eq!(noted.scripts(), ["lock_release".to_owned()].into());
    lock.acquire().await.unwrap().release().await.unwrap();
    for replicas in [0, 9] {
        let before = noted.count();
        let Err(AcquireError::InvalidOption(no)) = lock.acquire_with(with(replicas)).await else {
            panic!("not refused")
        };
        assert_eq!((no.option(), noted.count()), ("replicas", before));
    }
}
