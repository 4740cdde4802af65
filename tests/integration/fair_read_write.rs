//! The fair read-write lock: one queue for both modes, steals, and the query of a namespace.

use std::sync::Arc;
use std::time::Duration;

use edgelatch::Error;
use edgelatch::client::{
    AcquireOptions, Client, FairReadWriteLock, FairReadWriteSettings, LeaseEnd, LeaseState,
    QueryEntry, Released,
};
use edgelatch::error::{AcquireError, LossReason, RequestError};
use edgelatch::host::{Host, TokioHost};
use edgelatch::transport::Reqwest;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use test_support::test_env::{TestEnv, until, until_in_virtual_time};

type NativeLock = FairReadWriteLock<Reqwest, TokioHost>;

fn shelf<H: Host>(client: &Client<Reqwest, H>) -> FairReadWriteLock<Reqwest, H> {
    client.fair_read_write_lock("shelf", FairReadWriteSettings::default()).unwrap()
}

fn patient() -> AcquireOptions {
    AcquireOptions::new().wait_until_cancelled()
}

/// Waits until `count` acquisitions are queued.
async fn queued(lock: &NativeLock, count: usize) {
    until(async || waits(lock).await.len() == count).await;
}

/// The waits of the lock's namespace.
async fn waits(lock: &NativeLock) -> Vec<QueryEntry> {
    let entries = lock.query().await.unwrap();
    entries.into_iter().filter(|entry| !entry.is_held).collect()
}

#[tokio::test]
async fn readers_share_and_a_writer_is_alone() {
    let env = TestEnv::new().await;
    let (one, two) = (shelf(&env.client()), shelf(&env.client()));
    let first = one.read().acquire().await.unwrap();
    let second = two.read().acquire().await.unwrap();
    assert_eq!(first.token(), second.token());
    assert!(two.write().try_acquire().await.unwrap().is_none());
    first.release().await.unwrap();
    assert!(two.write().try_acquire().await.unwrap().is_none());
    assert!(second.is_held().await.unwrap() && !first.is_held().await.unwrap());
    second.release().await.unwrap();

    let writer = two.write().acquire().await.unwrap();
    assert!(writer.token() > second.token());
    assert!(one.read().try_acquire().await.unwrap().is_none());
    assert!(one.write().try_acquire().await.unwrap().is_none());
    writer.renew(None).await.unwrap();
    assert_eq!(writer.release().await, Ok(Released::Released));
    let reader = one.read().acquire().await.unwrap();
    assert!(reader.token() > writer.token());
    assert_eq!(reader.release().await, Ok(Released::Released));
    assert!(one.query().await.unwrap().is_empty());
}

// Slow: the tasks of five waiters.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiters_of_both_modes_are_served_in_the_order_of_arrival() {
    let env = TestEnv::new().await;
    let lock = shelf(&env.client());
    let first = lock.write().acquire().await.unwrap();
    let mut waiters = JoinSet::new();
    let readers = Arc::new(Barrier::new(2));
    for (place, is_writer) in [false, false, true, false, true].into_iter().enumerate() {
        let side = if is_writer { lock.write().clone() } else { lock.read().clone() };
        let readers = Arc::clone(&readers);
        waiters.spawn(async move {
            let lease = side.acquire_with(patient()).await.unwrap();
            let token = lease.token();
            // The two readers at the head hold the lock together.
            if place < 2 {
                readers.wait().await;
            }
            let released = lease.release().await;
            (place, token, released)
        });
        queued(&lock, place + 1).await;
    }
    assert_eq!(lock.inspect().await.unwrap().exclusive_waiters, 2);
    let is_exclusive: Vec<bool> = waits(&lock).await.iter().map(|it| it.is_exclusive).collect();
    assert_eq!(is_exclusive, [false, false, true, false, true]);
    first.release().await.unwrap();
    let mut served = waiters.join_all().await;
    served.sort_unstable_by_key(|(place, ..)| *place);
    let tokens: Vec<_> = served.iter().map(|(_, token, _)| *token).collect();
    assert!(tokens[0] == tokens[1] && tokens[1..].is_sorted_by(|one, other| one < other));
    assert!(served.iter().all(|(.., released)| matches!(released, Ok(Released::Released))));
}

#[tokio::test]
async fn a_try_passes_no_waiter_and_queues_nothing() {
    let env = TestEnv::new().await;
    let (lock, other) = (shelf(&env.client()), shelf(&env.client()));
    let reader = lock.read().acquire().await.unwrap();
    let writing = tokio::spawn({
        let lock = lock.clone();
        async move { lock.write().acquire_with(patient()).await.unwrap() }
    });
    queued(&other, 1).await;
    assert!(other.read().try_acquire().await.unwrap().is_none(), "a writer waits");
    assert!(other.write().try_acquire().await.unwrap().is_none());
    assert_eq!(waits(&other).await.len(), 1);
    reader.release().await.unwrap();
    writing.await.unwrap().release().await.unwrap();
    other.read().try_acquire().await.unwrap().unwrap().release().await.unwrap();
}

#[tokio::test]
async fn a_waiter_that_leaves_lets_those_behind_it_enter() {
    let env = TestEnv::new().await;
    let (lock, other) = (shelf(&env.client()), shelf(&env.client()));
    let held = lock.read().acquire().await.unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let leaving = tokio::spawn({
        let lock = lock.clone();
        async move {
            let cancel = async { drop(stopped.await) };
            lock.write().acquire_cancellable(patient(), cancel).await.map(drop)
        }
    });
    queued(&other, 1).await;
    // This reader waits behind the writer, and enters when the writer leaves.
    let reading = tokio::spawn({
        let lock = shelf(&env.client());
        async move { lock.read().acquire_with(patient()).await.unwrap() }
    });
    queued(&other, 2).await;
    stop.send(()).unwrap();
    let outcome = leaving.await.unwrap().unwrap_err();
    assert_eq!(outcome, AcquireError::Cancelled { held_at_most: None });
    reading.await.unwrap().release().await.unwrap();
    held.release().await.unwrap();
    // A dropped future leaves the queue too.
    let held = lock.write().acquire().await.unwrap();
    let waiting = shelf(&env.client());
    tokio::select! {
        taken = waiting.read().acquire() => panic!("{:?}", taken.map(drop)),
        () = queued(&other, 1) => {}
    }
    queued(&other, 0).await;
    held.release().await.unwrap();
}

#[tokio::test]
async fn a_steal_ends_all_holds_and_passes_the_waiters() {
    let env = TestEnv::new().await;
    let (client, host) = env.virtual_client();
    let (lock, other) = (shelf(&client), shelf(&env.client()));
    let readers = [lock.read().acquire().await.unwrap(), lock.read().acquire().await.unwrap()];
    let kept = tokio::spawn(readers[0].keep());
    let waiting = tokio::spawn({
        let other = other.clone();
        async move { other.write().acquire_with(patient()).await.unwrap() }
    });
    queued(&other, 1).await;

    let thief = other.steal().await.unwrap();
    assert!(thief.token() > readers[0].token());
    assert_eq!(waits(&other).await.len(), 1, "the waiter keeps its place");
    // The next renewal, by itself or on demand, finds the steal.
    until_in_virtual_time(&env, &host, Duration::from_secs(1), || kept.is_finished()).await;
    assert_eq!(kept.await.unwrap(), LeaseEnd::Lost(LossReason::Stolen));
    let renewed = readers[1].renew(None).await;
    assert_eq!(renewed.unwrap_err(), RequestError::Lost(LossReason::Stolen));
    assert_eq!(readers[1].state(), LeaseState::Lost(LossReason::Stolen));
    assert_eq!(readers[1].release().await, Ok(Released::WasLost));

    // The later of two steals wins.
    let second = other.steal().await.unwrap();
    assert!(second.token() > thief.token());
    assert_eq!(thief.release().await, Ok(Released::WasLost));
    assert_eq!(second.release().await, Ok(Released::Released));
    waiting.await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn a_query_lists_the_holds_and_waits_of_a_namespace() {
    let env = TestEnv::new().await;
    let settings = FairReadWriteSettings::default();
    let lock = |name: &str, id: &str| {
        env.client().fair_read_write_lock(name, settings).unwrap().client_id(id).unwrap()
    };
    let (inbox, sent) = (lock("{mail}inbox", "tab 1"), lock("{mail}sent", "tab 2"));
    let held = [
        inbox.read().acquire().await.unwrap(),
        sent.write().acquire().await.unwrap(),
        lock("other", "tab 3").write().acquire().await.unwrap(),
    ];
    let waiting = tokio::spawn({
        let inbox = lock("{mail}inbox", "tab 4");
        async move { inbox.write().acquire_with(patient()).await.unwrap() }
    });
    queued(&sent, 1).await;
    let entries = sent.query().await.unwrap();
    let seen: Vec<_> = entries
        .iter()
        .map(|it| (it.name.as_str(), it.is_exclusive, it.is_held, it.client_id.as_str()))
        .collect();
    assert_eq!(
        seen,
        [
            ("{mail}inbox", false, true, "tab 1"),
            ("{mail}inbox", true, false, "tab 4"),
            ("{mail}sent", true, true, "tab 2"),
        ]
    );
    assert!(entries.iter().all(|it| it.remaining <= Duration::from_secs(30)));
    let alone = lock("other", "").query().await.unwrap();
    assert_eq!((alone.len(), alone[0].name.as_str()), (1, "other"));
    for lease in held {
        lease.release().await.unwrap();
    }
    waiting.await.unwrap().release().await.unwrap();
    assert!(sent.query().await.unwrap().is_empty());
    let bad = lock("other", "").client_id("a\nb").unwrap_err();
    assert_eq!(bad.option(), "clientId");
}

/// A query takes as many requests as its entries need; each entry is returned once.
// Slow: 300 holds.
#[tokio::test]
async fn a_long_query_is_complete() {
    let env = TestEnv::new().await;
    let lock = shelf(&env.client());
    let mut readers = JoinSet::new();
    for _ in 0..300 {
        let lock = lock.clone();
        readers.spawn(async move { lock.read().acquire().await.unwrap() });
    }
    let readers = readers.join_all().await;
    assert_eq!(lock.query().await.unwrap().len(), 300);
    assert!(env.proxy.count("fair_rw_query") >= 2);
    assert_eq!(lock.inspect().await.unwrap().holders, 300);
    assert_eq!(lock.force_release().await, Ok(true));
    assert_eq!(readers[0].release().await, Ok(Released::WasLost));
    assert_eq!(lock.read().force_release().await, Ok(false));
}

#[tokio::test]
async fn a_full_queue_refuses_further_waiters_and_a_full_house_further_readers() {
    let env = TestEnv::new().await;
    let settings = FairReadWriteSettings::default().max_waiters(1).unwrap().max_holders(2).unwrap();
    let lock = env.client().fair_read_write_lock("shelf", settings).unwrap();
    let readers = [lock.read().acquire().await.unwrap(), lock.read().acquire().await.unwrap()];
    let waiting = tokio::spawn({
        let lock = lock.clone();
        async move { lock.read().acquire_with(patient()).await.unwrap() }
    });
    queued(&lock, 1).await;
    let Err(Error { kind, .. }) = lock.write().acquire().await else { panic!("it was granted") };
    assert_eq!(kind, AcquireError::QueueFull);
    assert_eq!(waits(&lock).await.len(), 1);
    let [one, two] = readers;
    one.release().await.unwrap();
    waiting.await.unwrap().release().await.unwrap();
    two.release().await.unwrap();
}

#[tokio::test]
async fn an_owner_reenters_one_side_and_is_refused_the_other() {
    let env = TestEnv::new().await;
    let owner = shelf(&env.client().owner());
    let reader = owner.read().acquire().await.unwrap();
    let again = owner.read().acquire().await.unwrap();
    assert_eq!((again.hold_count(), again.token()), (2, reader.token()));
    let before = env.proxy.calls().len();
    assert_eq!(owner.write().acquire().await.unwrap_err(), AcquireError::SelfDeadlock);
    assert_eq!(owner.steal().await.unwrap_err(), AcquireError::SelfDeadlock);
    assert_eq!(env.proxy.calls().len(), before);
    again.release().await.unwrap();
    reader.release().await.unwrap();
    let writer = owner.write().acquire().await.unwrap();
    assert_eq!(owner.read().acquire().await.unwrap_err(), AcquireError::HeldAlready);
    // Other objects of the same name exclude neither side.
    let plain = env.client().lock("shelf").unwrap().try_acquire().await.unwrap().unwrap();
    plain.release().await.unwrap();
    writer.release().await.unwrap();
}
