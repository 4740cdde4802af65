//! Renewals that are due together share a request.

use std::time::Duration;

use edgelatch::client::{AcquireOptions, Client, Lease, LeaseEnd};
use edgelatch::transport::Reqwest;
use tokio::task::JoinSet;

use test_support::fake_host::FakeHost;
use test_support::test_env::{TestEnv, until};

type Held = Lease<Reqwest, FakeHost>;

async fn take(client: &Client<Reqwest, FakeHost>, number: usize) -> Held {
    client
        .lock(&format!("job:{number}"))
        .unwrap()
        .acquire_with(AcquireOptions::new())
        .await
        .unwrap()
}

/// Acquires these leases; a task of its own keeps each.
async fn keep(
    client: &Client<Reqwest, FakeHost>,
    numbers: impl Iterator<Item = usize>,
) -> (Vec<Held>, JoinSet<LeaseEnd>) {
    let mut leases = Vec::new();
    for number in numbers {
        leases.push(take(client, number).await);
    }
    let keepers = leases.iter().map(Lease::keep).collect();
    // The tasks sleep once they were polled.
    tokio::task::yield_now().await;
    (leases, keepers)
}

#[tokio::test]
async fn leases_of_about_the_same_age_are_renewed_by_one_request() {
    let env = TestEnv::new().await;
    let (client, host) = env.virtual_client();
    let (early, _early) = keep(&client, 0..20).await;
    host.pass(Duration::from_millis(2_400));
    let (late, _late) = keep(&client, 20..40).await;
    let before = env.proxy.requests();
    for round in 1..=3_usize {
        // Ten seconds after the first leases began, and then every ten seconds; one timer suffices
        // for all.
        host.pass_for_one(Duration::from_millis(if round == 1 { 7_600 } else { 10_000 }));
        until(async || env.proxy.count("lock_renew") == 40 * round).await;
        assert_eq!(env.proxy.requests(), before + round);
        // All leases are renewed.
        let fresh = Duration::from_millis(29_698);
        until(async || early.iter().chain(&late).all(|lease| lease.remaining() == fresh)).await;
    }
}

#[tokio::test]
async fn a_lease_whose_renewal_is_not_due_keeps_waiting() {
    let env = TestEnv::new().await;
    let (client, host) = env.virtual_client();
    let (early, _keepers) = keep(&client, 0..10).await;
    host.pass(Duration::from_millis(5_000));
    let (late, _others) = keep(&client, 10..20).await;
    let before = env.proxy.requests();
    for round in 1..=4 {
        host.pass(Duration::from_millis(5_000));
        until(async || env.proxy.count("lock_renew") == 10 * round).await;
        assert_eq!(env.proxy.requests(), before + round);
        // All leases are renewed.
        let left = Duration::from_millis(24_698);
        until(async || early.iter().chain(&late).all(|lease| lease.remaining() >= left)).await;
    }
}

/// S82.
#[tokio::test]
async fn a_lease_that_was_released_or_dropped_is_left_out() {
    let env = TestEnv::new().await;
    let (client, host) = env.virtual_client();
    let (mut leases, _keepers) = keep(&client, 0..5).await;
    leases.remove(0).release().await.unwrap();
    drop(leases.remove(0));
    let before = env.proxy.requests();
    host.pass(Duration::from_secs(10));
    until(async || env.proxy.count("lock_renew") == 3).await;
    assert_eq!(env.proxy.requests(), before + 1);
}

/// S10.
#[tokio::test]
async fn a_renewal_on_demand_for_a_shorter_time_shortens_no_later_one() {
    let env = TestEnv::new().await;
    let (client, host) = env.virtual_client();
    let (leases, _keepers) = keep(&client, 0..1).await;
    host.pass(Duration::from_secs(5));
    leases[0].renew(Some(Duration::from_secs(10))).await.unwrap();
    host.pass(Duration::from_secs(10));
    until(async || env.proxy.count("lock_renew") == 2).await;
    let asked_for = |time: &str| {
        let seen = env.proxy.calls();
        seen.iter().filter(|seen| seen.words.iter().any(|word| word == time)).count()
    };
    // The first lease and its renewal, and the lease that was requested in between.
    assert_eq!((asked_for("30000"), asked_for("10000")), (2, 1));
}
