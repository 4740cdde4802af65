//! Many readers or one writer, and one owner on both sides.

use std::sync::Arc;
use std::time::Duration;

use edgelatch::client::{
    AcquireOptions, Client, LeaseEnd, ReadWriteLock, ReadWriteSettings, Released, UserScript,
};
use edgelatch::error::{AcquireError, LossReason};
use edgelatch::host::Host;
use edgelatch::timing::WantTime;
use edgelatch::transport::Reqwest;
use tokio::sync::Notify;

use test_support::faults::{Fault, FaultResponse};
use test_support::test_env::{TestEnv, until, until_in_virtual_time};

fn shelf<H: Host>(client: &Client<Reqwest, H>) -> ReadWriteLock<Reqwest, H> {
    client.read_write_lock("shelf", ReadWriteSettings::default()).unwrap()
}

#[tokio::test]
async fn readers_share_and_a_writer_is_alone() {
    let env = TestEnv::new().await;
    let (one, two) = (shelf(&env.client()), shelf(&env.client()));
    let first = one.read().acquire().await.unwrap();
    let second = two.read().acquire().await.unwrap();
    // Concurrent readers have the same token.
    assert_eq!(first.token(), second.token());
    assert!(two.write().try_acquire().await.unwrap().is_none());
    first.release().await.unwrap();
    assert!(two.write().try_acquire().await.unwrap().is_none());
    second.release().await.unwrap();

    let writer = two.write().acquire().await.unwrap();
    assert!(writer.token() > second.token());
    assert!(one.read().try_acquire().await.unwrap().is_none());
    assert!(one.write().try_acquire().await.unwrap().is_none());
    writer.release().await.unwrap();
    let reader = one.read().acquire().await.unwrap();
    assert!(reader.token() > writer.token());
    assert_eq!(reader.release().await, Ok(Released::Released));
    let left: Vec<String> = env.redis.query(&["KEYS", "*rwlock_timeout*"]).await;
    assert!(left.is_empty(), "{left:?}");
}

/// S91.
#[tokio::test]
async fn an_owner_that_writes_may_read_and_keep_the_read() {
    let env = TestEnv::new().await;
    let owner = shelf(&env.client().owner());
    let other = shelf(&env.client());
    let writer = owner.write().acquire().await.unwrap();
    let reader = owner.read().acquire().await.unwrap();
    assert_eq!(reader.token(), writer.token());
    assert!(other.read().try_acquire().await.unwrap().is_none());

    // The downgrade.
    assert_eq!(writer.release().await, Ok(Released::Released));
    assert!(reader.token() > writer.token());
    let beside = other.read().acquire().await.unwrap();
    assert_eq!(reader.token(), beside.token());
    assert!(other.write().try_acquire().await.unwrap().is_none());
    reader.renew(None).await.unwrap();
    assert_eq!(reader.token(), beside.token());
    beside.release().await.unwrap();
    assert_eq!(reader.release().await, Ok(Released::Released));
    other.write().acquire().await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn a_read_confirmed_after_the_end_of_its_write_has_the_readers_token() {
    let env = TestEnv::new().await;
    let owner = shelf(&env.client().owner());
    let writer = owner.write().acquire().await.unwrap();
    let reply_now = Arc::new(Notify::new());
    let late = Fault::executed(FaultResponse::Delayed(Arc::clone(&reply_now)));
    env.proxy.plan(move |request| match request.script {
        "read_acquire" => late.clone(),
        _ => Fault::none(),
    });
    // Acquired for a fixed time: nothing renews it.
    let reading = owner.read().acquire_with(AcquireOptions::new().lease(Duration::from_secs(30)));
    let ending = async {
        until(async || env.redis.query::<u64>(&["HLEN", "shelf"]).await == 3).await;
        writer.release().await.unwrap();
        env.proxy.plan(|_| Fault::none());
        reply_now.notify_one();
    };
    let (reader, ()) = tokio::join!(reading, ending);
    let reader = reader.unwrap();
    assert!(reader.token() > writer.token());
    let beside = shelf(&env.client()).read().acquire().await.unwrap();
    assert_eq!(reader.token(), beside.token());

    // Redis may still have an older token in the hold itself; this must not count as a loss.
    let script = UserScript::new("return 1", Vec::new(), Vec::new()).unwrap();
    assert_eq!(reader.eval(&script).await, Ok("1".to_owned()));
    reader.renew(None).await.unwrap();
    assert_eq!(reader.token(), beside.token());
    assert_eq!(reader.eval(&script).await, Ok("1".to_owned()));
    assert_eq!(reader.release().await, Ok(Released::Released));
}

#[tokio::test]
async fn an_owner_that_reads_is_not_left_to_wait_for_itself() {
    let env = TestEnv::new().await;
    let owner = shelf(&env.client().owner());
    let reader = owner.read().acquire().await.unwrap();
    let before = env.proxy.calls().len();
    assert_eq!(owner.write().acquire().await.unwrap_err(), AcquireError::SelfDeadlock);
    assert_eq!(env.proxy.calls().len(), before);
    let again = owner.read().acquire().await.unwrap();
    assert_eq!((again.hold_count(), env.proxy.calls().len()), (2, before));
    again.release().await.unwrap();
    reader.release().await.unwrap();
    owner.write().acquire().await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn a_reader_that_died_does_not_hold_a_writer_up() {
    let env = TestEnv::new().await;
    let client = env.client();
    let short = AcquireOptions::new().lease(Duration::from_millis(200));
    let long = AcquireOptions::new().lease(Duration::from_secs(25));
    // Redis ends the hold in real time. The reader's time stands still, so that its grant does not
    // come too late.
    let (dying, _host) = env.virtual_client();
    let dying = dying.read_write_lock("shelf", ReadWriteSettings::default()).unwrap();
    let dead = dying.read().acquire_with(short).await.unwrap();
    let alive = shelf(&client).read().acquire_with(long).await.unwrap();
    drop(dead);
    alive.release().await.unwrap();
    // The released reader extended the hash; the end of the dead reader's own hold decides.
    let options = AcquireOptions::new().wait(Duration::from_secs(20));
    shelf(&client).write().acquire_with(options).await.unwrap().release().await.unwrap();
}

#[tokio::test]
async fn a_long_read_is_requested_in_pieces_of_java_s_watchdog_time() {
    let env = TestEnv::new().await;
    let client = env.client();
    let long = AcquireOptions::new().lease(Duration::from_secs(600));
    let reader = shelf(&client).read().acquire_with(long).await.unwrap();
    assert!(env.redis.query::<u64>(&["PTTL", "shelf"]).await <= 30_000);
    reader.release().await.unwrap();
    let alone = ReadWriteSettings::default().peer_watchdog(None);
    let lock = client.read_write_lock("shelf", alone).unwrap();
    let reader = lock.read().acquire_with(long).await.unwrap();
    assert!(env.redis.query::<u64>(&["PTTL", "shelf"]).await > 500_000);
    reader.release().await.unwrap();
}

/// A renewal by a Java reader sets the end of the whole lock to its watchdog time.
#[tokio::test]
async fn a_renewal_on_demand_trusts_no_read_longer_than_java_s_watchdog() {
    let env = TestEnv::new().await;
    let (client, _host) = env.virtual_client();
    let fixed = AcquireOptions::new().lease(Duration::from_secs(10));
    let (plain, read) = (client.lock("plain").unwrap(), shelf(&client).read().clone());
    let several = client.multi_lock([plain, shelf(&client).read().clone()]).unwrap();
    for (lock, options) in [(&read, fixed), (&read, AcquireOptions::new()), (&several, fixed)] {
        let lease = lock.acquire_with(options).await.unwrap();
        assert_eq!(lease.renew(Some(Duration::from_secs(600))).await, Ok(()));
        assert!(lease.remaining() > Duration::from_secs(25));
        assert!(lease.remaining() <= Duration::from_secs(30));
        assert!(env.redis.query::<u64>(&["PTTL", "shelf"]).await <= 30_000);
        assert_eq!(lease.release().await, Ok(Released::Released));
    }
    let alone = ReadWriteSettings::default().peer_watchdog(None);
    let alone = client.read_write_lock("shelf", alone).unwrap();
    let lease = alone.read().acquire_with(fixed).await.unwrap();
    assert_eq!(lease.renew(Some(Duration::from_secs(600))).await, Ok(()));
    assert!(lease.remaining() > Duration::from_secs(590));
    assert_eq!(lease.release().await, Ok(Released::Released));
}

#[tokio::test]
async fn a_long_renewal_on_demand_of_a_read_is_kept_to_its_end() {
    for is_kept_before in [true, false] {
        let env = TestEnv::new().await;
        let (client, host) = env.virtual_client();
        let lock = shelf(&client);
        let begin = host.now();
        // No longer than the watchdog time, so that the lease is only watched at first.
        let fixed = AcquireOptions::new().lease(Duration::from_secs(30));
        let lease = lock.read().acquire_with(fixed).await.unwrap();
        let before = is_kept_before.then(|| tokio::spawn(lease.keep()));
        tokio::task::yield_now().await;
        assert_eq!(lease.renew(Some(Duration::from_secs(100))).await, Ok(()));
        let kept = before.unwrap_or_else(|| tokio::spawn(lease.keep()));
        until_in_virtual_time(&env, &host, Duration::from_secs(1), || kept.is_finished()).await;
        assert_eq!(kept.await.unwrap(), LeaseEnd::Lost(LossReason::Expired));
        let lasted = host.now().max_elapsed(begin);
        assert!((98..=100).contains(&lasted.as_secs()), "{lasted:?}");
        lease.release().await.unwrap();
    }
}

#[tokio::test]
async fn a_renewal_of_a_long_read_for_the_lease_of_its_acquisition_is_kept_to_its_end() {
    let env = TestEnv::new().await;
    let (client, host) = env.virtual_client();
    let (begin, step) = (host.now(), Duration::from_secs(1));
    let fixed = AcquireOptions::new().lease(Duration::from_secs(100));
    let lease = shelf(&client).read().acquire_with(fixed).await.unwrap();
    let kept = tokio::spawn(lease.keep());
    let has_lasted = || host.now().max_elapsed(begin).as_secs();
    until_in_virtual_time(&env, &host, step, || has_lasted() >= 60).await;
    assert_eq!(lease.renew(None).await, Ok(()));
    until_in_virtual_time(&env, &host, step, || kept.is_finished()).await;
    assert_eq!(kept.await.unwrap(), LeaseEnd::Lost(LossReason::Expired));
    assert!((158..=161).contains(&has_lasted()), "{} s", has_lasted());
    lease.release().await.unwrap();
}

#[tokio::test]
async fn a_writer_that_is_preferred_keeps_new_readers_out() {
    let env = TestEnv::new().await;
    let client = env.client();
    let settings = ReadWriteSettings::default().prefers_writers(WantTime::DEFAULT);
    let lock = client.read_write_lock("shelf", settings).unwrap();
    let reader = lock.read().acquire().await.unwrap();
    let waits = AcquireOptions::new().wait(Duration::from_secs(30));
    let writing = lock.write().acquire_with(waits);
    let others = async {
        until(async || env.redis.query::<u64>(&["EXISTS", "el:{shelf}:want"]).await == 1).await;
        assert!(lock.read().try_acquire().await.unwrap().is_none());
        reader.release().await.unwrap();
    };
    let (writer, ()) = tokio::join!(writing, others);
    writer.unwrap().release().await.unwrap();
    lock.read().acquire().await.unwrap().release().await.unwrap();
}
