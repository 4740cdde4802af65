//! Readers and writers of both sides.

use edgelatch::client::{AcquireOptions, Client, ReadWriteLock, ReadWriteSettings, Released};
use edgelatch::error::LossReason;
use edgelatch::host::Host;
use edgelatch::transport::Reqwest;
use serde_json::json;

use super::both::{Both, NAME};
use super::contention::Contest;
use super::exclusive::{ENDLESS, JAVA_ENDLESS};
use super::peer::{Object, ms};

/// The lock of an edgelatch client for which no Java reader renews: its reads may be long.
pub(crate) fn shelf<H: Host>(client: &Client<Reqwest, H>) -> ReadWriteLock<Reqwest, H> {
    client.read_write_lock(NAME, ReadWriteSettings::default().peer_watchdog(None)).unwrap()
}

pub(crate) fn reader(both: &Both, thread: &str) -> Object {
    both.object(thread, "readLock")
}

pub(crate) fn writer(both: &Both, thread: &str) -> Object {
    both.object(thread, "writeLock")
}

pub(crate) const fn endless() -> AcquireOptions {
    AcquireOptions::new().lease(ENDLESS)
}

#[tokio::test]
async fn readers_of_both_sides_share_it_and_writers_of_both_are_refused() {
    let both = Both::start().await;
    let (ours, java) = (shelf(&both.env.client()), reader(&both, "a"));
    let lease = ours.read().acquire().await.unwrap();
    assert!(java.get::<bool>("tryLock").await && java.get::<bool>("isHeldByCurrentThread").await);
    assert!(!writer(&both, "b").get::<bool>("tryLock").await);
    assert!(ours.write().try_acquire().await.unwrap().is_none());

    assert!(reader(&both, "b").get::<bool>("isLocked").await);
    assert!(!writer(&both, "b").get::<bool>("isLocked").await);
    assert_eq!(java.get::<u64>("getHoldCount").await, 1);
    assert!((1..=30_000).contains(&java.get::<i64>("remainTimeToLive").await));
    let (read, write) =
        (ours.read().inspect().await.unwrap(), ours.write().inspect().await.unwrap());
    assert_eq!((read.is_locked, read.hold_count, write.is_locked), (true, 2, false));

    assert_eq!(lease.release().await, Ok(Released::Released));
    assert!(!writer(&both, "b").get::<bool>("tryLock").await);
    assert!(ours.write().try_acquire().await.unwrap().is_none());
    java.get::<()>("unlock").await;
    assert!(writer(&both, "b").get::<bool>("tryLock").await);
    assert!(ours.read().try_acquire().await.unwrap().is_none());
    assert!(ours.write().inspect().await.unwrap().is_locked);
    assert!(!ours.read().inspect().await.unwrap().is_locked);
}

#[tokio::test]
async fn the_last_reader_wakes_a_writer_of_the_other_side() {
    let both = Both::start().await;
    let ours = shelf(&both.env.client());
    let first = ours.read().acquire_with(endless()).await.unwrap();
    let second = ours.read().acquire_with(endless()).await.unwrap();
    let writing = writer(&both, "a").call("lock", json!([]));
    both.java.thread("a").waits().await;
    first.release().await.unwrap();
    assert!(!writing.has_come());
    second.release().await.unwrap();
    writing.value::<()>().await;
    writer(&both, "a").get::<()>("unlock").await;

    let (one, two) = (reader(&both, "a"), reader(&both, "b"));
    one.call("lock", json!([ms(JAVA_ENDLESS)])).value::<()>().await;
    two.call("lock", json!([ms(JAVA_ENDLESS)])).value::<()>().await;
    let waiting = both.wait_for(ours.write().clone()).await;
    one.get::<()>("unlock").await;
    assert!(ours.write().try_acquire().await.unwrap().is_none() && !waiting.is_finished());
    two.get::<()>("unlock").await;
    assert_eq!(waiting.await.unwrap().release().await, Ok(Released::Released));
}

#[tokio::test]
async fn a_writer_that_ends_admits_all_readers_of_the_other_side() {
    let both = Both::start().await;
    let ours = shelf(&both.env.client());
    let lease = ours.write().acquire_with(endless()).await.unwrap();
    let readers = ["a", "b", "c"].map(|thread| reader(&both, thread));
    let mut reading = Vec::new();
    for java in &readers {
        reading.push(java.call("lock", json!([ms(JAVA_ENDLESS)])));
        java.thread.waits().await;
    }
    assert_eq!(lease.release().await, Ok(Released::Released));
    for answer in reading {
        answer.value::<()>().await;
    }
    assert_eq!(ours.read().inspect().await.unwrap().hold_count, 3);
    for java in &readers {
        java.get::<()>("unlock").await;
    }

    let java = writer(&both, "a");
    java.call("lock", json!([ms(JAVA_ENDLESS)])).value::<()>().await;
    let one = both.wait_for(ours.read().clone()).await;
    let two = both.wait_for(ours.read().clone()).await;
    java.get::<()>("unlock").await;
    let (one, two) = (one.await.unwrap(), two.await.unwrap());
    assert!(one.is_held().await.unwrap() && two.is_held().await.unwrap());
}

#[tokio::test]
async fn java_reads_twice_and_writes_twice_while_we_wait() {
    let both = Both::start().await;
    let ours = shelf(&both.env.client());
    let (read, write) = (reader(&both, "a"), writer(&both, "a"));
    for (java, mine, rival) in
        [(&read, ours.read(), ours.write()), (&write, ours.write(), ours.read())]
    {
        java.get::<()>("lock").await;
        java.get::<()>("lock").await;
        assert_eq!(mine.inspect().await.unwrap().hold_count, 2);
        let waiting = both.wait_for(rival.clone()).await;
        java.get::<()>("unlock").await;
        assert_eq!(mine.inspect().await.unwrap().hold_count, 1);
        assert!(rival.try_acquire().await.unwrap().is_none() && !waiting.is_finished());
        java.get::<()>("unlock").await;
        waiting.await.unwrap().release().await.unwrap();
    }
}

/// S91. The waiting writer belongs to another service: in one service the message wakes both sides
/// through one Java semaphore, and a writer that is refused and waits again may also take the
/// reader's wake-up, if the reader's thread is slow to run.
#[tokio::test]
async fn our_writer_that_keeps_a_read_wakes_only_the_readers_of_java() {
    let both = Both::start().await;
    let elsewhere = both.another(json!({})).await;
    let owner = shelf(&both.env.client().owner());
    let writing = owner.write().acquire_with(endless()).await.unwrap();
    let again = owner.write().acquire_with(endless()).await.unwrap();
    let reading = owner.read().acquire_with(endless()).await.unwrap();
    let java = reader(&both, "a");
    let rival = elsewhere.thread("b").object(json!({ "kind": "writeLock", "name": NAME }));
    let read = java.call("lock", json!([ms(JAVA_ENDLESS)]));
    let write = rival.call("lock", json!([ms(JAVA_ENDLESS)]));
    java.thread.waits().await;
    rival.thread.waits().await;
    again.release().await.unwrap();
    assert!(reader(&both, "c").get::<bool>("isLocked").await && !read.has_come());
    assert_eq!(writing.release().await, Ok(Released::Released));
    read.value::<()>().await;
    assert!(reading.is_held().await.unwrap());
    java.get::<()>("unlock").await;
    assert!(!write.has_come());
    assert_eq!(reading.release().await, Ok(Released::Released));
    write.value::<()>().await;
}

/// Redisson's weak point 14: its downgrade publishes nothing. edgelatch's readers retry and
/// acquire; Redisson's readers sleep.
#[tokio::test]
async fn a_java_writer_that_keeps_a_read_admits_our_readers_and_does_not_wake_java_s() {
    let both = Both::start().await;
    let ours = shelf(&both.env.client());
    let (write, read, asleep) = (writer(&both, "a"), reader(&both, "a"), reader(&both, "b"));
    write.call("lock", json!([ms(JAVA_ENDLESS)])).value::<()>().await;
    read.call("lock", json!([ms(JAVA_ENDLESS)])).value::<()>().await;
    let sleeps = asleep.call("lock", json!([]));
    asleep.thread.waits().await;
    let waiting = both.wait_for(ours.read().clone()).await;
    write.get::<()>("unlock").await;
    let lease = waiting.await.unwrap();
    assert!(ours.write().try_acquire().await.unwrap().is_none());
    asleep.thread.waits().await;
    assert!(!sleeps.has_come());
    read.get::<()>("unlock").await;
    // The last reader's release notifies all waiters.
    lease.release().await.unwrap();
    sleeps.value::<()>().await;
}

#[tokio::test]
async fn each_side_ends_reads_of_the_other_by_force_but_not_by_the_writing_side() {
    let both = Both::start().await;
    let ours = shelf(&both.env.client());
    let (read, write) = (reader(&both, "a"), writer(&both, "a"));
    let lease = ours.read().acquire().await.unwrap();
    assert!(!write.get::<bool>("forceUnlock").await);
    assert!(lease.is_held().await.unwrap());
    assert!(read.get::<bool>("forceUnlock").await);
    assert!(!lease.is_held().await.unwrap());
    assert_eq!(lease.lost().await, LossReason::Gone);

    read.get::<()>("lock").await;
    let waiting = both.wait_for(ours.write().clone()).await;
    assert_eq!(ours.write().force_release().await, Ok(false));
    assert!(read.get::<bool>("isHeldByCurrentThread").await);
    assert_eq!(ours.read().force_release().await, Ok(true));
    let writing = waiting.await.unwrap();
    assert!(read.call("unlock", json!([])).thrown().await.is_not_the_holder());
    assert_eq!(ours.read().force_release().await, Ok(false));
    assert!(writing.is_held().await.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_sides_read_and_write_and_no_reader_meets_a_writer() {
    let both = Both::start().await;
    let side = |kind: &str, gauge, other| Contest {
        java: json!({ "kind": kind, "name": NAME }),
        take: "lock",
        give: json!({ "method": "unlock", "args": [] }),
        contenders: 2,
        gauge,
        most: if kind == "writeLock" { 1 } else { 4 },
        without: Some(other),
        counter: (kind == "writeLock").then_some("turns"),
    };
    let (readers, writers) =
        (side("readLock", "readers", "writers"), side("writeLock", "writers", "readers"));
    tokio::join!(
        readers.run(&both, || shelf(&both.direct_client()).read().clone()),
        writers.run(&both, || shelf(&both.direct_client()).write().clone()),
    );
}
