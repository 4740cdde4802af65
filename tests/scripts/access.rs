//! The rights that a user of Redis needs: to the declared keys, and no more.

use edgelatch_proto::protocol::reply::{Code, Reply, RespValue};
use edgelatch_proto::protocol::script::ScriptCall;

use test_support::calls::{UNBOUND, bound, lease, lock, owner, request, token};
use test_support::redis::{Redis, rights, run_on};

fn code(call: &ScriptCall, cells: &[RespValue]) -> Code {
    Reply::read(cells, call.request).unwrap().code
}

#[tokio::test]
async fn every_key_that_a_script_touches_is_declared() {
    let redis = Redis::start().await;
    let job = lock("job");
    let within = bound(redis.now_ms().await + 600_000, 90_000);
    let take = job.acquire(request(1), within, &owner(1), lease(30_000), true);
    let grant: u64 = redis.run(&take).await.value.parse().unwrap();
    redis.query::<String>(&["FLUSHALL"]).await;
    // In this order the calls cover every branch: free, mine, busy, held, released, gone, lost.
    let conversation = [
        (job.inspect(request(2), None), Code::No),
        (take.clone(), Code::Done),
        (take.clone(), Code::AlreadyYours),
        (job.inspect(request(3), Some(owner(1))), Code::Done),
        (job.acquire(request(4), within, &owner(2), lease(30_000), false), Code::No),
        (job.acquire(request(5), within, &owner(2), lease(30_000), true), Code::No),
        (job.renew(request(6), within, &owner(1), lease(60_000), token(grant)), Code::Lost),
        (job.release(request(7), within, &owner(1)), Code::Done),
        (job.release(request(7), within, &owner(1)), Code::Done),
        (job.release(request(8), within, &owner(3)), Code::No),
        (take, Code::Gone),
        (job.acquire(request(9), within, &owner(4), lease(30_000), false), Code::Done),
        (job.force_release(request(10), UNBOUND), Code::BoundRequired),
        (job.force_release(request(10), within), Code::Done),
        (job.force_release(request(10), within), Code::Done),
        (job.acquire(request(9), within, &owner(4), lease(30_000), false), Code::Lost),
        (job.release(request(11), within, &owner(4)), Code::No),
    ];
    for (call, wanted) in conversation {
        let (keys, channels): (Vec<_>, Vec<_>) =
            call.keys().iter().partition(|key| !key.contains("__channel"));
        let mut rights = vec!["+@all".to_owned(), "resetchannels".to_owned()];
        rights.extend(keys.iter().map(|key| format!("~{key}")));
        // The channel is also declared as a key, so that it determines the slot.
        rights.extend(channels.iter().flat_map(|name| [format!("~{name}"), format!("&{name}")]));
        let mut worker = redis.user(&rights).await;
        let cells = run_on(&mut worker, &call).await.unwrap();
        assert_eq!(code(&call, &cells), wanted, "{}", call.script().name);
    }
}

/// The commands of the scripts; their user needs no others.
const COMMANDS: [&str; 16] = [
    "eval", "time", "get", "set", "del", "pttl", "pexpire", "hexists", "hset", "hdel", "hvals",
    "publish", "spublish", "unlink", "hscan", "hlen",
];

/// The rights to all of these commands except one.
fn all_but(missing: &str) -> Vec<String> {
    rights(&["~*", "&*"], &COMMANDS, missing)
}

#[tokio::test]
async fn the_documented_commands_are_enough() {
    let redis = Redis::start().await;
    let mut worker = redis.user(&all_but("nothing")).await;
    let job = lock("job");
    let within = bound(redis.now_ms().await + 600_000, 90_000);
    let take = job.acquire(request(1), within, &owner(1), lease(30_000), true);
    let cells = run_on(&mut worker, &take).await.unwrap();
    let grant: u64 = Reply::read(&cells, take.request).unwrap().value.parse().unwrap();
    for call in [
        job.renew(request(2), within, &owner(1), lease(60_000), token(grant)),
        job.inspect(request(3), Some(owner(1))),
        job.release(request(4), within, &owner(1)),
        job.force_release(request(5), within),
    ] {
        run_on(&mut worker, &call).await.unwrap();
    }
}

#[tokio::test]
async fn a_user_without_one_command_never_leaves_a_hold_by_a_refused_acquisition() {
    let redis = Redis::start().await;
    for missing in COMMANDS {
        for last in [false, true] {
            redis.query::<String>(&["FLUSHALL"]).await;
            let mut worker = redis.user(&all_but(missing)).await;
            let take = lock("job").acquire(request(1), UNBOUND, &owner(1), lease(30_000), last);
            let refused = run_on(&mut worker, &take).await.is_err();
            let hold = redis.dump().await.get("job").map(|stored| stored.ttl);
            assert_eq!(hold.is_some(), !refused, "{missing}");
            assert!(hold.is_none_or(|left| left > 0), "{missing}");
        }
    }
}

#[tokio::test]
async fn a_release_is_whole_although_publishing_is_not_allowed() {
    let redis = Redis::start().await;
    for rights in [["+@all", "~*", "resetchannels"], ["+@all", "~*", "-publish"]] {
        redis.query::<String>(&["FLUSHALL"]).await;
        let job = lock("job");
        let mut worker = redis.user(&rights).await;
        let take = job.acquire(request(1), UNBOUND, &owner(1), lease(30_000), true);
        run_on(&mut worker, &take).await.unwrap();
        let release = job.release(request(2), UNBOUND, &owner(1));
        let cells = run_on(&mut worker, &release).await.unwrap();
        assert_eq!(code(&release, &cells), Code::Done);
        assert!(!redis.dump().await.contains_key("job"));
        assert_eq!(redis.query::<String>(&["GET", &release.keys()[0]]).await, "x1");

        let take = job.acquire(request(3), UNBOUND, &owner(2), lease(30_000), true);
        run_on(&mut worker, &take).await.unwrap();
        let bound = bound(redis.now_ms().await + 60_000, 90_000);
        let force = job.force_release(request(4), bound);
        let cells = run_on(&mut worker, &force).await.unwrap();
        assert_eq!(code(&force, &cells), Code::Done);
        assert!(!redis.dump().await.contains_key("job"));
    }
}

#[tokio::test]
async fn a_user_without_rights_to_the_lock_s_keys_is_refused_and_writes_nothing() {
    let redis = Redis::start().await;
    let mut other_user = redis.user(&["+@all", "~elsewhere:*", "&*"]).await;
    let job = lock("job");
    for call in [
        job.acquire(request(1), UNBOUND, &owner(1), lease(30_000), true),
        job.release(request(2), UNBOUND, &owner(1)),
        job.inspect(request(3), None),
    ] {
        let error = run_on(&mut other_user, &call).await.unwrap_err();
        assert_eq!(error.code(), Some("NOPERM"), "{error}");
    }
    assert!(redis.dump().await.is_empty());
}
