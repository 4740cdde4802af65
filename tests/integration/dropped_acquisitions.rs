//! Acquisitions whose future is dropped before it is ready: the client releases their grant in the
//! background.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use edgelatch::Error;
use edgelatch::client::{
    AcquireOptions, FairSettings, Lease, Lock, ReadWriteSettings, SpinBackoff,
};
use edgelatch::error::AcquireError;
use edgelatch::host::TokioHost;
use edgelatch::timing::PeerSkew;
use edgelatch::transport::Reqwest;
use tokio::sync::Notify;

use test_support::faults::{Fault, FaultResponse};
use test_support::test_env::{NativeClient, TestEnv, until};

type NativeLock = Lock<Reqwest, TokioHost>;
type Make = fn(&NativeClient) -> NativeLock;
type Taken = Result<Lease<Reqwest, TokioHost>, Error<AcquireError>>;

const SKEW: PeerSkew = PeerSkew::DEFAULT;

/// A lease far longer than a test, so that a grant that is never released is noticed.
fn long() -> AcquireOptions {
    AcquireOptions::new().lease(Duration::from_secs(600))
}

/// Executes the first acquisition of each script at once, and delays the response until `go_on`.
fn answer_late(env: &TestEnv, go_on: &Arc<Notify>) {
    let go_on = Arc::clone(go_on);
    env.proxy.plan(move |seen| match seen.script.ends_with("acquire") && seen.number == 1 {
        true => Fault::executed(FaultResponse::Delayed(Arc::clone(&go_on))),
        false => Fault::none(),
    });
}

/// The acquisition of each kind of object.
const OBJECTS: [(&str, Make); 11] = [
    ("lock", |client| client.lock("job").unwrap()),
    ("non-reentrant lock", |client| client.non_reentrant_lock("job").unwrap()),
    ("spin lock", |client| client.spin_lock("job", SpinBackoff::default()).unwrap()),
    ("fenced lock", |client| client.fenced_lock("job").unwrap()),
    ("fair lock", |client| client.fair_lock("job", FairSettings::default()).unwrap()),
    ("write side", |client| {
        client.read_write_lock("job", ReadWriteSettings::default()).unwrap().write().clone()
    }),
    ("read side", |client| {
        client.read_write_lock("job", ReadWriteSettings::default()).unwrap().read().clone()
    }),
    ("group", |client| client.group_lock("job", ["a", "b"], SKEW).unwrap()),
    ("multi-lock", |client| {
        let locks = ["job", "other"].map(|name| client.lock(name).unwrap());
        client.multi_lock(locks).unwrap()
    }),
    ("semaphore", |client| client.semaphore("permits").unwrap().permits(1).unwrap()),
    ("permit-expirable semaphore", |client| {
        let semaphore = client.permit_expirable_semaphore("ids", SKEW).unwrap();
        semaphore.permits(1).unwrap()
    }),
];

/// A lock that excludes the given one.
fn rival(name: &str, client: &NativeClient, lock: Make) -> NativeLock {
    match name {
        // Readers share.
        "read side" => {
            client.read_write_lock("job", ReadWriteSettings::default()).unwrap().write().clone()
        }
        _ => lock(client),
    }
}

/// Polls the acquisition until Redis has granted it, and drops it before the response arrives.
async fn drop_when_granted(env: &TestEnv, acquiring: impl Future<Output = Taken>) {
    let before = env.redis.dump().await;
    tokio::select! {
        taken = acquiring => panic!("{:?}", taken.map(drop)),
        () = until(async || !env.redis.dump().await.keys().eq(before.keys())) => {}
    }
    env.proxy.plan(|_| Fault::none());
}

/// S59.
// Slow: a Redis and a gateway for each of eleven objects.
#[tokio::test]
async fn a_grant_to_a_dropped_acquisition_is_released() {
    for (name, lock) in OBJECTS {
        println!("{name}");
        let env = TestEnv::new().await;
        let client = env.client();
        client.semaphore("permits").unwrap().try_set_permits(1, None).await.unwrap();
        let ids = client.permit_expirable_semaphore("ids", SKEW).unwrap();
        ids.try_set_permits(1).await.unwrap();
        let go_on = Arc::new(Notify::new());
        answer_late(&env, &go_on);
        drop_when_granted(&env, lock(&client).acquire_with(long())).await;
        let other = rival(name, &env.client(), lock);
        other.acquire().await.unwrap().release().await.unwrap();
        go_on.notify_waiters();
    }
}

/// S59.
#[tokio::test]
async fn each_of_several_gateways_gets_its_grant_released() {
    for is_red in [false, true] {
        let envs = [TestEnv::new().await, TestEnv::new().await, TestEnv::new().await];
        let clients: Vec<_> = envs.iter().map(TestEnv::client).collect();
        let several = |clients: &[NativeClient]| {
            let locks: Vec<_> = clients.iter().map(|client| client.lock("job").unwrap()).collect();
            let (first, locks) = (&clients[0], locks.into_iter());
            if is_red { first.red_lock(locks).unwrap() } else { first.multi_lock(locks).unwrap() }
        };
        let go_on = Arc::new(Notify::new());
        envs.iter().for_each(|env| answer_late(env, &go_on));
        drop_when_granted(&envs[0], several(&clients).acquire_with(long())).await;
        for env in &envs {
            let lease = env.client().lock("job").unwrap().acquire().await.unwrap();
            lease.release().await.unwrap();
        }
        go_on.notify_waiters();
    }
}

/// S59.
#[tokio::test]
async fn a_timeout_and_an_aborted_task_leave_nothing_held() {
    for is_aborted in [false, true] {
        let env = TestEnv::new().await;
        let go_on = Arc::new(Notify::new());
        answer_late(&env, &go_on);
        let lock = env.client().lock("job").unwrap();
        let acquiring = async move { lock.acquire_with(long()).await };
        if is_aborted {
            let task = tokio::spawn(acquiring);
            until(async || env.redis.query::<u64>(&["EXISTS", "job"]).await == 1).await;
            task.abort();
            assert!(task.await.unwrap_err().is_cancelled());
        } else {
            tokio::time::timeout(Duration::from_millis(50), acquiring).await.unwrap_err();
        }
        let next = env.client().lock("job").unwrap().acquire().await.unwrap();
        next.release().await.unwrap();
        go_on.notify_waiters();
    }
}

/// S59.
#[tokio::test]
async fn a_waiter_of_a_fair_lock_that_is_dropped_leaves_the_queue() {
    let env = TestEnv::new().await;
    let fair = || env.client().fair_lock("job", FairSettings::default()).unwrap();
    let held = fair().acquire_with(long()).await.unwrap();
    let queue = async || env.redis.query::<u64>(&["LLEN", "redisson_lock_queue:{job}"]).await;
    let waiting = fair();
    tokio::select! {
        taken = waiting.acquire() => panic!("{:?}", taken.map(drop)),
        () = until(async || queue().await == 1) => {}
    }
    until(async || queue().await == 0).await;
    held.release().await.unwrap();
}

/// S59.
// Slow: a Redis and a gateway for each point, and for each of five objects.
#[tokio::test]
async fn dropped_at_any_point_an_acquisition_leaves_no_hold() {
    for (name, lock) in OBJECTS.into_iter().step_by(2) {
        for polls in 0.. {
            let env = TestEnv::new().await;
            let client = env.client();
            client.semaphore("permits").unwrap().try_set_permits(1, None).await.unwrap();
            let ids = client.permit_expirable_semaphore("ids", SKEW).unwrap();
            ids.try_set_permits(1).await.unwrap();
            let taken = polled(polls, lock(&client).acquire_with(long())).await;
            let is_over = taken.is_some();
            if let Some(lease) = taken {
                lease.unwrap().release().await.unwrap();
            }
            let other = rival(name, &env.client(), lock);
            other.acquire().await.unwrap().release().await.unwrap();
            if is_over {
                assert!(polls > 1, "{name} is over after {polls} polls");
                break;
            }
        }
    }
}

/// Polls a future at most `polls` times, and drops it.
async fn polled<T>(polls: usize, future: impl Future<Output = T>) -> Option<T> {
    let (mut future, mut left) = (Box::pin(future), polls);
    poll_fn(|cx| match left.checked_sub(1) {
        None => Poll::Ready(None),
        Some(rest) => {
            left = rest;
            future.as_mut().poll(cx).map(Some)
        }
    })
    .await
}

#[test]
fn an_acquisition_that_is_dropped_outside_of_a_runtime_is_undone_by_its_driver() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let env = runtime.block_on(TestEnv::new());
    let go_on = Arc::new(Notify::new());
    answer_late(&env, &go_on);
    let lock = env.client().lock("job").unwrap();
    let mut acquiring: Pin<Box<dyn Future<Output = Taken>>> = Box::pin(lock.acquire_with(long()));
    runtime.block_on(drop_when_granted(&env, acquiring.as_mut()));
    drop(acquiring);
    runtime.block_on(until(async || env.redis.query::<u64>(&["EXISTS", "job"]).await == 0));
}

#[test]
fn after_its_runtime_has_shut_down_nothing_is_undone_and_nothing_panics() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let env = runtime.block_on(TestEnv::new());
    let go_on = Arc::new(Notify::new());
    answer_late(&env, &go_on);
    let client = env.client();
    let lock = client.lock("job").unwrap();
    let mut acquiring: Pin<Box<dyn Future<Output = Taken>>> = Box::pin(lock.acquire_with(long()));
    let own = tokio::runtime::Runtime::new().unwrap();
    let granted =
        async { poll_fn(|cx| Poll::Ready(acquiring.as_mut().poll(cx).is_pending())).await };
    assert!(own.block_on(granted));
    runtime.block_on(until(async || env.redis.query::<u64>(&["EXISTS", "job"]).await == 1));
    drop(own);
    drop(acquiring);
    assert_eq!(runtime.block_on(env.redis.query::<u64>(&["EXISTS", "job"])), 1);
    assert_eq!(env.proxy.count("lock_release"), 0);
    // The client works on another runtime.
    let other = client.lock("other").unwrap();
    runtime.block_on(async { other.acquire().await.unwrap().release().await.unwrap() });
}
