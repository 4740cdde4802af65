//! The conformance suite for hosts. It needs no operating system.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use edgelatch::host::Host;

/// Checks a host. `pass` advances a host whose clocks stand still; for other hosts it does nothing.
pub(crate) async fn check(host: &impl Host, pass: impl Fn(Duration)) {
    now_never_goes_back(host, &pass);
    a_deadline_that_is_reached_is_not_waited_for(host, &pass).await;
    repeated_sleeps_reach_the_deadline(host, &pass).await;
    one_sleep_does_not_end_another(host, &pass).await;
    a_far_deadline_does_not_come_at_once(host).await;
    entropy_differs(host);
}

fn now_never_goes_back(host: &impl Host, pass: &impl Fn(Duration)) {
    let mut before = host.now();
    for _ in 0..100 {
        pass(Duration::from_millis(1));
        let now = host.now();
        assert_eq!(before.sooner(now), before);
        before = now;
    }
}

async fn a_deadline_that_is_reached_is_not_waited_for(host: &impl Host, pass: &impl Fn(Duration)) {
    let past = host.now();
    host.sleep_until(past).await;
    pass(Duration::from_secs(1));
    host.sleep_until(past).await;
}

/// A sleep may end early, but time must advance.
async fn repeated_sleeps_reach_the_deadline(host: &impl Host, pass: &impl Fn(Duration)) {
    let deadline = host.now() + Duration::from_millis(40);
    let mut sleeps = 0;
    while !host.now().has_reached(deadline) {
        let mut sleep = pin!(host.sleep_until(deadline));
        if is_pending(sleep.as_mut()).await {
            pass(host.now().until(deadline));
            sleep.await;
        }
        sleeps += 1;
        assert!(sleeps < 1_000, "the sleeps do not reach the deadline");
    }
}

async fn one_sleep_does_not_end_another(host: &impl Host, pass: &impl Fn(Duration)) {
    let start = host.now();
    let mut long = pin!(host.sleep_until(start + Duration::from_secs(3_600)));
    assert!(is_pending(long.as_mut()).await);
    let mut short = pin!(host.sleep_until(start + Duration::from_millis(20)));
    let pending = is_pending(short.as_mut()).await;
    pass(Duration::from_millis(20));
    if pending {
        short.await;
    }
    assert!(is_pending(long.as_mut()).await, "one sleep ended with the other");
}

/// S29: A timer with 32 bits fires at once when it is set for a month.
async fn a_far_deadline_does_not_come_at_once(host: &impl Host) {
    let month = Duration::from_secs(31 * 24 * 3_600);
    for far in [month, month * 12 * 100, Duration::from_millis(u64::MAX), Duration::MAX] {
        let deadline = host.now() + far;
        let mut sleep = pin!(host.sleep_until(deadline));
        assert!(is_pending(sleep.as_mut()).await, "{far:?}");
        // Another sleep lets the event loop turn once.
        let soon = host.now();
        host.sleep_until(soon).await;
        assert!(is_pending(sleep.as_mut()).await, "{far:?}");
    }
}

/// S43.
fn entropy_differs(host: &impl Host) {
    let mut draws: Vec<[u8; 32]> = (0..100).map(|_| host.entropy().unwrap()).collect();
    draws.sort_unstable();
    draws.dedup();
    assert_eq!(draws.len(), 100);
    assert!(!draws.contains(&[0; 32]));
}

async fn is_pending(mut future: std::pin::Pin<&mut impl Future<Output = ()>>) -> bool {
    poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx).is_pending())).await
}
