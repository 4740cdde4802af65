//! Upper bounds of holds with an unknown outcome: the reports of machines when a call that ends a
//! hold is not confirmed.

use std::time::Duration;

use edgelatch_proto::error::{AcquireError, FailureKind, ReleaseError};
use edgelatch_proto::machine::{Acquire, AcquireSpec, Release, RenewalOnDemand};
use edgelatch_proto::protocol::calls::{BatchSize, GroupCalls, PermitCalls, Target};
use edgelatch_proto::protocol::reply::ServerClock;
use edgelatch_proto::protocol::script::Publish;
use edgelatch_proto::timing::{AttemptTime, LeaseTime, PeerSkew, WaitPolicy};

use crate::language::*;

const ACQUIRE: &str = "lock_acquire";
const RELEASE: &str = "lock_release";

/// Cancels a wait whose release is not confirmed. Returns the `held_at_most` that it reports, and
/// how long the attempts to release took.
fn cancel_unconfirmed(it: Conversation<Acquire>, release: &str) -> (Duration, Duration) {
    let begun = it.elapsed_ms();
    let it = it.cancel().fail_attempts(release, 3, FailureKind::Broken);
    match it.expect_done() {
        Err(AcquireError::Cancelled { held_at_most: Some(reported) }) => {
            (reported, ms(it.elapsed_ms() - begun))
        }
        other => panic!("no `held_at_most`: {other:?}"),
    }
}

#[test]
fn held_at_most_of_an_endless_wait_counts_from_the_end_of_its_round() {
    let it = acquire(WaitPolicy::UntilCancelled).expect_call(ACQUIRE);
    let (reported, passed) = cancel_unconfirmed(it, RELEASE);
    assert_eq!(reported, held_at_most(ROUND_MS + HORIZON_MS + LEASE_MS, passed));
}

#[test]
fn held_at_most_without_a_bound_counts_ten_minutes_from_now() {
    let it = acquire_without_clock(acquire_spec(up_to(30_000))).expect_call(ACQUIRE);
    let (reported, _) = cancel_unconfirmed(it, RELEASE);
    assert_eq!(reported, held_at_most(UNBOUNDED_MS + LEASE_MS, ms(0)));
}

#[test]
fn an_allowance_for_the_clocks_of_redisson_s_clients_lengthens_held_at_most() {
    let (name, skew) = (|| lock_name("invoice:42"), PeerSkew::new(ms(3_000)).unwrap());
    let group = GroupCalls::new(name(), ["A"], skew, Publish::Plain).unwrap();
    let permits = PermitCalls::new(name(), Publish::Plain, BatchSize::new(1).unwrap(), skew);
    let targets = [("group", Target::Group(group)), ("permits", Target::Permits(permits))];
    for (kind, target) in targets {
        let it = acquire_with(AcquireSpec::new(target, up_to(30_000)));
        let it = it.expect_call(&format!("{kind}_acquire"));
        let (reported, passed) = cancel_unconfirmed(it, &format!("{kind}_release"));
        // Such clocks may be wrong by the skew in either direction.
        assert_eq!(reported, held_at_most(30_000 + HORIZON_MS + LEASE_MS + 2 * 3_000, passed));
    }
}

#[test]
fn held_at_most_uses_the_latest_known_clock() {
    let it = acquire(up_to(30_000)).expect_call(ACQUIRE).advance(2_000).reply(busy(-1));
    let pause = ms(it.timeout_ms());
    let (reported, passed) =
        cancel_unconfirmed(it.advance_to_timeout().expect_call(ACQUIRE), RELEASE);
    assert_eq!(reported, held_at_most(30_000 + HORIZON_MS + LEASE_MS - 2_000, pause + passed));
}

#[test]
fn held_at_most_covers_an_owner_with_an_unconfirmed_takeover() {
    // The first owner's request has no bound; the second owner's bound is 95 s away.
    let spec = AcquireSpec::new(fair_lock("invoice:42"), up_to(605_000));
    let it = acquire_without_clock(spec).expect_call("fair_acquire");
    let it = it.reply(queued(1, 3_333).with_ms(-1)).advance(ROUND_MS).advance_to_timeout();
    let it = it.expect_call("fair_acquire");
    assert!(it.arg(NOT_AFTER).parse::<u64>().is_ok(), "it has a bound");
    let (reported, _) = cancel_unconfirmed(it, "fair_release");
    assert_eq!(reported, held_at_most(UNBOUNDED_MS + LEASE_MS, ms(0)));
}

#[test]
fn held_at_most_of_a_release_covers_the_renewals() {
    let (grant, attempt) = (grant(LeaseTime::DEFAULT), AttemptTime::DEFAULT);
    // An hour later the bound of the acquisition has passed. The bound of the renewal is one
    // attempt and a second away.
    let hour_ms = 3_600_000;
    let now = START + ms(hour_ms);
    let clock = Some(ServerClock::new(SERVER_START + hour_ms, now));
    let renew =
        RenewalOnDemand::new(&target(), &grant, lease(60_000), attempt, entropy(), clock, now);
    let release = Release::new(&target(), &grant, renew.outstanding(), attempt, clock);
    let it = Conversation::new_after(release, hour_ms);
    let it = it.fail_attempts(RELEASE, 5, FailureKind::Broken);
    let held_at_most = held_at_most(ATTEMPT_MS + 1_000 + 60_000, ms(it.elapsed_ms() - hour_ms));
    let unknown = ReleaseError::Unknown { held_at_most, cause: FailureKind::Broken };
    assert_eq!(it.expect_done(), Err(unknown));
}

/// Runs a release without any reply. Returns the `held_at_most` that it reports, and the time since
/// the start.
fn release_without_replies(mut it: Conversation<Release>) -> (Duration, Duration) {
    while !it.is_done() {
        it = it.advance_to_timeout();
    }
    match it.expect_outcome() {
        Err(ReleaseError::Unknown { held_at_most, .. }) => (held_at_most, ms(it.elapsed_ms())),
        other => panic!("not unknown: {other:?}"),
    }
}

#[test]
fn held_at_most_of_an_early_release_covers_copies_of_the_acquisition() {
    // The acquisition was sent at the start: a delayed copy may extend the hold by 30 s until 90 s
    // have passed.
    let it = Conversation::new(release_machine(LeaseTime::DEFAULT));
    let (reported, passed) = release_without_replies(it);
    assert_eq!(reported, held_at_most(HORIZON_MS + LEASE_MS, passed));
}

#[test]
fn held_at_most_of_a_late_release_covers_a_lease_only() {
    let it = Conversation::new(release_machine(LeaseTime::DEFAULT)).advance(500_000);
    let (reported, _) = release_without_replies(it);
    // Every earlier request is past its bound; but the last extension may have been executed just
    // now.
    assert_eq!(reported, held_at_most(LEASE_MS, ms(0)));
}
