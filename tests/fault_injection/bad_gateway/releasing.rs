//! Releases through a faulty gateway.

use std::time::Duration;

use edgelatch::client::{AcquireOptions, Released};
use edgelatch::error::{FailureKind, RefusalKind, ReleaseError};

use test_support::bad_responses::{indeterminate, refusals};
use test_support::fault_proxy::RecordedCall;
use test_support::faults::{Fault, FaultResponse};
use test_support::test_env::{TestEnv, until};

const RELEASE: &str = "lock_release";
/// The attempts of a release.
const MAX_ATTEMPTS: usize = 5;

/// Injects this fault into the first `times` releases.
fn releasing(times: usize, fault: Fault) -> impl Fn(&RecordedCall) -> Fault {
    move |seen| {
        let is_bad = seen.script == RELEASE && seen.number <= times;
        if is_bad { fault.clone() } else { Fault::none() }
    }
}

/// S12, S48.
#[tokio::test]
async fn a_retry_after_a_bad_response_succeeds() {
    let env = TestEnv::new().await;
    let (client, host) = env.virtual_client();
    let lock = client.lock("job").unwrap();
    for (name, response, _) in indeterminate() {
        env.reset(releasing(1, Fault::executed(response))).await;
        let lease = lock.acquire().await.unwrap();
        let released = env.in_virtual_time(&host, lease.release()).await;
        assert_eq!(released, Ok(Released::Released), "{name}");
        assert_eq!(env.proxy.count(RELEASE), 2, "{name}");
        env.assert_nothing_is_held(name).await;
    }
}

#[tokio::test]
async fn a_release_with_five_bad_responses_is_unknown_and_a_later_one_returns_the_result() {
    let env = TestEnv::new().await;
    let (client, host) = env.virtual_client();
    let lock = client.lock("job").unwrap();
    // Every fourth kind of response: each one costs five attempts.
    for (name, response, kind) in indeterminate().into_iter().step_by(4) {
        env.reset(releasing(MAX_ATTEMPTS, Fault::executed(response))).await;
        let lease = lock.acquire().await.unwrap();
        let error = env.in_virtual_time(&host, lease.release()).await.unwrap_err();
        let ReleaseError::Unknown { cause, .. } = error.kind else { panic!("{name}: {error}") };
        assert_eq!(cause, kind, "{name}");
        assert_eq!(lease.release().await, Ok(Released::Released), "{name}");
        env.assert_nothing_is_held(name).await;
    }
}

/// S14.
#[tokio::test]
async fn a_release_that_never_arrives_leaves_the_hold_until_it_expires() {
    let env =
        TestEnv::with(releasing(usize::MAX, Fault::not_executed(FaultResponse::Silence))).await;
    // Short, since Redis measures it in real time.
    let time = Duration::from_millis(600);
    let options = AcquireOptions::new().lease(time);
    let (client, host) = env.virtual_client();
    let lease = client.lock("job").unwrap().acquire_with(options).await.unwrap();
    let error = env.in_virtual_time(&host, lease.release()).await.unwrap_err();
    let ReleaseError::Unknown { held_at_most, cause } = error.kind else { panic!("{error}") };
    assert_eq!(cause, FailureKind::TimedOut);
    assert!(held_at_most >= time);
    until(async || env.redis.query::<u64>(&["EXISTS", "job"]).await == 0).await;
}

#[tokio::test]
async fn a_refused_release_is_reported_and_can_be_repeated() {
    let env = TestEnv::new().await;
    let (client, host) = env.virtual_client();
    let lock = client.lock("job").unwrap();
    for (name, response) in refusals() {
        env.reset(releasing(1, Fault::not_executed(response))).await;
        let lease = lock.acquire().await.unwrap();
        let error = env.in_virtual_time(&host, lease.release()).await.unwrap_err();
        let ReleaseError::Refused(refusal) = error.kind else { panic!("{name}: {error}") };
        assert_eq!(refusal.kind(), RefusalKind::Unauthorized, "{name}");
        assert_eq!(lease.release().await, Ok(Released::Released), "{name}");
        env.assert_nothing_is_held(name).await;
    }
}
