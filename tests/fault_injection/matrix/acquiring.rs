//! Faults while an object is acquired.

use edgelatch::Error;
use edgelatch::client::Released;
use edgelatch::error::FailureKind::TimedOut;
use edgelatch::error::{AcquireError, RefusalKind};

use super::actions::{Class, Times};
use super::env::{Cell, each_cell};
use super::objects::{Object, patient};
use test_support::faults::FaultResponse;
use test_support::test_env::until;

/// S1, S3, S4, S48, S49, S51.
#[tokio::test]
async fn a_try_ends_with_a_hold_or_with_nothing_held() {
    each_cell("try", |_, _, _| true, test_try).await;
}

async fn test_try(cell: Cell) {
    cell.inject_fault("acquire");
    let outcome = cell.lock().try_acquire().await;
    // An attempt at a node of a majority lasts one second at most: too short on a busy machine.
    if cell.object == Object::Red {
        match outcome {
            Err(Error { kind: AcquireError::Unreachable(TimedOut), .. }) => {
                cell.end_faults().await;
                return cell.assert_free().await;
            }
            Err(Error { kind: AcquireError::Unknown { cause: TimedOut, .. }, .. }) => return,
            _ => {}
        }
    }
    match (cell.action.class, cell.times) {
        (Class::Indeterminate(_), Times::First) | (Class::Duplicated, _) => {
            let lease = outcome.unwrap().unwrap();
            cell.end_faults().await;
            cell.assert_held().await;
            assert_eq!(lease.is_held().await, Ok(true));
            assert_eq!(lease.release().await, Ok(Released::Released));
        }
        (Class::Indeterminate(kind), Times::All) => {
            assert_eq!(outcome.unwrap_err(), AcquireError::Unreachable(kind));
        }
        (Class::Refused, _) => {
            let AcquireError::Refused(refusal) = outcome.unwrap_err().kind else {
                panic!("no refusal")
            };
            assert_eq!(refusal.kind(), RefusalKind::Unauthorized);
        }
    }
    cell.end_faults().await;
    cell.assert_free().await;
}

/// S1, S3, S4, S48.
#[tokio::test]
async fn a_waiter_is_granted_when_the_holder_releases() {
    // Faults that no retry survives are tested with a try: a longer wait would not help.
    each_cell("wait", |_, action, times| action.is_survived(times), test_wait).await;
}

async fn test_wait(cell: Cell) {
    let holder = cell.rival().acquire().await.unwrap();
    let waiter = cell.lock();
    let waiting = tokio::spawn(async move { waiter.acquire_with(patient()).await });
    until(async || cell.count_requests("acquire") > 0).await;
    cell.inject_fault("acquire");
    assert_eq!(holder.release().await, Ok(Released::Released));
    let lease = waiting.await.unwrap().unwrap();
    cell.end_faults().await;
    cell.assert_held().await;
    assert!(lease.token() > holder.token());
    assert_eq!(lease.release().await, Ok(Released::Released));
    cell.end_faults().await;
    cell.assert_free().await;
}

/// S81.
#[tokio::test]
async fn a_cancelled_acquisition_holds_nothing() {
    each_cell("cancel", |_, _, _| true, test_cancellation).await;
}

async fn test_cancellation(cell: Cell) {
    cell.inject_fault("acquire");
    let cancelled = until(async || cell.count_requests("acquire") > 0);
    let outcome = cell.lock().acquire_cancellable(patient(), cancelled).await;
    let has_no_response = matches!(cell.action.fault.response, FaultResponse::Silence);
    match outcome {
        // The response came before the cancellation.
        Ok(lease) if !has_no_response => {
            assert_eq!(lease.release().await, Ok(Released::Released));
        }
        Err(Error { kind: AcquireError::Refused(_), .. })
            if cell.action.class == Class::Refused => {}
        // As in a try: also the attempts to undo it are too short on a busy machine.
        Err(Error { kind: AcquireError::Cancelled { held_at_most: Some(_) }, .. })
            if cell.object == Object::Red =>
        {
            return;
        }
        Err(error) => assert_eq!(error, AcquireError::Cancelled { held_at_most: None }),
        Ok(_) => panic!("granted without a reply"),
    }
    cell.end_faults().await;
    cell.assert_free().await;
}
