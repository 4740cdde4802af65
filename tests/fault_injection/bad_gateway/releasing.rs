//! Releases through a faulty gateway.

use std::time::Duration;

use edgelatch::client::AcquireOptions;
use edgelatch::error::{FailureKind, RefusalKind, ReleaseError};
use edgelatch::machine::Released;

use test_support::answers::{indeterminate, refusals};
use test_support::misbehaviour::{Fault, Said};
use test_support::relay::Seen;
use test_support::stand::{Stand, until};

const RELEASE: &str = "lock_release";

/// Injects this fault into the first `times` releases.
fn releasing(times: usize, fault: Fault) -> impl Fn(&Seen) -> Fault {
    move |seen| {
        let is_bad = seen.script == RELEASE && seen.number <= times;
        if is_bad { fault.clone() } else { Fault::none() }
    }
}

/// S12, S48.
#[tokio::test]
async fn a_bad_answer_is_made_good_by_asking_again() {
    let stand = Stand::new().await;
    let (client, host) = stand.led_client();
    let lock = client.lock("job").unwrap();
    for (name, said, _) in indeterminate() {
        stand.anew(releasing(1, Fault::after(said))).await;
        let lease = lock.acquire().await.unwrap();
        let released = stand.in_virtual_time(&host, lease.release()).await;
        assert_eq!(released, Ok(Released::Released), "{name}");
        assert_eq!(stand.relay.count(RELEASE), 2, "{name}");
        stand.assert_nothing_is_held(name).await;
    }
}

#[tokio::test]
async fn five_bad_answers_are_unknown_and_a_later_release_finds_out() {
    let stand = Stand::new().await;
    let (client, host) = stand.led_client();
    let lock = client.lock("job").unwrap();
    for (name, said, kind) in indeterminate().into_iter().step_by(4) {
        stand.anew(releasing(5, Fault::after(said))).await;
        let lease = lock.acquire().await.unwrap();
        let error = stand.in_virtual_time(&host, lease.release()).await.unwrap_err();
        let ReleaseError::Unknown { cause, .. } = error.kind else { panic!("{name}: {error}") };
        assert_eq!(cause, kind, "{name}");
        assert_eq!(lease.release().await, Ok(Released::Released), "{name}");
        stand.assert_nothing_is_held(name).await;
    }
}

/// S14.
#[tokio::test]
async fn a_release_that_never_arrives_leaves_the_hold_to_run_out() {
    let stand = Stand::with(releasing(usize::MAX, Fault::instead(Said::Silence))).await;
    // Short, since Redis measures it in real time.
    let time = Duration::from_millis(600);
    let options = AcquireOptions::new().lease(time);
    let (client, host) = stand.led_client();
    let lease = client.lock("job").unwrap().acquire_with(options).await.unwrap();
    let error = stand.in_virtual_time(&host, lease.release()).await.unwrap_err();
    let ReleaseError::Unknown { held_at_most, cause } = error.kind else { panic!("{error}") };
    assert_eq!(cause, FailureKind::TimedOut);
    assert!(held_at_most >= time);
    until(async || stand.redis.ask::<u64>(&["EXISTS", "job"]).await == 0).await;
}

#[tokio::test]
async fn a_release_that_is_refused_says_so_and_may_be_asked_again() {
    let stand = Stand::new().await;
    let (client, host) = stand.led_client();
    let lock = client.lock("job").unwrap();
    for (name, said) in refusals() {
        stand.anew(releasing(1, Fault::instead(said))).await;
        let lease = lock.acquire().await.unwrap();
        let error = stand.in_virtual_time(&host, lease.release()).await.unwrap_err();
        let ReleaseError::Refused(refusal) = error.kind else { panic!("{name}: {error}") };
        assert_eq!(refusal.kind(), RefusalKind::Unauthorized, "{name}");
        assert_eq!(lease.release().await, Ok(Released::Released), "{name}");
        stand.assert_nothing_is_held(name).await;
    }
}
