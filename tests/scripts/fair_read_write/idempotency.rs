//! A repeated call leaves what one execution leaves.

use edgelatch_proto::protocol::calls::FairMode;
use edgelatch_proto::protocol::reply::Code;
use edgelatch_proto::protocol::script::{Bound, ScriptCall};

use super::fixtures::{Attempt, FairRw, exclusive, first, in_time, place_of, shared};
use test_support::redis::{Content, Keyspace, Redis};

/// The state before a call of owner 1.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Before {
    Nothing,
    Held,
    HeldByAnother,
    /// Owner 2 holds the lock, and owner 3 waits.
    Queued,
    /// Owner 2 holds the lock, owner 1 is the head of the queue, and owner 3 waits.
    Head,
    /// The lock is free, owner 1 is the head of the queue, and owner 3 waits.
    Turn,
    /// Owner 2 holds the lock, and owners 9 and 3 wait; owner 1 takes over from 9.
    Previous,
    /// Owner 9 holds the lock, and has not received the grant.
    PreviousHolds,
}

/// Prepares the state; returns the token of owner 1, if it holds the lock.
async fn prepare(redis: &Redis, lock: &FairRw, before: Before, mode: FairMode) -> u64 {
    redis.query::<String>(&["FLUSHALL"]).await;
    let tries = async |attempt: Attempt| redis.run(&lock.acquire(attempt)).await;
    match before {
        Before::Nothing => {}
        Before::Held => return tries(first(1, mode)).await.value.parse().unwrap(),
        Before::PreviousHolds => drop(tries(first(9, mode)).await),
        _ => {
            tries(exclusive(2)).await;
            match before {
                Before::Head | Before::Turn => drop(tries(first(1, mode)).await),
                Before::Previous => drop(tries(first(9, mode)).await),
                _ => {}
            }
            if before != Before::HeldByAnother {
                tries(shared(3)).await;
            }
            if before == Before::Turn {
                redis.run(&lock.release(exclusive(2))).await;
            }
        }
    }
    1
}

type Make = Box<dyn Fn(&FairRw, FairMode, u64) -> ScriptCall>;

/// Every script in every state that it distinguishes, and its code.
fn cases(within: Bound) -> Vec<(&'static str, Before, Code, Make)> {
    let tries = |change: fn(Attempt) -> Attempt| -> Make {
        Box::new(move |lock, mode, _| lock.acquire(change(first(1, mode).nth(2).within(within))))
    };
    let wait = || tries(|attempt| attempt);
    let last = || tries(Attempt::at_last);
    let takes_over = || tries(|attempt| attempt.after(9));
    let steal = || tries(|attempt| Attempt { mode: FairMode::Steal, ..attempt });
    let release = || -> Make { Box::new(|lock, mode, _| lock.release(first(1, mode))) };
    let abandons_both = || -> Make {
        Box::new(move |lock, mode, _| lock.release(first(1, mode).within(within).after(9)))
    };
    let force = || -> Make { Box::new(move |lock, _, _| lock.force_release(8, within)) };
    vec![
        ("takes what is free", Before::Nothing, Code::Done, wait()),
        ("takes at last what is free", Before::Nothing, Code::Done, last()),
        ("takes what it holds", Before::Held, Code::AlreadyYours, wait()),
        ("queues", Before::HeldByAnother, Code::No, wait()),
        ("queues behind others", Before::Queued, Code::No, wait()),
        ("polls", Before::Head, Code::No, wait()),
        ("takes its turn", Before::Turn, Code::Done, wait()),
        ("tries at last what is held", Before::Queued, Code::No, last()),
        ("leaves at the last try", Before::Head, Code::No, last()),
        ("takes its turn at the last try", Before::Turn, Code::Done, last()),
        ("takes a place over", Before::Previous, Code::No, takes_over()),
        ("takes a hold over", Before::PreviousHolds, Code::Done, takes_over()),
        ("takes over without a previous owner", Before::Queued, Code::No, takes_over()),
        ("steals what is free", Before::Nothing, Code::Done, steal()),
        ("steals what is held", Before::Queued, Code::Done, steal()),
        ("releases", Before::Held, Code::Done, release()),
        ("leaves", Before::Head, Code::No, release()),
        ("leaves at its turn", Before::Turn, Code::No, release()),
        ("abandons what it is not in", Before::Queued, Code::No, release()),
        ("abandons a takeover", Before::Previous, Code::No, abandons_both()),
        ("abandons a takeover of a hold", Before::PreviousHolds, Code::Done, abandons_both()),
        ("ends a hold by force", Before::Queued, Code::Done, force()),
        ("ends nothing by force", Before::Turn, Code::No, force()),
        (
            "inspects",
            Before::Head,
            Code::Done,
            Box::new(|lock, mode, _| lock.inspect(Some(first(1, mode)))),
        ),
        ("lists", Before::Head, Code::Done, Box::new(|lock, _, _| lock.query(""))),
        (
            "renews",
            Before::Held,
            Code::Done,
            Box::new(|lock, mode, grant| lock.renew(first(1, mode).for_ms(60_000), grant)),
        ),
    ]
}

/// S4.
#[tokio::test]
async fn a_repeated_request_is_executed_once() {
    let mut redis = Redis::start().await;
    for name in ["job", "x{a}b", "é/?# \""] {
        for mode in [FairMode::Exclusive, FairMode::Shared] {
            let lock = FairRw::new(name);
            for (what, before, wanted, make) in cases(in_time(&redis).await) {
                let call = make(&lock, mode, prepare(&redis, &lock, before, mode).await);
                let first = redis.run(&call).await;
                assert_eq!(first.code, wanted, "{what} {mode:?}");
                let once = redis.dump().await;
                redis.published().await;
                let second = redis.run(&call).await;
                assert_eq!(lasting(&once), lasting(&redis.dump().await), "{what} {mode:?}");
                assert_eq!(redis.published().await, [], "{what} {mode:?}");
                let kind = call.args().get(5).map(String::as_str);
                let again = match (first.code, call.script().name, kind) {
                    (Code::Done, "fair_rw_acquire", _) => Code::AlreadyYours,
                    (Code::No, "fair_rw_acquire", Some("last")) => Code::Gone,
                    (code, ..) => code,
                };
                assert_eq!(second.code, again, "{what} {mode:?}");
            }
        }
    }
}

#[tokio::test]
async fn nothing_of_an_owner_comes_back_after_its_end() {
    let mut redis = Redis::start().await;
    let lock = FairRw::new("job");
    for mode in [FairMode::Exclusive, FairMode::Shared] {
        for (what, before, _, make) in cases(in_time(&redis).await) {
            let call = make(&lock, mode, prepare(&redis, &lock, before, mode).await);
            redis.run(&call).await;
            // A call that named a previous owner ends that owner too.
            let names_previous = call.keys().contains(&lock.latch(9));
            let both = Attempt { previous: names_previous.then_some(9), ..first(1, mode) };
            redis.run(&lock.release(both)).await;
            let steals = call.args().get(5).is_some_and(|kind| kind == "steal");
            let ours = if steals { exclusive(1) } else { first(1, mode) };
            redis.run(&lock.release(ours)).await;
            if steals && mode == FairMode::Shared {
                // The release of the other member ended the owner, not its hold.
                continue;
            }
            let ended = redis.dump().await;
            redis.published().await;
            let reply = redis.run(&call).await;
            if call.script().name == "fair_rw_acquire" {
                assert_eq!(reply.code, Code::Gone, "{what}");
            }
            if names_previous {
                let earlier = redis.run(&lock.acquire(first(9, mode).nth(99))).await;
                assert_eq!(earlier.code, Code::Gone, "{what}");
            }
            let after = redis.dump().await;
            assert_eq!(lasting(&ended), lasting(&after), "{what}");
            assert_eq!(redis.published().await, [], "{what}");
            assert!(!contains(&after, &first(1, mode).member()), "{what}");
            assert!(!names_previous || !contains(&after, &first(9, mode).member()), "{what}");
        }
    }
}

/// Rule W2.
#[tokio::test]
async fn a_copy_of_an_earlier_poll_only_reads() {
    let redis = Redis::start().await;
    let lock = FairRw::new("job");
    for mode in [FairMode::Exclusive, FairMode::Shared] {
        prepare(&redis, &lock, Before::Head, mode).await;
        let poll = async |number| redis.run(&lock.acquire(first(1, mode).nth(number))).await;
        assert_eq!(poll(5).await.code, Code::No);
        lock.age(&redis, 4_000).await;
        let before = redis.dump().await;
        for number in [1, 4, 5] {
            let reply = poll(number).await;
            assert_eq!((reply.code, place_of(&reply)), (Code::No, (0, 3_333, false)));
        }
        assert_eq!(contents(&before), contents(&redis.dump().await));
        assert_eq!(poll(6).await.code, Code::No);
        assert_ne!(contents(&before), contents(&redis.dump().await));
    }
}

/// Contents that do not change if a call does nothing: not the times, which repeats extend.
fn lasting(keyspace: &Keyspace) -> Vec<(&String, Content)> {
    let members = |key: &str, content: &Content| match content {
        Content::Sorted(members) if !key.ends_with(":queue") && !key.ends_with(":writers") => {
            Content::List(members.keys().cloned().collect())
        }
        other => other.clone(),
    };
    keyspace.iter().map(|(key, stored)| (key, members(key, &stored.value))).collect()
}

fn contents(keyspace: &Keyspace) -> Vec<(&String, &Content)> {
    keyspace.iter().map(|(key, stored)| (key, &stored.value)).collect()
}

fn contains(keyspace: &Keyspace, member: &str) -> bool {
    keyspace.values().any(|stored| match &stored.value {
        Content::Sorted(members) => members.contains_key(member),
        _ => false,
    })
}
