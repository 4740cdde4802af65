//! The limits of objects: beyond them a new holder or waiter gets the error `LIMIT`, and existing
//! ones are not affected.
//!
//! The limits keep the longest command short; `cost.rs` counts the commands of each script at the
//! limits.

use edgelatch_proto::protocol::reply::Code;
use edgelatch_proto::protocol::script::{Bound, Publish, ScriptCall};

use super::fair::fixtures::{Fair, nth_poll};
use super::group::calls as values;
use super::read_write::fixtures::{reads, reads_inside, writes};
use super::semaphores_and_latch::{batch, held, permits_that_publish, semaphore_that_publishes};
use test_support::calls::{Calls, UNBOUND, bound, lease, owner, request, token};
use test_support::full_objects::{
    FOREIGN_LUA, HOLDS, NAME, PERMITS, READERS, VALUES, WAITERS, fill, fill_dead_readers,
    fill_holds, fill_queue, fill_queue_until, fill_readers, fill_values,
};
use test_support::redis::{Keyspace, Redis};

pub(super) async fn within(redis: &Redis) -> Bound {
    bound(redis.now_ms().await + 600_000, 90_000)
}

async fn take(redis: &Redis, calls: &Calls, who: u8) -> ScriptCall {
    let within = within(redis).await;
    calls.acquire(request(u64::from(who)), within, &owner(who), lease(60_000), false)
}

fn values_of(keyspace: &Keyspace) -> Vec<String> {
    keyspace.iter().map(|(key, stored)| format!("{key} {:?}", stored.value)).collect()
}

/// Asserts that the call fails with `LIMIT` and changes nothing, and that the error contains no
/// name.
async fn assert_full(redis: &Redis, call: &ScriptCall) {
    let before = values_of(&redis.dump().await);
    let error = redis.cells(call).await.unwrap_err();
    assert_eq!(error.code(), Some("LIMIT"), "{error}");
    assert!(!error.to_string().contains(NAME), "{error}");
    assert!(before == values_of(&redis.dump().await), "{}", call.script().name);
}

/// Asserts that owners 2 and 3 are refused, also at a last try. Owner 1 repeats, renews and
/// releases; then owner 2 is granted.
async fn assert_only_holders_go_on(redis: &Redis, calls: &Calls, others: &Calls, grant: u64) {
    let within = within(redis).await;
    for (who, last) in [(2, false), (3, true)] {
        let id = request(u64::from(who));
        assert_full(redis, &others.acquire(id, within, &owner(who), lease(60_000), last)).await;
    }
    let again = redis.run(&take(redis, calls, 1).await).await;
    assert_eq!(again.code, Code::AlreadyYours);
    let renew = calls.renew(request(7), within, &owner(1), lease(90_000), token(grant));
    assert_eq!(redis.run(&renew).await.code, Code::Done);
    let release = calls.release(request(8), within, &owner(1));
    assert_eq!(redis.run(&release).await.code, Code::Done);
    assert_eq!(redis.run(&take(redis, others, 2).await).await.code, Code::Done);
}

/// H2 of an attack on the gateway: groups grew without a limit, and calls that read them blocked
/// Redis for seconds.
#[tokio::test]
async fn a_full_group_accepts_no_more_values() {
    let redis = Redis::start().await;
    let (ours, others) = (values(NAME, &["A", "B"]), values(NAME, &["C"]));
    let grant = redis.run(&take(&redis, &ours, 1).await).await.value.parse().unwrap();
    fill_values(&redis, VALUES - 2, redis.now_ms().await + 600_000).await;
    // A held value is busy, whether the group is full or not.
    let busy = take(&redis, &values(NAME, &["A", "C"]), 4).await;
    assert_eq!(redis.run(&busy).await.code, Code::No);
    assert_only_holders_go_on(&redis, &ours, &others, grant).await;
}

#[tokio::test]
async fn expired_values_of_a_full_group_are_replaced_by_new_ones() {
    let redis = Redis::start().await;
    let ours = values(NAME, &["A", "B"]);
    let grant = redis.run(&take(&redis, &ours, 1).await).await.value.parse().unwrap();
    fill_values(&redis, VALUES - 2, redis.now_ms().await - 1).await;
    for who in 2..40 {
        let calls = values(NAME, &[&who.to_string()]);
        assert_eq!(redis.run(&take(&redis, &calls, who).await).await.code, Code::Done);
    }
    let within = within(&redis).await;
    let renew = ours.renew(request(7), within, &owner(1), lease(90_000), token(grant));
    assert_eq!(redis.run(&renew).await.code, Code::Done);
    let fields: u64 = redis.query(&["HLEN", NAME]).await;
    assert!(
        fields <= 3 * VALUES && fields.is_multiple_of(3),
        "each value whole or not at all: {fields}"
    );
}

#[tokio::test]
async fn a_lock_with_too_many_readers_admits_no_more() {
    let redis = Redis::start().await;
    let reads = reads(NAME);
    let grant = redis.run(&take(&redis, &reads, 1).await).await.value.parse().unwrap();
    fill_readers(&redis, READERS - 1, 1).await;
    assert_eq!(redis.run(&take(&redis, &writes(NAME), 9).await).await.code, Code::No);
    assert_only_holders_go_on(&redis, &reads, &reads, grant).await;
}

#[tokio::test]
async fn a_writer_with_too_many_reads_inside_gets_no_more() {
    let redis = Redis::start().await;
    redis.run(&take(&redis, &writes(NAME), 1).await).await;
    fill_readers(&redis, READERS - 1, 1).await;
    redis.query::<u64>(&["HSET", NAME, "mode", "write"]).await;
    assert_full(&redis, &take(&redis, &reads_inside(NAME, owner(1)), 2).await).await;
    let release = writes(NAME).release(request(8), within(&redis).await, &owner(1));
    assert_eq!(redis.run(&release).await.code, Code::Done);
}

/// A lock with one living reader (owner 1) and this many that died.
async fn among_dead_readers(redis: &Redis, dead: u64) -> Calls {
    let reads = reads(NAME);
    fill_dead_readers(redis, dead, 1).await;
    let long = reads.acquire(request(1), within(redis).await, &owner(1), lease(3_600_000), false);
    assert_eq!(redis.run(&long).await.code, Code::Done);
    reads
}

/// Each dead reader left a field. More than 128 of them hid from the release of the last living
/// reader that it was the last.
#[tokio::test]
async fn dead_readers_do_not_keep_a_lock_that_the_last_living_one_has_left() {
    let redis = Redis::start().await;
    for dead in [127, 130, 250] {
        let reads = among_dead_readers(&redis, dead).await;
        let release = reads.release(request(8), within(&redis).await, &owner(1));
        assert_eq!(redis.run(&release).await.code, Code::Done);
        assert_eq!(redis.query::<u64>(&["EXISTS", NAME]).await, 0, "{dead}");
        redis.query::<String>(&["FLUSHALL"]).await;
    }
}

#[tokio::test]
async fn dead_readers_are_removed_by_the_tries_of_a_writer_that_come_soon_after_each_other() {
    let redis = Redis::start().await;
    let reads = among_dead_readers(&redis, READERS - 1).await;
    let release = reads.release(request(8), within(&redis).await, &owner(1));
    assert_eq!(redis.run(&release).await.code, Code::Done);
    for attempt in 0..60 {
        let reply = redis.run(&take(&redis, &writes(NAME), 2).await).await;
        if reply.code == Code::Done {
            return;
        }
        assert_eq!((reply.code, reply.ms), (Code::No, 10), "{attempt}");
    }
    panic!("{} fields are left", redis.query::<u64>(&["HLEN", NAME]).await);
}

/// The fields of dead readers filled the lock as long as readers overlapped.
#[tokio::test]
async fn dead_readers_of_a_full_lock_are_replaced_by_new_ones() {
    let redis = Redis::start().await;
    let reads = among_dead_readers(&redis, READERS - 1).await;
    for who in 2..60 {
        assert_eq!(redis.run(&take(&redis, &reads, who).await).await.code, Code::Done, "{who}");
    }
    // Below the limit, they are removed faster than new ones can arrive.
    let fields: u64 = redis.query(&["HLEN", NAME]).await;
    assert!(fields < READERS - 58, "{fields}");
    let renew = |token_then| reads.renew(request(7), UNBOUND, &owner(1), lease(60_000), token_then);
    let grant: u64 = redis.query(&["GET", "redisson_lock_token:{job}"]).await;
    assert_eq!(redis.run(&renew(token(grant))).await.code, Code::Done);
}

#[tokio::test]
async fn dead_readers_of_redisson_s_are_left_to_redisson() {
    let redis = Redis::start().await;
    redis.query::<u64>(&["HSET", NAME, "mode", "read"]).await;
    fill(&redis, FOREIGN_LUA, &[NAME], READERS, 1).await;
    redis.query::<u64>(&["PEXPIRE", NAME, "600000"]).await;
    assert_full(&redis, &take(&redis, &reads(NAME), 2).await).await;
    let busy = redis.run(&take(&redis, &writes(NAME), 3).await).await;
    assert!(busy.code == Code::No && busy.ms > 60_000, "{busy:?}");
    assert_eq!(redis.query::<u64>(&["HLEN", NAME]).await, READERS + 1);
}

#[tokio::test]
async fn a_semaphore_with_too_many_holds_grants_no_more() {
    let redis = Redis::start().await;
    redis.query::<String>(&["SET", NAME, "50000"]).await;
    let calls = held(&semaphore_that_publishes(NAME, 1, Publish::Plain));
    let grant = redis.run(&take(&redis, &calls, 1).await).await.value.parse().unwrap();
    let later = redis.now_ms().await + 600_000;
    fill_holds(&redis, "el:{job}:held", HOLDS - 1, later).await;
    assert_only_holders_go_on(&redis, &calls, &calls, grant).await;
    // Expired holds do not count.
    fill_holds(&redis, "el:{job}:held", HOLDS, later - 601_000).await;
    assert_eq!(redis.run(&take(&redis, &calls, 4).await).await.code, Code::Done);
}

#[tokio::test]
async fn too_many_permits_are_not_held_at_a_time() {
    let redis = Redis::start().await;
    redis.query::<String>(&["SET", NAME, "500000"]).await;
    let calls = batch(&permits_that_publish(NAME, 2, 0, Publish::Plain));
    let grant = redis.run(&take(&redis, &calls, 1).await).await.value.parse().unwrap();
    fill_holds(&redis, "{job}:timeout", PERMITS - 3, redis.now_ms().await + 600_000).await;
    assert_only_holders_go_on(&redis, &calls, &calls, grant).await;
}

/// A fair lock that Redisson holds, with a queue of this many waiters.
pub(super) async fn queue(count: u32) -> (Redis, Fair) {
    let (redis, lock) = (Redis::start().await, Fair::new(NAME));
    redis.query::<u64>(&["HSET", NAME, super::fair::fixtures::JAVA[0], "1"]).await;
    redis.query::<u64>(&["PEXPIRE", NAME, "600000"]).await;
    fill_queue(&redis, count).await;
    (redis, lock)
}

/// Low finding of an attack on the gateway: a queue grew without a limit, and so did the time for a
/// poll.
#[tokio::test]
async fn a_queue_that_is_full_is_joined_by_none_and_left_by_none() {
    let (redis, lock) = queue(WAITERS - 2).await;
    for (who, place) in [(1, WAITERS - 2), (2, WAITERS - 1)] {
        let reply = redis.run(&lock.acquire(nth_poll(who, 1))).await;
        assert_eq!((reply.code, place_of(&reply.value)), (Code::No, place));
    }
    assert_full(&redis, &lock.acquire(nth_poll(3, 1))).await;
    // A last try does not join the queue.
    let last = redis.run(&lock.acquire(nth_poll(4, 1).at_last())).await;
    assert_eq!((last.code, place_of(&last.value)), (Code::No, WAITERS));
    let poll = redis.run(&lock.acquire(nth_poll(1, 2))).await;
    assert_eq!((poll.code, place_of(&poll.value)), (Code::No, WAITERS - 2));
    // A waiter that Redisson evicted returns to its place: its arrival record counts.
    let queue = lock.key("redisson_lock_queue");
    redis.query::<u64>(&["LREM", &queue, "0", &super::fair::fixtures::field_of(1)]).await;
    assert_full(&redis, &lock.acquire(nth_poll(3, 1))).await;
    let back = redis.run(&lock.acquire(nth_poll(1, 3))).await;
    assert_eq!((place_of(&back.value), back.value.ends_with(",1")), (WAITERS - 2, true));
    // A new owner that takes over a place needs no place of its own.
    let over = redis.run(&lock.acquire(nth_poll(5, 1).after(2))).await;
    assert_eq!((over.code, place_of(&over.value)), (Code::No, WAITERS - 1));
    redis.run(&lock.release(5)).await;
    let joined = redis.run(&lock.acquire(nth_poll(3, 1))).await;
    assert_eq!((joined.code, place_of(&joined.value)), (Code::No, WAITERS - 1));
}

/// Waiters that had all died kept new ones from a free lock for as long as their arrivals were
/// remembered.
#[tokio::test]
async fn a_queue_of_dead_waiters_is_passed_by_in_a_moment() {
    let (redis, lock) = (Redis::start().await, Fair::new(NAME));
    fill_queue_until(&redis, WAITERS, redis.now_ms().await - 1).await;
    for poll in 1..=20 {
        let reply = redis.run(&lock.acquire(nth_poll(1, poll))).await;
        if reply.code == Code::Done {
            assert!(poll > 1, "one look is bounded");
            return;
        }
        let after = reply.value.split(',').nth(1).unwrap();
        assert_eq!((reply.code, after), (Code::No, "10"), "{poll}");
    }
    panic!("{} wait", redis.query::<u64>(&["LLEN", &lock.key("redisson_lock_queue")]).await);
}

#[tokio::test]
async fn a_queue_of_dead_waiters_is_joined_although_it_is_full() {
    let (redis, lock) = queue(0).await;
    // One living waiter is ahead, and stays ahead.
    redis.run(&lock.acquire(nth_poll(1, 1))).await;
    fill_queue_until(&redis, WAITERS - 1, redis.now_ms().await - 1).await;
    let joined = redis.run(&lock.acquire(nth_poll(2, 1))).await;
    assert_eq!((joined.code, place_of(&joined.value) < WAITERS - 1), (Code::No, true));
    let poll = redis.run(&lock.acquire(nth_poll(1, 2))).await;
    assert_eq!((poll.code, place_of(&poll.value)), (Code::No, 0));
    // The arrivals of waiters that have left the queue are remembered.
    redis.query::<u64>(&["DEL", &lock.key("redisson_lock_queue")]).await;
    redis.query::<u64>(&["DEL", &lock.key("redisson_lock_timeout")]).await;
    fill_queue_until(&redis, WAITERS, redis.now_ms().await - 1).await;
    redis.query::<u64>(&["DEL", &lock.key("redisson_lock_queue")]).await;
    redis.query::<u64>(&["DEL", &lock.key("redisson_lock_timeout")]).await;
    let joined = redis.run(&lock.acquire(nth_poll(3, 1))).await;
    assert_eq!((joined.code, place_of(&joined.value)), (Code::No, 0));
}

fn place_of(value: &str) -> u32 {
    value.split(',').next().unwrap().parse().unwrap()
}
