//! The rights that a user of Redis needs, keys of another type, names of every form, and how
//! changes are published.

use edgelatch_proto::protocol::calls::{LatchCount, PermitTotal};
use edgelatch_proto::protocol::script::{Publish, ScriptCall};
use edgelatch_proto::timing::LeaseTime;

use super::{
    batch, held, id, latch, latch_that_publishes, permits, permits_that_publish, semaphore,
    semaphore_that_publishes, verdict,
};
use test_support::calls::{UNBOUND, bound, lease, owner, request, token};
use test_support::redis::{Keyspace, Redis, rights, run_on};

/// Every call, in an order in which each has an effect; each is repeated.
async fn conversation(redis: &Redis, name: &str, publish: Publish) -> Vec<ScriptCall> {
    let within = bound(redis.now_ms().await + 600_000, 90_000);
    let (s, p) =
        (semaphore_that_publishes(name, 2, publish), permits_that_publish(name, 2, 0, publish));
    let l = latch_that_publishes(name, publish);
    let five = PermitTotal::new(5).unwrap();
    let ids = [id(owner(1), 0), id(owner(9), 1)];
    let mut calls = vec![s.try_set(five, None).call(request(1), within)];
    for target in [held(&s), batch(&p)] {
        calls.extend([
            target.acquire(request(2), within, &owner(1), LeaseTime::ENDLESS, false),
            target.acquire(request(3), within, &owner(1), LeaseTime::ENDLESS, false),
            target.acquire(request(4), within, &owner(2), lease(200), false),
            target.acquire(request(5), within, &owner(3), lease(30_000), true),
            target.renew(request(6), within, &owner(2), lease(60_000), token(7)),
            target.inspect(request(7), Some(owner(1))),
            target.release(request(8), within, &owner(2)),
            target.release(request(9), within, &owner(4)),
            target.force_release(request(10), within),
            target.release(request(11), within, &owner(1)),
        ]);
    }
    let changes = [s.add(2), s.drain(), p.add(3), p.set(five), p.release_ids(&ids)];
    let once = changes.into_iter().chain([
        p.update_lease(&ids, lease(500)),
        l.try_set(LatchCount::new(9).unwrap()),
        l.count_down(),
        l.delete(),
    ]);
    calls.extend(once.zip(20..).map(|(call, number)| call.call(request(number), within)));
    calls.extend([s.add(1).cancel(request(40), within), l.inspect(request(41))]);
    calls.iter().flat_map(|call| [call.clone(), call.clone()]).collect()
}

#[tokio::test]
async fn calls_of_semaphores_and_latches_need_only_the_declared_keys_and_the_channel() {
    let redis = Redis::start().await;
    for name in ["job", "x{a}b", "é/?#%\""] {
        redis.query::<String>(&["FLUSHALL"]).await;
        for call in conversation(&redis, name, Publish::Both).await {
            let channel = call.args().iter().find(|arg| arg.starts_with("redisson_")).cloned();
            let channels: Vec<String> =
                call.keys().iter().filter(|key| key.starts_with("redisson_")).cloned().collect();
            let mut rights = vec!["+@all".to_owned(), "resetchannels".to_owned()];
            rights.extend(call.keys().iter().map(|key| format!("~{key}")));
            rights.extend(channels.iter().chain(&channel).map(|channel| format!("&{channel}")));
            let mut worker = redis.user(&rights).await;
            let cells = run_on(&mut worker, &call).await;
            assert!(cells.is_ok(), "{} {name}: {cells:?}", call.script().name);
        }
    }
}

#[tokio::test]
async fn keys_lie_in_one_slot_for_any_name() {
    let redis = Redis::start().await;
    for (name, tag) in [("job", "job"), ("x{a}b", "a"), ("{order}:7", "order")] {
        for call in conversation(&redis, name, Publish::Plain).await {
            for key in call.keys() {
                let inside = key.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
                assert_eq!(inside.map_or(key.as_str(), |(tag, _)| tag), tag, "{key}");
            }
        }
    }
}

/// The commands of the scripts, and no others.
const COMMANDS: [&str; 20] = [
    "eval",
    "time",
    "get",
    "set",
    "del",
    "pttl",
    "pexpire",
    "incrby",
    "decr",
    "exists",
    "zadd",
    "zrem",
    "zscore",
    "zcard",
    "zcount",
    "zrange",
    "zrangebyscore",
    "publish",
    "spublish",
    "unlink",
];

fn all_but(missing: &str) -> Vec<String> {
    rights(&["~*", "&*"], &COMMANDS, missing)
}

#[tokio::test]
async fn the_commands_that_are_documented_for_what_is_counted_are_enough() {
    let redis = Redis::start().await;
    let mut worker = redis.user(&all_but("nothing")).await;
    for call in conversation(&redis, "job", Publish::Both).await {
        let cells = run_on(&mut worker, &call).await;
        assert!(cells.is_ok(), "{}: {cells:?}", call.script().name);
    }
}

#[tokio::test]
async fn a_user_without_one_command_acquires_nothing() {
    let redis = Redis::start().await;
    for missing in COMMANDS {
        for target in [held(&semaphore("job", 2)), batch(&permits("job", 2, 0))] {
            redis.query::<String>(&["FLUSHALL"]).await;
            redis.query::<String>(&["SET", "job", "5"]).await;
            let mut worker = redis.user(&all_but(missing)).await;
            let take = target.acquire(request(1), UNBOUND, &owner(1), lease(30_000), false);
            let refused = run_on(&mut worker, &take).await.is_err();
            let left: String = redis.query(&["GET", "job"]).await;
            assert_eq!(left, if refused { "5" } else { "3" }, "{missing}");
            // The undo then creates no permits.
            let release = target.release(request(2), UNBOUND, &owner(1));
            if run_on(&mut worker, &release).await.is_ok() || !refused {
                redis.cells(&release).await.unwrap();
            }
            let left: String = redis.query(&["GET", "job"]).await;
            let lost = !refused && missing == "incrby";
            assert_eq!(left, if lost { "3" } else { "5" }, "{missing}");
        }
    }
}

fn values(keyspace: &Keyspace) -> Vec<String> {
    keyspace.iter().map(|(key, stored)| format!("{key} {:?}", stored.value)).collect()
}

/// S69.
#[tokio::test]
async fn another_type_is_refused_and_left_alone() {
    let redis = Redis::start().await;
    let calls = conversation(&redis, "job", Publish::Plain).await;
    for call in &calls {
        let name = call.script().name;
        for key in call.keys().iter().filter(|key| !key.starts_with("redisson_")) {
            redis.query::<String>(&["FLUSHALL"]).await;
            redis.query::<String>(&["SET", "job", "5"]).await;
            if name.ends_with("_renew") {
                // Without the latch of a grant a renewal does not read the holds.
                redis.query::<String>(&["SET", &call.keys()[0], "7"]).await;
            }
            redis.query::<u64>(&["DEL", key]).await;
            redis.query::<u64>(&["HSET", key, "a", "b"]).await;
            let before = redis.dump().await;
            match redis.cells(call).await {
                Err(error) => {
                    assert!(error.to_string().contains("WRONGTYPE"), "{name}: {error}");
                    assert_eq!(values(&before), values(&redis.dump().await), "{name}: {key}");
                }
                // The call did not need to read it.
                Ok(_) => assert_eq!(before[key], redis.dump().await[key], "{name}: {key}"),
            }
        }
    }
}

#[tokio::test]
async fn a_value_that_is_no_number_is_left_alone() {
    let redis = Redis::start().await;
    for call in conversation(&redis, "job", Publish::Plain).await {
        let looks = call.keys().iter().any(|key| key == "job");
        redis.query::<String>(&["FLUSHALL"]).await;
        redis.query::<String>(&["SET", "job", "many"]).await;
        if looks {
            assert!(redis.cells(&call).await.is_err(), "{}", call.script().name);
            assert_eq!(redis.dump().await.len(), 1, "{}", call.script().name);
        }
    }
}

#[tokio::test]
async fn a_count_is_published_in_the_requested_way() {
    let redis = Redis::start().await;
    for (publish, plain, sharded) in
        [(Publish::Plain, 1, 0), (Publish::Sharded, 0, 1), (Publish::Both, 1, 1)]
    {
        let within = bound(redis.now_ms().await + 600_000, 90_000);
        let changes = [
            semaphore_that_publishes("sem", 1, publish).add(1),
            permits_that_publish("perm", 1, 0, publish).add(1),
            latch_that_publishes("gate", publish).try_set(LatchCount::new(1).unwrap()),
        ];
        for change in changes {
            redis.query::<String>(&["FLUSHALL"]).await;
            redis.query::<String>(&["CONFIG", "RESETSTAT"]).await;
            assert_eq!(verdict(&redis.cells(&change.call(request(1), within)).await.unwrap()).0, 1);
            let publications = (redis.ran("publish").await, redis.ran("spublish").await);
            assert_eq!(publications, (plain, sharded), "{change:?}");
        }
    }
    let asked = latch("gate").inspect(request(2));
    assert_eq!(verdict(&redis.cells(&asked).await.unwrap()), (1, "1".into(), 0));
}
