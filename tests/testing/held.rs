//! The list of what is held, and holds of another client, for each kind of object.

use std::time::Duration;

use edgelatch::client::ReadWriteSettings;
use edgelatch::testing::{Held, HoldError, HoldOptions, Kind, TestGateway};
use edgelatch::timing::PeerSkew;

/// The default lease.
const LEASE: Duration = Duration::from_secs(30);

fn options(kind: Kind) -> HoldOptions {
    HoldOptions { kind, ..HoldOptions::default() }
}

/// Creates the semaphores of these names, with three permits each.
async fn create_semaphores(gateway: &TestGateway) {
    let client = gateway.client();
    client.semaphore("semaphore").unwrap().try_set_permits(3, None).await.unwrap();
    let permits = client.permit_expirable_semaphore("permits", PeerSkew::DEFAULT).unwrap();
    permits.try_set_permits(3).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn another_client_holds_and_releases_each_kind() {
    let gateway = TestGateway::new();
    create_semaphores(&gateway).await;
    for (name, kind) in [
        ("lock", Kind::Lock),
        ("fair", Kind::FairLock),
        ("fair sides", Kind::FairRead),
        ("fair sides", Kind::FairWrite),
        ("sides", Kind::Read),
        ("sides", Kind::Write),
        ("semaphore", Kind::Semaphore),
        ("permits", Kind::PermitExpirableSemaphore),
    ] {
        let hold = gateway.hold(name, options(kind)).unwrap();
        let held = Held { name: name.into(), kind, holds: 1, remaining: Some(LEASE) };
        assert_eq!(gateway.held(), [held]);
        assert!(hold.release(), "{kind:?}");
        assert!(gateway.held().is_empty(), "{kind:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn holds_of_each_kind_expire_before_their_time() {
    let gateway = TestGateway::new();
    create_semaphores(&gateway).await;
    let client = gateway.client();
    let group = client.group_lock("group", ["a", "b"], PeerSkew::DEFAULT).unwrap();
    let lease = group.acquire().await.unwrap();
    let names = ["lock", "fair", "sides", "semaphore", "permits"];
    let kinds =
        [Kind::Lock, Kind::FairLock, Kind::Write, Kind::Semaphore, Kind::PermitExpirableSemaphore];
    for (name, kind) in names.into_iter().zip(kinds) {
        gateway.hold(name, options(kind)).unwrap();
    }
    let held: Vec<String> = gateway.held().into_iter().map(|held| held.name).collect();
    assert_eq!(held, ["fair", "group", "lock", "permits", "semaphore", "sides"]);
    let of_group = gateway.held().into_iter().find(|held| held.kind == Kind::GroupLock);
    assert_eq!(of_group.unwrap().holds, 2);
    for name in held {
        assert!(gateway.expire(&name), "{name}");
        assert!(!gateway.expire(&name), "{name}");
    }
    assert!(gateway.held().is_empty());
    assert!(!lease.is_held().await.unwrap());
    // All permits are free again.
    let all = HoldOptions { permits: 3, ..options(Kind::PermitExpirableSemaphore) };
    gateway.hold("permits", all).unwrap();
    gateway.hold("semaphore", HoldOptions { permits: 3, ..options(Kind::Semaphore) }).unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_a_client_holds_is_listed_until_its_lease_ends() {
    let gateway = TestGateway::new();
    let client = gateway.client().owner();
    let lock = client.lock("report").unwrap();
    let _lease = lock.acquire().await.unwrap();
    let sides = client.read_write_lock("sides", ReadWriteSettings::default()).unwrap();
    let _write = sides.write().acquire().await.unwrap();
    let _read = sides.read().acquire().await.unwrap();
    let kinds: Vec<Kind> = gateway.held().into_iter().map(|held| held.kind).collect();
    assert_eq!(kinds, [Kind::Lock, Kind::Read, Kind::Write]);
    tokio::time::sleep(LEASE + Duration::from_secs(1)).await;
    assert!(gateway.held().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_hold_without_an_end_has_no_remaining_time() {
    let gateway = TestGateway::new();
    create_semaphores(&gateway).await;
    let client = gateway.client();
    let lease = client.semaphore("semaphore").unwrap().acquire(2).await.unwrap();
    let held = gateway.held();
    assert_eq!((held[0].holds, held[0].remaining), (2, None));
    lease.release().await.unwrap();
    assert!(gateway.held().is_empty());
}

#[test]
fn another_client_cannot_hold_what_is_held_or_invalid() {
    let gateway = TestGateway::new();
    let _hold = gateway.hold("report", HoldOptions::default()).unwrap();
    let again = gateway.hold("report", HoldOptions::default()).unwrap_err();
    assert_eq!(again, HoldError::NotFree);
    let missing = gateway.hold("no semaphore", options(Kind::Semaphore)).unwrap_err();
    assert_eq!(missing, HoldError::NotFree);
    let too_short = HoldOptions { lease: Duration::from_millis(1), ..HoldOptions::default() };
    let no_permits = HoldOptions { permits: 0, ..options(Kind::PermitExpirableSemaphore) };
    for (name, options) in [
        ("", HoldOptions::default()),
        ("a", too_short),
        ("a", no_permits),
        ("a", options(Kind::GroupLock)),
    ] {
        let error = gateway.hold(name, options).unwrap_err();
        assert!(matches!(error, HoldError::InvalidOption(_)), "{error:?}");
    }
    assert!(format!("{gateway:?}").contains("report"));
}
