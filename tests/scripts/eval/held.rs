//! A caller's script runs once, and only while its lease is held; on a real Redis and on the model alike.

use std::time::Duration;

use edgelatch::name::LockName;
use edgelatch::protocol::calls::{
    FairCalls, FairSettings, LockCalls, Member, OnceCall, OwnScript, ReadCalls, Target, WriteCalls,
};
use edgelatch::protocol::reply::Code;
use edgelatch::protocol::script::{Bound, Publish};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::scripts::coverage::hear_all;
use crate::scripts::group;
use crate::scripts::pair::Pair;
use crate::support::calls::{Calls, UNBOUND, bound, lease, owner, request, token};
use crate::support::redis::Redis;

/// Counts up its key, and fails above its argument.
const COUNT: &str = "local n=redis.call('INCR',KEYS[1]) if n>tonumber(ARGV[1]) then error('too many',0) end return n";

fn count(most: u32) -> OwnScript {
    OwnScript::new(COUNT, vec!["{job}:count".into()], vec![most.to_string()]).unwrap()
}

fn name(text: &str) -> LockName {
    LockName::parse(text).unwrap()
}

fn member(text: &str) -> Member {
    Member { name: name(text), fenced: false }
}

/// One of each kind whose holders exclude others, all under the name of `job`.
fn targets() -> Vec<Target> {
    let plain = Publish::Plain;
    let several = vec![member("{job}:2"), member("{job}:3")];
    vec![
        Target::Lock(LockCalls::new(name("job"), plain)),
        Target::Lock(LockCalls::of_several(member("job"), several, plain)),
        Target::Fair(FairCalls::new(name("job"), FairSettings::default(), plain)),
        Target::Read(ReadCalls::new(name("job"), plain)),
        Target::Write(WriteCalls::new(name("job"), plain)),
        group::calls("job", &["A", "B"]).0,
    ]
}

async fn counted(redis: &Redis) -> u64 {
    redis.ask::<Option<u64>>(&["GET", "{job}:count"]).await.unwrap_or(0)
}

async fn within(redis: &Redis) -> Bound {
    bound(redis.now_ms().await + 600_000, 90_000)
}

#[tokio::test]
async fn a_script_runs_while_a_lease_of_any_kind_is_held_and_not_after() {
    let redis = Redis::start().await;
    for target in targets() {
        redis.ask::<String>(&["FLUSHALL"]).await;
        let (calls, bound) = (Calls(target), within(&redis).await);
        let take = calls.acquire(request(1), bound, &owner(1), lease(60_000), true);
        let what = take.script().name;
        let grant = redis.run(&take).await.value.parse().unwrap();
        let eval = |who: u8, grant: u64| -> OnceCall {
            calls.0.eval(owner(who), token(grant), &count(9)).unwrap()
        };
        let ran = redis.run(&eval(1, grant).call(request(2), bound)).await;
        assert_eq!((ran.code, ran.value.as_str(), ran.ms), (Code::Done, "1", 0), "{what}");
        for (who, grant) in [(2, grant), (1, grant + 1)] {
            let lost = redis.run(&eval(who, grant).call(request(3), bound)).await;
            assert_eq!((lost.code, lost.value.as_str()), (Code::Lost, "0"), "{what}");
        }
        redis.run(&calls.release(request(4), bound, &owner(1))).await;
        assert_eq!(redis.run(&eval(1, grant).call(request(5), bound)).await.code, Code::Lost);
        // What ran is told again, also after the end.
        let again = redis.run(&eval(1, grant).call(request(2), bound)).await;
        assert_eq!((again.code, again.value.as_str(), again.ms), (Code::Done, "1", 1), "{what}");
        assert_eq!(counted(&redis).await, 1, "{what}");
    }
}

#[tokio::test]
async fn a_script_does_not_run_when_a_part_of_the_hold_is_lost() {
    let redis = Redis::start().await;
    for (target, key) in targets().into_iter().skip(1).step_by(4).zip(["{job}:3", "job"]) {
        redis.ask::<String>(&["FLUSHALL"]).await;
        let (calls, bound) = (Calls(target), within(&redis).await);
        let take = calls.acquire(request(1), bound, &owner(1), lease(60_000), true);
        let grant = redis.run(&take).await.value.parse().unwrap();
        if key == "job" {
            let value = calls.release(request(9), bound, &owner(1)).args()[5].clone();
            redis.ask::<u64>(&["HSET", key, &value, "somebody:1"]).await;
        } else {
            redis.ask::<u64>(&["DEL", key]).await;
        }
        let eval = calls.0.eval(owner(1), token(grant), &count(9)).unwrap();
        assert_eq!(redis.run(&eval.call(request(2), bound)).await.code, Code::Lost, "{key}");
        assert_eq!(counted(&redis).await, 0);
    }
}

#[tokio::test]
async fn a_script_that_may_run_twice_leaves_no_record() {
    let redis = Redis::start().await;
    let (calls, bound) = (crate::support::calls::lock("job"), within(&redis).await);
    let take = calls.acquire(request(1), bound, &owner(1), lease(60_000), true);
    let grant = redis.run(&take).await.value.parse().unwrap();
    let keys = redis.dump().await.len();
    let eval = calls.0.eval(owner(1), token(grant), &count(9).repeatable()).unwrap();
    for wanted in ["1", "2"] {
        assert_eq!(redis.run(&eval.call(request(2), bound)).await.value, wanted);
    }
    assert_eq!(redis.dump().await.len(), keys + 1);
    let passed = Bound { not_after: Some(1), keep: Duration::ZERO };
    assert_eq!(redis.run(&eval.call(request(2), passed)).await.code, Code::Unknown);
}

#[tokio::test]
async fn what_a_script_may_not_do_when_memory_is_full_it_may_not_do_here() {
    let redis = Redis::start().await;
    let (calls, bound) = (crate::support::calls::lock("job"), within(&redis).await);
    let take = calls.acquire(request(1), bound, &owner(1), lease(60_000), true);
    let grant = redis.run(&take).await.value.parse().unwrap();
    redis.fill().await;
    let before = redis.dump().await;
    let eval = calls.0.eval(owner(1), token(grant), &count(9)).unwrap();
    let error = redis.cells(&eval.call(request(2), bound)).await.unwrap_err();
    assert!(error.to_string().contains("OOM"), "{error}");
    assert!(before.keys().eq(redis.dump().await.keys()));
    // Without a record the script itself is what is refused.
    let eval = calls.0.eval(owner(1), token(grant), &count(9).repeatable()).unwrap();
    let refused = redis.run(&eval.call(request(3), bound)).await;
    assert_eq!(refused.code, Code::ScriptFailed);
    assert!(refused.value.contains("OOM"), "{}", refused.value);
    // A cancellation passes.
    let cancel = calls.0.eval(owner(1), token(grant), &count(9)).unwrap().cancel(request(4), bound);
    assert_eq!(redis.run(&cancel).await.code, Code::Gone);
}

#[derive(Clone, Debug)]
enum Step {
    Eval { request: u64, owner: u8, once: bool, most: u32, limit: Option<i64> },
    Cancel { request: u64, limit: Option<i64> },
    Acquire { owner: u8 },
    Release { owner: u8 },
    Touch { of: usize, away: bool },
}

fn step() -> impl Strategy<Value = Step> {
    let limit = || {
        proptest::sample::select(vec![None, Some(-1), Some(-90_000), Some(600_000), Some(700_000)])
    };
    let eval = (1..=5_u64, 1..3_u8, any::<bool>(), 0..3_u32, limit()).prop_map(
        |(request, owner, once, most, limit)| Step::Eval {
            request,
            owner,
            once,
            most: most * 4,
            limit,
        },
    );
    prop_oneof![
        8 => eval,
        1 => (1..=5_u64, limit()).prop_map(|(request, limit)| Step::Cancel { request, limit }),
        3 => (1..3_u8).prop_map(|owner| Step::Acquire { owner }),
        1 => (1..3_u8).prop_map(|owner| Step::Release { owner }),
        1 => (any::<usize>(), any::<bool>()).prop_map(|(of, away)| Step::Touch { of, away }),
    ]
}

/// All that a script under a lease can be answered with.
const VERDICTS: &[Code] = &[
    Code::Done,
    Code::Late,
    Code::Gone,
    Code::Lost,
    Code::BoundRequired,
    Code::Unknown,
    Code::ScriptFailed,
];

#[test]
fn random_scripts_under_leases_do_to_redis_what_they_do_to_the_model() {
    let steps = vec((step(), 0..3_usize), 1..30);
    hear_all(
        &[("eval", VERDICTS), ("cancel", &[Code::Done])],
        &[],
        &steps,
        async |redis, steps, heard| {
            let mut pair = Pair::new(redis).await;
            let mut grants = [1; 2];
            // Of one kind in a run: a lock, several, or values of a group.
            let kind = [0, 1, 5][steps[0].1];
            for (step, _) in &steps {
                heard.extend(take(&mut pair, step, &mut grants, kind).await);
            }
        },
    );
}

async fn take(
    pair: &mut Pair<'_>,
    step: &Step,
    grants: &mut [u64; 2],
    kind: usize,
) -> Option<(&'static str, Code)> {
    let (what, now) = (format!("{step:?}"), pair.now());
    let calls = Calls(targets().swap_remove(kind));
    let at = |limit: &Option<i64>| Bound {
        not_after: limit.map(|ms| now.saturating_add_signed(ms)),
        keep: Duration::from_secs(90),
    };
    let grant = |who: u8| grants[usize::from(who) - 1];
    match step {
        Step::Eval { request: id, owner: who, once, most, limit } => {
            let script = if *once { count(*most) } else { count(*most).repeatable() };
            let eval = calls.0.eval(owner(*who), token(grant(*who)), &script).unwrap();
            Some(("eval", pair.call(&eval.call(request(*id), at(limit)), &what).await.code))
        }
        Step::Cancel { request: id, limit } => {
            let eval = calls.0.eval(owner(1), token(grant(1)), &count(9)).unwrap();
            Some(("cancel", pair.call(&eval.cancel(request(*id), at(limit)), &what).await.code))
        }
        Step::Acquire { owner: who } => {
            let take = calls.acquire(request(7), UNBOUND, &owner(*who), lease(200_000), false);
            let reply = pair.call(&take, &what).await;
            if matches!(reply.code, Code::Done | Code::AlreadyYours) {
                grants[usize::from(*who) - 1] = reply.value.parse().unwrap();
            }
            Some((take.script().name, reply.code))
        }
        Step::Release { owner: who } => {
            let release = calls.release(request(8), UNBOUND, &owner(*who));
            Some((release.script().name, pair.call(&release, &what).await.code))
        }
        Step::Touch { of, away } => {
            pair.touch(*of, *away).await;
            pair.compare_keys(&what).await;
            None
        }
    }
}
