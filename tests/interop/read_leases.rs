//! How long concurrent readers and writers of both sides hold.

use std::time::Duration;

use edgelatch::client::{AcquireOptions, LeaseEnd, ReadWriteSettings, Released};
use edgelatch::error::LossReason;
use edgelatch::timing::LeaseTime;
use serde_json::json;

use super::both::{Both, NAME};
use super::exclusive::{ENDLESS, JAVA_ENDLESS, JAVA_LEASE, JAVA_LEASES, SHORT};
use super::peer::ms;
use super::read_write::{endless, reader, shelf, writer};
use test_support::test_env::until;

#[tokio::test]
async fn a_dead_reader_of_ours_does_not_block_a_writer_of_java() {
    let both = Both::start().await;
    let (client, host) = both.env.virtual_client();
    let ours = shelf(&client);
    let short = AcquireOptions::new().lease(SHORT);
    drop(both.in_virtual_time(&host, ours.read().acquire_with(short)).await.unwrap());
    let java = reader(&both, "a");
    java.call("lock", json!([ms(JAVA_ENDLESS)])).value::<()>().await;
    let writing = writer(&both, "b").call("lock", json!([]));
    both.java.thread("b").waits().await;
    until(async || timeout_keys(&both).await == 1).await;
    java.get::<()>("unlock").await;
    writing.value::<()>().await;
}

#[tokio::test]
async fn a_dead_reader_of_java_does_not_block_a_writer_of_ours() {
    let both = Both::start().await;
    let ours = shelf(&both.env.client());
    let dies = both.another(json!({})).await;
    let dead = dies.thread("a").object(json!({ "kind": "readLock", "name": NAME }));
    let lease = ours.read().acquire_with(endless()).await.unwrap();
    dead.call("lock", json!([ms(1_000)])).value::<()>().await;
    drop((dead, dies));
    until(async || timeout_keys(&both).await == 1).await;
    assert!(ours.write().try_acquire().await.unwrap().is_none());
    assert_eq!(lease.release().await, Ok(Released::Released));
    ours.write().try_acquire().await.unwrap().unwrap().release().await.unwrap();
}

#[tokio::test]
async fn both_sides_renew_their_reads_and_neither_loses_its_own() {
    renew_long_enough(false).await;
}

#[tokio::test]
async fn a_read_that_we_renew_on_demand_for_long_is_not_lost_beside_a_java_reader() {
    renew_long_enough(true).await;
}

/// Has both sides renew beside each other, with a longer watchdog time if the machine is too slow.
async fn renew_long_enough(on_demand: bool) {
    for java_lease in JAVA_LEASES {
        let both = Both::with(json!({ "lockWatchdogTimeout": java_lease })).await;
        match renew_beside_each_other(&both, java_lease, on_demand).await {
            Ok(()) if !both.has_expired().await => return,
            // The machine is too slow for both sides to renew so often.
            _ if both.has_expired().await => {}
            outcome => panic!("{outcome:?}"),
        }
    }
    panic!("one of them renews too late");
}

/// Both sides read until each has renewed beyond its first lease; returns what was wrong then. The
/// client requests a long lease when it acquires, or `on_demand` in a renewal.
async fn renew_beside_each_other(
    both: &Both,
    java_lease: i64,
    on_demand: bool,
) -> Result<(), String> {
    let java = reader(both, "a");
    java.get::<()>("lock").await;
    let watchdog = Duration::from_millis(java_lease.unsigned_abs());
    let watchdog = LeaseTime::new(watchdog).unwrap();
    let settings = ReadWriteSettings::default().peer_watchdog(Some(watchdog));
    let ours = both.env.client().read_write_lock(NAME, settings).unwrap();
    // Java's renewals leave less than this lease, so the client renews it again and again.
    let first = if on_demand { AcquireOptions::new().lease(watchdog.get()) } else { endless() };
    let lease = ours.read().acquire_with(first).await.unwrap();
    if on_demand {
        lease.renew(Some(ENDLESS)).await.map_err(|error| format!("{error:?}"))?;
        // A renewal by Java ends the lock at its watchdog time, so our holder relies on no more.
        assert!(lease.remaining() <= watchdog.get());
    }
    let renewed = until(async || both.env.proxy.count("read_renew") >= 4);
    let ended = tokio::select! {
        end = lease.keep() => Some(end),
        () = renewed => None,
    };
    if ended == Some(LeaseEnd::Lost(LossReason::Expired)) {
        // Redis keeps a hold a little longer than its holder trusts it.
        until(async || both.has_expired().await).await;
    }
    if let Some(end) = ended {
        return Err(format!("{end:?}"));
    }
    let ours_is_held = lease.is_held().await.unwrap();
    let java_is_held = java.get::<bool>("isHeldByCurrentThread").await;
    let writes = writer(both, "b").get::<bool>("tryLock").await;
    let released = lease.release().await;
    both.renewed(3).await;
    let unlocked = java.call("unlock", json!([])).outcome().await;
    let seen = (ours_is_held, java_is_held, writes, released, unlocked.is_ok());
    if seen != (true, true, false, Ok(Released::Released), true) {
        return Err(format!("{seen:?}"));
    }
    assert!(ours.write().try_acquire().await.unwrap().is_some());
    Ok(())
}

#[tokio::test]
async fn our_renewals_do_not_shorten_a_read_of_java() {
    let both = Both::start().await;
    let java = reader(&both, "a");
    java.call("lock", json!([ms(JAVA_ENDLESS)])).value::<()>().await;
    let (client, host) = both.env.virtual_client();
    let ours = client.read_write_lock(NAME, ReadWriteSettings::default()).unwrap();
    let lease = ours.read().acquire().await.unwrap();
    let renewed = async {
        for count in 1..=3 {
            host.pass(Duration::from_secs(10));
            until(async || both.env.proxy.count("read_renew") == count).await;
            until(async || lease.remaining() > Duration::from_secs(25)).await;
        }
    };
    tokio::select! {
        end = lease.keep() => panic!("{end:?}"),
        () = renewed => {}
    }
    assert!(java.get::<i64>("remainTimeToLive").await > JAVA_ENDLESS / 2);
    assert_eq!(lease.release().await, Ok(Released::Released));
    assert!(java.get::<i64>("remainTimeToLive").await > JAVA_ENDLESS / 2);
    assert!(java.get::<bool>("isHeldByCurrentThread").await);
}

/// A renewal of Redisson's read sets the expiry of the whole lock, even below that of other holds.
/// So edgelatch trusts its reads for no longer than `peer_watchdog`, unless no Java client is
/// expected to renew, as here.
#[tokio::test]
async fn a_java_reader_that_renews_and_dies_ends_a_longer_read() {
    let both = Both::with(json!({ "lockWatchdogTimeout": JAVA_LEASE })).await;
    // The client's time stands still, so that nothing but Java's renewal ends its hold.
    let (client, _host) = both.env.virtual_client();
    let lease = shelf(&client).read().acquire_with(endless()).await.unwrap();
    let dies = both.another(json!({ "lockWatchdogTimeout": JAVA_LEASE })).await;
    let dead = dies.thread("a").object(json!({ "kind": "readLock", "name": NAME }));
    dead.get::<()>("lock").await;
    until(async || {
        if timeout_keys(&both).await == 1 {
            // The machine was too slow for Java to renew its own hold.
            dead.get::<()>("lock").await;
        }
        both.pttl().await <= JAVA_LEASE
    })
    .await;
    drop((dead, dies));
    until(async || both.env.redis.query::<u64>(&["EXISTS", NAME]).await == 0).await;
    assert!(!lease.is_held().await.unwrap());
    assert_eq!(lease.lost().await, LossReason::Gone);
}

/// Redisson's multi-lock sets the end of each member to its own lease, also of a read side that
/// other clients hold for longer.
#[tokio::test]
async fn a_java_multi_lock_with_a_short_lease_ends_a_longer_read_of_ours() {
    let both = Both::start().await;
    // The client's time stands still, so that nothing but Java's lease ends its hold.
    let (client, _host) = both.env.virtual_client();
    let settings = ReadWriteSettings::default();
    let ours = client.read_write_lock(NAME, settings).unwrap();
    let lease = ours.read().acquire().await.unwrap();
    let locks = json!([{ "kind": "readLock", "name": NAME }, { "kind": "lock", "name": "beside" }]);
    let java = both.java.thread("a").object(json!({ "kind": "multiLock", "locks": locks }));
    java.call("lock", json!([ms(1_000)])).value::<()>().await;
    until(async || both.env.redis.query::<u64>(&["EXISTS", NAME]).await == 0).await;
    assert!(lease.remaining() > Duration::from_secs(20));
    assert!(!lease.is_held().await.unwrap());
    assert_eq!(lease.lost().await, LossReason::Gone);
}

/// Redisson's weak point 10: the end of a read inside its own write stops the renewal of the write.
#[tokio::test]
async fn a_java_writer_that_has_ended_a_read_is_renewed_no_more_and_we_take_over() {
    let both = Both::with(json!({ "lockWatchdogTimeout": JAVA_LEASE })).await;
    let ours = shelf(&both.env.client());
    let (write, read) = (writer(&both, "a"), reader(&both, "a"));
    write.get::<()>("lock").await;
    read.get::<()>("lock").await;
    read.get::<()>("unlock").await;
    let lease = both.wait_for(ours.write().clone()).await.await.unwrap();
    assert!(write.call("unlock", json!([])).thrown().await.is_not_the_holder());
    assert!(lease.is_held().await.unwrap());
    assert_eq!(lease.release().await, Ok(Released::Released));
}

/// Redisson's weak point 10: re-entry of the write side adds up the leases.
#[tokio::test]
async fn a_java_writer_that_enters_again_keeps_us_out_for_both_leases() {
    let both = Both::start().await;
    let java = writer(&both, "a");
    for _ in 0..2 {
        java.call("lock", json!([ms(100_000)])).value::<()>().await;
    }
    let state = shelf(&both.env.client()).write().inspect().await.unwrap();
    assert!(state.remaining.unwrap() > Duration::from_secs(150), "{state:?}");
}

/// The number of read entries that have not ended.
async fn timeout_keys(both: &Both) -> usize {
    both.env.redis.query::<Vec<String>>(&["KEYS", "*rwlock_timeout*"]).await.len()
}
