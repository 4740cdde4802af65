//! A repeated call, and a call after its bound, leave what one execution leaves.

use edgelatch_proto::protocol::reply::Code;
use edgelatch_proto::protocol::script::ScriptCall;

use super::fixtures::{Fair, JAVA, field_of, nth_poll};
use test_support::calls::{UNBOUND, bound, request};
use test_support::redis::{Content, Keyspace, Redis};

/// The state before a call of owner 1.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Before {
    Nothing,
    Held,
    HeldByAnother,
    /// Redisson holds the lock, and another edgelatch owner waits.
    Queued,
    /// Redisson holds the lock, owner 1 is the head of the queue, and another edgelatch owner
    /// waits.
    Head,
    /// The lock is free, and owner 1 is the head of the queue.
    Turn,
    /// Owner 9 waits; owner 1 takes over its place.
    Previous,
    /// Owner 9 holds the lock and has not received the grant.
    PreviousHolds,
}

async fn prepare(redis: &Redis, lock: &Fair, before: Before) -> u64 {
    redis.query::<String>(&["FLUSHALL"]).await;
    let now = i64::try_from(redis.now_ms().await).unwrap();
    let takes = async |owner: u32| redis.run(&lock.acquire(nth_poll(owner, 1))).await.value;
    let java = lock.java();
    match before {
        Before::Nothing => {}
        Before::Held => return takes(1).await.parse().unwrap(),
        Before::HeldByAnother => drop(takes(2).await),
        Before::PreviousHolds => drop(takes(9).await),
        Before::Queued | Before::Head | Before::Turn | Before::Previous => {
            java.acquire(redis, JAVA[0], 300_000, now).await;
            if before == Before::Previous {
                takes(9).await;
            }
            if matches!(before, Before::Head | Before::Turn) {
                takes(1).await;
            }
            takes(2).await;
            java.acquire(redis, JAVA[1], 300_000, now).await;
            if before == Before::Turn {
                java.force_unlock(redis, now).await;
            }
        }
    }
    1
}

type Make = Box<dyn Fn(&Fair, u64) -> ScriptCall>;

/// Every script in every state that it distinguishes, and its code.
async fn cases(redis: &Redis) -> Vec<(&'static str, Before, Code, Make)> {
    let within = bound(redis.now_ms().await + 600_000, 90_000);
    let first =
        move || -> Make { Box::new(move |lock, _| lock.acquire(nth_poll(1, 2).within(within))) };
    let last = move || -> Make {
        Box::new(move |lock, _| lock.acquire(nth_poll(1, 2).at_last().within(within)))
    };
    let takes_over = || -> Make { Box::new(|lock, _| lock.acquire(nth_poll(1, 2).after(9))) };
    let release = || -> Make { Box::new(|lock, _| lock.release(1)) };
    let abandon_both =
        move || -> Make { Box::new(move |lock, _| lock.abandon(1, within, Some(9))) };
    let force =
        move || -> Make { Box::new(move |lock, _| lock.force_release().call(request(4), within)) };
    vec![
        ("takes what is free", Before::Nothing, Code::Done, first()),
        ("takes at last what is free", Before::Nothing, Code::Done, last()),
        ("takes what it holds", Before::Held, Code::AlreadyYours, first()),
        ("queues", Before::HeldByAnother, Code::No, first()),
        ("queues behind others", Before::Queued, Code::No, first()),
        ("polls", Before::Head, Code::No, first()),
        ("takes its turn", Before::Turn, Code::Done, first()),
        ("tries at last what is held", Before::Queued, Code::No, last()),
        ("leaves at the last try", Before::Head, Code::No, last()),
        ("takes its turn at the last try", Before::Turn, Code::Done, last()),
        ("takes a place over", Before::Previous, Code::No, takes_over()),
        ("takes a hold over", Before::PreviousHolds, Code::Done, takes_over()),
        ("takes over without a previous owner", Before::Queued, Code::No, takes_over()),
        ("releases", Before::Held, Code::Done, release()),
        ("leaves", Before::Head, Code::No, release()),
        ("leaves at its turn", Before::Turn, Code::No, release()),
        ("abandons what it is not in", Before::Queued, Code::No, release()),
        ("abandons a takeover", Before::Previous, Code::No, abandon_both()),
        ("abandons a takeover of a hold", Before::PreviousHolds, Code::Done, abandon_both()),
        ("ends a hold by force", Before::Queued, Code::Done, force()),
        ("ends nothing by force", Before::Turn, Code::No, force()),
        (
            "asks who waits",
            Before::Head,
            Code::Done,
            Box::new(|lock, _| lock.inspect_queue(Some(1))),
        ),
        ("renews", Before::Held, Code::Done, Box::new(|lock, grant| lock.renew(1, 60_000, grant))),
    ]
}

/// S4.
#[tokio::test]
async fn a_repeated_request_is_executed_once() {
    let mut redis = Redis::start().await;
    for name in ["job", "x{a}b", "é/?# \""] {
        let lock = Fair::new(name);
        for (what, before, wanted, make) in cases(&redis).await {
            let call = make(&lock, prepare(&redis, &lock, before).await);
            let first = redis.run(&call).await;
            assert_eq!(first.code, wanted, "{what}");
            let once = redis.dump().await;
            redis.published().await;
            let second = redis.run(&call).await;
            assert_eq!(lasting(&once), lasting(&redis.dump().await), "{what}");
            assert_eq!(redis.published().await, [], "{what}");
            let again = match (first.code, call.args().get(11).map(String::as_str)) {
                (Code::Done, Some(_)) => Code::AlreadyYours,
                (Code::No, Some("1")) => Code::Gone,
                (code, _) => code,
            };
            assert_eq!(second.code, again, "{what}");
        }
    }
}

#[tokio::test]
async fn nothing_of_an_owner_comes_back_after_its_end() {
    let mut redis = Redis::start().await;
    let lock = Fair::new("job");
    for (what, before, _, make) in cases(&redis).await {
        let call = make(&lock, prepare(&redis, &lock, before).await);
        redis.run(&call).await;
        // A call that named a previous owner ends that owner too.
        let previous = call.args().contains(&field_of(9)).then_some(9);
        redis.run(&lock.abandon(1, UNBOUND, previous)).await;
        let ended = redis.dump().await;
        redis.published().await;
        let reply = redis.run(&call).await;
        if call.script().name == "fair_acquire" {
            assert_eq!(reply.code, Code::Gone, "{what}");
        }
        if previous.is_some() {
            let earlier = redis.run(&lock.acquire(nth_poll(9, 99))).await;
            assert_eq!(earlier.code, Code::Gone, "{what}");
        }
        let after = redis.dump().await;
        assert_eq!(lasting(&ended), lasting(&after), "{what}");
        assert_eq!(redis.published().await, [], "{what}");
        assert!(!names(&after, &field_of(1)), "{what}");
        assert!(previous.is_none() || !names(&after, &field_of(9)), "{what}");
    }
}

#[tokio::test]
async fn a_copy_of_an_earlier_poll_only_reads() {
    let redis = Redis::start().await;
    let lock = Fair::new("job");
    prepare(&redis, &lock, Before::Head).await;
    assert_eq!(redis.run(&lock.acquire(nth_poll(1, 5))).await.code, Code::No);
    lock.age(&redis, 4_000).await;
    let before = redis.dump().await;
    for number in [1, 4, 5] {
        assert_eq!(redis.run(&lock.acquire(nth_poll(1, number))).await.code, Code::No);
    }
    assert_eq!(contents(&before), contents(&redis.dump().await));
    assert_eq!(redis.run(&lock.acquire(nth_poll(1, 6))).await.code, Code::No);
    assert_ne!(contents(&before), contents(&redis.dump().await));
}

#[tokio::test]
async fn a_takeover_keeps_place_and_ticket_and_its_copies_do_nothing() {
    let redis = Redis::start().await;
    let lock = Fair::new("job");
    prepare(&redis, &lock, Before::Previous).await;
    let (queue, arrivals) = (lock.key("redisson_lock_queue"), lock.arrivals());
    let arrival: String = redis.query(&["ZSCORE", &arrivals, &field_of(9)]).await;
    let call = lock.acquire(nth_poll(1, 1).after(9));
    assert!(redis.run(&call).await.value.starts_with("0,"));
    assert_eq!(redis.query::<String>(&["ZSCORE", &arrivals, &field_of(1)]).await, arrival);
    let waiting: Vec<String> = redis.query(&["LRANGE", &queue, "0", "-1"]).await;
    assert_eq!(waiting, [&field_of(1), &field_of(2), JAVA[1]]);
    // A second takeover, and late copies of all earlier requests.
    assert!(redis.run(&lock.acquire(nth_poll(3, 1).after(1))).await.value.starts_with("0,"));
    let before = redis.dump().await;
    assert_eq!(redis.run(&call).await.code, Code::Gone);
    assert_eq!(redis.run(&lock.acquire(nth_poll(9, 7))).await.code, Code::Gone);
    assert_eq!(lasting(&before), lasting(&redis.dump().await));
}

/// Contents that do not change if a call does nothing: all but beats and scores, which polls renew.
fn lasting(keyspace: &Keyspace) -> Vec<(&String, Content)> {
    let members = |content: &Content| match content {
        Content::Sorted(members) => Content::List(members.keys().cloned().collect()),
        other => other.clone(),
    };
    let watched = |key: &&String| !key.ends_with(":watch");
    keyspace
        .iter()
        .filter(|(key, _)| watched(key))
        .map(|(key, stored)| (key, members(&stored.value)))
        .collect()
}

fn contents(keyspace: &Keyspace) -> Vec<(&String, &Content)> {
    keyspace.iter().map(|(key, stored)| (key, &stored.value)).collect()
}

fn names(keyspace: &Keyspace, field: &str) -> bool {
    keyspace.values().any(|stored| match &stored.value {
        Content::Hash(fields) => fields.contains_key(field),
        Content::List(elements) => elements.iter().any(|element| element == field),
        Content::Sorted(members) => members.contains_key(field),
        Content::Text(_) => false,
    })
}
