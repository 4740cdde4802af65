//! Uses each object, on any deployment of Redis, so that every script runs.

use std::time::Duration;

use edgelatch::client::{
    AcquireOptions, FairSettings, GuardedWrite, Lock, Released, SpinBackoff, UserScript,
};
use edgelatch::host::TokioHost;
use edgelatch::timing::{GuardMemory, PeerSkew, WantTime};

use test_support::test_env::until;

use super::env::{RecordingClient, RecordingTransport};

/// A lock whose client records the responses.
pub(crate) type RecordingLock = Lock<RecordingTransport, TokioHost>;

/// One lock of each kind that excludes all other clients. Locks of one name exclude each other,
/// except for the last two.
pub(crate) fn kinds(client: &RecordingClient, name: &str) -> [(&'static str, RecordingLock); 9] {
    let fair = FairSettings::default();
    let read_write = client.read_write_lock(name, Default::default()).unwrap();
    [
        ("lock", client.lock(name).unwrap()),
        ("non-reentrant", client.non_reentrant_lock(name).unwrap()),
        ("spin", client.spin_lock(name, SpinBackoff::default()).unwrap()),
        ("constant spin", client.spin_lock(name, SpinBackoff::CONSTANT).unwrap()),
        ("fenced", client.fenced_lock(name).unwrap()),
        ("fair", client.fair_lock(name, fair).unwrap()),
        ("non-reentrant fair", client.non_reentrant_fair_lock(name, fair).unwrap()),
        ("write", read_write.write().clone()),
        ("group", client.group_lock(name, ["one", "two"], PeerSkew::DEFAULT).unwrap()),
    ]
}

/// Acquires each lock, checks that a rival is refused, inspects, renews, waits for, hands over, and
/// forcibly releases it.
pub(crate) async fn exclude(client: &RecordingClient, name: &str) {
    for ((kind, lock), (_, rival)) in kinds(client, name).iter().zip(&kinds(client, name)) {
        let lease = lock.acquire().await.unwrap();
        assert!(rival.try_acquire().await.unwrap().is_none(), "{kind} {name}");
        let state = rival.inspect().await.unwrap();
        assert!(state.is_locked && state.hold_count == 1, "{kind} {name}: {state:?}");
        assert_eq!(state.last_token, lease.token().as_u64(), "{kind} {name}");
        assert!(lease.is_held().await.unwrap(), "{kind} {name}");
        lease.renew(Some(Duration::from_secs(600))).await.unwrap();
        let state = rival.inspect().await.unwrap();
        assert!(state.remaining.unwrap().as_secs() > 500, "{kind} {name}");
        let (next, released) = tokio::join!(rival.acquire(), lease.release());
        assert_eq!(released, Ok(Released::Released), "{kind} {name}");
        let next = next.unwrap();
        assert!(next.token() > lease.token(), "{kind} {name}");
        assert!(lock.force_release().await.unwrap(), "{kind} {name}");
        assert_eq!(next.release().await, Ok(Released::WasLost), "{kind} {name}");
        assert!(!lock.force_release().await.unwrap(), "{kind} {name}");
    }
}

/// Uses concurrent readers, a preferred writer, and a writer that downgrades to reading.
pub(crate) async fn share(client: &RecordingClient, name: &str) {
    let settings = edgelatch::client::ReadWriteSettings::default();
    let settings = settings.prefers_writers(WantTime::DEFAULT);
    let shelf = |client: &RecordingClient| client.read_write_lock(name, settings).unwrap();
    let (owner, others) = (shelf(&client.owner()), shelf(client));
    let (one, two) =
        (owner.read().acquire().await.unwrap(), others.read().acquire().await.unwrap());
    assert_eq!(one.token(), two.token(), "{name}");
    assert!(others.write().try_acquire().await.unwrap().is_none(), "{name}");
    one.renew(Some(Duration::from_secs(20))).await.unwrap();
    assert!(one.is_held().await.unwrap() && two.is_held().await.unwrap(), "{name}");
    assert!(others.read().inspect().await.unwrap().is_locked, "{name}");
    one.release().await.unwrap();
    let (writer, released) = tokio::join!(owner.write().acquire(), two.release());
    released.unwrap();
    let writer = writer.unwrap();
    let reader = owner.read().acquire().await.unwrap();
    assert!(others.read().try_acquire().await.unwrap().is_none(), "{name}");
    assert_eq!(writer.release().await, Ok(Released::Released), "{name}");
    others.read().acquire().await.unwrap().release().await.unwrap();
    assert!(others.read().force_release().await.unwrap(), "{name}");
    assert_eq!(reader.release().await, Ok(Released::WasLost), "{name}");
}

/// Uses a fair read-write lock: readers, a waiting writer, a steal, and the query of its namespace.
pub(crate) async fn share_in_order(client: &RecordingClient, name: &str) {
    let lock = client.fair_read_write_lock(name, Default::default()).unwrap();
    let lock = lock.client_id("cluster").unwrap();
    let (one, two) = (lock.read().acquire().await.unwrap(), lock.read().acquire().await.unwrap());
    assert_eq!(one.token(), two.token(), "{name}");
    let (writer, ()) = tokio::join!(lock.write().acquire(), async {
        until(async || lock.inspect().await.unwrap().exclusive_waiters == 1).await;
        assert!(lock.read().try_acquire().await.unwrap().is_none(), "{name}");
        assert_eq!(lock.query().await.unwrap().len(), 3, "{name}");
        one.renew(Some(Duration::from_secs(20))).await.unwrap();
        one.release().await.unwrap();
        two.release().await.unwrap();
    });
    let writer = writer.unwrap();
    assert!(writer.token() > one.token(), "{name}");
    let thief = lock.steal().await.unwrap();
    assert_eq!(writer.release().await, Ok(Released::WasLost), "{name}");
    assert!(lock.force_release().await.unwrap(), "{name}");
    assert_eq!(thief.release().await, Ok(Released::WasLost), "{name}");
    assert!(lock.query().await.unwrap().is_empty(), "{name}");
}

/// Uses permits of both kinds.
pub(crate) async fn count(client: &RecordingClient, name: &str) {
    let semaphore = client.semaphore(name).unwrap();
    assert!(semaphore.try_set_permits(3, None).await.unwrap(), "{name}");
    let two = semaphore.acquire(2).await.unwrap();
    assert!(semaphore.try_acquire(2).await.unwrap().is_none(), "{name}");
    assert!(two.is_held().await.unwrap(), "{name}");
    let (one, released) = tokio::join!(semaphore.acquire(2), two.release());
    assert_eq!(released, Ok(Released::Released), "{name}");
    let leased = AcquireOptions::new().lease(Duration::from_secs(20));
    let third = semaphore.permits(1).unwrap().acquire_with(leased).await.unwrap();
    third.renew(None).await.unwrap();
    one.unwrap().release().await.unwrap();
    assert!(semaphore.force_release().await.unwrap(), "{name}");
    assert_eq!(third.release().await, Ok(Released::WasLost), "{name}");
    assert_eq!(semaphore.add_permits(2).await, Ok(5), "{name}");
    assert!(semaphore.release_if_exists(1).await.unwrap(), "{name}");
    assert_eq!(semaphore.drain_permits().await, Ok(6), "{name}");

    // In the same slot if the name has a tag of its own, so that objects of both kinds are in one
    // slot.
    let permit_semaphore =
        client.permit_expirable_semaphore(&beside(name), PeerSkew::DEFAULT).unwrap();
    assert!(permit_semaphore.try_set_permits(3).await.unwrap(), "{name}");
    let two = permit_semaphore.permits(2).unwrap().acquire_with(leased).await.unwrap();
    two.renew(None).await.unwrap();
    let ids = two.permit_ids();
    assert!(permit_semaphore.inspect(&ids).await.unwrap().are_held, "{name}");
    assert!(permit_semaphore.update_lease_time(&ids, None).await.unwrap(), "{name}");
    assert_eq!(permit_semaphore.release(&ids[..1]).await, Ok(1), "{name}");
    let (both, released) = tokio::join!(permit_semaphore.acquire(3), two.release());
    released.unwrap();
    both.unwrap().release().await.unwrap();
    assert_eq!(permit_semaphore.set_permits(2).await, Ok(2), "{name}");
    assert_eq!(permit_semaphore.add_permits(1).await, Ok(3), "{name}");
    let rest = permit_semaphore.acquire(3).await.unwrap();
    assert!(permit_semaphore.force_release().await.unwrap(), "{name}");
    assert_eq!(rest.release().await, Ok(Released::WasLost), "{name}");
}

/// Uses a count-down latch.
pub(crate) async fn open(client: &RecordingClient, name: &str) {
    let latch = client.count_down_latch(name).unwrap();
    latch.wait().await.unwrap();
    assert!(latch.try_set_count(2).await.unwrap(), "{name}");
    assert_eq!(latch.count_down().await, Ok(1), "{name}");
    let (waited, left) = tokio::join!(latch.wait(), latch.count_down());
    assert_eq!((waited, left, latch.count().await), (Ok(()), Ok(0), Ok(0)), "{name}");
    assert!(latch.try_set_count(3).await.unwrap(), "{name}");
    assert!(latch.delete().await.unwrap(), "{name}");
}

/// Writes under a guard, and runs a script while a lease is held.
pub(crate) async fn protect(client: &RecordingClient, name: &str) {
    for (kind, lock) in &kinds(client, name) {
        let lease = lock.acquire().await.unwrap();
        let guard = client.guard(&beside(name), GuardMemory::DEFAULT).unwrap();
        guard.write(&lease, None, &GuardedWrite::set("1", None)).await.unwrap();
        guard.write(&lease, None, &GuardedWrite::delete()).await.unwrap();
        assert_eq!(guard.newest().await, Ok(Some(lease.token().as_u64())), "{kind} {name}");
        let text = "redis.call('INCR', KEYS[1]) return redis.call('INCRBY', KEYS[1], ARGV[1])";
        let keys = vec![format!("{}:{kind}", beside(name))];
        let script = UserScript::new(text, keys, vec!["41".into()]).unwrap();
        assert_eq!(lease.eval(&script).await.as_deref(), Ok("42"), "{kind} {name}");
        lease.release().await.unwrap();
    }
}

/// A name in the same slot as the lock `name`.
pub(crate) fn beside(name: &str) -> String {
    if name.contains('{') { format!("{name}+") } else { format!("{{{name}}}") }
}
