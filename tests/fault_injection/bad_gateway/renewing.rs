//! Renews, inspects and forcibly releases through a faulty gateway.

use edgelatch::error::{RefusalKind, RequestError};
use edgelatch::machine::LeaseState;

use test_support::answers::{indeterminate, refusals};
use test_support::misbehaviour::Fault;
use test_support::relay::Seen;
use test_support::stand::Stand;

/// Injects this fault into everything except acquisitions and releases.
fn between(fault: Fault) -> impl Fn(&Seen) -> Fault {
    move |seen| match seen.script {
        "lock_acquire" | "lock_release" => Fault::none(),
        _ => fault.clone(),
    }
}

/// S9.
#[tokio::test]
async fn a_renewal_without_an_answer_is_neither_done_nor_lost() {
    let stand = Stand::new().await;
    let (client, host) = stand.led_client();
    let lock = client.lock("job").unwrap();
    for (name, said, kind) in indeterminate() {
        stand.anew(between(Fault::after(said))).await;
        let lease = lock.acquire().await.unwrap();
        let renewed = stand.in_virtual_time(&host, lease.renew(None)).await;
        assert_eq!(renewed.unwrap_err(), RequestError::Unreachable(kind), "{name}");
        assert!(!matches!(lease.state(), LeaseState::Lost(_)), "{name}");
        assert!(!lease.remaining().is_zero(), "{name}");
        lease.release().await.unwrap();
    }
}

/// S45.
#[tokio::test]
async fn a_renewal_that_is_refused_is_not_lost() {
    let stand = Stand::new().await;
    let (client, host) = stand.led_client();
    let lock = client.lock("job").unwrap();
    for (name, said) in refusals() {
        stand.anew(between(Fault::instead(said))).await;
        let lease = lock.acquire().await.unwrap();
        let error = stand.in_virtual_time(&host, lease.renew(None)).await.unwrap_err();
        let RequestError::Refused(refusal) = error.kind else { panic!("{name}: {error}") };
        assert_eq!(refusal.kind(), RefusalKind::Unauthorized, "{name}");
        assert!(!lease.remaining().is_zero(), "{name}");
        lease.release().await.unwrap();
    }
}

#[tokio::test]
async fn a_question_without_an_answer_has_none() {
    let stand = Stand::new().await;
    let (client, host) = stand.led_client();
    let lock = client.lock("job").unwrap();
    for (name, said, kind) in indeterminate().into_iter().step_by(3) {
        stand.anew(between(Fault::after(said))).await;
        let lease = lock.acquire().await.unwrap();
        let unreachable = RequestError::Unreachable(kind);
        let inspected = stand.in_virtual_time(&host, lock.inspect()).await;
        assert_eq!(inspected.unwrap_err(), unreachable, "{name}");
        let is_held = stand.in_virtual_time(&host, lease.is_held()).await;
        assert_eq!(is_held.unwrap_err(), unreachable, "{name}");
        assert!(!matches!(lease.state(), LeaseState::Lost(_)), "{name}");
        let ended = stand.in_virtual_time(&host, lock.force_release()).await;
        assert_eq!(ended.unwrap_err(), unreachable, "{name}");
        let _ = lease.release().await;
        stand.assert_nothing_is_held(name).await;
    }
}
