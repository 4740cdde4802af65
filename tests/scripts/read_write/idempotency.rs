//! A repeated request, and one after its bound, leave what one execution leaves.

use edgelatch_proto::protocol::reply::Code;
use edgelatch_proto::protocol::script::{Bound, ScriptCall};

use super::fixtures::{Java, eager_writes, reads, reads_inside, writes, writes_around};
use test_support::calls::{Calls, UNBOUND, bound, lease, owner, request, token};
use test_support::redis::{Content, Keyspace, Redis};

const JOB: &str = "job";

/// The state before a call of owner 1. Owner 2 is another owner, owner 3 the read inside the write.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Before {
    Nothing,
    Reading,
    OtherReads,
    Writing,
    WritingAndReading,
    /// Owner 1 reads inside a write of owner 2, whose release did not name it.
    Outliving,
    OtherWrites,
    JavaReads,
    JavaWrites,
}

const ALL: [Before; 9] = [
    Before::Nothing,
    Before::Reading,
    Before::OtherReads,
    Before::Writing,
    Before::WritingAndReading,
    Before::Outliving,
    Before::OtherWrites,
    Before::JavaReads,
    Before::JavaWrites,
];

/// Brings the lock into a state; returns the token of the first edgelatch hold, or 1.
async fn prepare(redis: &Redis, before: Before) -> u64 {
    redis.query::<String>(&["FLUSHALL"]).await;
    let java = Java { redis, lock: JOB, holder: "8743c9c0-0795-4907-87fd-6c719a6b4586:1" };
    let take = |side: Calls, who: u8| {
        side.acquire(request(900 + u64::from(who)), UNBOUND, &owner(who), lease(60_000), false)
    };
    let call = match before {
        Before::Nothing => return 1,
        Before::JavaReads => return java.reads(60_000).await.map_or(1, |_| 0),
        Before::JavaWrites => return java.writes(60_000).await.map_or(1, |_| 0),
        Before::Reading => take(reads(JOB), 1),
        Before::OtherReads => take(reads(JOB), 2),
        Before::Writing | Before::WritingAndReading => take(writes(JOB), 1),
        Before::OtherWrites | Before::Outliving => take(writes(JOB), 2),
    };
    let grant = redis.run(&call).await.value.parse().unwrap();
    if before == Before::WritingAndReading {
        let inside = redis.run(&take(reads_inside(JOB, owner(1)), 3)).await;
        assert_eq!(inside.code, Code::Done);
    }
    if before == Before::Outliving {
        let inside = redis.run(&take(reads_inside(JOB, owner(2)), 1)).await;
        let release = writes(JOB).release(request(900), UNBOUND, &owner(2));
        assert_eq!([inside.code, redis.run(&release).await.code], [Code::Done; 2]);
    }
    grant
}

type Make = Box<dyn Fn(u64) -> ScriptCall>;

/// Every call, with the token of a hold where it needs one.
async fn requests(redis: &Redis) -> Vec<(&'static str, Make)> {
    let within = bound(redis.now_ms().await + 600_000, 90_000);
    let acquire = |side: fn() -> Calls, bound: Bound, last: bool| -> Make {
        Box::new(move |_| side().acquire(request(1), bound, &owner(1), lease(30_000), last))
    };
    let inside = move |_| {
        reads_inside(JOB, owner(1)).acquire(request(1), within, &owner(3), lease(30_000), false)
    };
    let renew = |side: fn() -> Calls, ms: u64| -> Make {
        Box::new(move |grant| side().renew(request(3), within, &owner(1), lease(ms), token(grant)))
    };
    let read = || reads(JOB);
    let write = || writes(JOB);
    let eager = || eager_writes(JOB, 5_000);
    vec![
        ("read", acquire(read, within, false)),
        ("read as the first request", acquire(read, UNBOUND, false)),
        ("read at the last try", acquire(read, within, true)),
        ("read too late", acquire(read, bound(1, 90_000), false)),
        ("read inside", Box::new(inside)),
        ("renew a read to more", renew(read, 120_000)),
        ("renew a read to less", renew(read, 1_000)),
        ("end a read", Box::new(move |_| reads(JOB).release(request(2), within, &owner(1)))),
        ("end a read inside", Box::new(move |_| reads(JOB).release(request(2), within, &owner(3)))),
        ("write", acquire(write, within, false)),
        ("write at the last try", acquire(write, UNBOUND, true)),
        ("write before others", acquire(eager, within, false)),
        ("write before others at the last try", acquire(eager, within, true)),
        ("write too late", acquire(write, bound(1, 90_000), false)),
        ("renew a write to more", renew(write, 120_000)),
        ("renew a write to less", renew(write, 1_000)),
        ("end a write", Box::new(move |_| writes(JOB).release(request(2), within, &owner(1)))),
        (
            "end a write around a read",
            Box::new(move |_| writes_around(JOB, owner(3)).release(request(2), within, &owner(1))),
        ),
        ("end all reads", Box::new(move |_| reads(JOB).force_release(request(4), within))),
        ("end any write", Box::new(move |_| writes(JOB).force_release(request(4), within))),
        ("ask for the readers", Box::new(|_| reads(JOB).inspect(request(5), Some(owner(1))))),
        ("ask for the writer", Box::new(|_| writes(JOB).inspect(request(5), Some(owner(1))))),
    ]
}

/// S4.
#[tokio::test]
async fn a_repeated_request_about_either_side_is_executed_once() {
    let mut redis = Redis::start().await;
    for (name, make) in requests(&redis).await {
        for before in ALL {
            let what = format!("{name}, {before:?}");
            let call = make(prepare(&redis, before).await);
            redis.published().await;
            let first = redis.run(&call).await;
            let (once, published) = (redis.dump().await, redis.published().await);
            let second = redis.run(&call).await;
            assert_eq!(contents(&once), contents(&redis.dump().await), "{what}");
            assert!(published.len() <= 1, "{what}: {published:?}");
            assert_eq!(redis.published().await, [], "{what}");
            let wanted = match (call.script().name, first.code) {
                ("read_acquire" | "write_acquire", Code::Done) => Code::AlreadyYours,
                // The tombstone of the first execution remains.
                ("read_acquire" | "write_acquire", Code::No) if call.args()[6] == "1" => Code::Gone,
                (_, code) => code,
            };
            assert_eq!(second.code, wanted, "{what}");
            if first.code == Code::Done {
                assert_eq!(first.value, second.value, "{what}");
            }
        }
    }
}

#[tokio::test]
async fn nothing_of_an_owner_comes_back_on_either_side_after_its_end() {
    let mut redis = Redis::start().await;
    for (name, make) in requests(&redis).await {
        for before in ALL {
            let what = format!("{name}, {before:?}");
            let call = make(prepare(&redis, before).await);
            redis.run(&call).await;
            // In practice an owner is used for one side; here owner 1 may have held either, and the
            // call's side ends last.
            let mut sides = [writes(JOB), reads(JOB)];
            if call.args().get(4).is_some_and(|field| field.ends_with(":write")) {
                sides.reverse();
            }
            for side in sides {
                for (id, who) in [(10, 1), (11, 3)] {
                    let release = side.release(request(id), UNBOUND, &owner(who));
                    redis.query::<u64>(&["DEL", &release.keys()[0]]).await;
                    redis.run(&release).await;
                }
            }
            let ended = redis.dump().await;
            redis.published().await;
            let answer = redis.run(&call).await;
            let script = call.script().name;
            let granted = matches!(answer.code, Code::Done | Code::AlreadyYours);
            if script.ends_with("_acquire") || script.ends_with("_renew") {
                assert!(!granted, "{what}: {:?}", answer.code);
            }
            let again = redis.dump().await;
            assert_eq!(contents(&ended), contents(&again), "{what}");
            assert_eq!(redis.published().await, [], "{what}");
        }
    }
}

/// S13.
#[tokio::test]
async fn a_copy_of_a_release_after_the_next_grant_ends_nothing() {
    let redis = Redis::start().await;
    for side in [reads(JOB), writes(JOB)] {
        redis.query::<String>(&["FLUSHALL"]).await;
        let take = |who: u8| {
            side.acquire(request(u64::from(who)), UNBOUND, &owner(who), lease(30_000), true)
        };
        assert_eq!(redis.run(&take(1)).await.code, Code::Done);
        let release = side.release(request(3), UNBOUND, &owner(1));
        assert_eq!(redis.run(&release).await.code, Code::Done);
        assert_eq!(redis.run(&take(2)).await.code, Code::Done);
        let held = redis.dump().await;
        assert_eq!(redis.run(&release).await.code, Code::Done);
        assert_eq!(contents(&held), contents(&redis.dump().await));
    }
}

#[tokio::test]
async fn a_hold_that_was_lost_is_not_granted_again() {
    let redis = Redis::start().await;
    for (side, lost) in [(reads(JOB), "timeout key"), (reads(JOB), "hash"), (writes(JOB), "hash")] {
        redis.query::<String>(&["FLUSHALL"]).await;
        let take = side.acquire(request(1), UNBOUND, &owner(1), lease(30_000), false);
        let grant = redis.run(&take).await.value.parse().unwrap();
        let key = if lost == "hash" { &take.keys()[1] } else { &take.keys()[2] };
        redis.query::<u64>(&["DEL", key]).await;
        let gone = redis.dump().await;
        assert_eq!(redis.run(&take).await.code, Code::Lost, "{lost}");
        let renew = side.renew(request(2), UNBOUND, &owner(1), lease(30_000), token(grant));
        assert_eq!(redis.run(&renew).await.code, Code::Lost, "{lost}");
        assert_eq!(contents(&gone), contents(&redis.dump().await), "{lost}");
        let query = side.inspect(request(4), Some(owner(1)));
        assert!(redis.run(&query).await.value.ends_with(",0"), "{lost}");
        let release = side.release(request(3), UNBOUND, &owner(1));
        assert_eq!(redis.run(&release).await.code, Code::No, "{lost}");
        assert!(!redis.dump().await.contains_key(JOB), "{lost}");
    }
}

/// Values without expiries, which change by themselves.
fn contents(keyspace: &Keyspace) -> Vec<(&String, &Content)> {
    keyspace.iter().map(|(key, stored)| (key, &stored.value)).collect()
}
