//! Waits whose streams fail to open, break, or end after some time. The waiters' time stands still.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use edgelatch::client::{Client, ClientEvent, ClientEvents, NotificationMode, SpinBackoff};
use edgelatch::host::Host as _;
use edgelatch::transport::Reqwest;
use futures_core::Stream as _;

use super::waking::{Led, long, settled, waiters};
use test_support::fake_host::FakeHost;
use test_support::streaming::Streaming;
use test_support::test_env::{TestEnv, until, until_in_virtual_time};

const STEP: Duration = Duration::from_secs(1);
const TENTH: Duration = Duration::from_millis(100);

/// S73.
#[tokio::test]
async fn a_gateway_without_streams_is_detected_once_and_probed_at_intervals() {
    for status in [400, 401, 403, 404, 405, 501] {
        let env = TestEnv::new().await;
        env.proxy.set_streaming(Streaming::Refused(status));
        let held = env.client().lock("job").unwrap().acquire_with(long()).await.unwrap();
        let (client, host) = env.virtual_client();
        let mut waiting = waiters([client.lock("job").unwrap(), client.lock("job").unwrap()]);
        until(async || env.proxy.count("lock_acquire") >= 3 && env.proxy.streams().0 == 1).await;
        held.release().await.unwrap();
        until_in_virtual_time(&env, &host, TENTH, || waiting.try_join_next().is_some()).await;
        assert_eq!(env.proxy.streams().0, 1, "{status}");
    }
}

/// S73.
// Slow: ten virtual minutes pass twice in steps of a second, with hundreds of real streams.
#[tokio::test]
async fn streams_that_end_at_once_are_requested_less_and_less_often_and_the_wait_continues() {
    // Pauses double up to a minute; after a confirmed subscription the client retries within a
    // second.
    for (streaming, most) in [(Streaming::Ended, 30), (Streaming::Acknowledged, 600)] {
        let env = TestEnv::new().await;
        env.proxy.set_streaming(streaming.clone());
        let held = env.client().lock("job").unwrap().acquire_with(long()).await.unwrap();
        let (client, host) = env.virtual_client();
        let mut waiting = waiters([client.lock("job").unwrap(), client.lock("job").unwrap()]);
        let ten_minutes = Duration::from_secs(600);
        let begun = host.now();
        until_in_virtual_time(&env, &host, STEP, || begun.until(host.now()) >= ten_minutes).await;
        let (streams, _) = env.proxy.streams();
        println!("{streaming:?}: {streams} streams, {} tries", env.proxy.count("lock_acquire"));
        assert!((8..=most).contains(&streams), "{streaming:?}: {streams}");
        held.release().await.unwrap();
        until_in_virtual_time(&env, &host, STEP, || waiting.try_join_next().is_some()).await;
    }
}

/// S73, S74.
#[tokio::test]
async fn a_stream_that_breaks_is_opened_again_and_nothing_is_missed() {
    let env = TestEnv::new().await;
    let held = env.client().lock("job").unwrap().acquire_with(long()).await.unwrap();
    let (client, host) = env.virtual_client();
    let mut waiting = waiters([client.lock("job").unwrap()]);
    settled(&env, "lock_acquire", 3, 1).await;
    env.proxy.cut_streams();
    // The waiter retries at once, or soon if it had just retried.
    until_in_virtual_time(&env, &host, Duration::from_millis(10), || {
        env.proxy.count("lock_acquire") >= 4
    })
    .await;
    // The client pauses for a second first.
    host.pass(Duration::from_secs(2));
    until(async || env.proxy.streams() == (2, 1)).await;
    // Before or after the subscription is confirmed again: time stands still from here on.
    held.release().await.unwrap();
    waiting.join_next().await.unwrap().unwrap().release().await.unwrap();
}

/// S72.
#[tokio::test]
async fn a_gateway_that_never_opens_a_stream_delays_no_acquisition() {
    let env = TestEnv::new().await;
    env.proxy.set_streaming(Streaming::Silent);
    let held = env.client().lock("job").unwrap().acquire_with(long()).await.unwrap();
    let (client, host) = env.virtual_client();
    let mut waiting = waiters([client.lock("job").unwrap()]);
    until(async || env.proxy.streams().0 == 1).await;
    held.release().await.unwrap();
    until_in_virtual_time(&env, &host, TENTH, || waiting.try_join_next().is_some()).await;
}

#[tokio::test]
async fn no_stream_is_opened_where_it_is_disabled_or_useless() {
    let env = TestEnv::new().await;
    let held = env.client().lock("job").unwrap().acquire_with(long()).await.unwrap();
    let host = FakeHost::new();
    let quiet: Led = Client::new(env.gateway().wakeups(false), Reqwest::new(), host.clone());
    let spin = env.virtual_client().0.spin_lock("job", SpinBackoff::CONSTANT).unwrap();
    assert!(spin.try_acquire().await.unwrap().is_none());
    let mut waiting = waiters([quiet.lock("job").unwrap(), spin]);
    until_in_virtual_time(&env, &host, STEP, || env.proxy.count("lock_acquire") >= 10).await;
    assert_eq!(env.proxy.streams().0, 0);
    waiting.abort_all();
    held.release().await.unwrap();
}

#[tokio::test]
async fn notification_mode_events_report_how_waits_continue() {
    let env = TestEnv::new().await;
    let held = env.client().lock("job").unwrap().acquire_with(long()).await.unwrap();
    let (client, host) = env.virtual_client();
    let mut events = client.events();
    let mut waiting = waiters([client.lock("job").unwrap()]);
    assert_eq!(next(&mut events).await, Some(NotificationMode::Stream));
    env.proxy.set_streaming(Streaming::Refused(404));
    env.proxy.cut_streams();
    assert_eq!(next(&mut events).await, Some(NotificationMode::Polling));
    assert_eq!(
        next(&mut client.events()).await,
        Some(NotificationMode::Polling),
        "who looks later"
    );
    held.release().await.unwrap();
    until_in_virtual_time(&env, &host, TENTH, || waiting.try_join_next().is_some()).await;
    let quiet: Led = Client::new(env.gateway().wakeups(false), Reqwest::new(), host.clone());
    let held = env.client().lock("other").unwrap().acquire_with(long()).await.unwrap();
    let _waiting = waiters([quiet.lock("other").unwrap()]);
    assert_eq!(next(&mut quiet.events()).await, Some(NotificationMode::Polling));
    held.release().await.unwrap();
}

async fn next(events: &mut ClientEvents<Reqwest, FakeHost>) -> Option<NotificationMode> {
    match poll_fn(|cx| Pin::new(&mut *events).poll_next(cx)).await {
        Some(ClientEvent::NotificationMode(mode)) => Some(mode),
        other => panic!("{other:?}"),
    }
}

/// S72.
#[tokio::test]
async fn a_stream_is_reopened_in_time_and_one_waiter_retries_for_all() {
    let env = TestEnv::new().await;
    let held = env.client().lock("job").unwrap().acquire_with(long()).await.unwrap();
    let (client, host) = env.virtual_client();
    let mut waiting = waiters((0..5).map(|_| client.lock("job").unwrap()));
    settled(&env, "lock_acquire", 7, 1).await;
    // With such a long wait and such a small budget, no waiter is about to poll.
    host.pass(Duration::from_secs(50));
    settled(&env, "lock_acquire", 7 + 1, 1).await;
    assert_eq!(env.proxy.streams(), (2, 1));
    assert_eq!(env.proxy.count("lock_acquire"), 7 + 1);
    held.release().await.unwrap();
    waiting.join_next().await.unwrap().unwrap().release().await.unwrap();
}

/// S47.
#[tokio::test]
async fn a_rate_limited_stream_is_not_requested_before_its_retry_after() {
    let env = TestEnv::new().await;
    env.proxy.set_streaming(Streaming::Limited(40));
    let held = env.client().lock("job").unwrap().acquire_with(long()).await.unwrap();
    let (client, host) = env.virtual_client();
    let mut waiting = waiters([client.lock("job").unwrap()]);
    until(async || env.proxy.streams().0 == 1).await;
    env.proxy.set_streaming(Streaming::Passed);
    let begun = host.now();
    until_in_virtual_time(&env, &host, STEP, || begun.until(host.now()) >= STEP * 39).await;
    assert_eq!(env.proxy.streams().0, 1);
    until_in_virtual_time(&env, &host, STEP, || env.proxy.streams() == (2, 1)).await;
    held.release().await.unwrap();
    waiting.join_next().await.unwrap().unwrap().release().await.unwrap();
}
