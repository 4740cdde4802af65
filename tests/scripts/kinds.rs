//! Objects of two kinds under one name: neither ends a hold of the other.

use edgelatch_proto::name::{GuardKey, LockName};
use edgelatch_proto::protocol::calls::{
    FairCalls, FairSettings, GuardCalls, GuardedWrite, LatchCount, PermitTotal, Stamp, Target, Try,
};
use edgelatch_proto::protocol::reply::Code;
use edgelatch_proto::protocol::script::{Bound, Publish, ScriptCall};
use edgelatch_proto::timing::GuardMemory;

use super::group::calls as values;
use super::read_write::fixtures::{reads, writes};
use super::semaphores_and_latch::{
    batch, held, latch, permits_that_publish, semaphore_that_publishes,
};
use test_support::calls::{Calls, bound, lease, lock, owner, request, token};
use test_support::redis::{Keyspace, Redis, Stored};

const NAME: &str = "job";
/// The kinds whose hash is a lock's, with or without a `mode`.
const LOCKS: [&str; 4] = ["lock", "fair lock", "read side", "write side"];
const HASHES: [&str; 5] = ["lock", "fair lock", "read side", "write side", "group"];
const TEXTS: [&str; 2] = ["semaphore", "permits"];

fn target(kind: &str) -> Calls {
    let name = LockName::parse(NAME).unwrap();
    match kind {
        "lock" => lock(NAME),
        "fair lock" => {
            let settings = FairSettings::default();
            Calls(Target::Fair(FairCalls::new(name, settings, Publish::Plain)))
        }
        "read side" => reads(NAME),
        "write side" => writes(NAME),
        "group" => values(NAME, &["A", "B"]),
        "semaphore" => held(&semaphore_that_publishes(NAME, 1, Publish::Plain)),
        "permits" => batch(&permits_that_publish(NAME, 1, 0, Publish::Plain)),
        other => panic!("no such kind: {other}"),
    }
}

async fn within(redis: &Redis) -> Bound {
    bound(redis.now_ms().await + 600_000, 90_000)
}

/// The first or last try of an owner.
fn acquire(kind: &str, who: u8, last: bool, within: Bound) -> ScriptCall {
    target(kind).acquire(request(u64::from(who)), within, &owner(who), lease(60_000), last)
}

/// A Redis in which owner 1 holds an object of this kind, and the token of its hold.
async fn holding(kind: &str) -> (Redis, u64) {
    let redis = Redis::start().await;
    if TEXTS.contains(&kind) {
        redis.query::<String>(&["SET", NAME, "5"]).await;
    }
    let take = acquire(kind, 1, false, within(&redis).await);
    let reply = redis.run(&take).await;
    assert_eq!(reply.code, Code::Done, "{kind}");
    (redis, reply.value.parse().unwrap())
}

/// Asserts that owner 1 still has its hold, and releases it.
async fn assert_still_held(redis: &Redis, kind: &str, grant: u64, what: &str) {
    let within = within(redis).await;
    let again = redis.run(&acquire(kind, 1, false, within)).await;
    assert_eq!(again.code, Code::AlreadyYours, "{kind} beside {what}");
    let renew = target(kind).renew(request(70), within, &owner(1), lease(60_000), token(grant));
    assert_eq!(redis.run(&renew).await.code, Code::Done, "{kind} beside {what}");
    let release = target(kind).release(request(71), within, &owner(1));
    assert_eq!(redis.run(&release).await.code, Code::Done, "{kind} beside {what}");
}

fn values_of(keyspace: &Keyspace) -> Vec<String> {
    keyspace.iter().map(|(key, stored)| format!("{key} {:?}", stored.value)).collect()
}

async fn assert_refused(redis: &Redis, call: &ScriptCall, what: &str) {
    let before = redis.dump().await;
    let error = redis.cells(call).await.unwrap_err();
    assert_eq!(error.code(), Some("WRONGTYPE"), "{what}: {error}");
    let after = redis.dump().await;
    assert_eq!(values_of(&before), values_of(&after), "{what}");
    assert_eq!(before[NAME].ends_at, after[NAME].ends_at, "{what}");
}

/// S69.
#[tokio::test]
async fn no_acquisition_ends_or_prolongs_a_hold_of_another_kind() {
    for held in HASHES {
        for asks in HASHES.into_iter().chain(TEXTS).filter(|asks| *asks != held) {
            let what = format!("{asks} beside {held}");
            let (redis, grant) = holding(held).await;
            let within = within(&redis).await;
            for last in [false, true] {
                let call = acquire(asks, 2 + u8::from(last), last, within);
                if LOCKS.contains(&held) && LOCKS.contains(&asks) {
                    // Redisson's clients find the other's hold, and wait for its end.
                    let before = redis.dump().await[NAME].clone();
                    assert_eq!(redis.run(&call).await.code, Code::No, "{what}");
                    let after = redis.dump().await[NAME].clone();
                    let parts = |stored: Stored| (stored.value, stored.ends_at);
                    assert_eq!(parts(before), parts(after), "{what}");
                } else {
                    assert_refused(&redis, &call, &what).await;
                }
            }
            assert_still_held(&redis, held, grant, asks).await;
        }
    }
    for held in TEXTS {
        for asks in HASHES {
            let (redis, grant) = holding(held).await;
            let call = acquire(asks, 2, false, within(&redis).await);
            assert_refused(&redis, &call, &format!("{asks} beside {held}")).await;
            assert_still_held(&redis, held, grant, asks).await;
        }
    }
}

/// S69.
///
/// A guarded deletion of the lock's name would let another client acquire it beside the holder.
#[tokio::test]
async fn a_guard_writes_and_deletes_texts_only() {
    for held in HASHES {
        let (redis, grant) = holding(held).await;
        let guard = GuardCalls::new(GuardKey::parse(NAME).unwrap(), GuardMemory::FOR_EVER);
        let stamp = Stamp { token: token(7), owner: owner(2), number: 1 };
        for write in [GuardedWrite::set("x", None), GuardedWrite::delete(), GuardedWrite::claim()] {
            let call = guard.write(request(2), within(&redis).await, stamp, &write);
            assert_refused(&redis, &call, held).await;
        }
        assert_still_held(&redis, held, grant, "a guard").await;
    }
    let redis = Redis::start().await;
    for words in [["RPUSH", NAME, "a"], ["SADD", NAME, "a"], ["XADD", NAME, "*"]] {
        redis.query::<String>(&["FLUSHALL"]).await;
        let mut words = words.to_vec();
        if words[0] == "XADD" {
            words.extend(["a", "b"]);
        }
        redis.query::<redis::Value>(&words).await;
        let guard = GuardCalls::new(GuardKey::parse(NAME).unwrap(), GuardMemory::FOR_EVER);
        let stamp = Stamp { token: token(7), owner: owner(2), number: 1 };
        let call = guard.write(request(2), within(&redis).await, stamp, &GuardedWrite::delete());
        assert_eq!(redis.cells(&call).await.unwrap_err().code(), Some("WRONGTYPE"));
        assert_eq!(redis.query::<Vec<String>>(&["KEYS", "*"]).await, [NAME]);
    }
}

#[tokio::test]
async fn calls_of_counted_objects_leave_holds_of_another_kind_alone() {
    for held in HASHES {
        let (redis, grant) = holding(held).await;
        let within = within(&redis).await;
        let total = PermitTotal::new(5).unwrap();
        let (semaphore, permits) = (
            semaphore_that_publishes(NAME, 1, Publish::Plain),
            permits_that_publish(NAME, 1, 0, Publish::Plain),
        );
        let changes = [
            semaphore.try_set(total, None),
            semaphore.add(1),
            semaphore.drain(),
            permits.set(total),
            latch(NAME).try_set(LatchCount::new(1).unwrap()),
            latch(NAME).count_down(),
            latch(NAME).delete(),
        ];
        for (number, change) in (50..).zip(changes) {
            assert_refused(&redis, &change.call(request(number), within), held).await;
        }
        assert_still_held(&redis, held, grant, "what counts").await;
    }
}

#[tokio::test]
async fn a_forced_release_of_a_lock_leaves_a_group_alone() {
    for forced in ["lock", "fair lock"] {
        let (redis, grant) = holding("group").await;
        let call = target(forced).force_release(request(50), within(&redis).await);
        assert_refused(&redis, &call, forced).await;
        assert_still_held(&redis, "group", grant, forced).await;
    }
}

/// The waiter joined the queue before the group took the name.
#[tokio::test]
async fn a_waiter_of_a_fair_lock_keeps_its_place_while_a_group_has_the_name() {
    let (redis, _) = holding("fair lock").await;
    let within = within(&redis).await;
    let poll = |number: u32| {
        target("fair lock").0.acquire(&Try {
            request: request(u64::from(number)),
            bound: within,
            owner: owner(2),
            lease: lease(60_000),
            last: false,
            number,
            previous: None,
            announces: false,
        })
    };
    assert_eq!(redis.run(&poll(1)).await.code, Code::No);
    redis.query::<u64>(&["DEL", NAME]).await;
    assert_eq!(redis.run(&acquire("group", 3, false, within)).await.code, Code::Done);
    assert_eq!(redis.run(&poll(2)).await.code, Code::No);
    let ends = target("group").release(request(9), within, &owner(3));
    assert_eq!(redis.run(&ends).await.code, Code::Done);
    assert_eq!(redis.run(&poll(3)).await.code, Code::Done);
}

/// Redisson's readers treat a held plain lock as free and add their fields.
#[tokio::test]
async fn a_lock_that_java_reads_beside_is_renewed_and_released_by_its_holder() {
    for field in ["mode", "8743c9c0-0795-4907-87fd-6c719a6b4586:1", "another"] {
        let (redis, grant) = holding("lock").await;
        redis.query::<u64>(&["HSET", NAME, field, "1"]).await;
        let other = acquire("lock", 2, false, within(&redis).await);
        assert_eq!(redis.run(&other).await.code, Code::No, "{field}");
        assert_still_held(&redis, "lock", grant, field).await;
    }
}

#[tokio::test]
async fn a_hash_that_is_too_large_for_a_lock_is_not_read() {
    let redis = Redis::start().await;
    let inspect = lock(NAME).inspect(request(1), None);
    for count in 1..=64 {
        redis.query::<u64>(&["HSET", NAME, &format!("java:{count}"), "1"]).await;
    }
    assert_eq!(redis.run(&inspect).await.value, "0,64,0");
    redis.query::<u64>(&["HSET", NAME, "java:65", "1"]).await;
    assert_refused(&redis, &inspect, "65 fields").await;
}
