//! Acquisitions that a gateway or Redis refuses, and replies that are not valid for an acquisition.

use edgelatch_proto::error::{AcquireError, FailureKind, RefusalKind};
use edgelatch_proto::protocol::reply::Code;
use edgelatch_proto::timing::WaitPolicy;

use crate::language::*;

const ACQUIRE: &str = "lock_acquire";
const RELEASE: &str = "lock_release";

/// S67.
#[test]
fn a_permanent_refusal_ends_the_wait_at_once() {
    let it = acquire(up_to(30_000)).expect_call(ACQUIRE).refuse("WRONGPASS invalid token");
    let outcome = it.expect_done();
    let Err(AcquireError::Refused(refusal)) = outcome else { panic!("{outcome:?}") };
    assert_eq!((refusal.kind(), refusal.code()), (RefusalKind::Unauthorized, "WRONGPASS"));
    assert_eq!(it.calls().len(), 1, "nothing was done, so nothing is undone");
}

/// S67.
#[test]
fn a_script_that_may_have_stopped_half_way_is_undone() {
    let it = acquire(WaitPolicy::Once).expect_call(ACQUIRE);
    let it = it.refuse("ERR The user executing the script can't run this command");
    let outcome = it.expect_call(RELEASE).reply(Code::Done).expect_done();
    assert!(matches!(outcome, Err(AcquireError::Refused(_))), "{outcome:?}");
}

#[test]
fn a_refusal_of_keys_in_several_slots_is_undone_only_after_an_earlier_attempt() {
    let error = "CROSSSLOT Keys in request don't hash to the same slot";
    for wait_policy in [WaitPolicy::Once, up_to(30_000)] {
        let outcome = acquire(wait_policy).expect_call(ACQUIRE).refuse(error).expect_done();
        let Err(AcquireError::Refused(refusal)) = outcome else { panic!("{outcome:?}") };
        assert_eq!((refusal.kind(), refusal.code()), (RefusalKind::Other, "CROSSSLOT"));
    }
    // An earlier attempt may have reached another gateway, which has executed it.
    let it = acquire(WaitPolicy::Once).expect_call(ACQUIRE).fail(FailureKind::Broken);
    let it = it.advance_to_timeout().expect_call(ACQUIRE).refuse(error);
    let outcome = it.expect_call(RELEASE).reply(Code::No).expect_done();
    assert!(matches!(outcome, Err(AcquireError::Refused(_))), "{outcome:?}");
}

/// The refusal of a full object writes no tombstone, so a copy could still be granted.
#[test]
fn an_acquisition_that_a_full_object_refuses_is_undone() {
    for wait_policy in [WaitPolicy::Once, up_to(30_000)] {
        let it = acquire(wait_policy).expect_call(ACQUIRE).refuse("LIMIT the group is full");
        let outcome = it.expect_call(RELEASE).reply(Code::No).expect_done();
        let Err(AcquireError::Refused(refusal)) = outcome else { panic!("{outcome:?}") };
        assert_eq!((refusal.kind(), refusal.code()), (RefusalKind::Other, "LIMIT"));
    }
}

#[test]
fn a_temporarily_refused_acquisition_is_undone_since_a_copy_may_be_granted_later() {
    let it = acquire(WaitPolicy::Once).expect_call(ACQUIRE);
    let it = it.refuse("OOM command not allowed when used memory > 'maxmemory'.");
    let outcome = it.expect_call(RELEASE).reply(Code::No).expect_done();
    let Err(AcquireError::Refused(refusal)) = outcome else { panic!("{outcome:?}") };
    assert_eq!(refusal.kind(), RefusalKind::OutOfMemory);
}

/// The copy of an attempt that Redis refused while loading may have been granted before, or may be
/// granted later, whatever becomes of the other attempts.
#[test]
fn an_acquisition_is_undone_if_a_loading_redis_refused_one_of_its_attempts() {
    let loading = || {
        let it = acquire(WaitPolicy::Once).expect_call(ACQUIRE);
        it.refuse("LOADING Redis is loading the dataset in memory").advance_to_timeout()
    };
    let it = loading().fail_attempts(ACQUIRE, 2, FailureKind::NotSent);
    let outcome = it.expect_call(RELEASE).reply(Code::Done).expect_done();
    assert_eq!(outcome, Err(AcquireError::Unreachable(FailureKind::NotSent)));
    let it = loading().expect_call(ACQUIRE).refuse("WRONGPASS no");
    let outcome = it.expect_call(RELEASE).reply(Code::Done).expect_done();
    assert!(matches!(outcome, Err(AcquireError::Refused(_))), "{outcome:?}");
    let it = acquire(WaitPolicy::Once).expect_call(ACQUIRE).refuse("LOADING soon").cancel();
    assert_eq!(
        it.expect_call(RELEASE).reply(Code::Done).expect_done(),
        Err(AcquireError::Cancelled { held_at_most: None })
    );
}

/// S67.
#[test]
fn a_try_that_a_loading_redis_refused_is_repeated() {
    let it = acquire(up_to(30_000)).expect_call(ACQUIRE);
    let it = it.refuse("LOADING Redis is loading the dataset in memory").advance_to_timeout();
    it.expect_call(ACQUIRE).reply(granted(TOKEN)).expect_done().unwrap();
}

#[test]
fn an_acquisition_with_a_token_out_of_range_is_undone_and_reported_as_refused() {
    let it = acquire(WaitPolicy::Once).expect_call(ACQUIRE).reply(Code::TokenRange);
    // The script wrote no tombstone, so the release keeps a copy from being granted.
    let outcome = it.expect_call(RELEASE).reply(Code::No).expect_done();
    let Err(AcquireError::Refused(refusal)) = outcome else { panic!("{outcome:?}") };
    assert_eq!(refusal.kind(), RefusalKind::TokenRange);
}

#[test]
fn a_grant_with_an_invalid_token_is_rejected() {
    // The last one is 2^53: a token is an integer that JavaScript represents exactly.
    for value in ["0", "x", "", "9007199254740992"] {
        let it = acquire(WaitPolicy::Once).expect_call(ACQUIRE);
        let it = it.reply(ScriptReply::new(Code::Done, value, 30_000));
        let outcome = it.expect_call(RELEASE).reply(Code::Done).expect_done();
        assert!(matches!(outcome, Err(AcquireError::Unreachable(_))), "{value}: {outcome:?}");
    }
}

#[test]
fn an_acquisition_with_an_impossible_reply_is_undone() {
    use Code::{BoundRequired, Nothing, ScriptFailed, Superseded, Unknown};
    // Redis requires a bound only of requests without one.
    for code in [Nothing, BoundRequired, Unknown, Superseded, ScriptFailed] {
        let it = acquire(WaitPolicy::Once).expect_call(ACQUIRE).reply(code);
        let outcome = it.expect_call(RELEASE).reply(Code::No).expect_done();
        assert!(matches!(outcome, Err(AcquireError::Unreachable(_))), "{code:?}: {outcome:?}");
    }
}
