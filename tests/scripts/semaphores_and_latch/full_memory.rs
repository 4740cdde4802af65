//! A Redis whose memory is full and that evicts nothing: no new hold begins, and every call that
//! ends or extends a hold succeeds (rule C5).

use edgelatch_proto::protocol::calls::{LatchCount, PermitTotal};
use edgelatch_proto::timing::LeaseTime;

use super::{batch, held, id, latch, permits, semaphore, verdict};
use test_support::calls::{Calls, UNBOUND, bound, lease, owner, request, token};
use test_support::redis::Redis;

/// Two targets in a Redis whose memory is full, where owner 1 holds two permits of each, with
/// the tokens of the holds.
async fn full() -> (Redis, [(Calls, u64); 2]) {
    let redis = Redis::start().await;
    redis.query::<String>(&["MSET", "sem", "3", "perm", "3", "gate", "2"]).await;
    let mut targets = [(held(&semaphore("sem", 2)), 0), (batch(&permits("perm", 2, 0)), 0)];
    for (target, token) in &mut targets {
        let call = target.acquire(request(1), UNBOUND, &owner(1), lease(30_000), false);
        *token = redis.run(&call).await.value.parse().unwrap();
    }
    redis.fill().await;
    (redis, targets)
}

#[tokio::test]
async fn permits_are_refused_and_nothing_is_written() {
    let (redis, _) = full().await;
    let before = redis.dump().await;
    for target in [held(&semaphore("sem", 1)), batch(&permits("perm", 1, 0))] {
        for last in [false, true] {
            let call = target.acquire(request(2), UNBOUND, &owner(2), lease(30_000), last);
            let error = redis.cells(&call).await.unwrap_err();
            assert!(error.to_string().contains("OOM"), "{error}");
        }
    }
    let values = |keyspace: &test_support::redis::Keyspace| {
        keyspace.iter().map(|(key, stored)| (key.clone(), stored.value.clone())).collect::<Vec<_>>()
    };
    assert_eq!(values(&before), values(&redis.dump().await));
}

#[tokio::test]
async fn a_hold_is_prolonged_although_memory_is_full() {
    let (redis, targets) = full().await;
    for (target, grant) in &targets {
        let again = target.acquire(request(1), UNBOUND, &owner(1), lease(60_000), false);
        assert_eq!(verdict(&redis.cells(&again).await.unwrap()), (2, grant.to_string(), 60_000));
        let renew = target.renew(request(2), UNBOUND, &owner(1), lease(90_000), token(*grant));
        assert_eq!(verdict(&redis.cells(&renew).await.unwrap()), (1, grant.to_string(), 90_000));
        let endless =
            target.renew(request(2), UNBOUND, &owner(1), LeaseTime::ENDLESS, token(*grant));
        assert_eq!(verdict(&redis.cells(&endless).await.unwrap()), (1, grant.to_string(), -1));
    }
}

/// S66.
#[tokio::test]
async fn permits_are_released_although_memory_is_full() {
    let (mut redis, targets) = full().await;
    redis.published().await;
    for ((target, _), (key, given)) in targets.iter().zip([("sem", "1"), ("perm", "2")]) {
        let release = target.release(request(2), UNBOUND, &owner(1));
        assert_eq!(verdict(&redis.cells(&release).await.unwrap()), (1, given.into(), 0));
        assert_eq!(redis.query::<String>(&["GET", key]).await, "3");
        assert_eq!(redis.published().await.len(), 1);
        // An abandon, and the last try of a refused owner.
        let abandon = target.release(request(3), UNBOUND, &owner(2));
        assert_eq!(verdict(&redis.cells(&abandon).await.unwrap()), (0, "0".into(), 0));
        assert_eq!(redis.query::<String>(&["GET", &abandon.keys()[0]]).await, "x0");
    }
    for target in [held(&semaphore("sem", 9)), batch(&permits("perm", 9, 0))] {
        let last = target.acquire(request(4), UNBOUND, &owner(3), lease(30_000), true);
        assert_eq!(verdict(&redis.cells(&last).await.unwrap()), (0, "3".into(), -1));
        assert_eq!(redis.query::<String>(&["GET", &last.keys()[0]]).await, "x0");
    }
}

#[tokio::test]
async fn an_idempotent_call_succeeds_when_memory_is_full() {
    let (redis, _) = full().await;
    let within = bound(redis.now_ms().await + 60_000, 90_000);
    let (s, p, l) = (semaphore("sem", 1), permits("perm", 1, 0), latch("gate"));
    let ids = [id(owner(1), 0)];
    let changes = [
        (s.add(1), "2"),
        (s.drain(), "2"),
        (held(&s).0.force_release(), "2"),
        (p.add(1), "2"),
        (p.set(PermitTotal::new(9).unwrap()), "7"),
        (p.update_lease(&ids, lease(500)), "1"),
        (p.release_ids(&ids), "1"),
        (batch(&p).0.force_release(), "1"),
        (l.count_down(), "1"),
        (l.delete(), "1"),
        (l.try_set(LatchCount::new(4).unwrap()), "4"),
    ];
    for ((change, value), number) in changes.into_iter().zip(10..) {
        let call = change.call(request(number), within);
        assert_eq!(verdict(&redis.cells(&call).await.unwrap()), (1, value.into(), 0), "{number}");
        let record: String = redis.query(&["GET", &call.keys()[0]]).await;
        assert_eq!(record, format!("1:{value}"));
    }
    let cancel = s.add(1).cancel(request(30), within);
    assert_eq!(verdict(&redis.cells(&cancel).await.unwrap()).0, -2);
}
