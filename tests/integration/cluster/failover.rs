//! Failovers under load on each kind of object.

use std::time::Duration;

use edgelatch::client::{AcquireOptions, Released};
use edgelatch::error::{LossReason, RequestError};
use tokio::task::block_in_place;

use super::env::{RecordingClient, RecordingLease, TestEnv};
use super::load::{Failover, Load, locks_to_acquire, permit_semaphore, semaphore};
use super::objects::{count, exclude, open, protect, share, share_in_order};
use super::replicas::acquire;
use test_support::servers::{Cluster, Sentinels, Server, until};

/// The lease of all holds here.
const LEASE: Duration = Duration::from_secs(600);

/// How long a master may be unresponsive before a Sentinel regards it as down: longer than the
/// delays of a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_master_of_a_cluster_that_hands_over_loses_nothing() {
    let cluster = block_in_place(|| Cluster::start(Duration::from_secs(15)));
    let env = TestEnv::new(cluster.url()).await;
    let tag = format!("{{{}}}", cluster.keys("handing-over:")[0]);
    let (client, _) = env.client();
    let kept = hold(&client, &format!("{tag}:kept"), AcquireOptions::new()).await;
    let mut load = Load::begin(&env, &tag, Failover::Keeps).await;
    load.wait_for_grants(3).await;
    block_in_place(|| cluster.fail_over(&tag));
    load.wait_for_grants(3).await;
    load.finish().await;
    is_kept(kept).await;
    works(&client, &tag).await;
}

/// S63.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_that_a_lost_cluster_master_did_not_replicate_is_reported_as_lost() {
    // 30 s: no node that runs is voted out, however busy the machine is.
    let mut cluster = block_in_place(|| Cluster::start(Duration::from_secs(30)));
    let env = TestEnv::new(cluster.url()).await;
    let tag = format!("{{{}}}", cluster.keys("losing:")[0]);
    let (master, replica) = cluster.places(&tag);
    let (client, _) = env.client();
    let replicated = AcquireOptions::new().replicas(1);
    let kept = hold(&client, &format!("{tag}:kept"), replicated).await;
    let before = hold(&client, &format!("{tag}:gone"), replicated).await;
    give_back(before).await;
    let mut load = Load::begin(&env, &tag, Failover::Loses).await;
    load.wait_for_grants(2).await;

    // The replica may stand for election, however old its data is.
    let late = ["CONFIG", "SET", "cluster-replica-validity-factor", "0"];
    cluster.servers()[replica].query::<()>(&late).unwrap();
    estrange(&cluster.servers()[replica]);
    cut_off(&cluster.servers()[master]);
    let gone = hold(&client, &format!("{tag}:gone"), AcquireOptions::new()).await;
    // From here on one of three masters is down. The other two cannot vote each other out, however
    // slow they are, since each alone is no majority.
    cluster.set_patience(Duration::from_secs(3));
    cluster.server(master).kill();
    block_in_place(|| {
        let replica = &cluster.servers()[replica];
        until(|| replica.says(&["INFO", "replication"], "role:master").then_some(()));
    });
    load.wait_for_grants(3).await;
    load.finish().await;
    is_reported_as_lost(&client, gone, &format!("{tag}:gone")).await;
    is_kept(kept).await;
    works(&client, &tag).await;
}

/// S63.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_that_a_lost_master_under_sentinels_did_not_replicate_is_reported_as_lost() {
    let mut sentinels = block_in_place(Sentinels::start);
    // No master that runs is voted out, however busy the machine is.
    sentinels.set_patience(PATIENCE);
    let env = TestEnv::new(sentinels.url()).await;
    let (client, _) = env.client();
    let mut load = Load::begin(&env, "{load}", Failover::Loses).await;
    load.wait_for_grants(2).await;

    // A failover that the Sentinels are told to make.
    block_in_place(|| sentinels.fail_over());
    load.wait_for_grants(2).await;
    let master = sentinels.master();
    block_in_place(|| until(|| (replicas_of(sentinels.server(master)) == 2).then_some(())));

    // A failover after a crash of the master, while its replicas lag behind.
    let replicated = AcquireOptions::new().replicas(2);
    let kept = hold(&client, "{kept}", replicated).await;
    give_back(hold(&client, "{gone}", replicated).await).await;
    sentinels.replicas().into_iter().for_each(estrange);
    cut_off(sentinels.server(master));
    let gone = hold(&client, "{gone}", AcquireOptions::new()).await;
    sentinels.set_patience(Duration::from_secs(2));
    sentinels.server(master).kill();
    block_in_place(|| until(|| (sentinels.master() != master).then_some(())));
    sentinels.set_patience(PATIENCE);
    load.wait_for_grants(3).await;
    load.finish().await;
    is_reported_as_lost(&client, gone, "{gone}").await;
    is_kept(kept).await;
    works(&client, "{after}").await;
}

/// Keeps a replica from reconnecting to its master.
fn estrange(replica: &Server) {
    replica.query::<()>(&["CONFIG", "SET", "masterauth", "another"]).unwrap();
}

/// Disconnects a master's replicas: its further writes are stored nowhere else.
fn cut_off(master: &Server) {
    master.query::<u64>(&["CLIENT", "KILL", "TYPE", "replica"]).unwrap();
    block_in_place(|| until(|| (replicas_of(master) == 0).then_some(())));
}

/// The number of replicas that receive its writes.
fn replicas_of(master: &Server) -> usize {
    let info: String = master.query(&["INFO", "replication"]).unwrap();
    info.matches("state=online").count()
}

/// Acquires one lease of each kind.
async fn hold(
    client: &RecordingClient,
    tag: &str,
    options: AcquireOptions,
) -> Vec<(&'static str, RecordingLease)> {
    semaphore(client, tag).try_set_permits(1, None).await.unwrap();
    permit_semaphore(client, tag).try_set_permits(1).await.unwrap();
    let mut leases = Vec::new();
    for (kind, lock) in locks_to_acquire(client, tag) {
        leases.push((kind, acquire(&lock, options.lease(LEASE)).await));
    }
    leases
}

async fn give_back(leases: Vec<(&'static str, RecordingLease)>) {
    for (kind, lease) in leases {
        assert_eq!(lease.release().await, Ok(Released::Released), "{kind}");
    }
}

/// Asserts that the holds still exist.
async fn is_kept(leases: Vec<(&'static str, RecordingLease)>) {
    for (kind, lease) in &leases {
        assert!(lease.is_held().await.unwrap(), "{kind}");
        lease.renew(None).await.unwrap();
    }
    give_back(leases).await;
}

/// Asserts that the holders are notified of the loss, and that later holders have later tokens and
/// are not disturbed.
async fn is_reported_as_lost(
    client: &RecordingClient,
    leases: Vec<(&'static str, RecordingLease)>,
    tag: &str,
) {
    for (number, (kind, lease)) in leases.into_iter().enumerate() {
        if number % 2 == 0 {
            assert!(!lease.is_held().await.unwrap(), "{kind}");
        } else {
            let lost = lease.renew(None).await.unwrap_err();
            assert_eq!(lost, RequestError::Lost(LossReason::Gone), "{kind}");
        }
        assert_eq!(lease.lost().await, LossReason::Gone, "{kind}");
        let (_, lock) = locks_to_acquire(client, tag).swap_remove(number);
        let next = lock.try_acquire().await.unwrap().unwrap();
        assert!(next.token() > lease.token(), "{kind}");
        assert_eq!(lease.release().await, Ok(Released::WasLost), "{kind}");
        assert!(next.is_held().await.unwrap(), "{kind}");
        assert_eq!(next.release().await, Ok(Released::Released), "{kind}");
    }
}

/// Asserts that all objects work as usual.
async fn works(client: &RecordingClient, tag: &str) {
    exclude(client, &format!("{tag}:excluding")).await;
    share(client, &format!("{tag}:sharing")).await;
    share_in_order(client, &format!("{tag}:sharing-in-order")).await;
    count(client, &format!("{tag}:counting")).await;
    open(client, &format!("{tag}:opening")).await;
    protect(client, &format!("{tag}:protecting")).await;
}
