//! Every call of the library costs a bounded number of commands, whatever is stored under its
//! names. `cost.rs` has the calls whose cost depends on their arguments: a thousand values or
//! permits.

use std::collections::BTreeMap;

use edgelatch_proto::protocol::scope::ObjectKind;
use edgelatch_proto::protocol::script::{Publish, scripts};
use redis::Value;
use test_support::every_call::{Known, NOT_AFTER, every_call};
use test_support::redis::Redis;

use super::cost::Cost;
use super::fair::fixtures::Fair;
use super::limits::{
    HOLDS, NAME, READERS, VALUES, WAITERS, fill_dead_readers, fill_holds, fill_queue,
    fill_queue_until, fill_values,
};

/// The largest number of commands of one call. A full group is swept from a random position, so its
/// number differs from run to run. A writer and the last reader read the timeout keys of up to 256
/// holds, and before that those of 256 fields of a larger hash; a new reader of a full lock does so
/// at 256. One poll of a queue removes up to 128 dead heads, at six commands each, and in a full
/// queue up to 64 dead waiters.
const BOUNDS: [(&str, u64); 36] = [
    ("cancel", 5),
    ("fair_acquire", 1_400),
    ("fair_force_release", 790),
    ("fair_queue", 25),
    ("fair_release", 795),
    ("group_acquire", 700),
    ("group_force_release", 8),
    ("group_inspect", 5),
    ("group_release", 9),
    ("group_renew", 3),
    ("guard_newest", 4),
    ("guard_write", 8),
    ("latch_change", 9),
    ("latch_inspect", 3),
    ("lock_acquire", 28),
    ("lock_force_release", 9),
    ("lock_inspect", 8),
    ("lock_release", 9),
    ("lock_renew", 3),
    ("permits_acquire", 30),
    ("permits_change", 12),
    ("permits_inspect", 8),
    ("permits_release", 7),
    ("permits_renew", 4),
    ("read_acquire", 285),
    ("read_release", 550),
    ("read_renew", 3),
    ("rw_force_release", 9),
    ("rw_inspect", 10),
    ("semaphore_acquire", 27),
    ("semaphore_change", 32),
    ("semaphore_inspect", 10),
    ("semaphore_release", 7),
    ("semaphore_renew", 4),
    ("write_acquire", 550),
    ("write_release", 550),
];

/// The content of a name: at the limit of its kind, or with entries to sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum World {
    Empty,
    PlainLock,
    Values,
    EndedValues,
    Readers,
    FewReaders,
    SomeDeadReaders,
    Queue,
    DeadQueue,
    Holds,
    EndedHolds,
    Permits,
    EndedPermits,
    Latch,
}

impl World {
    const ALL: [Self; 14] = [
        Self::Empty,
        Self::PlainLock,
        Self::Values,
        Self::EndedValues,
        Self::Readers,
        Self::FewReaders,
        Self::SomeDeadReaders,
        Self::Queue,
        Self::DeadQueue,
        Self::Holds,
        Self::EndedHolds,
        Self::Permits,
        Self::EndedPermits,
        Self::Latch,
    ];

    /// The kind of the objects whose calls are made there; `None` for all.
    const fn kind(self) -> Option<ObjectKind> {
        match self {
            Self::Empty => None,
            Self::Holds | Self::EndedHolds => Some(ObjectKind::Semaphore),
            Self::Permits | Self::EndedPermits => Some(ObjectKind::Permits),
            Self::Latch => Some(ObjectKind::Latch),
            _ => Some(ObjectKind::Lock),
        }
    }

    async fn fill(self, redis: &Redis) {
        let now = redis.now_ms().await;
        let (over, later) = (now - 600_000, now + 600_000);
        match self {
            Self::Empty => {}
            Self::PlainLock => redis.ask(&["HSET", NAME, "another", "1"]).await,
            Self::Values => fill_values(redis, VALUES, later).await,
            Self::EndedValues => fill_values(redis, VALUES, over).await,
            Self::Readers => fill_dead_readers(redis, READERS, 1).await,
            Self::FewReaders => fill_dead_readers(redis, 127, 2).await,
            // After one sweep of this number the rest is few enough to be examined one by one.
            Self::SomeDeadReaders => fill_dead_readers(redis, 383, 2).await,
            Self::Queue => {
                redis.ask::<u64>(&["HSET", NAME, "another", "1"]).await;
                fill_queue(redis, &Fair::new(NAME), WAITERS - 1).await;
            }
            Self::DeadQueue => fill_queue_until(redis, &Fair::new(NAME), WAITERS, over).await,
            Self::Holds => fill_set(redis, "el:{job}:held", HOLDS, later).await,
            Self::EndedHolds => fill_set(redis, "el:{job}:held", HOLDS, over).await,
            Self::Permits => fill_set(redis, "{job}:timeout", HOLDS, later).await,
            Self::EndedPermits => fill_set(redis, "{job}:timeout", HOLDS, over).await,
            Self::Latch => redis.ask(&["SET", NAME, "3"]).await,
        }
    }
}

/// A semaphore with this many holds.
async fn fill_set(redis: &Redis, set: &str, count: u64, ends_at: u64) {
    redis.ask::<String>(&["SET", NAME, "500000"]).await;
    fill_holds(redis, set, count, ends_at).await;
}

/// Runs a call before its bound; returns the number of its commands.
async fn cost(redis: &Redis, known: &Known, now: u64) -> u64 {
    let (keys, args) = known.words();
    let (script, count, bound) =
        (known.call.script(), keys.len().to_string(), (now + 60_000).to_string());
    let is_bound = NOT_AFTER.to_string();
    let args = args.into_iter().map(|arg| if arg == is_bound { bound.as_str() } else { arg });
    let head = ["EVALSHA", script.sha1(false), &count];
    let words: Vec<&str> = head.into_iter().chain(keys).chain(args).collect();
    redis.ask::<String>(&["CONFIG", "RESETSTAT"]).await;
    // An error is a refusal, which has a cost too.
    let _: redis::RedisResult<Value> = redis.try_ask(&words).await;
    Cost::since_reset(redis).await.total()
}

// Slow: large objects are restored after each call.
#[tokio::test]
async fn no_call_of_any_script_takes_more_commands_than_its_bound() {
    let mut redis = Redis::start().await;
    redis.learn().await;
    let (here, saved) = (redis.beside(0), redis.beside(1));
    let calls = every_call(NAME, "other", Publish::Both);
    let mut most: BTreeMap<&str, (u64, World)> = BTreeMap::new();
    for world in World::ALL {
        redis.ask::<String>(&["FLUSHALL"]).await;
        world.fill(&here).await;
        let keys: Vec<String> = here.ask(&["KEYS", "*"]).await;
        for key in &keys {
            here.ask::<u64>(&["COPY", key, key, "DB", "1"]).await;
        }
        let is_of = |known: &&Known| world.kind().is_none() || known.kind == world.kind();
        // Calls that are remembered for ten minutes have no bound: an idempotent call without one
        // is refused.
        let has_bound = |known: &&Known| known.call.args()[2] != "600000";
        for known in calls.iter().filter(is_of).filter(has_bound) {
            let taken = cost(&redis, known, here.now_ms().await).await;
            let script = known.call.script().name;
            let seen = most.entry(script).or_insert((0, world));
            if taken > seen.0 {
                *seen = (taken, world);
            }
            here.ask::<String>(&["FLUSHDB"]).await;
            for key in &keys {
                saved.ask::<u64>(&["COPY", key, key, "DB", "0"]).await;
            }
        }
    }
    println!("{most:#?}");
    let names = scripts::ALL.into_iter().map(|script| script.name);
    assert!(names.filter(|name| !UNKNOWN.contains(name)).eq(BOUNDS.map(|(name, _)| name)));
    for (name, bound) in BOUNDS {
        let (taken, world) = most[name];
        assert!(taken <= bound, "{name}: {taken} commands, {world:?}");
    }
}

/// The scripts that `every_call` lacks: the caller supplies the script to run, or only one machine
/// makes the call.
const UNKNOWN: [&str; 2] = ["eval", "lock_raise"];
