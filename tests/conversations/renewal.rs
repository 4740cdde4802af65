//! Keeping a hold, and knowing when it is lost.

use edgelatch::error::{FailureKind, LossReason};
use edgelatch::machine::{
    Grant, Input, Keeping, Lease, LeaseState, Machine, Output, Renewal, Wake,
};
use edgelatch::time::Instant;
use edgelatch::timing::{AttemptTime, LeaseTime};

use crate::support::conversation::*;

/// The machine of a 30 s hold, from when it was granted.
fn renewal(renews: bool) -> Conversation<Renewal> {
    let grant = grant(LeaseTime::DEFAULT);
    Conversation::new(Renewal::new(
        target(),
        grant,
        renews,
        AttemptTime::DEFAULT,
        entropy(),
        clock(),
    ))
}

const TRUSTED: u64 = 30_000 - 302;

/// S9.
#[test]
fn a_renewal_is_due_a_third_after_the_sending() {
    let mut it = renewal(true);
    assert_eq!(it.waits(Wake::RenewalDue), ms(10_000));
    it.sleeps();
    it.asks("lock_renew").after(50).hears(1, TOKEN, 30_000);
    assert_eq!(it.machine.state(), LeaseState::Renewed);
    assert_eq!(it.machine.lease().remaining(it.now), ms(TRUSTED - 50));
    assert_eq!(it.waits(Wake::RenewalDue), ms(9_950), "again from the sending");
}

/// S9.
#[test]
fn a_renewal_without_an_answer_leaves_time_for_another() {
    let attempt = AttemptTime::new(ms(60_000)).unwrap();
    let grant = grant(lease(6_000));
    let machine = Renewal::new(target(), grant, true, attempt, entropy(), clock());
    let mut it = Conversation::new(machine);
    for _ in 0..3 {
        it.sleeps();
        let left = it.machine.lease().remaining(it.now);
        it.asks("lock_renew");
        assert!(it.waits(Wake::ReplyDue) * 2 <= left, "{left:?}");
        it.sleeps();
    }
}

/// The machine of a hold that was asked for so long after the start, and when.
fn begun_after(wait: u64, time: LeaseTime) -> (Conversation<Renewal>, Instant) {
    let sent_at = start() + ms(wait);
    let grant = Grant { lease: Lease::confirmed(time, sent_at), ..grant(time) };
    let machine = Renewal::new(target(), grant, true, AttemptTime::DEFAULT, entropy(), clock());
    let mut it = Conversation::new(machine);
    it.now = sent_at;
    (it, sent_at)
}

#[test]
fn leases_of_about_the_same_age_are_renewed_at_the_same_time_and_stay_in_step() {
    for (wait, due) in [(0, 10_000), (1, 10_000), (2_499, 10_000), (2_500, 12_500)] {
        let (mut it, _) = begun_after(wait, LeaseTime::DEFAULT);
        for round in 0..3 {
            it.sleeps();
            assert_eq!(it.now.since(start()), ms(due + 10_000 * round), "{wait}");
            // However long the answer takes.
            it.asks("lock_renew").after(700).hears(1, TOKEN, 30_000);
        }
    }
}

#[test]
fn a_renewal_is_never_later_than_a_third_and_sooner_by_a_quarter_of_it_at_the_most() {
    for time in [100, 101, 3_000, 29_999, 30_000, 86_400_000].map(lease) {
        for wait in (0..20_000).step_by(37) {
            let (mut it, sent_at) = begun_after(wait, time);
            let due = sent_at + it.waits(Wake::RenewalDue);
            let third = time.get() / 3;
            let after = due.since(sent_at);
            assert!(
                after <= third && after + third / 4 + ms(1) > third,
                "{time:?} {wait} {after:?}"
            );
        }
    }
}

#[test]
fn a_lease_for_a_fixed_time_is_only_watched() {
    let mut it = renewal(false);
    assert_eq!(it.waits(Wake::LeaseEnds), ms(TRUSTED));
    it.sleeps();
    assert_eq!(it.done(), Some(LossReason::Expired));
}

#[test]
fn a_hold_that_redis_does_not_know_is_lost_at_once() {
    let mut it = renewal(true);
    it.sleeps();
    assert_eq!(it.asks("lock_renew").hears(-3, "0", 0).done(), Some(LossReason::Gone));
    assert_eq!(it.machine.state(), LeaseState::Lost(LossReason::Gone));
}

/// S9.
#[test]
fn without_an_answer_it_is_unknown_and_asked_again_and_lost_when_it_expires() {
    let mut it = renewal(true);
    it.sleeps();
    let mut asked = 0;
    while it.machine.state() != LeaseState::Lost(LossReason::Expired) {
        it.asks("lock_renew").fails(FailureKind::Broken);
        assert_eq!(it.machine.state(), LeaseState::Unknown);
        asked += 1;
        it.sleeps();
    }
    assert!(asked > 3, "{asked}");
    assert_eq!(it.now.since(start()), ms(TRUSTED), "neither later nor much earlier");
    assert_eq!(it.done(), Some(LossReason::Expired));
}

#[test]
fn a_gateway_that_takes_three_seconds_renews_in_time() {
    let mut it = renewal(true);
    for _ in 0..5 {
        it.sleeps();
        it.asks("lock_renew").after(3_000).hears(1, TOKEN, 30_000);
        assert_eq!(it.machine.state(), LeaseState::Renewed);
    }
}

#[test]
fn a_late_renewal_is_no_loss() {
    let mut it = renewal(true);
    it.sleeps();
    it.asks("lock_renew").hears(-1, "0", 0);
    assert_eq!(it.machine.state(), LeaseState::Unknown);
    it.sleeps();
    it.asks("lock_renew").hears(1, TOKEN, 30_000);
    assert_eq!(it.machine.state(), LeaseState::Renewed);
}

#[test]
fn each_renewal_has_a_bound_of_its_own() {
    let mut it = renewal(true);
    it.sleeps();
    it.asks("lock_renew");
    assert_eq!(it.arg(2), (SERVER_MS + 10_000 + 5_000 + 1_000).to_string());
}

/// S22, S24.
#[test]
fn a_host_that_slept_finds_its_lease_lost() {
    let mut it = renewal(true);
    let slept = Instant::from_millis(5_000, 9_000_000 + 600_000);
    it.machine.handle(Input::Woken, slept);
    it.now = slept;
    assert_eq!(it.done(), Some(LossReason::Expired));
}

/// S23.
#[test]
fn a_wall_clock_that_is_set_back_changes_nothing() {
    let mut it = renewal(true);
    it.now = Instant::from_millis(5_000 + 10_000, 0);
    it.machine.handle(Input::Woken, it.now);
    it.asks("lock_renew");
}

/// S10, S28.
#[test]
fn a_renewal_beside_the_machine_is_adopted_and_never_shortens() {
    let mut it = renewal(true);
    it.after(5_000);
    let longer = Lease::confirmed(LeaseTime::DEFAULT, it.now);
    it.machine.adopt(longer);
    assert_eq!(it.machine.lease().remaining(it.now), ms(TRUSTED));
    it.machine.adopt(Lease::confirmed(lease(100), it.now));
    assert_eq!(it.machine.lease().remaining(it.now), ms(TRUSTED));
    assert_eq!(it.waits(Wake::RenewalDue), ms(10_000), "nor does it renew more often");
}

/// A hold's record has the lease as it was before, and is shared with the machine before and after each input.
#[test]
fn what_was_known_before_a_clock_was_set_back_is_not_taken_for_news() {
    let mut it = renewal(true);
    let before = it.machine.lease();
    it.now = Instant::from_millis(5_000 + 10_000, 0);
    it.machine.handle(Input::Woken, it.now);
    it.asks("lock_renew").hears(1, TOKEN, 30_000);
    let renewed = it.machine.lease();
    it.machine.adopt(before);
    assert_eq!(it.machine.lease(), renewed);
    assert_eq!(before.extended_by(&renewed), renewed, "in either order");
    assert_eq!(it.waits(Wake::RenewalDue), ms(10_000));
}

#[test]
fn news_of_a_loss_is_heard_although_another_renewal_was_adopted_meanwhile() {
    let mut it = renewal(true);
    it.sleeps();
    it.asks("lock_renew");
    it.machine.adopt(Lease::confirmed(LeaseTime::DEFAULT, it.now));
    assert_eq!(it.hears(-3, "0", 0).done(), Some(LossReason::Gone));
}

/// S80.
#[test]
fn a_release_ends_it_at_once() {
    let mut it = renewal(true);
    it.sleeps();
    assert_eq!(it.asks("lock_renew").is_cancelled().done(), None);
}

#[test]
fn one_that_only_watches_asks_no_more() {
    let mut it = renewal(true);
    it.machine.only_watch();
    assert_eq!(it.waits(Wake::LeaseEnds), ms(TRUSTED));
    it.sleeps();
    assert_eq!(it.done(), Some(LossReason::Expired));
    assert!(it.asked.is_empty());
}

#[test]
fn a_hold_that_is_renewed_to_an_end_is_asked_for_no_longer() {
    let end = start() + ms(44_000);
    let mut it = renewal(true);
    it.machine = it.machine.clone().until(Some(end));
    it.sleeps();
    it.asks("lock_renew").hears(1, TOKEN, 30_000);
    assert_eq!(it.arg(6), "30000");
    it.sleeps();
    // 20 s have passed, so 24 are left.
    it.asks("lock_renew").hears(1, TOKEN, 24_000);
    assert_eq!(it.arg(6), "24000");
    let left = it.machine.lease().remaining(it.now);
    assert_eq!(left, ms(24_000 - 242));
    assert_eq!(it.waits(Wake::LeaseEnds), left);
    it.sleeps();
    assert_eq!(it.done(), Some(LossReason::Expired));
}

#[test]
fn the_reason_of_a_loss_stays_whatever_becomes_of_the_other_parts() {
    let part = || renewal(true).machine;
    let mut keeping = Keeping::new([part(), part()], 2);
    let due = start() + ms(10_000);
    keeping.handle(Input::Woken, due);
    let Output::Call { call, script, .. } = keeping.poll(due) else { panic!("a renewal is due") };
    let reply = renewal(true).reply(&script, -3, "0", 0);
    keeping.handle(Input::Reply { call, reply }, due);
    let gone = LeaseState::Lost(LossReason::Gone);
    assert_eq!(keeping.state(), gone);
    let later = start() + ms(40_000);
    keeping.handle(Input::Woken, later);
    assert!(matches!(keeping.poll(later), Output::Done(Some(LossReason::Gone))));
    assert_eq!(keeping.state(), gone);
}

#[test]
fn whoever_stops_renewing_gives_up_what_is_asked_and_keeps_what_is_known() {
    let mut it = renewal(true);
    it.sleeps();
    it.asks("lock_renew").machine.only_watch();
    it.waits(Wake::LeaseEnds);
    it.sleeps();
    assert_eq!(it.done(), Some(LossReason::Expired));
    // Of one that is lost nothing is left to watch.
    let mut it = renewal(true);
    it.sleeps();
    it.asks("lock_renew").hears(-3, "0", 0).machine.only_watch();
    assert_eq!(it.done(), Some(LossReason::Gone));
}
