//! Streams wake waiters. The waiters' time stands still, so that no waiter can succeed by polling.

use std::time::Duration;

use edgelatch::client::{AcquireOptions, Client, FairSettings, Lease, Lock};
use edgelatch::host::Host as _;
use edgelatch::timing::PeerSkew;
use edgelatch::transport::Reqwest;
use tokio::task::JoinSet;

use test_support::fake_host::FakeHost;
use test_support::faults::{Fault, FaultResponse};
use test_support::test_env::{NativeClient, TestEnv, until, until_in_virtual_time};
use test_support::webdis::Webdis;

pub(crate) type Led = Client<Reqwest, FakeHost>;
type VirtualLock = Lock<Reqwest, FakeHost>;

fn wait() -> AcquireOptions {
    AcquireOptions::new().lease(Duration::from_secs(600)).wait(Duration::from_secs(3600))
}

pub(crate) fn long() -> AcquireOptions {
    AcquireOptions::new().lease(Duration::from_secs(600))
}

/// Starts one waiter per lock, each in a task of its own.
pub(crate) fn waiters(
    locks: impl IntoIterator<Item = VirtualLock>,
) -> JoinSet<Lease<Reqwest, FakeHost>> {
    let acquire = |lock: VirtualLock| async move { lock.acquire_with(wait()).await.unwrap() };
    locks.into_iter().map(acquire).collect()
}

/// Waits until at least `requests` calls of the script have a response, and `streams` streams are
/// open.
pub(crate) async fn settled(env: &TestEnv, script: &str, requests: usize, streams: usize) {
    until(async || {
        let proxy = &env.proxy;
        proxy.count(script) >= requests && proxy.is_quiet() && proxy.streams().1 == streams
    })
    .await;
}

#[tokio::test]
async fn a_release_by_another_client_wakes_a_waiter_of_each_kind() {
    let env = TestEnv::new().await;
    let there = env.client();
    let pool = there.semaphore("pool").unwrap();
    pool.try_set_permits(1, None).await.unwrap();
    let leased = there.permit_expirable_semaphore("leased", PeerSkew::DEFAULT).unwrap();
    leased.try_set_permits(1).await.unwrap();
    let (client, host) = env.virtual_client();
    let held = |client: &NativeClient| {
        let shelf = client.read_write_lock("shelf", Default::default()).unwrap();
        vec![
            client.lock("job").unwrap(),
            client.fenced_lock("fenced").unwrap(),
            client.fair_lock("fair", FairSettings::default()).unwrap(),
            client.group_lock("group", ["a"], PeerSkew::DEFAULT).unwrap(),
            shelf.write().clone(),
            shelf.write().clone(),
            client.semaphore("pool").unwrap().permits(1).unwrap(),
            leased.permits(1).unwrap(),
            client.lock("second").unwrap(),
        ]
    };
    let shelf = client.read_write_lock("shelf", Default::default()).unwrap();
    let both = [client.lock("first").unwrap(), client.lock("second").unwrap()];
    let wanted: Vec<VirtualLock> = vec![
        client.lock("job").unwrap(),
        client.fenced_lock("fenced").unwrap(),
        client.fair_lock("fair", FairSettings::default()).unwrap(),
        client.group_lock("group", ["b", "a"], PeerSkew::DEFAULT).unwrap(),
        shelf.read().clone(),
        shelf.write().clone(),
        client.semaphore("pool").unwrap().permits(1).unwrap(),
        client.permit_expirable_semaphore("leased", PeerSkew::DEFAULT).unwrap().permits(1).unwrap(),
        client.multi_lock(both).unwrap(),
    ];
    for (lock, wanted) in held(&there).into_iter().zip(wanted) {
        let lease = lock.acquire_with(long()).await.unwrap();
        let (_, open) = env.proxy.streams();
        assert_eq!(open, 0, "no waiter is left");
        let name = lock.name().as_str().to_owned();
        let mut waiting = waiters([wanted]);
        until(async || env.proxy.streams().1 == 1).await;
        lease.release().await.unwrap();
        let next = tokio::time::timeout(Duration::from_secs(300), waiting.join_next()).await;
        let next = next.unwrap_or_else(|_| panic!("{name}: no waiter was woken")).unwrap().unwrap();
        next.release().await.unwrap();
        until(async || env.proxy.streams().1 == 0).await;
    }
    assert_eq!(edgelatch::host::Host::now(&host), edgelatch::host::Host::now(&FakeHost::new()));
}

#[tokio::test]
async fn a_short_wait_is_woken_by_a_message() {
    let env = TestEnv::new().await;
    let held = env.client().lock("job").unwrap().acquire_with(long()).await.unwrap();
    let (client, _) = env.virtual_client();
    let wait = long().wait(Duration::from_secs(5));
    let lock = client.lock("job").unwrap();
    let waiting = tokio::spawn(async move { lock.acquire_with(wait).await });
    settled(&env, "lock_acquire", 3, 1).await;
    held.release().await.unwrap();
    waiting.await.unwrap().unwrap().release().await.unwrap();
}

#[tokio::test]
async fn a_latch_that_opens_wakes_all_its_waiters() {
    let env = TestEnv::new().await;
    let latch = env.client().count_down_latch("gate").unwrap();
    latch.try_set_count(1).await.unwrap();
    let (client, _) = env.virtual_client();
    let mut waiting = JoinSet::new();
    for _ in 0..5 {
        let gate = client.count_down_latch("gate").unwrap();
        waiting.spawn(async move { gate.wait_with(wait()).await.unwrap() });
    }
    settled(&env, "latch_inspect", 10, 1).await;
    latch.count_down().await.unwrap();
    waiting.join_all().await;
}

#[tokio::test]
async fn a_release_wakes_one_waiter_of_a_client() {
    let env = TestEnv::new().await;
    let held = env.client().lock("job").unwrap().acquire_with(long()).await.unwrap();
    let (client, _) = env.virtual_client();
    let mut waiting = waiters((0..20).map(|_| client.lock("job").unwrap()));
    // Each waiter was refused; the first one was notified that the subscription is confirmed, and
    // has retried once, for all.
    settled(&env, "lock_acquire", 22, 1).await;
    let mut lease = held;
    lease.release().await.unwrap();
    let mut next = waiting.join_next().await.unwrap().unwrap();
    assert_eq!(env.proxy.count("lock_acquire"), 23, "one request for one hand-off");
    for number in 24..=26 {
        next.release().await.unwrap();
        next = waiting.join_next().await.unwrap().unwrap();
        assert_eq!(env.proxy.count("lock_acquire"), number);
    }
    next.release().await.unwrap();
    while let Some(next) = waiting.join_next().await {
        next.unwrap().release().await.unwrap();
    }
    assert_eq!(env.proxy.streams().0, 1, "one stream for all");
    until(async || env.proxy.streams().1 == 0).await;
    lease = env.client().lock("job").unwrap().acquire().await.unwrap();
    lease.release().await.unwrap();
}

/// Awaits the next task; time passes whenever no request is pending.
pub(crate) async fn joined<T: 'static>(
    env: &TestEnv,
    host: &FakeHost,
    waiting: &mut JoinSet<T>,
) -> T {
    let mut next = None;
    until_in_virtual_time(env, host, Duration::from_millis(1), || {
        next = waiting.try_join_next();
        next.is_some()
    })
    .await;
    next.unwrap().unwrap()
}

/// S78.
#[tokio::test]
async fn a_release_makes_few_of_many_clients_retry() {
    let env = TestEnv::new().await;
    assert_few_retries(env, "lock_acquire", |client| client.lock("job").unwrap()).await;
    let write =
        |client: Led| client.read_write_lock("shelf", Default::default()).unwrap().write().clone();
    assert_few_retries(TestEnv::new().await, "write_acquire", write).await;
    let both = |client: Led| {
        client.multi_lock([client.lock("a").unwrap(), client.lock("b").unwrap()]).unwrap()
    };
    assert_few_retries(TestEnv::new().await, "lock_acquire", both).await;
    let env = TestEnv::new().await;
    env.client().semaphore("pool").unwrap().try_set_permits(1, None).await.unwrap();
    let pool = |client: Led| client.semaphore("pool").unwrap().permits(1).unwrap();
    assert_few_retries(env, "semaphore_acquire", pool).await;
    let env = TestEnv::new().await;
    let leased = env.client().permit_expirable_semaphore("leased", PeerSkew::DEFAULT).unwrap();
    leased.try_set_permits(1).await.unwrap();
    let leased = |client: Led| {
        let leased = client.permit_expirable_semaphore("leased", PeerSkew::DEFAULT);
        leased.unwrap().permits(1).unwrap()
    };
    assert_few_retries(env, "permits_acquire", leased).await;
}

async fn assert_few_retries(env: TestEnv, script: &str, lock: impl Fn(Led) -> VirtualLock) {
    const CLIENTS: usize = 12;
    // The transport is created once, since it reads the system's certificates.
    let (host, transport) = (FakeHost::new(), Reqwest::new());
    let new = || lock(Led::new(env.gateway(), transport.clone(), host.clone()));
    let held = new().acquire_with(long()).await.unwrap();
    let mut waiting = waiters((0..CLIENTS).map(|_| new()));
    settled(&env, script, 1 + 2 * CLIENTS, CLIENTS).await;
    held.release().await.unwrap();
    // The clients do not know their competitors before the first hand-off.
    let mut next = joined(&env, &host, &mut waiting).await;
    until(async || env.proxy.is_quiet()).await;
    let before = env.proxy.count(script);
    for _ in 1..CLIENTS {
        next.release().await.unwrap();
        next = joined(&env, &host, &mut waiting).await;
    }
    let asked = env.proxy.count(script) - before;
    let if_all_asked: usize = (1..CLIENTS).sum();
    assert!(asked < if_all_asked / 2, "{script}: {asked} of {if_all_asked}");
    next.release().await.unwrap();
}

#[tokio::test]
async fn permits_returned_together_wake_as_many_waiters_as_they_serve() {
    let env = TestEnv::new().await;
    let pool = env.client().semaphore("pool").unwrap();
    pool.try_set_permits(4, None).await.unwrap();
    let all = pool.permits(4).unwrap().acquire_with(long()).await.unwrap();
    let (client, _) = env.virtual_client();
    let want = |permits| client.semaphore("pool").unwrap().permits(permits).unwrap();
    // The first waiter wants more than is left once the other waiters are served.
    let mut waiting = waiters([want(2), want(1), want(1)]);
    settled(&env, "semaphore_acquire", 7, 1).await;
    all.release().await.unwrap();
    let leases = [waiting.join_next().await, waiting.join_next().await, waiting.join_next().await];
    assert_eq!(pool.available_permits().await, Ok(0));
    for lease in leases {
        lease.unwrap().unwrap().release().await.unwrap();
    }
    // A refused waiter leaves the available permits to one that wants fewer.
    let three = pool.permits(4).unwrap().acquire_with(long()).await.unwrap();
    let mut waiting = waiters([want(2), want(1)]);
    settled(&env, "semaphore_acquire", 15, 1).await;
    pool.add_permits(1).await.unwrap();
    let one = waiting.join_next().await.unwrap().unwrap();
    three.release().await.unwrap();
    waiting.join_next().await.unwrap().unwrap().release().await.unwrap();
    one.release().await.unwrap();
}

#[tokio::test]
async fn a_fair_lock_wakes_its_head_alone() {
    let env = TestEnv::new().await;
    let fair = |client: &Led| client.fair_lock("job", FairSettings::default()).unwrap();
    let there = env.client().fair_lock("job", FairSettings::default()).unwrap();
    let mut held = Some(there.acquire_with(long()).await.unwrap());
    let (client, _) = env.virtual_client();
    let mut waiting = waiters((0..8).map(|_| fair(&client)));
    // Each waiter subscribes to a channel of its own.
    settled(&env, "fair_acquire", 17, 8).await;
    held.take().unwrap().release().await.unwrap();
    for number in 18..=25 {
        let next = waiting.join_next().await.unwrap().unwrap();
        assert_eq!(env.proxy.count("fair_acquire"), number, "one request for one hand-off");
        next.release().await.unwrap();
    }
    assert_eq!(env.proxy.streams(), (8, 0));
}

#[tokio::test]
async fn a_woken_waiter_that_leaves_passes_its_message_on() {
    let env = TestEnv::new().await;
    let held = env.client().lock("job").unwrap().acquire_with(long()).await.unwrap();
    let (client, _) = env.virtual_client();
    let (lock, other) = (client.lock("job").unwrap(), client.lock("job").unwrap());
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let first = tokio::spawn(async move {
        let cancel = async { drop(stopped.await) };
        lock.acquire_cancellable(wait(), cancel).await.map(drop)
    });
    settled(&env, "lock_acquire", 3, 1).await;
    let mut second = waiters([other]);
    settled(&env, "lock_acquire", 4, 1).await;
    // The first woken waiter's request gets no response.
    env.proxy.plan(|seen| match (seen.script, seen.number) {
        ("lock_acquire", 1) => Fault::not_executed(FaultResponse::Silence),
        _ => Fault::none(),
    });
    held.release().await.unwrap();
    until(async || env.proxy.count("lock_acquire") == 1).await;
    stop.send(()).unwrap();
    assert!(first.await.unwrap().is_err());
    second.join_next().await.unwrap().unwrap().release().await.unwrap();
}

#[tokio::test]
async fn webdis_wakes_too() {
    const MILLISECOND: Duration = Duration::from_millis(1);
    let env = TestEnv::new().await;
    let webdis = Webdis::start(&env.redis).await;
    let host = FakeHost::new();
    let client: Led = Client::new(webdis.gateway(), Reqwest::new(), host.clone());
    let pace = Client::connect(webdis.gateway()).lock("pace").unwrap();
    let there = env.client();
    let fair = FairSettings::default();
    let pairs = [
        (there.lock("a, \"b\" é").unwrap(), client.lock("a, \"b\" é").unwrap()),
        (there.fair_lock("f[1]*?", fair).unwrap(), client.fair_lock("f[1]*?", fair).unwrap()),
    ];
    for (held, wanted) in pairs {
        let lease = held.acquire_with(long()).await.unwrap();
        let mut waiting = waiters([wanted]);
        let channels = async |passing: Duration| -> usize {
            // Time passes only as Webdis responds, so that a slow machine delays no message beyond
            // it. Webdis may close connections; the client retries requests on them a little later.
            if pace.inspect().await.is_ok() {
                host.pass(passing);
            }
            env.redis.query::<Vec<String>>(&["PUBSUB", "CHANNELS"]).await.len()
        };
        until(async || channels(MILLISECOND).await == 1).await;
        let released = host.now();
        lease.release().await.unwrap();
        let mut next = None;
        until(async || {
            // Too short for a retry without a message, however long the test takes. Webdis may
            // close a stream too: then the waiter needs time to retry.
            let is_early = released.until(host.now()) < Duration::from_secs(4);
            let open = channels(if is_early { MILLISECOND } else { Duration::ZERO }).await;
            next = next.take().or_else(|| waiting.try_join_next());
            next.is_some() && open == 0
        })
        .await;
        let lease = next.unwrap().unwrap();
        let ending = tokio::spawn(async move { lease.release().await });
        until(async || {
            channels(MILLISECOND).await;
            ending.is_finished()
        })
        .await;
        ending.await.unwrap().unwrap();
    }
}
