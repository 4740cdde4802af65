//! Acquires from a faulty gateway.

use std::net::TcpListener;
use std::time::Duration;

use edgelatch::Error;
use edgelatch::client::{AcquireOptions, Lock};
use edgelatch::error::{AcquireError, FailureKind, RefusalKind};
use edgelatch::machine::Released;
use edgelatch::transport::Reqwest;

use test_support::answers::{indeterminate, refusals};
use test_support::fake_host::FakeHost;
use test_support::misbehaviour::{Fault, Said, http};
use test_support::relay::Seen;
use test_support::slow_machine::longer_and_longer;
use test_support::stand::{Stand, until};

const ACQUIRE: &str = "lock_acquire";
const ALWAYS: usize = usize::MAX;

/// Injects this fault into the first `times` acquisitions.
fn acquiring(times: usize, fault: Fault) -> impl Fn(&Seen) -> Fault {
    move |seen| {
        let is_bad = seen.script == ACQUIRE && seen.number <= times;
        if is_bad { fault.clone() } else { Fault::none() }
    }
}

/// A gateway, a lock of a client in virtual time, and the client's host.
async fn stand() -> (Stand, Lock<Reqwest, FakeHost>, FakeHost) {
    let stand = Stand::new().await;
    let (client, host) = stand.led_client();
    let lock = client.lock("job").unwrap();
    (stand, lock, host)
}

/// S18, S53.
#[tokio::test]
async fn an_answer_that_tells_nothing_is_undone_and_said_to_be_unreachable() {
    let (stand, lock, host) = stand().await;
    for (name, said, kind) in indeterminate() {
        let mut faults = vec![Fault::after(said.clone())];
        // Half of a response that does not exist is an empty response, which is another case.
        if !matches!(said, Said::HalfTheTruth) {
            faults.push(Fault::instead(said));
        }
        for fault in faults {
            stand.anew(acquiring(ALWAYS, fault)).await;
            let error = stand.in_virtual_time(&host, lock.try_acquire()).await.unwrap_err();
            assert_eq!(error, AcquireError::Unreachable(kind), "{name}");
            stand.assert_nothing_is_held(name).await;
            assert_eq!(stand.relay.count(ACQUIRE), 3, "{name}");
            assert_eq!(stand.relay.count("lock_release"), 1, "{name}");
        }
    }
}

/// S52, S56, S79.
// Slow: four silent gateways get three attempts of 1 s each, in the real time of tokio's host.
#[tokio::test]
async fn silence_is_undone_and_said_to_be_timed_out() {
    for said in [Said::Silence, Said::Slowly] {
        for fault in [Fault::instead(said.clone()), Fault::after(said)] {
            let (stand, error) = silenced(fault).await;
            assert_eq!(error, AcquireError::Unreachable(FailureKind::TimedOut));
            stand.assert_nothing_is_held("silence").await;
            // No connection is left that could deliver another request.
            until(async || stand.relay.is_quiet()).await;
        }
    }
}

/// The outcome of a try without a response, on a machine that completes the undo within its
/// attempts' time.
async fn silenced(fault: Fault) -> (Stand, Error<AcquireError>) {
    for attempt in longer_and_longer(Duration::from_secs(1)) {
        let stand = Stand::with(acquiring(ALWAYS, fault.clone())).await;
        let lock = stand.client_within(attempt).lock("job").unwrap();
        let error = lock.try_acquire().await.unwrap_err();
        if !matches!(error.kind, AcquireError::Unknown { cause: FailureKind::TimedOut, .. }) {
            return (stand, error);
        }
    }
    panic!("the machine is too slow");
}

/// S46.
#[tokio::test]
async fn a_clear_no_is_refused_at_once_and_needs_no_undoing() {
    let (stand, lock, host) = stand().await;
    for (name, said) in refusals() {
        stand.anew(acquiring(ALWAYS, Fault::instead(said))).await;
        let error = stand.in_virtual_time(&host, lock.acquire()).await.unwrap_err();
        let AcquireError::Refused(refusal) = error.kind else { panic!("{name}: {error}") };
        assert_eq!(refusal.kind(), RefusalKind::Unauthorized, "{name}");
        assert_eq!(stand.relay.seen().len(), 1, "{name}");
        assert!(stand.redis.dump().await.is_empty(), "{name}");
    }
}

/// S54.
#[tokio::test]
async fn a_redirection_is_not_followed() {
    let elsewhere = TcpListener::bind("127.0.0.1:0").unwrap();
    elsewhere.set_nonblocking(true).unwrap();
    let location = format!("location: http://{}/\r\n", elsewhere.local_addr().unwrap());
    let (stand, lock, host) = stand().await;
    for status in [301, 302, 303, 307, 308] {
        stand.anew(acquiring(ALWAYS, Fault::instead(http(status, &location, "")))).await;
        let error = stand.in_virtual_time(&host, lock.try_acquire()).await.unwrap_err();
        assert_eq!(error, AcquireError::Unreachable(FailureKind::Redirected), "{status}");
        stand.assert_nothing_is_held("redirection").await;
        assert!(elsewhere.accept().is_err(), "{status}");
    }
}

/// S1, S16, S47, S48.
#[tokio::test]
async fn one_bad_answer_is_made_good_by_asking_again() {
    let (stand, lock, host) = stand().await;
    for (name, said, _) in indeterminate() {
        stand.anew(acquiring(1, Fault::after(said))).await;
        let lease = stand.in_virtual_time(&host, lock.try_acquire()).await.unwrap().unwrap();
        let token: String = stand.redis.ask(&["GET", "redisson_lock_token:{job}"]).await;
        assert_eq!(lease.token().to_string(), token, "{name}");
        assert_eq!(stand.redis.ask::<Vec<String>>(&["HVALS", "job"]).await, ["1"], "{name}");
        assert_eq!(lease.release().await, Ok(Released::Released), "{name}");
        stand.assert_nothing_is_held(name).await;
    }
}

/// S48.
#[tokio::test]
async fn a_wait_goes_on_over_bad_answers() {
    let (stand, lock, host) = stand().await;
    // A large budget, so that the pauses between the tries are short.
    let options = AcquireOptions::new().max_requests(10_000);
    for (name, said, _) in indeterminate() {
        stand.anew(acquiring(2, Fault::after(said))).await;
        let lease = stand.in_virtual_time(&host, lock.acquire_with(options)).await.unwrap();
        assert_eq!(stand.redis.ask::<Vec<String>>(&["HVALS", "job"]).await, ["1"], "{name}");
        assert_eq!(lease.release().await, Ok(Released::Released), "{name}");
        stand.assert_nothing_is_held(name).await;
    }
}

/// S2.
#[tokio::test]
async fn if_the_undoing_is_not_heard_either_it_is_unknown_until_the_lease_ends() {
    // Short, since Redis measures it in real time.
    let lease = Duration::from_millis(500);
    let options = AcquireOptions::new().lease(lease);
    let (stand, lock, host) = stand().await;
    for (name, said, kind) in indeterminate().into_iter().step_by(6) {
        let fault = Fault::after(said);
        // The undo is not executed: the hold remains until it expires.
        let nothing = Fault::instead(Said::Bytes(Vec::new()));
        let plan = move |seen: &Seen| {
            if seen.script == ACQUIRE { fault.clone() } else { nothing.clone() }
        };
        stand.anew(plan).await;
        let call = lock.try_acquire_with(options);
        let error = stand.in_virtual_time(&host, call).await.unwrap_err();
        let AcquireError::Unknown { held_at_most, cause } = error.kind else {
            panic!("{name}: {error}, {kind}")
        };
        assert_eq!(cause, FailureKind::Broken, "{name}");
        assert!(held_at_most >= lease, "{name}");
        until(async || stand.redis.ask::<u64>(&["EXISTS", "job"]).await == 0).await;
    }
}

#[tokio::test]
async fn if_the_undoing_is_refused_it_is_unknown() {
    let (stand, lock, host) = stand().await;
    for (name, said) in refusals() {
        let plan = move |seen: &Seen| match seen.script {
            ACQUIRE => Fault::instead(Said::Bytes(Vec::new())),
            _ => Fault::instead(said.clone()),
        };
        stand.anew(plan).await;
        let error = stand.in_virtual_time(&host, lock.try_acquire()).await.unwrap_err();
        let AcquireError::Unknown { cause, .. } = error.kind else { panic!("{name}: {error}") };
        assert_eq!(cause, FailureKind::RefusedLater(RefusalKind::Unauthorized), "{name}");
    }
}

#[tokio::test]
async fn a_clear_no_after_an_answer_that_was_lost_is_refused_once_it_is_undone() {
    let (stand, lock, host) = stand().await;
    for (name, said) in refusals() {
        let plan = move |seen: &Seen| match (seen.script, seen.number) {
            (ACQUIRE, 1) => Fault::after(Said::Bytes(Vec::new())),
            (ACQUIRE, _) => Fault::instead(said.clone()),
            _ => Fault::none(),
        };
        stand.anew(plan).await;
        let error = stand.in_virtual_time(&host, lock.try_acquire()).await.unwrap_err();
        assert!(matches!(error.kind, AcquireError::Refused(_)), "{name}: {error}");
        assert_eq!(stand.relay.count("lock_release"), 1, "{name}");
        stand.assert_nothing_is_held(name).await;
    }
}

/// S51.
#[tokio::test]
async fn a_gateway_that_is_not_there_is_unreachable_and_nothing_is_to_be_undone() {
    let stand = Stand::new().await;
    let client = stand.answered_client();
    let Stand { redis, relay } = stand;
    let seen = relay.seen();
    drop(relay);
    let unbound = async || {
        let error = client.lock("job").unwrap().try_acquire().await.unwrap_err();
        error == AcquireError::Unreachable(FailureKind::NotSent)
    };
    // The listener may need a moment to close.
    until(unbound).await;
    assert!(seen.is_empty());
    assert!(!redis.dump().await.contains_key("job"));
}

#[tokio::test]
async fn a_busy_lock_is_busy_also_after_bad_answers() {
    let (stand, lock, host) = stand().await;
    for (name, said, _) in indeterminate() {
        stand.anew(acquiring(1, Fault::after(said))).await;
        stand.redis.ask::<u64>(&["HSET", "job", "java:1", "1"]).await;
        stand.redis.ask::<u64>(&["PEXPIRE", "job", "60000"]).await;
        let lease = stand.in_virtual_time(&host, lock.try_acquire()).await.unwrap();
        assert!(lease.is_none(), "{name}");
        stand.redis.ask::<u64>(&["DEL", "job"]).await;
        stand.assert_nothing_is_held(name).await;
    }
}
