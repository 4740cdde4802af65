//! Renews, inspects and forcibly releases through a faulty gateway.

use edgelatch::client::LeaseState;
use edgelatch::error::{RefusalKind, RequestError};

use test_support::bad_responses::{indeterminate, refusals};
use test_support::fault_proxy::RecordedCall;
use test_support::faults::Fault;
use test_support::test_env::TestEnv;

/// Injects this fault into all calls but acquisitions and releases.
fn while_held(fault: Fault) -> impl Fn(&RecordedCall) -> Fault {
    move |seen| match seen.script {
        "lock_acquire" | "lock_release" => Fault::none(),
        _ => fault.clone(),
    }
}

/// S9.
#[tokio::test]
async fn a_renewal_without_a_reply_is_neither_done_nor_lost() {
    let env = TestEnv::new().await;
    let (client, host) = env.virtual_client();
    let lock = client.lock("job").unwrap();
    for (name, response, kind) in indeterminate() {
        env.reset(while_held(Fault::executed(response))).await;
        let lease = lock.acquire().await.unwrap();
        let renewed = env.in_virtual_time(&host, lease.renew(None)).await;
        assert_eq!(renewed.unwrap_err(), RequestError::Unreachable(kind), "{name}");
        assert!(!matches!(lease.state(), LeaseState::Lost(_)), "{name}");
        assert!(!lease.remaining().is_zero(), "{name}");
        lease.release().await.unwrap();
    }
}

/// S45.
#[tokio::test]
async fn a_renewal_that_is_refused_is_not_lost() {
    let env = TestEnv::new().await;
    let (client, host) = env.virtual_client();
    let lock = client.lock("job").unwrap();
    for (name, response) in refusals() {
        env.reset(while_held(Fault::not_executed(response))).await;
        let lease = lock.acquire().await.unwrap();
        let error = env.in_virtual_time(&host, lease.renew(None)).await.unwrap_err();
        let RequestError::Refused(refusal) = error.kind else { panic!("{name}: {error}") };
        assert_eq!(refusal.kind(), RefusalKind::Unauthorized, "{name}");
        assert!(!lease.remaining().is_zero(), "{name}");
        lease.release().await.unwrap();
    }
}

#[tokio::test]
async fn a_query_without_a_reply_fails() {
    let env = TestEnv::new().await;
    let (client, host) = env.virtual_client();
    let lock = client.lock("job").unwrap();
    // Every third kind of response: each one costs three queries of several attempts.
    for (name, response, kind) in indeterminate().into_iter().step_by(3) {
        env.reset(while_held(Fault::executed(response))).await;
        let lease = lock.acquire().await.unwrap();
        let unreachable = RequestError::Unreachable(kind);
        let inspected = env.in_virtual_time(&host, lock.inspect()).await;
        assert_eq!(inspected.unwrap_err(), unreachable, "{name}");
        let is_held = env.in_virtual_time(&host, lease.is_held()).await;
        assert_eq!(is_held.unwrap_err(), unreachable, "{name}");
        assert!(!matches!(lease.state(), LeaseState::Lost(_)), "{name}");
        let ended = env.in_virtual_time(&host, lock.force_release()).await;
        assert_eq!(ended.unwrap_err(), unreachable, "{name}");
        let _ = lease.release().await;
        env.assert_nothing_is_held(name).await;
    }
}
