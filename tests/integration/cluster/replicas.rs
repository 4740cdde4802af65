//! Grants that replicas must acknowledge, on real ones.

use std::time::Duration;

use edgelatch::client::{AcquireOptions, Client};
use edgelatch::error::{AcquireError, RefusalKind};
use edgelatch::host::TokioHost;
use edgelatch::timing::AttemptTime;
use edgelatch::{Error, Gateway};
use tokio::task::block_in_place;
use tokio::time::timeout;

use super::env::{RecordingClient, RecordingLease, RecordingTransport, TestEnv};
use super::load::{locks_to_acquire, permit_semaphore, semaphore};
use super::objects::RecordingLock;
use test_support::redis::TOKEN;
use test_support::servers::{Cluster, Sentinels};
use test_support::slow_machine::is_too_slow;

/// The time limit of a test: reached only by a failing one.
const TIME_LIMIT: Duration = Duration::from_secs(300);

fn with(replicas: u8) -> AcquireOptions {
    AcquireOptions::new().replicas(replicas)
}

/// Asserts that no client holds any of them: another client acquires each at once.
async fn assert_free(client: &RecordingClient, tag: &str) {
    for (kind, lock) in locks_to_acquire(client, tag) {
        let lease = lock.try_acquire().await.unwrap();
        lease.unwrap_or_else(|| panic!("{kind}")).release().await.unwrap();
    }
}

/// S63.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_grant_that_too_few_replicas_have_is_given_back() {
    let sentinels = block_in_place(Sentinels::start);
    // The master is not voted out, however busy the machine is.
    sentinels.set_patience(Duration::from_secs(30));
    let env = TestEnv::new(sentinels.url()).await;
    let (client, recorder) = env.client();
    semaphore(&client, "all").try_set_permits(1, None).await.unwrap();
    permit_semaphore(&client, "all").try_set_permits(1).await.unwrap();
    for (kind, lock) in locks_to_acquire(&client, "all") {
        // From here on Redis knows the script.
        lock.acquire().await.unwrap().release().await.unwrap();
        let (before, lease) = acquire_noting(&lock, with(2), &recorder).await;
        // The grant takes one request, like the refusal and the release.
        assert!(lock.try_acquire_with(with(1)).await.unwrap().is_none(), "{kind}");
        lease.release().await.unwrap();
        assert_eq!(recorder.count(), before + 3, "{kind}: {:?}", recorder.exchanges());
    }
    // There are two replicas.
    let short = short(&env);
    let three = short.lock("three").unwrap();
    assert_acknowledged(2, "three", async || three.acquire_with(with(3)).await.unwrap_err()).await;

    let hanging = sentinels.replicas()[0];
    hanging.hang();
    for (kind, lock) in locks_to_acquire(&short, "all") {
        assert_acknowledged(1, kind, async || lock.acquire_with(with(2)).await.unwrap_err()).await;
        assert_acknowledged(1, kind, async || lock.try_acquire_with(with(2)).await.unwrap_err())
            .await;
    }
    for (_, lock) in locks_to_acquire(&client, "all") {
        acquire(&lock, with(1)).await.release().await.unwrap();
    }
    assert_free(&client, "all").await;
    hanging.go_on();
    for (_, lock) in locks_to_acquire(&client, "all") {
        acquire(&lock, with(2)).await.release().await.unwrap();
    }
    assert_eq!(recorder.redis_errors(), Vec::<String>::new());
}

/// Acquires the lock; retries while its replicas are too slow for the second that Redis waits for
/// them.
pub(crate) async fn acquire(lock: &RecordingLock, options: AcquireOptions) -> RecordingLease {
    acquire_noting(lock, options, &RecordingTransport::default()).await.1
}

/// Acquires the lock as [`acquire`] does; also returns the number of requests before the
/// acquisition that was granted.
async fn acquire_noting(
    lock: &RecordingLock,
    options: AcquireOptions,
    recorder: &RecordingTransport,
) -> (usize, RecordingLease) {
    let asking = async {
        loop {
            let before = recorder.count();
            match lock.acquire_with(options).await {
                Ok(lease) => return (before, lease),
                Err(Error { kind: AcquireError::NotReplicated { .. }, .. }) => {}
                Err(error) => assert!(is_too_slow(&error.kind), "{error:?}"),
            }
        }
    };
    timeout(TIME_LIMIT, asking).await.unwrap()
}

/// Asserts that at most `most` replicas acknowledge the call of `refused`, and that this number was
/// reached. Retries while the machine is too slow for their time limit.
async fn assert_acknowledged(
    most: u32,
    what: &str,
    refused: impl AsyncFn() -> Error<AcquireError>,
) {
    let asking = async {
        loop {
            match refused().await.kind {
                AcquireError::NotReplicated { acknowledged } if acknowledged == most => return,
                AcquireError::NotReplicated { acknowledged } => {
                    assert!(acknowledged < most, "{what}: {acknowledged}");
                }
                error => assert!(is_too_slow(&error), "{what}: {error:?}"),
            }
        }
    };
    timeout(TIME_LIMIT, asking).await.unwrap();
}

/// A client with short attempts, which limit its waits for replicas too.
fn short(env: &TestEnv) -> RecordingClient {
    let attempt = AttemptTime::new(Duration::from_secs(1)).unwrap();
    env.client_with(|gateway| gateway.request_timeout(attempt)).0
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_locks_in_several_slots_are_all_replicated_or_none_is_held() {
    let cluster = block_in_place(|| Cluster::start(Duration::from_secs(15)));
    let env = TestEnv::new(cluster.url()).await;
    let (client, _) = env.client();
    let names = cluster.keys("replicated:");
    let locks =
        || -> Vec<RecordingLock> { names.iter().map(|name| client.lock(name).unwrap()).collect() };
    let all = client.multi_lock(locks()).unwrap();
    acquire(&all, with(1)).await.release().await.unwrap();
    assert_acknowledged(1, "all", async || all.acquire_with(with(2)).await.unwrap_err()).await;
    let (_, replica) = cluster.places(&names[1]);
    cluster.servers()[replica].hang();
    assert_acknowledged(0, "all", async || all.acquire_with(with(1)).await.unwrap_err()).await;
    for lock in locks() {
        lock.try_acquire().await.unwrap().unwrap().release().await.unwrap();
    }
    // The nodes of the other names work.
    acquire(&client.lock(&names[0]).unwrap(), with(1)).await.release().await.unwrap();
    cluster.servers()[replica].go_on();
    acquire(&all, with(1)).await.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_without_pipelines_is_reported() {
    let cluster = Cluster::shared();
    let env = TestEnv::new(cluster.url()).await;
    let recorder = RecordingTransport::without_pipelines();
    let gateway = Gateway::upstash(&env.url(), TOKEN).unwrap();
    let client = Client::new(gateway, recorder.clone(), TokioHost::new());
    let lock = client.lock("without lists").unwrap();
    let Err(Error { kind: AcquireError::Refused(refusal), .. }) = lock.acquire_with(with(1)).await
    else {
        panic!("not refused")
    };
    assert_eq!(refusal.kind(), RefusalKind::Unsupported);
    assert_eq!(refusal.to_string(), "the gateway has no way to wait for replicas");
    assert_eq!(recorder.scripts(), ["lock_release".to_owned()].into());
    lock.acquire().await.unwrap().release().await.unwrap();
    for replicas in [0, 9] {
        let before = recorder.count();
        let Err(Error { kind: AcquireError::InvalidOption(no), .. }) =
            lock.acquire_with(with(replicas)).await
        else {
            panic!("not refused")
        };
        assert_eq!((no.option(), recorder.count()), ("replicas", before));
    }
}
