//! The keys of the scripts: names of any form, keys of another type, the rights of a user, and how
//! ends are published.

use std::collections::BTreeSet;

use edgelatch_proto::name::LockName;
use edgelatch_proto::protocol::calls::{ReadCalls, Target, WriteCalls};
use edgelatch_proto::protocol::reply::{Code, Reply};
use edgelatch_proto::protocol::script::{Publish, ScriptCall};

use super::fixtures::{Java, channel, eager_writes, reads, reads_inside, writes, writes_around};
use test_support::calls::{Calls, UNBOUND, bound, field, lease, owner, request, token};
use test_support::redis::{Redis, rights, run_on};

const FAR: u64 = 9_000_000_000_000;

/// Every script on a lock of this name.
fn every_call(lock: &str) -> Vec<ScriptCall> {
    let (read, write) = (reads(lock), writes(lock));
    vec![
        read.acquire(request(1), UNBOUND, &owner(1), lease(30_000), false),
        reads_inside(lock, owner(2)).acquire(request(1), UNBOUND, &owner(1), lease(30_000), true),
        read.renew(request(2), UNBOUND, &owner(1), lease(30_000), token(7)),
        read.release(request(3), UNBOUND, &owner(1)),
        read.inspect(request(4), Some(owner(1))),
        read.force_release(request(5), bound(FAR, 90_000)),
        write.acquire(request(6), UNBOUND, &owner(1), lease(30_000), false),
        write.renew(request(7), UNBOUND, &owner(1), lease(30_000), token(7)),
        write.release(request(8), UNBOUND, &owner(1)),
        writes_around(lock, owner(3)).release(request(8), UNBOUND, &owner(1)),
        write.inspect(request(9), None),
        write.force_release(request(10), bound(FAR, 90_000)),
    ]
}

/// The part of a key that determines its slot in a cluster.
fn hash_tag(key: &str) -> &str {
    let inside = key.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
    inside.map(|(tag, _)| tag).filter(|tag| !tag.is_empty()).unwrap_or(key)
}

#[test]
fn all_keys_of_either_side_lie_in_the_lock_s_slot_for_any_name() {
    for lock in ["job", "x{a}b", "{tag}", "é/?#% \"", "a:write", "mode", &"n".repeat(512)] {
        let home = hash_tag(lock);
        for call in every_call(lock) {
            for key in call.keys() {
                assert_eq!(hash_tag(key), home, "{key}");
            }
        }
        // The computed keys have the same prefix as the declared key of the owner.
        let call = reads(lock).release(request(1), UNBOUND, &owner(1));
        let own = format!("{}:{}:rwlock_timeout:1", call.args()[5], field(&owner(1)));
        assert_eq!(call.keys()[2], own);
    }
}

#[tokio::test]
async fn redisson_and_we_meet_under_any_name() {
    let mut redis = Redis::start().await;
    for lock in ["job", "x{a}b", "é/?#% \"", "a:write"] {
        let holder = "8743c9c0-0795-4907-87fd-6c719a6b4586:1";
        redis.published().await;
        let java = Java { redis: &redis, lock, holder };
        assert_eq!(java.reads(30_000).await, None);
        let write = writes(lock).acquire(request(1), UNBOUND, &owner(1), lease(30_000), false);
        assert_eq!(redis.run(&write).await.code, Code::No);
        let read = reads(lock).acquire(request(2), UNBOUND, &owner(2), lease(30_000), false);
        assert_eq!(redis.run(&read).await.code, Code::Done);
        assert_eq!(java.ends_read(1).await, Some(0), "it sees our timeout key");
        assert!(java.writes(30_000).await.is_some());
        let release = reads(lock).release(request(3), UNBOUND, &owner(2));
        assert_eq!(redis.run(&release).await.code, Code::Done);
        assert_eq!(java.writes(30_000).await, None);
        assert_eq!(redis.published().await, [(channel(lock), "0".to_owned())]);
    }
}

/// S69.
#[tokio::test]
async fn a_key_of_another_type_is_refused_and_left_alone() {
    let redis = Redis::start().await;
    // A key that a script only writes, deletes or tests for existence may be of any type.
    let unread = ["__channel", "redisson_rwlock", "rwlock_timeout"];
    for call in every_call("job") {
        for (place, key) in call.keys().iter().enumerate() {
            if unread.iter().any(|part| key.contains(part)) || !reads_first(&call, place) {
                continue;
            }
            redis.query::<String>(&["FLUSHALL"]).await;
            redis.query::<u64>(&["RPUSH", key, "5"]).await;
            if call.script().name.ends_with("_renew") && place > 0 {
                // Without the latch of a grant a renewal does not read the lock.
                redis.query::<String>(&["SET", &call.keys()[0], "7", "PX", "60000"]).await;
            }
            let before: BTreeSet<String> = redis.dump().await.into_keys().collect();
            let error = redis.cells(&call).await.unwrap_err();
            let name = call.script().name;
            assert!(error.to_string().contains("WRONGTYPE"), "{name} {key}: {error}");
            let after: BTreeSet<String> = redis.dump().await.into_keys().collect();
            assert_eq!(before, after, "{name} {key}");
        }
    }
}

/// Whether the call, in a Redis that has only this key, reads it before it writes.
fn reads_first(call: &ScriptCall, place: usize) -> bool {
    match call.script().name {
        // Without a hold the script reads no token.
        "read_renew" => place < 2,
        // The script reads only the expiry of the want, and the write's latch only inside that
        // write.
        "read_acquire" => place < 5,
        // The script reads the want last, after all writes.
        "write_acquire" => place < 3,
        // The script reads tokens only if a read remains.
        "write_release" => place < 2,
        _ => true,
    }
}

/// Acquires both sides, one inside the other, releases them, and tries a side that another owner
/// holds.
fn conversation(within: edgelatch_proto::protocol::script::Bound) -> Vec<(ScriptCall, Code)> {
    let (read, write) = (reads("job"), writes("job"));
    let around = writes_around("job", owner(2));
    vec![
        (write.acquire(request(1), within, &owner(1), lease(60_000), false), Code::Done),
        (
            reads_inside("job", owner(1)).acquire(
                request(2),
                within,
                &owner(2),
                lease(60_000),
                false,
            ),
            Code::Done,
        ),
        (read.acquire(request(3), within, &owner(3), lease(60_000), true), Code::No),
        (read.inspect(request(4), Some(owner(2))), Code::Done),
        (around.release(request(5), within, &owner(1)), Code::Done),
        (read.acquire(request(6), within, &owner(4), lease(60_000), false), Code::Done),
        (write.inspect(request(7), Some(owner(1))), Code::No),
    ]
}

/// Calls that need the right to every reader's timeout keys.
fn among_readers(within: edgelatch_proto::protocol::script::Bound) -> Vec<(ScriptCall, Code)> {
    let eager = eager_writes("job", 5_000);
    vec![
        (eager.acquire(request(8), within, &owner(5), lease(60_000), false), Code::No),
        (eager.acquire(request(8), within, &owner(5), lease(60_000), true), Code::No),
        (reads("job").release(request(9), within, &owner(2)), Code::Done),
        (reads("job").force_release(request(10), within), Code::Done),
    ]
}

async fn run_as(redis: &Redis, rights: &[String], call: &ScriptCall) -> Result<Code, String> {
    let mut worker = redis.user(rights).await;
    let cells = run_on(&mut worker, call).await.map_err(|error| error.to_string())?;
    Ok(Reply::read(&cells, call.request).unwrap().code)
}

/// The right to the keys that a call declares. The channel is also declared as a key, so that it
/// determines the slot.
fn declared(call: &ScriptCall) -> Vec<String> {
    let mut rights = vec!["+@all".to_owned(), "resetchannels".to_owned()];
    for key in call.keys() {
        rights.push(format!("~{key}"));
        rights.extend(key.starts_with("redisson_rwlock").then(|| format!("&{key}")));
    }
    rights
}

#[tokio::test]
async fn only_other_readers_timeout_keys_are_not_declared() {
    let redis = Redis::start().await;
    let within = bound(redis.now_ms().await + 600_000, 90_000);
    for (call, wanted) in conversation(within) {
        let answer = run_as(&redis, &declared(&call), &call).await;
        assert_eq!(answer, Ok(wanted), "{}", call.script().name);
    }
    for (call, wanted) in among_readers(within) {
        let computes = call.script().name != "rw_force_release";
        let before = redis.dump().await;
        if computes {
            // Refused before any write, so that a user with the right can repeat it.
            let refused = run_as(&redis, &declared(&call), &call).await.unwrap_err();
            // The first is Redis' text since version 7.2.
            let is_about_a_key = ["permissions to access a key", "can't access"]
                .iter()
                .any(|text| refused.contains(text));
            assert!(is_about_a_key, "{refused}");
            assert!(before.keys().eq(redis.dump().await.keys()));
        }
        let mut rights = declared(&call);
        rights.push("~{job}:*:rwlock_timeout:*".to_owned());
        let answer = run_as(&redis, &rights, &call).await;
        assert_eq!(answer, Ok(wanted), "{}", call.script().name);
    }
}

/// The commands of the scripts; their user needs no others.
const COMMANDS: [&str; 19] = [
    "eval", "time", "get", "set", "del", "exists", "pttl", "pexpire", "hexists", "hset", "hdel",
    "hget", "hgetall", "hlen", "publish", "spublish", "hvals", "unlink", "hscan",
];

fn all_but(missing: &str) -> Vec<String> {
    rights(&["~*", "&*"], &COMMANDS, missing)
}

#[tokio::test]
async fn the_documented_commands_are_enough_and_without_one_no_hold_is_left() {
    let redis = Redis::start().await;
    let within = bound(redis.now_ms().await + 600_000, 90_000);
    for (call, wanted) in conversation(within).into_iter().chain(among_readers(within)) {
        assert_eq!(run_as(&redis, &all_but("nothing"), &call).await, Ok(wanted));
    }
    for missing in COMMANDS {
        for side in [reads("job"), writes("job"), eager_writes("job", 5_000)] {
            redis.query::<String>(&["FLUSHALL"]).await;
            let take = side.acquire(request(1), UNBOUND, &owner(1), lease(30_000), false);
            let refused = run_as(&redis, &all_but(missing), &take).await.is_err();
            let hold = redis.dump().await.get("job").map(|stored| stored.ttl);
            assert_eq!(hold.is_some(), !refused, "{missing}");
            assert!(hold.is_none_or(|left| left > 0), "{missing}");
        }
    }
}

#[tokio::test]
async fn each_end_is_published_once_in_the_requested_way() {
    let redis = Redis::start().await;
    for (publish, plain, sharded) in
        [(Publish::Plain, 1, 0), (Publish::Sharded, 0, 1), (Publish::Both, 1, 1)]
    {
        let job = || LockName::parse("job").unwrap();
        let within = bound(redis.now_ms().await + 600_000, 90_000);
        for target in [
            Target::Read(ReadCalls::new(job(), publish)),
            Target::Write(WriteCalls::new(job(), publish)),
        ] {
            let side = Calls(target);
            let release = side.release(request(2), UNBOUND, &owner(1));
            for end in [release, side.force_release(request(3), within)] {
                redis.query::<String>(&["FLUSHALL"]).await;
                let take = side.acquire(request(1), UNBOUND, &owner(1), lease(30_000), true);
                assert_eq!(redis.run(&take).await.code, Code::Done);
                redis.query::<String>(&["CONFIG", "RESETSTAT"]).await;
                assert_eq!(redis.run(&end).await.code, Code::Done);
                assert_eq!(redis.ran("publish").await, plain, "{publish:?}");
                assert_eq!(redis.ran("spublish").await, sharded, "{publish:?}");
            }
        }
    }
}
