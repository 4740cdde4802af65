//! Acquires from a faulty gateway.

use std::net::TcpListener;
use std::time::Duration;

use edgelatch::Error;
use edgelatch::client::{AcquireOptions, Lock, Released};
use edgelatch::error::{AcquireError, FailureKind, RefusalKind};
use edgelatch::transport::Reqwest;

use test_support::bad_responses::{indeterminate, refusals};
use test_support::fake_host::FakeHost;
use test_support::fault_proxy::RecordedCall;
use test_support::faults::{Fault, FaultResponse, http};
use test_support::slow_machine::longer_and_longer;
use test_support::test_env::{TestEnv, until};

const ACQUIRE: &str = "lock_acquire";
const ALWAYS: usize = usize::MAX;

/// Injects this fault into the first `times` acquisitions.
fn acquiring(times: usize, fault: Fault) -> impl Fn(&RecordedCall) -> Fault {
    move |seen| {
        let is_bad = seen.script == ACQUIRE && seen.number <= times;
        if is_bad { fault.clone() } else { Fault::none() }
    }
}

/// A gateway, a lock of a client in virtual time, and the client's host.
async fn env() -> (TestEnv, Lock<Reqwest, FakeHost>, FakeHost) {
    let env = TestEnv::new().await;
    let (client, host) = env.virtual_client();
    let lock = client.lock("job").unwrap();
    (env, lock, host)
}

/// S18, S53.
#[tokio::test]
async fn an_unreadable_response_is_undone_and_reported_as_unreachable() {
    let (env, lock, host) = env().await;
    for (name, response, kind) in indeterminate() {
        let mut faults = vec![Fault::executed(response.clone())];
        // A truncated response is half of the real one, which exists only after an execution.
        if !matches!(response, FaultResponse::Truncated) {
            faults.push(Fault::not_executed(response));
        }
        for fault in faults {
            env.reset(acquiring(ALWAYS, fault)).await;
            let error = env.in_virtual_time(&host, lock.try_acquire()).await.unwrap_err();
            assert_eq!(error, AcquireError::Unreachable(kind), "{name}");
            env.assert_nothing_is_held(name).await;
            assert_eq!(env.proxy.count(ACQUIRE), 3, "{name}");
            assert_eq!(env.proxy.count("lock_release"), 1, "{name}");
        }
    }
}

/// S52, S56, S79.
// Slow: four silent gateways get three attempts of 1 s each, in the real time of tokio's host.
#[tokio::test]
async fn an_acquisition_without_a_response_is_undone_and_reported_as_timed_out() {
    for response in [FaultResponse::Silence, FaultResponse::Trickle] {
        for fault in [Fault::not_executed(response.clone()), Fault::executed(response)] {
            let (env, error) = silenced(fault).await;
            assert_eq!(error, AcquireError::Unreachable(FailureKind::TimedOut));
            env.assert_nothing_is_held("no response").await;
            // No connection is left that could deliver another request.
            until(async || env.proxy.is_quiet()).await;
        }
    }
}

/// The outcome of a try without a response, on a machine that completes the undo within its
/// attempts' time.
async fn silenced(fault: Fault) -> (TestEnv, Error<AcquireError>) {
    for attempt in longer_and_longer(Duration::from_secs(1)) {
        let env = TestEnv::with(acquiring(ALWAYS, fault.clone())).await;
        let lock = env.client_with_timeout(attempt).lock("job").unwrap();
        let error = lock.try_acquire().await.unwrap_err();
        if !matches!(error.kind, AcquireError::Unknown { cause: FailureKind::TimedOut, .. }) {
            return (env, error);
        }
    }
    panic!("the machine is too slow");
}

/// S46.
#[tokio::test]
async fn a_refusal_is_reported_at_once_and_needs_no_undo() {
    let (env, lock, host) = env().await;
    for (name, response) in refusals() {
        env.reset(acquiring(ALWAYS, Fault::not_executed(response))).await;
        let error = env.in_virtual_time(&host, lock.acquire()).await.unwrap_err();
        let AcquireError::Refused(refusal) = error.kind else { panic!("{name}: {error}") };
        assert_eq!(refusal.kind(), RefusalKind::Unauthorized, "{name}");
        assert_eq!(env.proxy.calls().len(), 1, "{name}");
        assert!(env.redis.dump().await.is_empty(), "{name}");
    }
}

/// S54.
#[tokio::test]
async fn a_redirection_is_not_followed() {
    let elsewhere = TcpListener::bind("127.0.0.1:0").unwrap();
    elsewhere.set_nonblocking(true).unwrap();
    let location = format!("location: http://{}/\r\n", elsewhere.local_addr().unwrap());
    let (env, lock, host) = env().await;
    for status in [301, 302, 303, 307, 308] {
        env.reset(acquiring(ALWAYS, Fault::not_executed(http(status, &location, "")))).await;
        let error = env.in_virtual_time(&host, lock.try_acquire()).await.unwrap_err();
        assert_eq!(error, AcquireError::Unreachable(FailureKind::Redirected), "{status}");
        env.assert_nothing_is_held("redirection").await;
        assert!(elsewhere.accept().is_err(), "{status}");
    }
}

/// S1, S16, S47, S48.
#[tokio::test]
async fn a_retry_after_one_bad_response_succeeds() {
    let (env, lock, host) = env().await;
    for (name, response, _) in indeterminate() {
        env.reset(acquiring(1, Fault::executed(response))).await;
        let lease = env.in_virtual_time(&host, lock.try_acquire()).await.unwrap().unwrap();
        let token: String = env.redis.query(&["GET", "redisson_lock_token:{job}"]).await;
        assert_eq!(lease.token().to_string(), token, "{name}");
        assert_eq!(env.redis.query::<Vec<String>>(&["HVALS", "job"]).await, ["1"], "{name}");
        assert_eq!(lease.release().await, Ok(Released::Released), "{name}");
        env.assert_nothing_is_held(name).await;
    }
}

/// S48.
#[tokio::test]
async fn a_wait_continues_after_bad_responses() {
    let (env, lock, host) = env().await;
    // A large budget, so that the pauses between the tries are short.
    let options = AcquireOptions::new().max_requests(10_000);
    for (name, response, _) in indeterminate() {
        env.reset(acquiring(2, Fault::executed(response))).await;
        let lease = env.in_virtual_time(&host, lock.acquire_with(options)).await.unwrap();
        assert_eq!(env.redis.query::<Vec<String>>(&["HVALS", "job"]).await, ["1"], "{name}");
        assert_eq!(lease.release().await, Ok(Released::Released), "{name}");
        env.assert_nothing_is_held(name).await;
    }
}

/// S2.
#[tokio::test]
async fn if_the_undo_has_no_reply_either_the_outcome_is_unknown_until_the_lease_ends() {
    // Short, since Redis measures it in real time.
    let lease = Duration::from_millis(500);
    let options = AcquireOptions::new().lease(lease);
    let (env, lock, host) = env().await;
    // Every sixth kind of response: each one costs a lease in real time.
    for (name, response, kind) in indeterminate().into_iter().step_by(6) {
        let fault = Fault::executed(response);
        // The undo is not executed: the hold remains until it expires.
        let empty = Fault::not_executed(FaultResponse::Bytes(Vec::new()));
        let plan = move |seen: &RecordedCall| {
            if seen.script == ACQUIRE { fault.clone() } else { empty.clone() }
        };
        env.reset(plan).await;
        let call = lock.try_acquire_with(options);
        let error = env.in_virtual_time(&host, call).await.unwrap_err();
        let AcquireError::Unknown { held_at_most, cause } = error.kind else {
            panic!("{name}: {error}, {kind}")
        };
        assert_eq!(cause, FailureKind::Broken, "{name}");
        assert!(held_at_most >= lease, "{name}");
        until(async || env.redis.query::<u64>(&["EXISTS", "job"]).await == 0).await;
    }
}

#[tokio::test]
async fn an_acquisition_whose_undo_is_refused_is_unknown() {
    let (env, lock, host) = env().await;
    for (name, response) in refusals() {
        let plan = move |seen: &RecordedCall| match seen.script {
            ACQUIRE => Fault::not_executed(FaultResponse::Bytes(Vec::new())),
            _ => Fault::not_executed(response.clone()),
        };
        env.reset(plan).await;
        let error = env.in_virtual_time(&host, lock.try_acquire()).await.unwrap_err();
        let AcquireError::Unknown { cause, .. } = error.kind else { panic!("{name}: {error}") };
        assert_eq!(cause, FailureKind::RefusedLater(RefusalKind::Unauthorized), "{name}");
    }
}

#[tokio::test]
async fn a_refusal_after_a_lost_response_is_reported_once_the_call_is_undone() {
    let (env, lock, host) = env().await;
    for (name, response) in refusals() {
        let plan = move |seen: &RecordedCall| match (seen.script, seen.number) {
            (ACQUIRE, 1) => Fault::executed(FaultResponse::Bytes(Vec::new())),
            (ACQUIRE, _) => Fault::not_executed(response.clone()),
            _ => Fault::none(),
        };
        env.reset(plan).await;
        let error = env.in_virtual_time(&host, lock.try_acquire()).await.unwrap_err();
        assert!(matches!(error.kind, AcquireError::Refused(_)), "{name}: {error}");
        assert_eq!(env.proxy.count("lock_release"), 1, "{name}");
        env.assert_nothing_is_held(name).await;
    }
}

/// S51.
#[tokio::test]
async fn a_missing_gateway_is_unreachable_and_nothing_needs_an_undo() {
    let env = TestEnv::new().await;
    let client = env.client_with_long_attempts();
    let TestEnv { redis, proxy } = env;
    let seen = proxy.calls();
    drop(proxy);
    let unbound = async || {
        let error = client.lock("job").unwrap().try_acquire().await.unwrap_err();
        error == AcquireError::Unreachable(FailureKind::NotSent)
    };
    // The listener may need a moment to close.
    until(unbound).await;
    assert!(seen.is_empty());
    assert!(!redis.dump().await.contains_key("job"));
}

#[tokio::test]
async fn a_held_lock_is_busy_also_after_bad_responses() {
    let (env, lock, host) = env().await;
    for (name, response, _) in indeterminate() {
        env.reset(acquiring(1, Fault::executed(response))).await;
        env.redis.query::<u64>(&["HSET", "job", "java:1", "1"]).await;
        env.redis.query::<u64>(&["PEXPIRE", "job", "60000"]).await;
        let lease = env.in_virtual_time(&host, lock.try_acquire()).await.unwrap();
        assert!(lease.is_none(), "{name}");
        env.redis.query::<u64>(&["DEL", "job"]).await;
        env.assert_nothing_is_held(name).await;
    }
}
