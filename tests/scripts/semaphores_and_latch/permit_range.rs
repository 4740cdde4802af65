//! The number of permits of a semaphore stays a Java `int`, as which Redisson reads it.

use edgelatch_proto::protocol::calls::{IdempotentCall, PermitCount, PermitTotal};
use edgelatch_proto::protocol::reply::Code;

use super::{batch, held, permits, semaphore};
use test_support::calls::{Calls, bound, lease, owner, request};
use test_support::redis::{Content, Redis};

const MAX: i64 = i32::MAX as i64;
const MIN: i64 = i32::MIN as i64;

/// A semaphore: its name, the calls of its holds, and the change that adds permits.
type Object = (&'static str, Calls, fn(i32) -> IdempotentCall);

/// The objects of both kinds.
fn objects() -> [Object; 2] {
    [
        ("pool", held(&semaphore("pool", 3)), |number| semaphore("pool", 3).add(number)),
        ("seats", batch(&permits("seats", 3, 0)), |number| permits("seats", 3, 0).add(number)),
    ]
}

/// The keys, their values, and when they expire.
async fn stored(redis: &Redis) -> Vec<(String, Content, i64)> {
    let keys = redis.dump().await.into_iter();
    keys.map(|(key, stored)| (key, stored.value, stored.ends_at)).collect()
}

/// Executes a change once, and returns the number of available permits.
async fn change(redis: &Redis, call: &IdempotentCall, id: u64) -> i64 {
    let within = bound(redis.now_ms().await + 600_000, 90_000);
    let reply = redis.run(&call.call(request(id), within)).await;
    assert_eq!(reply.code, Code::Done, "{call:?}");
    reply.value.parse().unwrap()
}

/// Asserts that the change fails with `LIMIT` however often it is sent, that it stores and
/// publishes nothing, and that it is never executed once it was cancelled.
async fn assert_refused(redis: &mut Redis, name: &str, call: &IdempotentCall, id: u64) {
    let within = bound(redis.now_ms().await + 600_000, 90_000);
    let (sent, cancel) = (call.call(request(id), within), call.cancel(request(id), within));
    redis.published().await;
    let before = stored(redis).await;
    for _ in 0..2 {
        let error = redis.cells(&sent).await.unwrap_err();
        assert_eq!(error.code(), Some("LIMIT"), "{call:?}: {error}");
        assert!(!error.to_string().contains(name), "{error}");
        assert_eq!(before, stored(redis).await, "{call:?}");
    }
    assert_eq!(redis.run(&cancel).await.code, Code::Gone);
    redis.query::<String>(&["SET", name, "0"]).await;
    assert_eq!(redis.run(&sent).await.code, Code::Gone);
    assert_eq!(redis.query::<i64>(&["GET", name]).await, 0);
    assert_eq!(redis.published().await, []);
}

#[tokio::test]
async fn permits_are_added_and_removed_up_to_the_ends_of_the_range() {
    let mut redis = Redis::start().await;
    for (name, _, add) in objects() {
        redis.query::<String>(&["SET", name, "7"]).await;
        assert_eq!(change(&redis, &add(i32::MAX - 7), 1).await, MAX);
        assert_refused(&mut redis, name, &add(1), 3).await;
        redis.query::<String>(&["SET", name, "-7"]).await;
        assert_eq!(change(&redis, &add(i32::MIN + 7), 2).await, MIN);
        assert_refused(&mut redis, name, &add(-1), 4).await;
    }
    redis.query::<String>(&["SET", "pool", &MAX.to_string()]).await;
    let existing = semaphore("pool", 1).add_if_exists(PermitCount::new(1).unwrap());
    assert_refused(&mut redis, "pool", &existing, 5).await;
}

#[tokio::test]
async fn held_permits_count_so_that_a_release_stays_within_the_range() {
    let mut redis = Redis::start().await;
    for (name, target, add) in objects() {
        redis.query::<String>(&["FLUSHALL"]).await;
        redis.query::<String>(&["SET", name, &MAX.to_string()]).await;
        let within = bound(redis.now_ms().await + 600_000, 90_000);
        // More holds than a script reads at a time.
        let holders: Vec<u8> = (1..=201).collect();
        for who in &holders {
            let id = request(u64::from(*who) + 1_000);
            let taken = target.acquire(id, within, &owner(*who), lease(60_000), false);
            assert_eq!(redis.run(&taken).await.code, Code::Done, "{name}");
        }
        assert_eq!(redis.query::<i64>(&["GET", name]).await, MAX - 603);
        change(&redis, &add(-1), 1).await;
        assert_eq!(change(&redis, &add(1), 2).await, MAX - 603);
        for who in &holders[1..] {
            let id = request(u64::from(*who) + 2_000);
            redis.run(&target.release(id, within, &owner(*who))).await;
        }
        assert_eq!(redis.query::<i64>(&["GET", name]).await, MAX - 3);
        redis.published().await;
        let before = stored(&redis).await;
        let error = redis.cells(&add(1).call(request(3), within)).await.unwrap_err();
        assert_eq!(error.code(), Some("LIMIT"), "{name}: {error}");
        assert_eq!(before, stored(&redis).await);
        redis.run(&target.release(request(4), within, &owner(1))).await;
        assert_eq!(redis.query::<i64>(&["GET", name]).await, MAX);
        assert_refused(&mut redis, name, &add(1), 5).await;
    }
}

/// A Java program may have left the range, since Redisson checks nothing.
#[tokio::test]
async fn a_number_out_of_range_may_be_changed_towards_it() {
    let redis = Redis::start().await;
    for (name, _, add) in objects() {
        redis.query::<String>(&["SET", name, &(MAX + 10).to_string()]).await;
        assert_eq!(change(&redis, &add(-1), 1).await, MAX + 9);
        redis.query::<String>(&["SET", name, &(MIN - 10).to_string()]).await;
        assert_eq!(change(&redis, &add(1), 2).await, MIN - 9);
    }
    redis.query::<String>(&["SET", "seats", &(MAX + 10).to_string()]).await;
    let total = PermitTotal::new(i32::MAX.unsigned_abs()).unwrap();
    assert_eq!(change(&redis, &permits("seats", 1, 0).set(total), 3).await, MAX);
}
