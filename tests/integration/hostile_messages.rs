//! Forged, old and excessive messages are hints and have no other effect. The waiters' time stands
//! still.

use std::cell::Cell;
use std::time::Duration;

use edgelatch::client::LeaseState;
use edgelatch::host::Host as _;

use super::waking::{joined, long, settled, waiters};
use test_support::redis::Content;
use test_support::test_env::{TestEnv, until_in_virtual_time};

const CHANNEL: &str = "redisson_lock__channel:{job}";

/// S75.
#[tokio::test]
async fn a_forged_or_an_old_message_changes_nothing() {
    let env = TestEnv::new().await;
    let held = env.client().lock("job").unwrap().acquire_with(long()).await.unwrap();
    let (client, host) = env.virtual_client();
    let mut waiting = waiters([client.lock("job").unwrap()]);
    settled(&env, "lock_acquire", 3, 1).await;
    let before = values(&env).await;
    let endless = "9".repeat(100_000);
    // A release, which was true once; a grant for a second or for a day; and malformed messages.
    let forged =
        ["0", "1", "1000001", "86400000001", "0\ndata: x", "message,other,0", "", "-1", &endless];
    for message in forged {
        env.redis.query::<u64>(&["PUBLISH", CHANNEL, message]).await;
    }
    let mut looks = 0;
    until_in_virtual_time(&env, &host, Duration::from_millis(1), || {
        looks += 1;
        looks > 1_000
    })
    .await;
    let tries = env.proxy.count("lock_acquire") - 3;
    assert!((1..=forged.len()).contains(&tries), "{tries}");
    assert!(waiting.try_join_next().is_none());
    assert_eq!((held.is_held().await, held.state()), (Ok(true), LeaseState::Held));
    assert_eq!(values(&env).await, before);
    // A waiter that received a grant for a day retries at its own time.
    env.redis.query::<u64>(&["PUBLISH", CHANNEL, "86400000001"]).await;
    env.redis.query::<u64>(&["DEL", "job"]).await;
    let begun = host.now();
    joined(&env, &host, &mut waiting).await.release().await.unwrap();
    assert!(begun.until(host.now()) <= Duration::from_secs(11));
}

/// S75.
// Slow: two virtual seconds pass by the millisecond, with a real message in each.
#[tokio::test]
async fn an_endless_flow_of_messages_causes_retries_at_a_limited_rate() {
    let env = TestEnv::new().await;
    let held = env.client().lock("job").unwrap().acquire_with(long()).await.unwrap();
    let (client, host) = env.virtual_client();
    let mut waiting = waiters([client.lock("job").unwrap()]);
    settled(&env, "lock_acquire", 3, 1).await;
    let (begun, over) = (host.now(), Cell::new(false));
    let flood = async {
        while !over.get() {
            let at = host.now();
            env.redis.query::<u64>(&["PUBLISH", CHANNEL, "0"]).await;
            // One message per millisecond: more would not cause more tries, only keep the stream
            // busy.
            while host.now() == at && !over.get() {
                tokio::task::yield_now().await;
            }
        }
    };
    let led = async {
        until_in_virtual_time(&env, &host, Duration::from_millis(1), || {
            begun.until(host.now()) >= Duration::from_secs(2)
        })
        .await;
        over.set(true);
    };
    tokio::join!(flood, led);
    let tries = env.proxy.count("lock_acquire") - 3;
    println!("{tries} tries");
    // A burst of twenty, and twenty per second.
    assert!((20..=61).contains(&tries), "{tries}");
    assert!(waiting.try_join_next().is_none());
    assert_eq!((held.is_held().await, held.state()), (Ok(true), LeaseState::Held));
}

/// The stored values, without their expiry.
async fn values(env: &TestEnv) -> Vec<(String, Content)> {
    let stored = env.redis.dump().await.into_iter();
    stored.map(|(key, stored)| (key, stored.value)).collect()
}

/// S76.
#[tokio::test]
async fn ten_thousand_messages_cause_few_retries() {
    let env = TestEnv::new().await;
    let held = env.client().lock("job").unwrap().acquire_with(long()).await.unwrap();
    let (client, host) = env.virtual_client();
    let mut waiting = waiters((0..5).map(|_| client.lock("job").unwrap()));
    settled(&env, "lock_acquire", 7, 1).await;
    let flood = "for _ = 1, 10000 do redis.call('PUBLISH', KEYS[1], '0') end";
    env.redis.query::<()>(&["EVAL", flood, "1", CHANNEL]).await;
    held.release().await.unwrap();
    // The last waiter has received all messages.
    while !waiting.is_empty() {
        joined(&env, &host, &mut waiting).await.release().await.unwrap();
    }
    let tries = env.proxy.count("lock_acquire") - 7;
    println!("{tries} tries");
    assert!(tries < 500, "{tries}");
    assert_eq!(env.proxy.streams().0, 1);
}
