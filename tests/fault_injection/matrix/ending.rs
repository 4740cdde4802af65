//! Faults of a release and of a forced release.

use edgelatch::Error;
use edgelatch::client::Released;
use edgelatch::error::{RefusalKind, ReleaseError, RequestError};

use super::actions::{Class, Times};
use super::env::{Cell, each_cell};

/// S12, S48.
#[tokio::test]
async fn a_release_under_each_fault_reports_its_outcome_and_can_be_repeated() {
    each_cell("release", |_, _, _| true, test_release).await;
}

async fn test_release(cell: Cell) {
    let lease = cell.lock().acquire().await.unwrap();
    cell.inject_fault("release");
    let outcome = lease.release().await;
    match (cell.action.class, cell.times) {
        (Class::Indeterminate(_), Times::First) | (Class::Duplicated, _) => {
            assert_eq!(outcome, Ok(Released::Released));
        }
        (Class::Indeterminate(kind), Times::All) => {
            let Err(Error { kind: ReleaseError::Unknown { cause, held_at_most }, .. }) = outcome
            else {
                panic!("{outcome:?}")
            };
            assert!(cause == kind && !held_at_most.is_zero());
        }
        (Class::Refused, _) => {
            let Err(Error { kind: ReleaseError::Refused(refusal), .. }) = outcome else {
                panic!("{outcome:?}")
            };
            assert_eq!(refusal.kind(), RefusalKind::Unauthorized);
        }
    }
    cell.end_faults().await;
    assert_eq!(lease.release().await, Ok(Released::Released));
    cell.assert_free().await;
}

#[tokio::test]
async fn a_forced_release_is_executed_at_most_once() {
    each_cell("force_release", |object, _, _| object.forced_by().is_some(), test_forced_release)
        .await;
}

async fn test_forced_release(cell: Cell) {
    let lock = cell.lock();
    let lease = lock.acquire().await.unwrap();
    cell.inject_fault(cell.object.forced_by().unwrap());
    let outcome = lock.force_release().await;
    let executed = cell.action.fault.executions > 0;
    match cell.action.class {
        _ if cell.action.is_survived(cell.times) => assert_eq!(outcome, Ok(true)),
        Class::Refused => assert!(
            matches!(outcome, Err(Error { kind: RequestError::Refused(_), .. })),
            "{outcome:?}"
        ),
        // The client then queries whether it was executed.
        Class::Indeterminate(_) if executed => assert_eq!(outcome, Ok(true)),
        Class::Indeterminate(kind) => {
            assert_eq!(outcome.clone().unwrap_err(), RequestError::NotExecuted(kind))
        }
        Class::Duplicated => unreachable!("survived"),
    }
    let expected = if outcome.is_ok() { Released::WasLost } else { Released::Released };
    assert_eq!(lease.release().await, Ok(expected));
    // A copy of the forced release does not end the hold of a later owner.
    let next = cell.rival().acquire().await.unwrap();
    cell.end_faults().await;
    assert_eq!(next.is_held().await, Ok(true));
    assert_eq!(next.release().await, Ok(Released::Released));
    cell.assert_free().await;
}
