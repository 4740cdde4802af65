//! A repeated request, and one after its bound, leave what one execution leaves.

use edgelatch_proto::protocol::calls::{IdempotentCall, LatchCount, PermitTotal};
use edgelatch_proto::protocol::script::ScriptCall;
use edgelatch_proto::timing::LeaseTime;

use super::{batch, held, id, latch, permits, semaphore, verdict};
use test_support::calls::{UNBOUND, bound, lease, owner, request, token};
use test_support::redis::{Content, Keyspace, Redis};

/// The state of all three objects before a call.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Before {
    Nothing,
    /// Five permits, a count of two.
    Set,
    /// Owner 1 holds three of them.
    Held,
    /// None is left; another owner has them, with a lease that has ended.
    Over,
    /// A count of one.
    Last,
}

/// Brings Redis into a state; returns the tokens of owner 1's holds.
async fn prepare(redis: &Redis, before: Before) -> [u64; 2] {
    redis.query::<String>(&["FLUSHALL"]).await;
    let (five, count) = match before {
        Before::Nothing => return [1, 1],
        Before::Last => ("5", "1"),
        _ => ("5", "2"),
    };
    redis.query::<String>(&["MSET", "sem", five, "perm", five, "gate", count]).await;
    let (number, lease) = match before {
        Before::Held => (1, lease(60_000)),
        Before::Over => (9, lease(100)),
        _ => return [1, 1],
    };
    let mut tokens = [1; 2];
    let targets = [
        (held(&semaphore("sem", 3)), "el:{sem}:held"),
        (batch(&permits("perm", 3, 0)), "{perm}:timeout"),
    ];
    for ((target, set), token) in targets.into_iter().zip(&mut tokens) {
        let call = target.acquire(request(900), UNBOUND, &owner(number), lease, false);
        *token = redis.run(&call).await.value.parse().unwrap();
        if before == Before::Over {
            let members: Vec<Vec<u8>> = redis.query(&["ZRANGE", set, "0", "-1"]).await;
            for member in members {
                let mut over = redis::cmd("ZADD");
                over.arg(set).arg(1).arg(member);
                over.exec_async(&mut redis.connect().await).await.unwrap();
            }
        }
    }
    tokens
}

type Make = Box<dyn Fn([u64; 2]) -> ScriptCall>;

/// The calls about holds, in every state that their scripts distinguish.
async fn holding(redis: &Redis) -> Vec<(&'static str, Before, Make)> {
    let within = bound(redis.now_ms().await + 600_000, 90_000);
    let mut cases: Vec<(&'static str, Before, Make)> = Vec::new();
    let states = [Before::Nothing, Before::Set, Before::Held, Before::Over];
    for before in states {
        for last in [false, true] {
            for (terms, bound) in [
                (lease(30_000), UNBOUND),
                (lease(30_000), within),
                (LeaseTime::ENDLESS, within),
                (LeaseTime::ENDLESS, UNBOUND),
            ] {
                let (s, p) = (held(&semaphore("sem", 3)), batch(&permits("perm", 3, 0)));
                cases.push((
                    "take",
                    before,
                    Box::new(move |_| s.acquire(request(1), bound, &owner(1), terms, last)),
                ));
                cases.push((
                    "take",
                    before,
                    Box::new(move |_| p.acquire(request(1), bound, &owner(1), terms, last)),
                ));
            }
        }
        for ms in [1_000, 120_000] {
            let (s, p) = (held(&semaphore("sem", 3)), batch(&permits("perm", 3, 0)));
            cases.push((
                "renew",
                before,
                Box::new(move |[grant, _]| {
                    s.renew(request(3), within, &owner(1), lease(ms), token(grant))
                }),
            ));
            cases.push((
                "renew",
                before,
                Box::new(move |[_, grant]| {
                    p.renew(request(3), within, &owner(1), lease(ms), token(grant))
                }),
            ));
        }
        for bound in [UNBOUND, within] {
            let (s, p) = (held(&semaphore("sem", 3)), batch(&permits("perm", 3, 0)));
            cases.push((
                "release",
                before,
                Box::new(move |_| s.release(request(2), bound, &owner(1))),
            ));
            cases.push((
                "release",
                before,
                Box::new(move |_| p.release(request(2), bound, &owner(1))),
            ));
        }
        let (s, p) = (semaphore("sem", 3), permits("perm", 3, 0));
        cases.push((
            "ask",
            before,
            Box::new(move |_| held(&s).inspect(request(5), Some(owner(1)))),
        ));
        cases.push((
            "ask",
            before,
            Box::new(move |_| batch(&p).inspect(request(5), Some(owner(1)))),
        ));
        cases.push(("ask", before, Box::new(move |_| latch("gate").inspect(request(5)))));
    }
    cases
}

/// The idempotent calls.
fn changes() -> Vec<IdempotentCall> {
    let (s, p, l) = (semaphore("sem", 3), permits("perm", 3, 0), latch("gate"));
    let total = |number| PermitTotal::new(number).unwrap();
    let ids = [id(owner(1), 0), id(owner(9), 1)];
    vec![
        s.add(2),
        s.add(-7),
        s.add_if_exists(edgelatch_proto::protocol::calls::PermitCount::new(2).unwrap()),
        s.drain(),
        s.try_set(total(4), None),
        held(&s).0.force_release(),
        p.add(2),
        p.add(-7),
        p.set(total(9)),
        p.try_set(total(4)),
        p.release_ids(&ids),
        p.release_ids(&ids[..1]),
        p.update_lease(&ids, lease(1_000)),
        p.update_lease(&ids[1..], LeaseTime::ENDLESS),
        batch(&p).0.force_release(),
        l.count_down(),
        l.try_set(LatchCount::new(3).unwrap()),
        l.delete(),
    ]
}

const STATES: [Before; 5] =
    [Before::Nothing, Before::Set, Before::Held, Before::Over, Before::Last];

/// S4.
#[tokio::test]
async fn a_request_sent_twice_is_executed_once() {
    let mut redis = Redis::start().await;
    for (name, before, make) in holding(&redis).await {
        let call = make(prepare(&redis, before).await);
        let what = format!("{name} {} in {before:?}", call.script().name);
        redis.published().await;
        let first = verdict(&redis.cells(&call).await.unwrap());
        let (once, published) = (redis.dump().await, redis.published().await);
        let second = verdict(&redis.cells(&call).await.unwrap());
        assert_eq!(contents(&once), contents(&redis.dump().await), "{what}");
        assert!(published.len() <= 1, "{what}: {published:?}");
        assert_eq!(redis.published().await, [], "{what}");
        let last = call.args().get(6).is_some_and(|last| last == "1");
        let wanted = match (name, first.0) {
            ("take", 1) => 2,
            ("take", 0) if last => -2,
            (_, code) => code,
        };
        assert_eq!(second.0, wanted, "{what}");
        if wanted > 0 {
            assert_eq!(first.1, second.1, "{what}");
        }
    }
}

#[tokio::test]
async fn nothing_of_an_owner_comes_back_after_it_was_given_back() {
    let mut redis = Redis::start().await;
    for (name, before, make) in holding(&redis).await {
        let call = make(prepare(&redis, before).await);
        let what = format!("{name} {} in {before:?}", call.script().name);
        redis.cells(&call).await.unwrap();
        for target in [held(&semaphore("sem", 3)), batch(&permits("perm", 3, 0))] {
            redis.run(&target.release(request(10), UNBOUND, &owner(1))).await;
        }
        let ended = redis.dump().await;
        redis.published().await;
        let (code, ..) = verdict(&redis.cells(&call).await.unwrap());
        assert_eq!(contents(&ended), contents(&redis.dump().await), "{what}");
        assert_eq!(redis.published().await, [], "{what}");
        match name {
            "take" => assert_eq!(code, -2, "{what}"),
            "renew" => assert_eq!(code, -3, "{what}"),
            _ => {}
        }
    }
}

#[tokio::test]
async fn an_idempotent_call_is_executed_once_and_gets_its_result_twice() {
    let mut redis = Redis::start().await;
    let within = bound(redis.now_ms().await + 600_000, 90_000);
    for (place, once) in changes().iter().enumerate() {
        for before in STATES {
            let what = format!("{place} {once:?} in {before:?}");
            let call = once.call(request(4), within);
            prepare(&redis, before).await;
            redis.published().await;
            let first = verdict(&redis.cells(&call).await.unwrap());
            let (after, published) = (redis.dump().await, redis.published().await);
            let second = verdict(&redis.cells(&call).await.unwrap());
            let cancelled = verdict(&redis.cells(&once.cancel(request(4), within)).await.unwrap());
            let third = verdict(&redis.cells(&call).await.unwrap());
            assert_eq!(contents(&after), contents(&redis.dump().await), "{what}");
            assert!(published.len() <= 1, "{what}: {published:?}");
            assert_eq!(redis.published().await, [], "{what}");
            let again = (first.0, first.1, 1);
            assert_eq!((&second, &cancelled, &third), (&again, &again, &again), "{what}");
        }
    }
}

#[tokio::test]
async fn a_cancelled_call_is_never_executed() {
    let mut redis = Redis::start().await;
    let within = bound(redis.now_ms().await + 600_000, 90_000);
    for once in changes() {
        prepare(&redis, Before::Held).await;
        assert_eq!(verdict(&redis.cells(&once.cancel(request(4), within)).await.unwrap()).0, -2);
        let before = redis.dump().await;
        redis.published().await;
        let answer = verdict(&redis.cells(&once.call(request(4), within)).await.unwrap());
        assert_eq!(answer.0, -2, "{once:?}");
        assert_eq!(contents(&before), contents(&redis.dump().await), "{once:?}");
        assert_eq!(redis.published().await, [], "{once:?}");
    }
}

/// Values without expiries, which change by themselves, and without scores, which a repetition
/// changes.
fn contents(keyspace: &Keyspace) -> Vec<(&String, Content)> {
    let value = |content: &Content| match content {
        Content::Sorted(members) => Content::List(members.keys().cloned().collect()),
        other => other.clone(),
    };
    keyspace.iter().map(|(key, stored)| (key, value(&stored.value))).collect()
}
