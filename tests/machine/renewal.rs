//! Keeping a hold.

use edgelatch::error::{FailureKind, LossReason};
use edgelatch::machine::{Lease, LeaseState, Renewal, Wake};
use edgelatch::protocol::reply::Code;
use edgelatch::timing::{AttemptTime, LeaseTime};

use super::given::{ENTROPY, calls, grant};
use crate::virtual_time::{Conversation, SERVER_START, conversation, granted, known_clock, ms, says};

/// When a lease of 30 s ends by the holder's clock: less 1 % and 2 ms.
const EXPIRES: u64 = 30_000 - 302;

fn keeping(renews: bool) -> Conversation<Renewal> {
    let clock = Some(known_clock());
    conversation(Renewal::new(calls(), grant(), renews, AttemptTime::DEFAULT, ENTROPY, clock))
}

fn state(kept: &mut Conversation<Renewal>) -> LeaseState {
    kept.machine().state()
}

#[test]
fn a_renewal_is_due_at_a_third_of_the_lease() {
    let kept = keeping(true).waits_for(Wake::RenewalDue, 10_000).wakes().asks("lock_renew");
    // Not done any more once its attempt cannot be waiting for it, and a second more.
    assert_eq!(kept.args(0)[1], (SERVER_START + 10_000 + 5_000 + 1_000).to_string());
    assert_eq!((kept.args(0)[5].as_str(), kept.args(0)[6].as_str()), ("30000", "42"));
}

#[test]
fn a_confirmed_renewal_counts_from_its_sending() {
    let mut kept = keeping(true).wakes().asks("lock_renew").travels(2_000).hears(granted(42));
    assert_eq!(state(&mut kept), LeaseState::Renewed);
    let now = kept.now();
    assert_eq!(kept.machine().lease().remaining(now), ms(EXPIRES - 2_000));
    kept.waits_for(Wake::RenewalDue, 8_000);
}

#[test]
fn a_renewal_without_an_answer_is_unknown_and_asked_again() {
    let mut kept = keeping(true).wakes().asks("lock_renew").fails(FailureKind::Broken).waits(Wake::RenewalDue);
    assert_eq!(state(&mut kept), LeaseState::Unknown);
    assert!(kept.wait_ms() <= 50, "{}", kept.wait_ms());
    let kept = kept.wakes().asks("lock_renew");
    assert_ne!(kept.args(0)[0], kept.args(1)[0], "a new request, with a bound of its own");
    let mut kept = kept.hears(granted(42));
    assert_eq!(state(&mut kept), LeaseState::Renewed);
}

#[test]
fn a_hanging_renewal_leaves_time_for_another() {
    let mut kept = keeping(true).wakes().asks("lock_renew");
    let mut attempts = 0;
    while !kept.is_over() {
        if kept.why() == Some(Wake::ReplyDue) {
            let now = kept.now();
            let left = kept.machine().lease().remaining(now);
            assert!(ms(kept.wait_ms()) <= left / 2 + ms(1), "{} of {left:?}", kept.wait_ms());
            attempts += 1;
        }
        kept = kept.wakes();
    }
    assert!(attempts >= 3, "{attempts}");
    assert_eq!(kept.outcome(), Some(&Some(LossReason::Expired)));
    assert_eq!(kept.server_ms(), SERVER_START + EXPIRES);
}

#[test]
fn a_hold_is_lost_when_its_lease_ends_though_nothing_was_heard() {
    let silent = keeping(true).wakes().asks("lock_renew").passes(EXPIRES - 10_000);
    assert_eq!(silent.ends(), Some(LossReason::Expired));
}

#[test]
fn a_hold_is_lost_when_the_host_has_slept_through_its_lease() {
    // The monotonic clock stood still; the wall clock tells.
    let slept = keeping(true).clocks(0, EXPIRES).woken();
    assert_eq!(slept.ends(), Some(LossReason::Expired));
}

#[test]
fn a_wall_clock_that_is_set_forward_ends_a_hold_early_and_never_late() {
    let set = keeping(true).clocks(1, 3_600_000).woken();
    assert_eq!(set.ends(), Some(LossReason::Expired));
}

#[test]
fn a_hold_that_redis_says_is_gone_is_lost_at_once() {
    let mut gone = keeping(true).wakes().asks("lock_renew").hears(says(Code::Lost));
    assert_eq!(state(&mut gone), LeaseState::Lost(LossReason::Gone));
    assert_eq!(gone.ends(), Some(LossReason::Gone));
}

#[test]
fn a_renewal_that_came_too_late_to_be_done_loses_nothing() {
    let mut late = keeping(true).wakes().asks("lock_renew").hears(says(Code::Late)).waits(Wake::RenewalDue);
    assert_eq!(state(&mut late), LeaseState::Unknown);
}

#[test]
fn a_refused_renewal_is_asked_again_for_as_long_as_the_lease_lasts() {
    let mut refused = keeping(true).wakes().asks("lock_renew").refused("NOPERM no").waits(Wake::RenewalDue);
    assert_eq!(state(&mut refused), LeaseState::Unknown);
    refused.wakes().asks("lock_renew");
}

#[test]
fn a_confirmation_never_shortens_a_lease() {
    let mut kept = keeping(true).wakes().asks("lock_renew");
    let longer = Lease::confirmed(LeaseTime::new(ms(600_000)).unwrap(), kept.now());
    kept.machine().adopt(longer);
    let mut kept = kept.hears(granted(42));
    assert_eq!(kept.machine().lease().expires_at(), longer.expires_at());
}

#[test]
fn a_lease_that_was_renewed_besides_is_taken_over() {
    let mut kept = keeping(true).travels(5_000);
    let lease = Lease::confirmed(LeaseTime::DEFAULT, kept.now());
    kept.machine().adopt(lease);
    kept.woken().waits_for(Wake::RenewalDue, 10_000);
}

#[test]
fn a_shorter_lease_from_besides_changes_nothing() {
    let mut kept = keeping(true);
    let before = kept.machine().lease();
    let shorter = Lease::confirmed(LeaseTime::new(ms(1_000)).unwrap(), kept.now());
    kept.machine().adopt(shorter);
    assert_eq!(kept.machine().lease().expires_at(), before.expires_at());
}

#[test]
fn a_fixed_lease_is_only_watched() {
    let watched = keeping(false).waits_for(Wake::LeaseEnds, EXPIRES).passes(10_000).waits(Wake::LeaseEnds).wakes();
    assert_eq!(watched.ends(), Some(LossReason::Expired));
}

#[test]
fn a_hold_that_is_no_longer_renewed_is_still_watched() {
    let mut watched = keeping(true).wakes().asks("lock_renew");
    watched.machine().only_watch();
    let watched = watched.woken().waits(Wake::LeaseEnds).wakes();
    assert_eq!(watched.ends(), Some(LossReason::Expired));
}

#[test]
fn a_holder_that_has_had_enough_ends_it_without_a_loss() {
    assert_eq!(keeping(true).wakes().asks("lock_renew").cancelled().ends(), None);
}

#[test]
fn nothing_is_asked_after_the_lease_has_ended() {
    let mut over = keeping(true).passes(EXPIRES + 1);
    assert_eq!(over.count(), 0);
    assert_eq!(state(&mut over), LeaseState::Lost(LossReason::Expired));
    assert_eq!(over.ends(), Some(LossReason::Expired));
}
