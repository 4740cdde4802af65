//! Every object of the library, used by its own client with a scoped token.

use std::time::Duration;

use edgelatch::client::{
    AcquireOptions, Client, FairSettings, GuardedWrite, Lock, Released, SpinBackoff, UserScript,
};
use edgelatch::error::{AcquireError, EvalError, RefusalKind};
use edgelatch::host::TokioHost;
use edgelatch::timing::{GuardMemory, PeerSkew};
use edgelatch::transport::Reqwest;
use edgelatch::{Error, Gateway};

use edgelatch_gateway::Right;

use crate::scopes::{scoped, with_scopes};
use crate::support::TestEnv;

pub(crate) type NativeClient = Client<Reqwest, TokioHost>;
pub(crate) type NativeLock = Lock<Reqwest, TokioHost>;

fn client(env: &TestEnv, rights: &[Right]) -> NativeClient {
    let url = format!("http://{}", env.gateway.address());
    Client::connect(Gateway::upstash(&url, &scoped(rights)).unwrap())
}

fn waiting() -> AcquireOptions {
    AcquireOptions::new().wait(Duration::from_secs(30))
}

/// Kinds without one query for the whole object.
const SEVERAL: [&str; 2] = ["multi", "mixed"];

/// Returns a lock of each exclusive kind.
pub(crate) fn kinds(client: &NativeClient) -> Vec<(&'static str, NativeLock)> {
    let fair = FairSettings::default();
    let sides = client.read_write_lock("app:shelf", Default::default()).unwrap();
    let several = || ["app:x", "app:{y}z"].map(|name| client.lock(name).unwrap());
    let mixed = [client.lock("app:x").unwrap(), client.fair_lock("app:f", fair).unwrap()];
    vec![
        ("lock", client.lock("app:job").unwrap()),
        ("tagged", client.lock("app:{job}:é").unwrap()),
        ("spin", client.spin_lock("app:job", SpinBackoff::default()).unwrap()),
        ("fenced", client.fenced_lock("app:fenced").unwrap()),
        ("fair", client.fair_lock("app:fair", fair).unwrap()),
        ("write", sides.write().clone()),
        ("group", client.group_lock("app:group", ["one", "two"], PeerSkew::DEFAULT).unwrap()),
        ("multi", client.multi_lock(several()).unwrap()),
        ("mixed", client.multi_lock(mixed).unwrap()),
    ]
}

#[tokio::test]
async fn every_kind_of_lock_is_taken_waited_for_and_let_go() {
    let env = TestEnv::with(with_scopes).await;
    let (one, another) = (client(&env, &[Right::Hold]), client(&env, &[Right::Hold]));
    for ((kind, lock), (_, rival)) in kinds(&one).iter().zip(&kinds(&another)) {
        let lease = lock.acquire().await.unwrap();
        assert!(rival.try_acquire().await.unwrap().is_none(), "{kind}");
        lease.renew(Some(Duration::from_secs(60))).await.unwrap();
        assert!(lease.is_held().await.unwrap(), "{kind}");
        if !SEVERAL.contains(kind) {
            rival.inspect().await.unwrap();
        }
        let (next, released) = tokio::join!(rival.acquire_with(waiting()), lease.release());
        assert_eq!(released, Ok(Released::Released), "{kind}");
        assert_eq!(next.unwrap().release().await, Ok(Released::Released), "{kind}");
    }
}

#[tokio::test]
async fn readers_share_and_a_writer_reads_on() {
    let env = TestEnv::with(with_scopes).await;
    let owner = client(&env, &[Right::Hold]).owner();
    let shelf = owner.read_write_lock("app:shelf", Default::default()).unwrap();
    let write = shelf.write().acquire().await.unwrap();
    let read = shelf.read().acquire().await.unwrap();
    write.release().await.unwrap();
    let other =
        client(&env, &[Right::Hold]).read_write_lock("app:shelf", Default::default()).unwrap();
    let beside = other.read().acquire().await.unwrap();
    read.renew(None).await.unwrap();
    beside.release().await.unwrap();
    read.release().await.unwrap();
}

#[tokio::test]
async fn permits_are_given_for_a_time() {
    let env = TestEnv::with(with_scopes).await;
    let client = client(&env, &[Right::Hold, Right::Manage]);
    let bounded = || waiting().lease(Duration::from_secs(30));
    let semaphore = client.semaphore("seats:a").unwrap();
    assert!(semaphore.try_set_permits(2, None).await.unwrap());
    let lease = semaphore.permits(2).unwrap().acquire_with(bounded()).await.unwrap();
    lease.renew(None).await.unwrap();
    lease.release().await.unwrap();
    semaphore.add_permits(1).await.unwrap();
    assert_eq!(semaphore.drain_permits().await.unwrap(), 3);
    // A lease without an end is longer than any limit.
    assert!(matches!(
        semaphore.acquire(1).await,
        Err(Error { kind: AcquireError::Refused(_), .. })
    ));
    let permits = client.permit_expirable_semaphore("permits:a", PeerSkew::DEFAULT).unwrap();
    assert!(permits.try_set_permits(3).await.unwrap());
    let lease = permits.permits(2).unwrap().acquire_with(bounded()).await.unwrap();
    let ids = lease.permit_ids();
    permits.update_lease_time(&ids, Some(Duration::from_secs(40))).await.unwrap();
    permits.inspect(&ids).await.unwrap();
    assert_eq!(permits.release(&ids).await.unwrap(), 2);
    permits.set_permits(1).await.unwrap();
}

#[tokio::test]
async fn a_gate_opens_and_a_guard_lets_write() {
    let env = TestEnv::with(with_scopes).await;
    let client = client(&env, &[Right::Hold, Right::Count, Right::Manage, Right::Guard]);
    let latch = client.count_down_latch("gate:a").unwrap();
    assert!(latch.try_set_count(1).await.unwrap());
    let (waited, counted) = tokio::join!(latch.wait_with(waiting()), latch.count_down());
    assert_eq!((waited.is_ok(), counted.unwrap()), (true, 0));
    assert!(!latch.delete().await.unwrap());
    let lease = client.lock("app:job").unwrap().acquire().await.unwrap();
    let guard = client.guard("data:a", GuardMemory::DEFAULT).unwrap();
    guard.write(&lease, None, &GuardedWrite::set("7", None)).await.unwrap();
    assert_eq!(guard.newest().await.unwrap(), Some(lease.token().as_u64()));
    // A caller's script could use keys of any client.
    let script = UserScript::new("return 1", Vec::new(), Vec::new()).unwrap();
    assert!(matches!(lease.eval(&script).await, Err(Error { kind: EvalError::Request(_), .. })));
    let foreign = client.guard("total", GuardMemory::DEFAULT).unwrap();
    assert!(foreign.write(&lease, None, &GuardedWrite::set("7", None)).await.is_err());
    lease.release().await.unwrap();
}

#[tokio::test]
async fn a_majority_decides_and_replicas_are_waited_for() {
    let envs = [TestEnv::with(with_scopes), TestEnv::with(with_scopes), TestEnv::with(with_scopes)];
    let [a, b, c] = envs;
    let (a, b, c) = tokio::join!(a, b, c);
    let clients = [&a, &b, &c].map(|env| client(env, &[Right::Hold, Right::Majority]));
    let locks = clients.each_ref().map(|client| client.lock("app:job").unwrap());
    let lock = clients[0].red_lock(locks).unwrap();
    let lease = lock.acquire().await.unwrap();
    lease.renew(None).await.unwrap();
    lease.release().await.unwrap();
    // The test has no replicas, so an allowed wait fails in another way than a refused one.
    let replicated = AcquireOptions::new().replicas(1);
    let refused = clients[0].lock("app:job").unwrap().try_acquire_with(replicated).await;
    assert!(
        !matches!(refused, Err(Error { kind: AcquireError::Refused(_), .. }) | Ok(_)),
        "{refused:?}"
    );
}

#[tokio::test]
async fn many_calls_of_one_turn_share_a_request() {
    let env = TestEnv::with(with_scopes).await;
    let client = client(&env, &[Right::Hold]);
    let locks: Vec<_> =
        (0..8).map(|number| client.lock(&format!("app:{number}")).unwrap()).collect();
    let foreign = client.lock("other").unwrap();
    let all = futures_util::future::join_all(locks.iter().map(NativeLock::acquire));
    let (all, refused) = tokio::join!(all, foreign.acquire());
    let Err(Error { kind: AcquireError::Refused(refusal), .. }) = refused else {
        panic!("it was let in")
    };
    assert_eq!(refusal.kind(), RefusalKind::Unauthorized);
    for lease in all {
        lease.unwrap().release().await.unwrap();
    }
}

#[tokio::test]
async fn force_is_for_tokens_that_say_so() {
    let env = TestEnv::with(with_scopes).await;
    let (weak, strong) = (client(&env, &[Right::Hold]), client(&env, &[Right::Hold, Right::Force]));
    let pairs = kinds(&weak).into_iter().zip(kinds(&strong));
    for ((kind, lock), (_, by_force)) in pairs.filter(|((kind, _), _)| !SEVERAL.contains(kind)) {
        let lease = lock.acquire().await.unwrap();
        assert!(lock.force_release().await.is_err(), "{kind}");
        assert!(lease.is_held().await.unwrap(), "{kind}");
        assert!(by_force.force_release().await.unwrap(), "{kind}");
        assert_eq!(lease.release().await, Ok(Released::WasLost), "{kind}");
    }
}
