//! Faults while an object is held.

use std::time::Duration;

use edgelatch::Error;
use edgelatch::client::{LeaseState, Released};
use edgelatch::error::{RefusalKind, RequestError};

use super::actions::Class;
use super::env::{Cell, each_cell};

/// S9.
#[tokio::test]
async fn a_hold_that_could_not_be_renewed_is_there_for_as_long_as_it_was() {
    each_cell("renew", |_, _, _| true, renewed).await;
}

async fn renewed(cell: Cell) {
    let lease = cell.lock().acquire().await.unwrap();
    cell.befall("renew");
    let longer = Some(Duration::from_secs(60));
    match (cell.action.class, lease.renew(longer).await) {
        // One attempt: a caller that renews itself decides when to retry.
        (Class::Indeterminate(kind), Err(Error { kind: RequestError::Unreachable(cause), .. })) => {
            assert_eq!(cause, kind);
        }
        (Class::No, Err(Error { kind: RequestError::Refused(refusal), .. })) => {
            assert_eq!(refusal.kind(), RefusalKind::Unauthorized);
        }
        (Class::Repeated, Ok(())) => {}
        (_, outcome) => panic!("{outcome:?}"),
    }
    assert!(!matches!(lease.state(), LeaseState::Lost(_)));
    cell.heal().await;
    cell.assert_held().await;
    assert_eq!(lease.renew(longer).await, Ok(()));
    assert_eq!(lease.release().await, Ok(Released::Released));
    cell.assert_free().await;
}

#[tokio::test]
async fn a_query_has_a_reply_or_an_error() {
    each_cell("ask", |_, _, _| true, asked).await;
}

async fn asked(cell: Cell) {
    let lease = cell.lock().acquire().await.unwrap();
    cell.befall("inspect");
    let outcome = lease.is_held().await;
    match cell.action.class {
        _ if cell.action.is_survived(cell.times) => assert_eq!(outcome, Ok(true)),
        Class::No => assert!(
            matches!(outcome, Err(Error { kind: RequestError::Refused(_), .. })),
            "{outcome:?}"
        ),
        Class::Indeterminate(kind) => {
            assert_eq!(outcome.unwrap_err(), RequestError::Unreachable(kind))
        }
        Class::Repeated => unreachable!("survived"),
    }
    assert!(!matches!(lease.state(), LeaseState::Lost(_)));
    cell.heal().await;
    cell.assert_held().await;
    assert_eq!(lease.release().await, Ok(Released::Released));
    cell.assert_free().await;
}
