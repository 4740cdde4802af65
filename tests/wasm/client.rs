//! The client as a Rust program inside a JavaScript runtime uses it.

use std::time::Duration;

use edgelatch::Error;
use edgelatch::client::Released;
use edgelatch::error::AcquireError;
use edgelatch::host::JsHost;
use edgelatch::transport::HostFetch;
use edgelatch::{AcquireOptions, Client, Gateway};
use wasm_bindgen_test::wasm_bindgen_test;

use super::support::gateway;

fn client(refusals: u32) -> Client<HostFetch, JsHost> {
    let address = Gateway::upstash("https://gateway.example", "a-token").unwrap();
    Client::connect_with(address, HostFetch::new(Some(gateway(refusals))))
}

#[wasm_bindgen_test]
async fn a_lock_is_acquired_kept_and_released() {
    let lock = client(0).lock("invoice:42").unwrap();
    let answer = lock.run(async |lease| (lease.token().as_u64(), lease.remaining())).await.unwrap();
    assert_eq!(answer.0, 1_795_268_812_119_001);
    assert!(answer.1 <= Duration::from_secs(30) && answer.1 > Duration::from_secs(15));

    let lease = lock.acquire().await.unwrap();
    assert_eq!(lease.token().as_u64(), 1_795_268_812_119_002);
    assert_eq!(lease.release().await.unwrap(), Released::Released);
}

#[wasm_bindgen_test]
async fn a_wait_lasts_until_the_lock_is_free() {
    let lock = client(3).lock("invoice:42").unwrap();
    let lease = lock.acquire().await.unwrap();
    assert_eq!(lease.release().await.unwrap(), Released::Released);
}

#[wasm_bindgen_test]
async fn a_wait_that_is_over_or_cancelled_holds_nothing() {
    let lock = client(u32::MAX).lock("invoice:42").unwrap();
    assert!(lock.try_acquire().await.unwrap().is_none());
    let options = AcquireOptions::new().wait(Duration::from_millis(1));
    assert!(matches!(
        lock.acquire_with(options).await,
        Err(Error { kind: AcquireError::Busy { .. }, .. })
    ));
    let cancelled = lock.acquire_cancellable(AcquireOptions::new(), async {}).await;
    assert!(matches!(
        cancelled,
        Err(Error { kind: AcquireError::Cancelled { held_at_most: None }, .. })
    ));
}

#[wasm_bindgen_test]
async fn a_lease_that_runs_out_is_lost() {
    let lock = client(0).lock("invoice:42").unwrap();
    let options = AcquireOptions::new().lease(Duration::from_millis(200));
    let lease = lock.acquire_with(options).await.unwrap();
    lease.lost().await;
    assert_eq!(lease.remaining(), Duration::ZERO);
}
