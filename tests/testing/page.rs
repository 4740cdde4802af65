//! The tests in Rust of docs/testing.md: a test compares them.

use std::time::Duration;

use edgelatch::client::RunError;
use edgelatch::error::{AcquireError, LossReason};
use edgelatch::host::Host;
use edgelatch::testing::{HoldOptions, TestGateway};
use edgelatch::transport::Transport;
use edgelatch::{AcquireOptions, Client};
use tokio::time::{sleep, timeout};

/// Pays an invoice in a minute; returns the reason if it loses the lock.
async fn pay<T: Transport, H: Host>(
    client: &Client<T, H>,
) -> Result<Option<LossReason>, RunError<Option<LossReason>>> {
    let lock = client.lock("invoice:42").expect("a valid name");
    let options = AcquireOptions::new().wait(Duration::from_secs(5));
    lock.run_with(options, async |lease| timeout(Duration::from_secs(60), lease.lost()).await.ok())
        .await
}

#[tokio::test(start_paused = true)]
async fn it_pays_and_holds_the_lock_meanwhile() {
    let gateway = TestGateway::new();
    let client = gateway.client();
    let look = async {
        sleep(Duration::from_secs(30)).await;
        gateway.held()
    };
    let (paid, held) = tokio::join!(pay(&client), look);
    assert!(matches!(paid, Ok(None)));
    assert_eq!(held.len(), 1);
    assert!(gateway.held().is_empty());
}

#[tokio::test(start_paused = true)]
async fn another_client_holds_it() {
    let gateway = TestGateway::new();
    let client = gateway.client();
    let other = gateway.hold("invoice:42", HoldOptions::default()).expect("it is free");
    let refused = pay(&client).await;
    let Err(RunError::Acquire(error)) = refused else { panic!("{refused:?}") };
    assert!(matches!(error.kind, AcquireError::Busy { .. }));

    other.release();
    assert!(matches!(pay(&client).await, Ok(None)));
}

#[tokio::test(start_paused = true)]
async fn the_lease_is_lost_in_the_middle() {
    let gateway = TestGateway::new();
    let client = gateway.client();
    let lose = async {
        sleep(Duration::from_secs(20)).await;
        gateway.expire("invoice:42");
        gateway.hold("invoice:42", HoldOptions::default()).expect("it is free");
    };
    let (lost, ()) = tokio::join!(pay(&client), lose);
    assert!(matches!(lost, Err(RunError::Lost { result: Some(LossReason::Gone), .. })));
}

#[tokio::test(start_paused = true)]
async fn the_gateway_is_down() {
    let gateway = TestGateway::new();
    let client = gateway.client();
    gateway.set_down(true);
    let failed = pay(&client).await;
    let Err(RunError::Acquire(error)) = failed else { panic!("{failed:?}") };
    assert!(matches!(error.kind, AcquireError::Unreachable(_)));
    assert!(gateway.held().is_empty());
}
