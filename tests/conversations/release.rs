//! Ending a hold.

use edgelatch::LockName;
use edgelatch::error::{FailureKind, ReleaseError};
use edgelatch::machine::{Release, ReleaseAll, Released, Renew, Wake};
use edgelatch::protocol::calls::{ReadCalls, Target, WriteCalls};
use edgelatch::protocol::reply::Code;
use edgelatch::protocol::script::Publish;
use edgelatch::timing::{AttemptTime, LeaseTime};

use crate::support::conversation::*;
use crate::support::virtual_time::{Says, Talk, says, talk};

/// Releases a lease of 30 s that was asked to be renewed to `longest`.
fn release(longest: LeaseTime) -> Conversation<Release> {
    let (grant, attempt) = (grant(LeaseTime::DEFAULT), AttemptTime::DEFAULT);
    let renew = Renew::new(&target(), &grant, longest, attempt, entropy(), clock(), start());
    let reach = renew.reach();
    Conversation::new(Release::new(&target(), &grant, reach, attempt, clock()))
}

#[test]
fn one_request_ends_a_hold_under_the_bound_of_its_acquisition() {
    let mut it = release(LeaseTime::DEFAULT);
    let outcome = it.asks("lock_release").hears(1, "0", 0).done();
    assert_eq!(outcome, Ok(Released::Released));
    assert_eq!(it.asked[0].args()[1], (SERVER_MS + 90_000).to_string());
}

#[test]
fn a_hold_that_was_not_there_is_said_to_have_been_lost() {
    let outcome = release(LeaseTime::DEFAULT).asks("lock_release").hears(0, "0", 0).done();
    assert_eq!(outcome, Ok(Released::WasLost));
}

/// S12.
#[test]
fn asked_again_under_its_request_id_it_takes_the_recorded_verdict() {
    let mut it = release(LeaseTime::DEFAULT);
    it.asks("lock_release").fails(FailureKind::Broken);
    it.sleeps();
    assert_eq!(it.asks("lock_release").hears(1, "0", 0).done(), Ok(Released::Released));
    assert_eq!(it.asked[0], it.asked[1]);
}

/// S14.
#[test]
fn five_attempts_without_an_answer_leave_it_unknown_until_every_copy_has_run_out() {
    let mut it = release(lease(60_000));
    for attempt in 1..=5 {
        it.asks("lock_release").fails(FailureKind::TimedOut);
        if attempt < 5 {
            it.sleeps();
        }
    }
    assert!(it.now.since(start()) > ms(800), "far enough apart to outlast something");
    // A copy of the acquisition is done until 90 s after it was sent, and extends by a lease then.
    let held_at_most = held_at_most(90_000 + 60_000, it.now.since(start()));
    let unknown = ReleaseError::Unknown { held_at_most, cause: FailureKind::TimedOut };
    assert_eq!(it.done(), Err(unknown));
}

#[test]
fn a_refusal_after_an_attempt_that_was_not_heard_of_proves_nothing() {
    let mut it = release(LeaseTime::DEFAULT);
    it.asks("lock_release").fails(FailureKind::Broken);
    it.sleeps();
    let outcome = it.asks("lock_release").is_refused("WRONGPASS no").done();
    assert!(matches!(outcome, Err(ReleaseError::Unknown { .. })), "{outcome:?}");
}

/// S59.
#[test]
fn cancelling_does_not_stop_it() {
    let mut it = release(LeaseTime::DEFAULT);
    let outcome = it.asks("lock_release").is_cancelled().hears(1, "0", 0).done();
    assert_eq!(outcome, Ok(Released::Released));
}

/// Releases three parts of which so many make the hold.
fn release_three(quorum: usize) -> Talk<ReleaseAll> {
    release_those([true; 3], quorum)
}

/// Releases three parts of which these count.
fn release_those(counts: [bool; 3], quorum: usize) -> Talk<ReleaseAll> {
    let (grant, attempt) = (grant(LeaseTime::DEFAULT), AttemptTime::DEFAULT);
    let part = |counts| (Release::new(&target(), &grant, grant.reach(), attempt, clock()), counts);
    let all = talk(ReleaseAll::new(counts.map(part), quorum));
    all.asks_of(&[(0, RELEASE), (1, RELEASE), (2, RELEASE)])
}

const RELEASE: &str = "lock_release";

fn done() -> Says {
    says(Code::Done)
}

#[test]
fn a_majority_that_has_let_go_waits_half_a_second_for_a_silent_node() {
    let it = release_three(2).hears_from(0, done()).hears_from(2, done());
    assert_eq!((it.is_over(), it.wait_ms()), (false, 500));
    let mut it = it.waits(Wake::ReplyDue).wakes();
    assert_eq!(it.outcome(), Some(&Ok(Released::Released)));
    // Told more, it says the same and asks for nothing.
    it = it.passes(60_000).woken();
    assert_eq!((it.outcome(), it.scripts().len()), (Some(&Ok(Released::Released)), 3));
}

#[test]
fn a_node_that_answers_in_that_time_ends_it_and_one_that_breaks_is_asked_again() {
    let it = release_three(2).hears_from(0, done()).hears_from(1, done());
    assert_eq!(it.hears_from(2, says(Code::No)).ends(), Ok(Released::Released));
    let it = release_three(2).fails_at(2, FailureKind::Broken).hears_from(0, done());
    let it = it.wakes().asks_of(&[(2, RELEASE)]).hears_from(1, done());
    assert_eq!(it.hears_from(2, done()).ends(), Ok(Released::Released));
}

#[test]
fn where_all_parts_make_the_hold_all_are_waited_for() {
    let it = release_three(3).hears_from(0, done()).hears_from(2, done());
    assert!(it.wait_ms() > 1_000);
    assert_eq!(it.hears_from(1, done()).ends(), Ok(Released::Released));
}

#[test]
fn a_majority_that_had_lost_it_waits_for_no_grace() {
    let it = release_three(2).hears_from(0, says(Code::No)).hears_from(1, says(Code::No));
    assert!(it.wait_ms() > 1_000);
    assert_eq!(it.hears_from(2, done()).ends(), Ok(Released::WasLost));
}

/// S94.
#[test]
fn a_node_that_was_given_back_before_the_hold_began_does_not_count() {
    let it = release_those([true, true, false], 2).hears_from(0, done()).hears_from(2, done());
    assert_eq!(it.hears_from(1, says(Code::No)).ends(), Ok(Released::WasLost));
    let it = release_those([true, true, false], 2).hears_from(0, done()).hears_from(2, done());
    assert_eq!(it.hears_from(1, done()).ends(), Ok(Released::Released));
}

/// Releases two parts, the first with a lease of so many seconds, the second with so many; all count.
fn release_two(leases: [u64; 2]) -> Talk<ReleaseAll> {
    let attempt = AttemptTime::DEFAULT;
    let part = |seconds: u64| {
        let grant = grant(lease(seconds * 1_000));
        (Release::new(&target(), &grant, grant.reach(), attempt, clock()), true)
    };
    talk(ReleaseAll::new(leases.map(part), 2)).asks_of(&[(0, RELEASE), (1, RELEASE)])
}

/// S14.
#[test]
fn of_several_ends_that_are_unknown_the_latest_is_told() {
    let longest = held_at_most(90_000 + 60_000, ms(0));
    for leases in [[30, 60], [60, 30]] {
        let it =
            release_two(leases).hears_from(0, says(Code::Late)).hears_from(1, says(Code::Late));
        let unknown = ReleaseError::Unknown {
            held_at_most: longest,
            cause: FailureKind::Garbled { status: 200 },
        };
        assert_eq!(it.ends(), Err(unknown), "{leases:?}");
    }
}

#[test]
fn a_part_that_may_not_be_released_says_so_whatever_is_known_of_the_others() {
    for refused in [0, 1] {
        for other in [Code::Late, Code::Done, Code::No] {
            let it = release_two([30, 30]).refused_by(refused, "WRONGPASS no");
            let outcome = it.hears_from(1 - refused, says(other)).ends();
            assert!(matches!(outcome, Err(ReleaseError::Refused(_))), "{other:?}: {outcome:?}");
        }
    }
}

#[test]
fn the_token_of_a_write_is_handed_on_to_the_reads_that_it_was_around() {
    let name = || LockName::parse("job").unwrap();
    let write = Target::Write(WriteCalls::new(name(), Publish::Plain));
    let read = Target::Read(ReadCalls::new(name(), Publish::Plain));
    let (attempt, grant) = (AttemptTime::DEFAULT, grant(LeaseTime::DEFAULT));
    for (target, handed_on) in [(write, Some(77)), (read, None), (target(), None)] {
        let part = Release::new(&target, &grant, grant.reach(), attempt, clock());
        let it = talk(ReleaseAll::new([(part, true)], 1));
        assert_eq!(it.machine().handed_on(), None);
        let it = it.hears(Says(Code::Done, "77".into(), 0));
        assert_eq!(it.machine().handed_on().map(|token| token.as_u64()), handed_on);
        assert_eq!(it.outcome(), Some(&Ok(Released::Released)));
    }
}
