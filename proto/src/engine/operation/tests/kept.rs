//! Holds that are kept: when their renewals are due, and when they end.

use alloc::sync::Arc;
use core::time::Duration;

use super::client::{Client, ONLY, SCOPE, a_minute};
use crate::engine::{AcquirePolicy, HoldId, HoldTime, LeaseEnd, Outcome};
use crate::error::LossReason;
use crate::name::LockName;
use crate::timing::LeaseTime;

const LOST: LeaseEnd = LeaseEnd::Lost(LossReason::Expired);

fn lease(seconds: u64) -> LeaseTime {
    LeaseTime::new(Duration::from_secs(seconds)).unwrap()
}

/// Acquires the read side of a lock, whose requests have leases of 10 s at most.
fn hold(client: &mut Client, time: HoldTime) -> HoldId {
    let name = LockName::parse("job").unwrap();
    let lock = Arc::new(client.engine.read_lock(ONLY, name, Some(lease(10))));
    let policy = AcquirePolicy::new(time, a_minute(), None);
    let op = client.with(|engine, cx| engine.acquire(SCOPE, lock, (policy, None), false, cx));
    client.serve(op, |_, command| Some(command.reply(1, "1795276611386445", 10_000)));
    client.acquired(op)
}

/// Renews a hold on demand.
fn renew(client: &mut Client, hold: HoldId, seconds: u64) {
    let lease = Some(lease(seconds));
    let op = client.with(|engine, cx| engine.renew(SCOPE, hold, lease, cx));
    client.serve(op, |_, command| Some(command.reply(1, "1795276611386445", 10_000)));
    assert!(matches!(client.engine.take_outcome(op), Some(Outcome::Renewed(Ok(())))));
}

/// Replies to the renewals of a hold until it ends, and returns how long it has lasted from now,
/// with the number of the renewals.
fn end(client: &mut Client, hold: HoldId) -> (Duration, u32) {
    let (begin, mut renewals) = (client.now, 0);
    while let Some(renewal) = client.sent_within(Duration::from_secs(600)) {
        client.respond(&renewal, &renewal.command().reply(1, "1795276611386445", 10_000));
        renewals += 1;
        assert!(renewals < 100, "no end");
    }
    assert!(client.engine.situation(hold).unwrap().is_over());
    (begin.until(client.now), renewals)
}

#[test]
fn a_hold_of_a_fixed_time_wakes_its_client_only_at_its_end() {
    let mut client = Client::new();
    let hold = hold(&mut client, HoldTime::Fixed(lease(10)));
    let keep = client.keep(hold);
    let remaining = client.with(|engine, cx| engine.remaining(hold, cx));
    assert_eq!(client.engine.poll_timeout(SCOPE), Some(client.now + remaining));
    assert_eq!(end(&mut client, hold), (remaining, 0));
    assert!(matches!(client.engine.take_outcome(keep), Some(Outcome::Ended(_, LOST))));
}

#[test]
fn a_hold_whose_leases_were_dropped_wakes_its_client_only_at_its_end() {
    let mut client = Client::new();
    let hold = client.hold("job", None);
    let remaining = client.with(|engine, cx| engine.remaining(hold, cx));
    client.with(|engine, cx| engine.drop_lease(hold, cx));
    client.keep(hold);
    assert_eq!(client.engine.poll_timeout(SCOPE), Some(client.now + remaining));
}

#[test]
fn a_hold_that_lasts_longer_than_one_request_allows_is_renewed_to_its_end() {
    let mut client = Client::new();
    let hold = hold(&mut client, HoldTime::Fixed(lease(60)));
    let keep = client.keep(hold);
    let (lasted, renewals) = end(&mut client, hold);
    assert!(Duration::from_secs(55) < lasted && lasted <= Duration::from_secs(60), "{lasted:?}");
    assert!(renewals >= 5, "{renewals}");
    assert!(matches!(client.engine.take_outcome(keep), Some(Outcome::Ended(_, LOST))));
}

#[test]
fn a_renewal_on_demand_that_needs_several_requests_gives_a_kept_hold_a_later_end() {
    for time in [lease(10), lease(30)] {
        let mut client = Client::new();
        let hold = hold(&mut client, HoldTime::Fixed(time));
        let keep = client.keep(hold);
        if time == lease(30) {
            // Its renewals have begun.
            let renewal = client.sent_within(Duration::from_secs(10)).expect("a renewal");
            client.respond(&renewal, &renewal.command().reply(1, "1795276611386445", 10_000));
        } else {
            client.pass(1);
        }
        renew(&mut client, hold, 60);
        let (lasted, renewals) = end(&mut client, hold);
        let most = Duration::from_secs(60);
        assert!(Duration::from_secs(55) < lasted && lasted <= most, "{lasted:?}");
        assert!(renewals >= 5, "{renewals}");
        assert!(matches!(client.engine.take_outcome(keep), Some(Outcome::Ended(_, LOST))));
    }
}

#[test]
fn a_renewal_on_demand_postpones_the_next_one() {
    let mut client = Client::new();
    let hold = hold(&mut client, HoldTime::AsUsual);
    client.keep(hold);
    let due = client.engine.poll_timeout(SCOPE).unwrap();
    client.now = client.now + Duration::from_secs(1);
    renew(&mut client, hold, 10);
    let later = client.engine.poll_timeout(SCOPE).unwrap();
    assert!(later.is_later(due), "{later:?}");
    let renewal = client.sent_within(Duration::from_secs(10)).expect("a renewal");
    assert!(client.now.has_reached(later));
    client.respond(&renewal, &renewal.command().reply(1, "1795276611386445", 10_000));
    let due = client.engine.poll_timeout(SCOPE).unwrap();
    client.now = client.now + Duration::from_secs(1);
    renew(&mut client, hold, 10);
    let later = client.engine.poll_timeout(SCOPE).unwrap();
    assert!(later.is_later(due), "its renewals have begun: {later:?}");
}
