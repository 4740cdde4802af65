//! Faults of a release and of a forced release.

use edgelatch::Error;
use edgelatch::client::Released;
use edgelatch::error::{RefusalKind, ReleaseError, RequestError};

use super::actions::{Class, Times};
use super::env::{Cell, each_cell};

/// S12, S48.
#[tokio::test]
async fn a_repeated_release_returns_the_result_of_the_first() {
    each_cell("release", |_, _, _| true, released).await;
}

async fn released(cell: Cell) {
    let lease = cell.lock().acquire().await.unwrap();
    cell.befall("release");
    let outcome = lease.release().await;
    match (cell.action.class, cell.times) {
        (Class::Indeterminate(_), Times::First) | (Class::Repeated, _) => {
            assert_eq!(outcome, Ok(Released::Released));
        }
        (Class::Indeterminate(kind), Times::All) => {
            let Err(Error { kind: ReleaseError::Unknown { cause, held_at_most }, .. }) = outcome
            else {
                panic!("{outcome:?}")
            };
            assert!(cause == kind && !held_at_most.is_zero());
        }
        (Class::No, _) => {
            let Err(Error { kind: ReleaseError::Refused(refusal), .. }) = outcome else {
                panic!("{outcome:?}")
            };
            assert_eq!(refusal.kind(), RefusalKind::Unauthorized);
        }
    }
    cell.heal().await;
    assert_eq!(lease.release().await, Ok(Released::Released));
    cell.assert_free().await;
}

#[tokio::test]
async fn a_forced_release_is_executed_once_and_reports_it() {
    each_cell("force", |object, _, _| object.forced_by().is_some(), forced).await;
}

async fn forced(cell: Cell) {
    let lock = cell.lock();
    let lease = lock.acquire().await.unwrap();
    cell.befall(cell.object.forced_by().unwrap());
    let outcome = lock.force_release().await;
    let executed = cell.action.fault.executions > 0;
    match cell.action.class {
        _ if cell.action.is_survived(cell.times) => assert_eq!(outcome, Ok(true)),
        Class::No => assert!(
            matches!(outcome, Err(Error { kind: RequestError::Refused(_), .. })),
            "{outcome:?}"
        ),
        // The client finds out that it was executed.
        Class::Indeterminate(_) if executed => assert_eq!(outcome, Ok(true)),
        Class::Indeterminate(kind) => {
            assert_eq!(outcome.clone().unwrap_err(), RequestError::NotExecuted(kind))
        }
        Class::Repeated => unreachable!("survived"),
    }
    let wanted = if outcome.is_ok() { Released::WasLost } else { Released::Released };
    assert_eq!(lease.release().await, Ok(wanted));
    // A copy of the forced release does not end the hold of a later owner.
    let next = cell.rival().acquire().await.unwrap();
    cell.heal().await;
    assert_eq!(next.is_held().await, Ok(true));
    assert_eq!(next.release().await, Ok(Released::Released));
    cell.assert_free().await;
}
