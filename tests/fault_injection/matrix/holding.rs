//! Faults while an object is held.

use std::time::Duration;

use edgelatch::Error;
use edgelatch::client::{LeaseState, Released};
use edgelatch::error::{RefusalKind, RequestError};

use super::actions::Class;
use super::env::{Cell, each_cell};

/// S9.
#[tokio::test]
async fn a_hold_whose_renewal_failed_lasts_as_long_as_before() {
    each_cell("renew", |_, _, _| true, test_renewal).await;
}

async fn test_renewal(cell: Cell) {
    let lease = cell.lock().acquire().await.unwrap();
    cell.inject_fault("renew");
    let longer = Some(Duration::from_secs(60));
    match (cell.action.class, lease.renew(longer).await) {
        // One attempt: the caller decides whether to retry a renewal on demand.
        (Class::Indeterminate(kind), Err(Error { kind: RequestError::Unreachable(cause), .. })) => {
            assert_eq!(cause, kind);
        }
        (Class::Refused, Err(Error { kind: RequestError::Refused(refusal), .. })) => {
            assert_eq!(refusal.kind(), RefusalKind::Unauthorized);
        }
        (Class::Duplicated, Ok(())) => {}
        (_, outcome) => panic!("{outcome:?}"),
    }
    assert!(!matches!(lease.state(), LeaseState::Lost(_)));
    cell.end_faults().await;
    cell.assert_held().await;
    assert_eq!(lease.renew(longer).await, Ok(()));
    assert_eq!(lease.release().await, Ok(Released::Released));
    cell.assert_free().await;
}

#[tokio::test]
async fn a_query_has_a_reply_or_an_error() {
    each_cell("inspect", |_, _, _| true, test_query).await;
}

async fn test_query(cell: Cell) {
    let lease = cell.lock().acquire().await.unwrap();
    cell.inject_fault("inspect");
    let outcome = lease.is_held().await;
    match cell.action.class {
        _ if cell.action.is_survived(cell.times) => assert_eq!(outcome, Ok(true)),
        Class::Refused => assert!(
            matches!(outcome, Err(Error { kind: RequestError::Refused(_), .. })),
            "{outcome:?}"
        ),
        Class::Indeterminate(kind) => {
            assert_eq!(outcome.unwrap_err(), RequestError::Unreachable(kind))
        }
        Class::Duplicated => unreachable!("survived"),
    }
    assert!(!matches!(lease.state(), LeaseState::Lost(_)));
    cell.end_faults().await;
    cell.assert_held().await;
    assert_eq!(lease.release().await, Ok(Released::Released));
    cell.assert_free().await;
}
