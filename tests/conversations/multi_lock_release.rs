//! Releasing a hold of several parts: a multi-lock or a redLock.

use edgelatch_proto::error::{FailureKind, ReleaseError};
use edgelatch_proto::machine::{Release, ReleaseAll, Released, TimeoutReason};
use edgelatch_proto::protocol::calls::{ReadCalls, Target, WriteCalls};
use edgelatch_proto::protocol::reply::Code;
use edgelatch_proto::protocol::script::Publish;
use edgelatch_proto::timing::{AttemptTime, LeaseTime};

use crate::language::*;

const RELEASE: &str = "lock_release";
/// How long a released majority waits for the other nodes, in milliseconds.
const GRACE_MS: u64 = 500;
const RELEASE_ALL: [(usize, &str); 3] = [(0, RELEASE), (1, RELEASE), (2, RELEASE)];

/// Releases three parts that count; `quorum` of them make the hold.
fn release_three(quorum: usize) -> Conversation<ReleaseAll> {
    release_parts([true; 3], quorum)
}

/// Releases three parts; `counts` says whether each counts for the hold.
fn release_parts(counts: [bool; 3], quorum: usize) -> Conversation<ReleaseAll> {
    let part = |counts| (release_machine(LeaseTime::DEFAULT), counts);
    Conversation::new(ReleaseAll::new(counts.map(part), quorum)).expect_calls(&RELEASE_ALL)
}

#[test]
fn a_released_majority_waits_half_a_second_for_a_silent_node() {
    let it = release_three(2).reply_from(0, Code::Done).reply_from(2, Code::Done);
    let it = it.expect_timeout_in(TimeoutReason::ReplyDue, GRACE_MS).advance_to_timeout();
    assert_eq!(it.expect_done(), Ok(Released::Released));
    // Later inputs change nothing, and cause no call.
    let it = it.advance_and_wake(60_000).wake();
    assert_eq!((it.expect_done(), it.calls().len()), (Ok(Released::Released), 3));
}

#[test]
fn the_last_reply_ends_a_release_and_a_broken_connection_is_retried() {
    let it = release_three(2).reply_from(0, Code::Done).reply_from(1, Code::Done);
    assert_eq!(it.reply_from(2, Code::No).expect_done(), Ok(Released::Released));
    let it = release_three(2).fail_from(2, FailureKind::Broken).reply_from(0, Code::Done);
    let it = it.advance_to_timeout().expect_calls(&[(2, RELEASE)]).reply_from(1, Code::Done);
    assert_eq!(it.reply_from(2, Code::Done).expect_done(), Ok(Released::Released));
}

#[test]
fn a_hold_of_all_parts_waits_for_every_release() {
    let it = release_three(3).reply_from(0, Code::Done).reply_from(2, Code::Done);
    assert!(it.timeout_ms() > 2 * GRACE_MS, "the machine {it}");
    assert_eq!(it.reply_from(1, Code::Done).expect_done(), Ok(Released::Released));
}

#[test]
fn a_majority_that_had_lost_the_hold_waits_longer_for_a_silent_node() {
    let it = release_three(2).reply_from(0, Code::No).reply_from(1, Code::No);
    assert!(it.timeout_ms() > 2 * GRACE_MS, "the machine {it}");
    assert_eq!(it.reply_from(2, Code::Done).expect_done(), Ok(Released::WasLost));
}

/// S94.
#[test]
fn a_node_that_was_given_back_before_the_hold_began_does_not_count() {
    let released = || {
        let it = release_parts([true, true, false], 2);
        it.reply_from(0, Code::Done).reply_from(2, Code::Done)
    };
    assert_eq!(released().reply_from(1, Code::No).expect_done(), Ok(Released::WasLost));
    assert_eq!(released().reply_from(1, Code::Done).expect_done(), Ok(Released::Released));
}

/// Releases two parts that count, with leases of `seconds`.
fn release_two(seconds: [u64; 2]) -> Conversation<ReleaseAll> {
    let part = |seconds: u64| (release_machine(lease(seconds * 1_000)), true);
    let it = Conversation::new(ReleaseAll::new(seconds.map(part), 2));
    it.expect_calls(&[(0, RELEASE), (1, RELEASE)])
}

/// S14.
#[test]
fn the_latest_of_several_unknown_ends_is_reported() {
    let longest = held_at_most(HORIZON_MS + 60_000, ms(0));
    for leases in [[30, 60], [60, 30]] {
        let it = release_two(leases).reply_from(0, Code::Late).reply_from(1, Code::Late);
        let cause = FailureKind::Garbled { status: 200 };
        let unknown = ReleaseError::Unknown { held_at_most: longest, cause };
        assert_eq!(it.expect_done(), Err(unknown), "{leases:?}");
    }
}

#[test]
fn a_refused_release_of_a_part_is_reported_despite_unknown_outcomes_of_others() {
    for refused in [0, 1] {
        for other in [Code::Late, Code::Done, Code::No] {
            let it = release_two([30, 30]).refuse_from(refused, "WRONGPASS no");
            let outcome = it.reply_from(1 - refused, other).expect_done();
            assert!(matches!(outcome, Err(ReleaseError::Refused(_))), "{other:?}: {outcome:?}");
        }
    }
}

#[test]
fn the_token_of_a_write_is_propagated_to_its_nested_reads() {
    let write = Target::Write(WriteCalls::new(lock_name("job"), Publish::Plain));
    let read = Target::Read(ReadCalls::new(lock_name("job"), Publish::Plain));
    let (attempt, grant) = (AttemptTime::DEFAULT, grant(LeaseTime::DEFAULT));
    for (target, token) in [(write, Some(77)), (read, None), (target(), None)] {
        let clock = Some(known_clock());
        let part = Release::new(&target, &grant, grant.outstanding(), attempt, clock);
        let it = Conversation::new(ReleaseAll::new([(part, true)], 1));
        assert_eq!(it.machine().downgrade_token(), None);
        let it = it.reply(ScriptReply::new(Code::Done, 77, 0));
        assert_eq!(it.machine().downgrade_token().map(|token| token.as_u64()), token);
        assert_eq!(it.outcome(), Some(&Ok(Released::Released)));
    }
}
