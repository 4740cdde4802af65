//! Calls that are too late, and how long Redis remembers each part of the state.

use std::time::Duration;

use edgelatch_proto::protocol::calls::FairMode;
use edgelatch_proto::protocol::reply::{Code, Reply};
use edgelatch_proto::protocol::script::Bound;

use super::fixtures::{Attempt, FairRw, LIFE_MS, exclusive, first, in_time, shared};
use test_support::calls::{UNBOUND, bound};
use test_support::redis::Redis;

/// The slack after which no copy of a request can still be in transit.
const SLACK_MS: u64 = 1_000;
/// The least time for which a previous owner is remembered.
const PREVIOUS_MS: u64 = 690_000;
const DAY_MS: u64 = 86_400_000;

async fn bounds(redis: &Redis) -> [Bound; 3] {
    let now = redis.now_ms().await;
    [
        UNBOUND,
        Bound { not_after: None, keep: Duration::from_secs(600) },
        bound(now + 1_000_000, 90_000),
    ]
}

/// Rule C2: how long a record with this bound and lease is kept.
fn record_ms(bound: Bound, lease_ms: u64, reply: &Reply) -> u64 {
    let until = bound.not_after.map_or(0, |at| at.saturating_sub(reply.server_ms));
    lease_ms.max(until).max(u64::try_from(bound.keep.as_millis()).unwrap()) + SLACK_MS
}

/// Asserts that the key expires this long after the script ran.
async fn assert_kept(redis: &Redis, key: &str, reply: &Reply, ms: u64) {
    let ends: u64 = redis.query(&["PEXPIRETIME", key]).await;
    // Redis computes the expiry from a later reading of the clock than the script's.
    let read = reply.server_ms..=redis.now_ms().await;
    assert!(read.contains(&(ends - ms)), "{key}: {ends} is not {ms} after {read:?}");
}

#[tokio::test]
async fn a_latch_outlives_memory_lease_and_bound_in_each_of_its_states() {
    let redis = Redis::start().await;
    let lock = FairRw::new("job");
    for bound in bounds(&redis).await {
        redis.query::<String>(&["FLUSHALL"]).await;
        let long = exclusive(1).within(bound).for_ms(3_600_000);
        let keeps = async |owner, reply: &Reply, lease_ms| {
            let ms = record_ms(bound, lease_ms, reply);
            assert_kept(&redis, &lock.latch(owner), reply, ms).await;
        };
        let granted = redis.run(&lock.acquire(long)).await;
        keeps(1, &granted, 3_600_000).await;
        let waiting = redis.run(&lock.acquire(Attempt { owner: 2, ..long })).await;
        keeps(2, &waiting, 0).await;
        let refused = redis.run(&lock.acquire(Attempt { owner: 3, ..long }.at_last())).await;
        keeps(3, &refused, 0).await;
        let abandoned = redis.run(&lock.release(shared(4).within(bound))).await;
        keeps(4, &abandoned, 0).await;
        let taken_over = redis.run(&lock.acquire(exclusive(5).within(bound).after(2))).await;
        let ms = record_ms(bound, 0, &taken_over).max(PREVIOUS_MS);
        assert_kept(&redis, &lock.latch(2), &taken_over, ms).await;
        let released = redis.run(&lock.release(long)).await;
        keeps(1, &released, 0).await;
    }
}

#[tokio::test]
async fn each_key_lasts_for_its_longest_entry() {
    let redis = Redis::start().await;
    let lock = FairRw::new("job");
    let granted = redis.run(&lock.acquire(exclusive(1).for_ms(40_000))).await;
    assert_kept(&redis, &lock.key("holders"), &granted, 40_000 + SLACK_MS).await;
    assert_kept(&redis, &lock.key("last"), &granted, DAY_MS).await;
    for key in ["names", "ends"] {
        let ms = 40_000 + LIFE_MS + SLACK_MS;
        assert_kept(&redis, &lock.registry(key), &granted, ms).await;
    }
    let waiting = redis.run(&lock.acquire(exclusive(2))).await;
    for key in ["queue", "writers", "beats"] {
        assert_kept(&redis, &lock.key(key), &waiting, LIFE_MS + SLACK_MS).await;
    }
    // A shorter lease or life never shortens a key's life (C7).
    redis.run(&lock.acquire(exclusive(1).for_ms(1_000))).await;
    assert_kept(&redis, &lock.key("holders"), &granted, 40_000 + SLACK_MS).await;
    let brief = FairRw { settings: lock.settings.life(Duration::from_secs(1)).unwrap(), ..lock };
    redis.run(&brief.acquire(exclusive(3))).await;
    for key in ["queue", "writers", "beats"] {
        assert_kept(&redis, &brief.key(key), &waiting, LIFE_MS + SLACK_MS).await;
    }
}

/// S5.
#[tokio::test]
async fn a_late_request_changes_nothing_and_a_late_release_ends_the_hold() {
    let redis = Redis::start().await;
    let lock = FairRw::new("job");
    let late = bound(redis.now_ms().await - 1, 90_000);
    for mode in [FairMode::Exclusive, FairMode::Shared, FairMode::Steal] {
        let call = lock.acquire(first(1, mode).within(late));
        assert_eq!(redis.run(&call).await.code, Code::Late, "{mode:?}");
        assert!(redis.dump().await.is_empty(), "{mode:?}");
    }
    let grant: u64 = redis.run(&lock.acquire(exclusive(1))).await.value.parse().unwrap();
    redis.run(&lock.acquire(shared(2))).await;
    let before = redis.dump().await;
    for call in [
        lock.acquire(exclusive(1).nth(2).within(late)),
        lock.acquire(shared(2).nth(2).within(late)),
        lock.renew(exclusive(1).within(late), grant),
        lock.force_release(9, late),
    ] {
        assert_eq!(redis.run(&call).await.code, Code::Late, "{}", call.script().name);
    }
    let values = |keyspace: test_support::redis::Keyspace| -> Vec<_> {
        keyspace.into_iter().map(|(key, stored)| (key, stored.value)).collect()
    };
    assert_eq!(values(before), values(redis.dump().await));
    assert_eq!(redis.run(&lock.release(exclusive(1).within(late))).await.code, Code::Done);
    assert_eq!(redis.run(&lock.acquire(shared(2).nth(3))).await.code, Code::Done);
}

/// Rules C6 and C7.
#[tokio::test]
async fn a_repeat_and_a_renewal_extend_and_never_shorten() {
    let redis = Redis::start().await;
    let lock = FairRw::new("job");
    for mode in [FairMode::Exclusive, FairMode::Shared] {
        redis.query::<String>(&["FLUSHALL"]).await;
        let attempt = first(1, mode);
        let grant: u64 = redis.run(&lock.acquire(attempt)).await.value.parse().unwrap();
        let ends = async |call, least| {
            let reply: Reply = redis.run(&call).await;
            assert_eq!(reply.value, grant.to_string());
            let stored: u64 =
                redis.query(&["ZSCORE", &lock.key("holders"), &attempt.member()]).await;
            assert_eq!(stored, reply.server_ms + u64::try_from(reply.ms).unwrap());
            assert!(reply.ms >= least, "{reply:?}");
            stored
        };
        let first_end = ends(lock.acquire(attempt.nth(2).for_ms(60_000)), 60_000).await;
        let second_end = ends(lock.renew(attempt.for_ms(90_000), grant), 90_000).await;
        assert!(second_end > first_end);
        let shorter =
            [lock.acquire(attempt.nth(3).for_ms(100)), lock.renew(attempt.for_ms(100), grant)];
        for call in shorter {
            assert_eq!(ends(call, 1_000).await, second_end);
        }
        // The latch outlives the hold.
        let latch: u64 = redis.query(&["PEXPIRETIME", &lock.latch(1)]).await;
        assert!(latch >= second_end + SLACK_MS);
        assert_eq!(redis.run(&lock.renew(attempt, grant + 1)).await.code, Code::Lost);
        // At the end of the lease the hold is lost, although its entry is still there.
        lock.age(&redis, 90_001).await;
        let lost = redis.run(&lock.renew(attempt, grant)).await;
        assert_eq!((lost.code, lost.value.as_str()), (Code::Lost, "0"));
        assert_eq!(redis.run(&lock.acquire(attempt.nth(4))).await.code, Code::Lost);
        assert_eq!(redis.run(&lock.release(attempt)).await.code, Code::No);
    }
}

/// Rule W11.
#[tokio::test]
async fn a_steal_needs_a_bound() {
    let redis = Redis::start().await;
    let lock = FairRw::new("job");
    redis.run(&lock.acquire(shared(2))).await;
    let before = redis.dump().await;
    let steal = first(1, FairMode::Steal);
    assert_eq!(redis.run(&lock.acquire(steal)).await.code, Code::BoundRequired);
    assert_eq!(before.keys().collect::<Vec<_>>(), redis.dump().await.keys().collect::<Vec<_>>());
    let bounded = steal.nth(2).within(in_time(&redis).await);
    assert_eq!(redis.run(&lock.acquire(bounded)).await.code, Code::Done);
}
