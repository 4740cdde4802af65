//! News of calls that nobody waits for any more, and clocks that do not go together.

use edgelatch::error::{FailureKind, ReleaseError};
use edgelatch::machine::{Input, Machine as _, Wake};
use edgelatch::protocol::reply::{Code, Reply};
use edgelatch::timing::Patience;

use crate::support::conversation;
use crate::support::fixtures::{acquiring, acquiring_within, inspect, release, up_to};
use crate::support::virtual_time::{START, already_yours, busy, granted, ms, says, talk};

/// S8.
#[test]
fn the_reply_to_a_call_that_another_replaced_changes_nothing() {
    let waiting = talk(acquiring(up_to(60_000))).asks("lock_acquire");
    let first = waiting.newest();
    let waiting = waiting.fails(FailureKind::Broken).wakes().asks("lock_acquire");
    let waiting = waiting.hears_of(first, granted(42)).waits(Wake::ReplyDue);
    assert_eq!(waiting.hears(already_yours(42)).ends().unwrap().token.as_u64(), 42);
}

/// S19.
#[test]
fn a_reply_that_comes_when_its_attempt_was_given_up_changes_nothing() {
    let waiting = talk(acquiring(up_to(60_000))).asks("lock_acquire").wakes();
    let late = waiting.waits(Wake::BackOff);
    let call = late.newest();
    let waiting = late.hears_of(call, granted(42)).waits(Wake::BackOff).wakes();
    assert!(waiting.asks("lock_acquire").hears(already_yours(42)).ends().is_ok());
}

#[test]
fn a_reply_without_a_call_changes_nothing() {
    // A machine that was not polled has made no call: this one is a stranger's.
    let call = talk(inspect()).newest();
    let mut machine = acquiring(Patience::Once);
    let reply = Reply {
        code: Code::Done,
        value: "42".into(),
        ms: 30_000,
        server_ms: 1,
        acknowledged: None,
    };
    machine.handle(Input::Reply { call, reply }, START);
    talk(machine).asks("lock_acquire").waits(Wake::ReplyDue);
}

/// S22, S23.
#[test]
fn a_lease_counts_on_the_larger_of_two_clocks() {
    for (monotonic, wall) in [(2_000, 9_000), (9_000, 2_000), (9_000, 0), (0, 9_000)] {
        let asked = talk(acquiring(Patience::Once)).asks("lock_acquire").clocks(monotonic, wall);
        let now = asked.now();
        let lease = asked.hears(granted(42)).ends().unwrap().lease;
        assert_eq!(lease.remaining(now), ms(30_000 - 302 - 9_000), "{monotonic} {wall}");
    }
}

#[test]
fn a_wait_that_only_ends_by_cancelling_never_makes_a_last_try() {
    let mut waiting = talk(acquiring_within(1_000, Patience::UntilCancelled)).asks("lock_acquire");
    for call in 0..50 {
        assert_eq!(waiting.args(call)[6], "0");
        waiting = waiting.hears(busy(-1)).wakes().asks("lock_acquire");
    }
    waiting.cancelled().asks("lock_release").hears(says(Code::No)).ends().unwrap_err();
}

#[test]
fn a_release_given_up_early_reckons_with_copies_of_the_acquisition() {
    // Asked for at the start: a copy may be under way for 90 s, and then extend the hold by 30 s.
    let mut silent = talk(release());
    while !silent.is_over() {
        silent = silent.wakes();
    }
    let tried_for = ms(silent.elapsed_ms());
    let Some(Err(ReleaseError::Unknown { held_at_most, .. })) = silent.outcome() else {
        panic!("nobody answered: {:?}", silent.outcome())
    };
    assert_eq!(*held_at_most, conversation::held_at_most(90_000 + 30_000, tried_for));
}

#[test]
fn a_release_given_up_late_reckons_with_a_lease_only() {
    let mut silent = talk(release()).travels(500_000);
    while !silent.is_over() {
        silent = silent.wakes();
    }
    let Some(Err(ReleaseError::Unknown { held_at_most, .. })) = silent.outcome() else {
        panic!("nobody answered: {:?}", silent.outcome())
    };
    // Nothing can be done any more that was asked for; but what was done last may have been done just now.
    assert_eq!(*held_at_most, ms(30_000 + 300 + 2));
}
