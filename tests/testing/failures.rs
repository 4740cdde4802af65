//! The failures that a gateway in memory causes.

use std::time::Duration;

use edgelatch::client::{LeaseState, Released, RunError};
use edgelatch::error::{AcquireError, FailureKind, LossReason, RefusalKind};
use edgelatch::testing::{HoldOptions, Kind, TestGateway};

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test(start_paused = true)]
async fn another_client_holds_the_lock_until_the_wait_is_over() {
    let gateway = TestGateway::new();
    let lock = gateway.client().lock("report").unwrap();
    let options = HoldOptions { lease: 10 * MINUTE, ..HoldOptions::default() };
    let _other = gateway.hold("report", options).unwrap();
    assert!(lock.try_acquire().await.unwrap().is_none());
    let error = lock.acquire().await.unwrap_err();
    assert!(matches!(error.kind, AcquireError::Busy { remaining: Some(_) }), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_expires_in_the_middle_of_work_is_lost() {
    let gateway = TestGateway::new();
    let lock = gateway.client().lock("report").unwrap();
    let outcome = lock
        .run(async |lease| {
            assert!(gateway.expire("report"));
            let other = gateway.hold("report", HoldOptions::default()).unwrap();
            assert!(other.token() > lease.token());
            lease.lost().await
        })
        .await;
    let Err(RunError::Lost { result, .. }) = outcome else { panic!("{outcome:?}") };
    assert_eq!(result, LossReason::Gone);
    // The hold of the other client is not ended by the release of the lost lease.
    assert_eq!(gateway.held().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_lost_while_the_gateway_is_down_for_too_long() {
    let gateway = TestGateway::new();
    let lease = gateway.client().lock("report").unwrap().acquire().await.unwrap();
    gateway.set_down(true);
    lease.keep().await;
    assert!(matches!(lease.state(), LeaseState::Lost(_)), "{:?}", lease.state());
}

#[tokio::test(start_paused = true)]
async fn an_acquisition_fails_while_the_gateway_is_down_and_nothing_is_held() {
    let gateway = TestGateway::new();
    let lock = gateway.client().lock("report").unwrap();
    gateway.set_down(true);
    let error = lock.try_acquire().await.unwrap_err();
    assert!(matches!(error.kind, AcquireError::Unreachable(FailureKind::NotSent)), "{error:?}");
    gateway.set_down(false);
    assert!(gateway.held().is_empty());
    let _lease = lock.acquire().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_waiter_survives_an_outage_of_the_gateway() {
    let gateway = TestGateway::new();
    let lock = gateway.client().lock("report").unwrap();
    let other = gateway.hold("report", HoldOptions::default()).unwrap();
    let outage = async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        gateway.set_down(true);
        tokio::time::sleep(Duration::from_secs(5)).await;
        other.release();
        gateway.set_down(false);
    };
    let (lease, ()) = tokio::join!(lock.acquire(), outage);
    let _lease = lease.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_lost_reply_to_an_acquisition_leaves_one_hold() {
    let gateway = TestGateway::new();
    let lock = gateway.client().lock("report").unwrap();
    gateway.lose_replies(1);
    let lease = lock.acquire().await.unwrap();
    assert_eq!(gateway.held()[0].holds, 1);
    gateway.lose_replies(1);
    assert_eq!(lease.release().await.unwrap(), Released::Released);
    assert!(gateway.held().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_try_whose_replies_are_all_lost_has_an_unknown_outcome() {
    let gateway = TestGateway::new();
    let lock = gateway.client().lock("report").unwrap();
    gateway.lose_replies(100);
    let error = lock.try_acquire().await.unwrap_err();
    assert!(matches!(error.kind, AcquireError::Unknown { .. }), "{error:?}");
    // The gateway has executed the undoing too.
    assert!(gateway.held().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_refused_request_is_not_executed() {
    let gateway = TestGateway::new();
    let lock = gateway.client().lock("report").unwrap();
    // As often as a client tries; then it undoes the acquisition.
    gateway.refuse(3);
    let error = lock.try_acquire().await.unwrap_err();
    let AcquireError::Refused(refusal) = error.kind else { panic!("{error:?}") };
    assert_eq!(refusal.kind(), RefusalKind::Unavailable);
    assert!(gateway.held().is_empty());
    gateway.refuse(1);
    let _lease = lock.acquire().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_takes_longer_than_a_client_waits_is_retried() {
    let gateway = TestGateway::new();
    let lock = gateway.client().lock("report").unwrap();
    gateway.delay_replies(MINUTE);
    let recover = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        gateway.delay_replies(Duration::ZERO);
    };
    let (lease, ()) = tokio::join!(lock.acquire(), recover);
    let _lease = lease.unwrap();
    assert_eq!(gateway.held()[0].holds, 1);
}

#[tokio::test(start_paused = true)]
async fn an_object_of_another_kind_is_refused_with_the_type() {
    let gateway = TestGateway::new();
    let client = gateway.client();
    client.semaphore("report").unwrap().try_set_permits(1, None).await.unwrap();
    let error = client.lock("report").unwrap().try_acquire().await.unwrap_err();
    let AcquireError::Refused(refusal) = error.kind else { panic!("{error:?}") };
    assert_eq!(refusal.kind(), RefusalKind::WrongType);
    let options = HoldOptions { kind: Kind::Lock, ..HoldOptions::default() };
    assert!(gateway.hold("report", options).is_err());
}
