//! Redisson and edgelatch on one read-write lock.

use edgelatch_proto::protocol::reply::{Code, Reply};

use super::fixtures::{
    Java, channel, eager_writes, reads, reads_inside, timeouts, writes, writes_around,
};
use test_support::calls::{self, Calls, UNBOUND, lease, owner, request, token};
use test_support::redis::{Content, Keyspace, Redis};

const JOB: &str = "job";
const HOLDER: &str = "8743c9c0-0795-4907-87fd-6c719a6b4586:1";
const OTHER: &str = "1f1d3b8e-5a0a-4d2f-9f0e-0a6b7c8d9e0f:7";

const fn java<'a>(redis: &'a Redis, holder: &'a str) -> Java<'a> {
    Java { redis, lock: JOB, holder }
}

/// Acquires a side for owner `who`, which has one request id for all its calls.
async fn takes(redis: &Redis, side: &Calls, who: u8, ms: u64) -> Reply {
    let id = request(u64::from(who) * 10);
    redis.run(&side.acquire(id, UNBOUND, &owner(who), lease(ms), false)).await
}

async fn ends(redis: &Redis, side: &Calls, who: u8) -> Reply {
    redis.run(&side.release(request(u64::from(who) * 10 + 1), UNBOUND, &owner(who))).await
}

async fn left(redis: &Redis) -> i64 {
    redis.query(&["PTTL", JOB]).await
}

fn fields(keyspace: &Keyspace) -> Vec<(String, String)> {
    match keyspace.get(JOB).map(|stored| &stored.value) {
        Some(Content::Hash(fields)) => fields.clone().into_iter().collect(),
        _ => Vec::new(),
    }
}

fn hash(fields: &[(&str, &str)]) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> =
        fields.iter().map(|(field, value)| ((*field).into(), (*value).into())).collect();
    all.sort();
    all
}

/// Deletes the timeout key of a read hold, as if its lease had ended but not that of the hash.
async fn dies(redis: &Redis, holder: &str, entry: u64) {
    let key = format!("{}:{holder}:rwlock_timeout:{entry}", timeouts(JOB));
    assert_eq!(redis.query::<u64>(&["DEL", &key]).await, 1, "{key}");
}

fn on_channel(message: &str) -> Vec<(String, String)> {
    vec![(channel(JOB), message.to_owned())]
}

#[tokio::test]
async fn our_writer_waits_for_java_s_reader_until_it_is_notified() {
    let mut redis = Redis::start().await;
    assert_eq!(java(&redis, HOLDER).reads(20_000).await, None);
    let refused = takes(&redis, &writes(JOB), 1, 30_000).await;
    assert_eq!(refused.code, Code::No);
    assert!((1..=20_000).contains(&refused.ms), "{}", refused.ms);
    redis.published().await;
    assert_eq!(java(&redis, HOLDER).ends_read(1).await, Some(1));
    assert_eq!(redis.published().await, on_channel("0"));
    assert_eq!(takes(&redis, &writes(JOB), 1, 30_000).await.code, Code::Done);
}

#[tokio::test]
async fn our_writer_and_java_s_exclude_each_other_and_all_readers() {
    let redis = Redis::start().await;
    assert_eq!(java(&redis, HOLDER).writes(20_000).await, None);
    assert_eq!(takes(&redis, &writes(JOB), 1, 30_000).await.code, Code::No);
    assert_eq!(takes(&redis, &reads(JOB), 2, 30_000).await.code, Code::No);
    assert_eq!(java(&redis, HOLDER).ends_write(1).await, Some(1));
    assert_eq!(takes(&redis, &writes(JOB), 1, 30_000).await.code, Code::Done);
    assert!(java(&redis, HOLDER).writes(20_000).await.is_some());
    assert!(java(&redis, OTHER).reads(20_000).await.is_some());
    assert_eq!(ends(&redis, &writes(JOB), 1).await.code, Code::Done);
    assert_eq!(java(&redis, HOLDER).writes(20_000).await, None);
}

#[tokio::test]
async fn java_s_unlock_beside_our_reader_leaves_hold_and_end() {
    let redis = Redis::start().await;
    for dead in [false, true] {
        redis.query::<String>(&["FLUSHALL"]).await;
        let grant = takes(&redis, &reads(JOB), 1, 30_000).await;
        assert_eq!(java(&redis, HOLDER).reads(10_000).await, None);
        assert_eq!(java(&redis, OTHER).reads(60_000).await, None);
        if dead {
            dies(&redis, OTHER, 1).await;
        }
        assert_eq!(java(&redis, HOLDER).ends_read(1).await, Some(0));
        let left = left(&redis).await;
        assert_eq!(left > 30_000, !dead, "{left}");
        let token = token(grant.value.parse().unwrap());
        let renew = reads(JOB).renew(request(9), UNBOUND, &owner(1), lease(30_000), token);
        assert_eq!(redis.run(&renew).await.code, Code::Done);
    }
}

#[tokio::test]
async fn our_release_leaves_java_s_hold_and_only_that() {
    let mut redis = Redis::start().await;
    takes(&redis, &reads(JOB), 1, 60_000).await;
    java(&redis, HOLDER).reads(10_000).await;
    redis.published().await;
    assert_eq!(ends(&redis, &reads(JOB), 1).await.code, Code::Done);
    assert_eq!(redis.published().await, []);
    assert_eq!(fields(&redis.dump().await), hash(&[("mode", "read"), (HOLDER, "1")]));
    assert!((1..=10_000).contains(&left(&redis).await));
}

#[tokio::test]
async fn our_last_live_reader_removes_java_s_dead_ones() {
    let mut redis = Redis::start().await;
    takes(&redis, &reads(JOB), 1, 30_000).await;
    java(&redis, HOLDER).reads(10_000).await;
    dies(&redis, HOLDER, 1).await;
    redis.published().await;
    assert_eq!(ends(&redis, &reads(JOB), 1).await.code, Code::Done);
    assert_eq!(redis.published().await, on_channel("0"));
    assert!(!redis.dump().await.contains_key(JOB));
}

#[tokio::test]
async fn a_read_that_ends_inside_a_write_leaves_the_write_its_end() {
    let redis = Redis::start().await;
    takes(&redis, &writes(JOB), 1, 60_000).await;
    takes(&redis, &reads_inside(JOB, owner(1)), 2, 10_000).await;
    assert_eq!(ends(&redis, &reads(JOB), 2).await.code, Code::Done);
    assert!(left(&redis).await > 10_000);
    let write = format!("{}:write", calls::field(&owner(1)));
    assert_eq!(fields(&redis.dump().await), hash(&[("mode", "write"), (&write, "1")]));
}

/// S92.
#[tokio::test]
async fn a_repeated_write_adds_nothing_to_its_lease() {
    let redis = Redis::start().await;
    let grant = takes(&redis, &writes(JOB), 1, 30_000).await;
    for _ in 0..10 {
        let again = takes(&redis, &writes(JOB), 1, 30_000).await;
        assert_eq!((again.code, &again.value), (Code::AlreadyYours, &grant.value));
    }
    assert!(left(&redis).await <= 30_000);
}

/// S91.
#[tokio::test]
async fn a_downgrade_admits_and_notifies_java_s_readers() {
    let mut redis = Redis::start().await;
    let write = takes(&redis, &writes(JOB), 1, 60_000).await;
    let inside = takes(&redis, &reads_inside(JOB, owner(1)), 2, 20_000).await;
    assert_eq!((inside.code, &inside.value), (Code::Done, &write.value));
    assert!(java(&redis, HOLDER).reads(10_000).await.is_some());
    redis.published().await;
    let released = ends(&redis, &writes(JOB), 1).await;
    assert_eq!(released.code, Code::Done);
    assert_eq!(redis.published().await, on_channel("1"));
    assert!((1..=20_000).contains(&left(&redis).await));
    assert_eq!(java(&redis, HOLDER).reads(10_000).await, None);
    assert_eq!(takes(&redis, &reads(JOB), 3, 10_000).await.value, released.value);

    let (old, new): (u64, u64) = (write.value.parse().unwrap(), released.value.parse().unwrap());
    assert!(old < new);
    // The release did not name the read inside, which takes the new token when it is renewed,
    // whatever token the renewal carries.
    for known in [old, old - 1, new, old] {
        let renew = reads(JOB).renew(request(8), UNBOUND, &owner(2), lease(20_000), token(known));
        let renewed = redis.run(&renew).await;
        assert_eq!((renewed.code, renewed.value), (Code::Done, new.to_string()));
    }
}

#[tokio::test]
async fn a_downgrade_that_names_a_nested_read_gives_it_the_new_token() {
    let redis = Redis::start().await;
    let write = takes(&redis, &writes(JOB), 1, 60_000).await;
    takes(&redis, &reads_inside(JOB, owner(1)), 2, 20_000).await;
    let released = ends(&redis, &writes_around(JOB, owner(2)), 1).await;
    let old = token(write.value.parse().unwrap());
    let renew = reads(JOB).renew(request(8), UNBOUND, &owner(2), lease(20_000), old);
    let renewed = redis.run(&renew).await;
    assert_eq!((renewed.code, &renewed.value), (Code::Done, &released.value));
    // A hold that has the new token is not renewed with the token of another grant.
    let newer = token(released.value.parse::<u64>().unwrap() + 1);
    let stale = reads(JOB).renew(request(9), UNBOUND, &owner(2), lease(20_000), newer);
    assert_eq!(redis.run(&stale).await.code, Code::Lost);
}

#[tokio::test]
async fn a_downgrade_of_java_s_with_a_dead_reader_does_not_block_our_writer() {
    let redis = Redis::start().await;
    let peer = java(&redis, HOLDER);
    assert_eq!((peer.writes(60_000).await, peer.reads(10_000).await), (None, None));
    assert_eq!(peer.ends_write(1).await, Some(1));
    // The hash still has the expiry of the write, the read one of its own: the reply to the writer
    // has the read's.
    let refused = takes(&redis, &writes(JOB), 1, 30_000).await;
    assert!(refused.code == Code::No && refused.ms <= 10_000, "{}", refused.ms);
    assert!(left(&redis).await > 10_000);
    dies(&redis, HOLDER, 1).await;
    assert_eq!(takes(&redis, &writes(JOB), 1, 30_000).await.code, Code::Done);
}

#[tokio::test]
async fn readers_whose_end_is_not_known_keep_a_writer_out() {
    let redis = Redis::start().await;
    java(&redis, HOLDER).reads(10_000).await;
    let key = format!("{}:{HOLDER}:rwlock_timeout:1", timeouts(JOB));
    redis.query::<u64>(&["PERSIST", &key]).await;
    assert_eq!(takes(&redis, &writes(JOB), 1, 30_000).await.code, Code::No);
    // More dead readers than the script examines: only the expiry of the hash counts.
    redis.query::<u64>(&["DEL", &key]).await;
    for number in 0..128 {
        redis.query::<u64>(&["HSET", JOB, &format!("{OTHER}{number}"), "1"]).await;
    }
    let refused = takes(&redis, &writes(JOB), 1, 30_000).await;
    assert!(refused.code == Code::No && refused.ms > 0);
    redis.query::<u64>(&["DEL", JOB]).await;
    for count in ["257", "1e300", "inf", "-inf", "nan"] {
        let mut words = vec!["HSET", JOB, "mode", "read", HOLDER, count];
        words.extend([OTHER, count]);
        redis.query::<u64>(&words).await;
        let refused = redis
            .run(&writes(JOB).acquire(request(1), UNBOUND, &owner(1), lease(30_000), false))
            .await;
        let counted = !["-inf", "nan"].contains(&count);
        assert_eq!(refused.code == Code::No, counted, "{count}");
        redis.query::<String>(&["FLUSHALL"]).await;
    }
}

#[tokio::test]
async fn a_plain_lock_s_hash_is_never_entered() {
    let redis = Redis::start().await;
    redis.query::<u64>(&["HSET", JOB, HOLDER, "1"]).await;
    for side in [reads(JOB), writes(JOB)] {
        let refused = takes(&redis, &side, 1, 30_000).await;
        assert_eq!((refused.code, refused.ms), (Code::No, -1));
        assert_eq!(redis.run(&side.inspect(request(5), None)).await.code, Code::No);
        assert_eq!(ends(&redis, &side, 1).await.code, Code::No);
        redis.query::<u64>(&["DEL", &side.release(request(1), UNBOUND, &owner(1)).keys()[0]]).await;
    }
    assert_eq!(fields(&redis.dump().await), hash(&[(HOLDER, "1")]));
}

/// S70.
#[tokio::test]
async fn a_reader_that_joins_a_hash_without_an_expiry_sets_one() {
    let redis = Redis::start().await;
    java(&redis, HOLDER).reads(10_000).await;
    redis.query::<u64>(&["PERSIST", JOB]).await;
    let refused = takes(&redis, &writes(JOB), 1, 30_000).await;
    assert!(refused.code == Code::No && (1..=10_000).contains(&refused.ms));
    assert_eq!(takes(&redis, &reads(JOB), 2, 30_000).await.code, Code::Done);
    assert!((1..=30_000).contains(&left(&redis).await));
}

#[tokio::test]
async fn java_s_renewal_cuts_the_hash_but_not_a_hold_that_is_renewed_in_its_time() {
    let redis = Redis::start().await;
    let grant = takes(&redis, &reads(JOB), 1, 600_000).await;
    java(&redis, HOLDER).reads(30_000).await;
    java(&redis, HOLDER).renews_read(30_000).await;
    // So a client that shares the lock with Redisson trusts no read hold for longer than that
    // renewal's time.
    assert!(left(&redis).await <= 30_000);
    let token = token(grant.value.parse().unwrap());
    let renew = reads(JOB).renew(request(9), UNBOUND, &owner(1), lease(100), token);
    assert_eq!(redis.run(&renew).await.code, Code::Done);
    assert!(left(&redis).await > 30_000, "as long as the hold itself again");
}

#[tokio::test]
async fn readers_yield_to_a_waiting_writer_unless_they_are_nested_in_a_write() {
    let mut redis = Redis::start().await;
    let eager = eager_writes(JOB, 5_000);
    takes(&redis, &reads(JOB), 1, 30_000).await;
    assert_eq!(takes(&redis, &eager, 2, 30_000).await.code, Code::No);
    let refused = takes(&redis, &reads(JOB), 3, 30_000).await;
    assert!(refused.code == Code::No && (1..=5_000).contains(&refused.ms));
    assert_eq!(takes(&redis, &reads(JOB), 1, 30_000).await.code, Code::AlreadyYours);
    assert_eq!(ends(&redis, &reads(JOB), 1).await.code, Code::Done);
    // The lock is free and kept for the writer; the writer's grant ends the want.
    assert_eq!(takes(&redis, &reads(JOB), 3, 30_000).await.code, Code::No);
    assert_eq!(takes(&redis, &eager, 2, 30_000).await.code, Code::Done);
    assert_eq!(takes(&redis, &eager, 4, 30_000).await.code, Code::No);
    assert_eq!(takes(&redis, &reads_inside(JOB, owner(2)), 5, 30_000).await.code, Code::Done);
    assert_eq!(ends(&redis, &eager, 2).await.code, Code::Done);
    // The other writer gives up at its last try, which is published.
    redis.published().await;
    let last = eager.acquire(request(40), UNBOUND, &owner(4), lease(30_000), true);
    assert_eq!(redis.run(&last).await.code, Code::No);
    assert_eq!(redis.published().await, on_channel("1"));
    assert_eq!(takes(&redis, &reads(JOB), 3, 30_000).await.code, Code::Done);
}

#[tokio::test]
async fn a_token_that_cannot_rise_grants_nothing_and_stops_no_release() {
    let redis = Redis::start().await;
    let key = format!("redisson_lock_token:{}", timeouts(JOB));
    for last in ["9007199254740991", "1e300", "garbage", "nan"] {
        redis.query::<String>(&["FLUSHALL"]).await;
        redis.query::<String>(&["SET", &key, last]).await;
        for side in [reads(JOB), writes(JOB)] {
            assert_eq!(takes(&redis, &side, 1, 30_000).await.code, Code::TokenRange, "{last}");
            assert!(redis.dump().await.into_keys().eq([key.as_str()]), "{last}");
        }
        redis.query::<u64>(&["DEL", &key]).await;
        takes(&redis, &writes(JOB), 1, 30_000).await;
        takes(&redis, &reads_inside(JOB, owner(1)), 2, 30_000).await;
        redis.query::<String>(&["SET", &key, last]).await;
        let released = ends(&redis, &writes_around(JOB, owner(2)), 1).await;
        assert_eq!((released.code, released.value.as_str()), (Code::Done, "0"), "{last}");
    }
}
