//! Guards reject writes under a stale lease; a script runs only while a lease is held.

use std::time::Duration;

use edgelatch::Error;
use edgelatch::client::{GuardedWrite, UserScript};
use edgelatch::error::{EvalError, GuardError, LossReason, RequestError};
use edgelatch::timing::GuardMemory;

use test_support::faults::{Fault, FaultResponse};
use test_support::test_env::{TestEnv, until, until_in_virtual_time};

fn text(value: &str) -> GuardedWrite {
    GuardedWrite::set(value, None)
}

/// S25, S32, S33, S57.
#[tokio::test]
async fn a_write_with_an_older_token_is_refused() {
    let env = TestEnv::new().await;
    let (client, lock) = (env.client(), env.client().lock("job").unwrap());
    let guard = client.guard("total", GuardMemory::DEFAULT).unwrap();
    let old = lock.acquire().await.unwrap();
    guard.write(&old, None, &text("1")).await.unwrap();
    guard.write(&old, None, &text("2")).await.unwrap();
    // The hold is lost without its holder's knowledge: another client has the lock and has written.
    env.redis.query::<u64>(&["DEL", "job"]).await;
    let new = lock.acquire().await.unwrap();
    guard.write(&new, None, &GuardedWrite::claim()).await.unwrap();
    let refused = guard.write(&old, None, &text("3")).await.unwrap_err();
    assert_eq!(refused, GuardError::Stale { newest: new.token().as_u64() });
    assert_eq!(env.redis.query::<String>(&["GET", "total"]).await, "2");
    assert_eq!(guard.newest().await, Ok(Some(new.token().as_u64())));
    guard.write(&new, None, &GuardedWrite::delete()).await.unwrap();
    assert_eq!(env.redis.query::<u64>(&["EXISTS", "total"]).await, 0);
    new.release().await.unwrap();
    let over = guard.write(&new, None, &text("4")).await.unwrap_err();
    assert_eq!(over, GuardError::Lost(LossReason::Gone));
    let unknown = guard.write(&old, Some("other"), &text("4")).await.unwrap_err();
    assert!(matches!(unknown.kind, GuardError::InvalidOption(_)));
}

#[tokio::test]
async fn a_guard_accepts_leases_of_one_lock_and_names_both_when_it_gets_another() {
    let env = TestEnv::new().await;
    let client = env.client();
    let (job, other) = (client.lock("job").unwrap(), client.lock("other").unwrap());
    let (lease, foreign) = (job.acquire().await.unwrap(), other.acquire().await.unwrap());
    let first = client.guard("total", GuardMemory::DEFAULT).unwrap();
    first.write(&lease, None, &text("1")).await.unwrap();
    let of_lock_guard =
        client.guard("total", GuardMemory::DEFAULT).unwrap().of_lock("job").unwrap();
    let before = env.proxy.calls().len();
    for guard in [&first, &first.clone(), &of_lock_guard] {
        for name in [None, Some("other")] {
            let refused = guard.write(&foreign, name, &GuardedWrite::claim()).await.unwrap_err();
            let GuardError::InvalidOption(refused) = refused.kind else { panic!("{refused:?}") };
            assert_eq!(refused.option(), "lease");
            assert!(
                refused.accepted().contains("\"job\"") && refused.accepted().contains("\"other\"")
            );
        }
    }
    assert_eq!(env.proxy.calls().len(), before);
    of_lock_guard.write(&lease, None, &text("2")).await.unwrap();
    lease.release().await.unwrap();
    foreign.release().await.unwrap();

    // A guard uses the first of several locks that were acquired together, unless it names another.
    let both = client.multi_lock([other, job]).unwrap().acquire().await.unwrap();
    let second = if both.name().as_str() == "job" { "other" } else { "job" };
    let guard = client.guard("second", GuardMemory::DEFAULT).unwrap().of_lock(second).unwrap();
    assert!(guard.write(&both, None, &GuardedWrite::claim()).await.is_err());
    guard.write(&both, Some(second), &GuardedWrite::claim()).await.unwrap();
    both.release().await.unwrap();
    assert!(client.guard("total", GuardMemory::DEFAULT).unwrap().of_lock("a{b").is_err());
}

#[tokio::test]
async fn a_copy_of_a_write_has_a_bound_although_its_client_has_no_clock_of_that_redis() {
    let (there, here) = (TestEnv::new().await, TestEnv::new().await);
    let lease = there.client().lock("job").unwrap().acquire().await.unwrap();
    let guard = here.client().guard("total", GuardMemory::DEFAULT).unwrap();
    for number in 1..=2 {
        guard.write(&lease, None, &text(&number.to_string())).await.unwrap();
        let ms: u64 =
            here.redis.query::<Vec<String>>(&["TIME"]).await[0].parse::<u64>().unwrap() * 1000;
        let calls = here.proxy.calls();
        let writes: Vec<_> = calls.iter().filter(|seen| seen.script == "guard_write").collect();
        let [.., last] = writes.as_slice() else { panic!("{calls:?}") };
        // After the command, the script, the number of its keys, two keys, and the id.
        let bound: u64 = last.words[6].parse().expect("a bound");
        assert!((ms..=ms + 100_000).contains(&bound), "{bound} at {ms}");
        assert_eq!(writes.len(), number);
    }
    assert_eq!(here.proxy.count("guard_newest"), 1);
}

/// S33.
#[tokio::test]
async fn a_write_with_an_unknown_outcome_is_not_reported_as_stale() {
    let env = TestEnv::new().await;
    let (client, host) = env.virtual_client();
    let old = client.lock("job").unwrap().acquire().await.unwrap();
    env.proxy.plan(|seen| match (seen.script, seen.number) {
        ("guard_write", 1) => Fault::executed(FaultResponse::Bytes(Vec::new())),
        _ => Fault::none(),
    });
    let guard = client.guard("total", GuardMemory::DEFAULT).unwrap();
    let write = async {
        let wanted = text("old");
        let unheard = guard.write(&old, None, &wanted).await.unwrap_err();
        assert!(
            matches!(unheard.kind, GuardError::Request(RequestError::Unreachable(_))),
            "{unheard:?}"
        );
        guard.write(&old, None, &wanted).await.unwrap_err()
    };
    let newer = async {
        until(async || env.redis.query::<u64>(&["EXISTS", "total"]).await == 1).await;
        env.redis.query::<u64>(&["DEL", "job"]).await;
        let other = env.client();
        let new = other.lock("job").unwrap().acquire().await.unwrap();
        let guard = other.guard("total", GuardMemory::DEFAULT).unwrap();
        guard.write(&new, None, &text("new")).await.unwrap();
        // The pause before the retry.
        until_in_virtual_time(&env, &host, Duration::from_millis(100), || {
            env.proxy.count("guard_write") >= 4
        })
        .await;
        new
    };
    let (stale, new) = tokio::join!(write, newer);
    assert_eq!(stale, GuardError::Stale { newest: new.token().as_u64() });
    assert_eq!(env.redis.query::<String>(&["GET", "total"]).await, "new");
}

#[tokio::test]
async fn writes_of_one_lease_are_done_one_after_the_other() {
    let env = TestEnv::new().await;
    let (client, lock) = (env.client(), env.client().lock("job").unwrap());
    let guard = client.guard("total", GuardMemory::DEFAULT).unwrap();
    let lease = lock.acquire().await.unwrap();
    let texts: Vec<GuardedWrite> = (0..10).map(|number| text(&number.to_string())).collect();
    let mut writes = tokio::task::JoinSet::new();
    let (lease, guard) = (std::sync::Arc::new(lease), std::sync::Arc::new(guard));
    for write in texts {
        let (lease, guard) = (lease.clone(), guard.clone());
        writes.spawn(async move { guard.write(&lease, None, &write).await });
        tokio::task::yield_now().await;
    }
    assert!(writes.join_all().await.iter().all(Result::is_ok));
    lease.release().await.unwrap();
}

#[tokio::test]
async fn a_script_runs_once_while_the_lease_is_held_and_not_afterwards() {
    let env = TestEnv::new().await;
    let (client, host) = env.virtual_client_with_timeout(5_000);
    let lease = client.lock("job").unwrap().acquire().await.unwrap();
    env.proxy.plan(|seen| match seen.number {
        1 => Fault::executed(FaultResponse::Silence),
        _ => Fault::none(),
    });
    let keys = || vec!["{job}:total".to_owned()];
    let count =
        UserScript::new("return redis.call('INCRBY', KEYS[1], ARGV[1])", keys(), vec!["5".into()]);
    let count = count.unwrap();
    assert_eq!(env.in_virtual_time(&host, lease.eval(&count)).await, Ok("5".to_owned()));
    assert_eq!(lease.eval(&count).await, Ok("10".to_owned()));
    let table = UserScript::new("return {1, 'two', false}", vec![], vec![]).unwrap();
    assert_eq!(lease.eval(&table).await, Ok(r#"[1,"two",null]"#.to_owned()));
    let fails = UserScript::new("return redis.call('HGET', KEYS[1], 'x')", keys(), vec![]).unwrap();
    assert!(matches!(
        lease.eval(&fails).await,
        Err(Error { kind: EvalError::ScriptFailed(_), .. })
    ));
    let elsewhere = UserScript::new("return 1", vec!["elsewhere".into()], vec![]).unwrap();
    let refused = lease.eval(&elsewhere).await.unwrap_err();
    assert!(matches!(refused.kind, EvalError::Request(RequestError::InvalidOption(_))));

    env.redis.query::<u64>(&["DEL", "job"]).await;
    let lost = EvalError::Request(RequestError::Lost(LossReason::Gone));
    assert_eq!(lease.eval(&count).await.unwrap_err(), lost);
    assert_eq!(env.redis.query::<u64>(&["GET", "{job}:total"]).await, 10);
    let before = env.proxy.calls().len();
    assert_eq!(lease.eval(&count).await.unwrap_err(), lost);
    assert_eq!(env.proxy.calls().len(), before);
}

#[tokio::test]
async fn a_script_that_does_not_compile_is_reported_in_redis_words() {
    let env = TestEnv::new().await;
    let lease = env.client().lock("job").unwrap().acquire().await.unwrap();
    for (text, response) in [
        ("return +", "unexpected symbol near '+'"),
        ("if true then", "'end' expected (to close 'function' at line 1) near ')'"),
        ("local t = #", "unexpected symbol near 'end'"),
        ("#", "unexpected symbol near '#'"),
        ("x = 1 = 2", "unexpected symbol near '='"),
        // The error does not contain literals of the script.
        ("return 1 'canary'", "'end' expected"),
        ("return 1 [[canary]]", "'end' expected"),
        ("return \"canary", "unfinished string"),
        ("return 1 314159", "'end' expected"),
    ] {
        let script = UserScript::new(text, vec![], vec![]).unwrap();
        let error = lease.eval(&script).await.unwrap_err();
        let EvalError::ScriptFailed(reason) = &error.kind else { panic!("{text}: {error:?}") };
        assert!(reason.starts_with(response), "{text}: {reason}");
        assert!(!reason.contains("canary") && !reason.contains("314159"), "{reason}");
    }
    lease.release().await.unwrap();
}
