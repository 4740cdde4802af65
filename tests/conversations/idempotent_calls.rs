//! Calls that Redis executes at most once, for example the forced release of a lock.

use edgelatch_proto::error::{FailureKind, RequestError};
use edgelatch_proto::machine::ExecuteOnce;
use edgelatch_proto::protocol::reply::{Code, Reply};

use crate::language::*;

const FORCE_RELEASE: &str = "lock_force_release";
const CANCEL: &str = "cancel";

/// A forced release by a client that knows Redis' clock.
fn force_release() -> Conversation<ExecuteOnce> {
    Conversation::new(force_release_machine(true))
}

/// A forced release by a client that does not know Redis' clock yet.
fn force_release_without_clock() -> Conversation<ExecuteOnce> {
    Conversation::new(force_release_machine(false))
}

/// A call without a reply to its three attempts, so that the machine cancels it.
fn unconfirmed() -> Conversation<ExecuteOnce> {
    force_release().fail_attempts(FORCE_RELEASE, 3, FailureKind::Broken).expect_call(CANCEL)
}

/// The reply to the cancellation of a call that Redis has executed: the recorded reply. 1 ms marks
/// it as recorded.
fn executed() -> ScriptReply {
    ScriptReply::new(Code::Done, 0, 1)
}

fn code(outcome: Result<Reply, RequestError>) -> Result<Code, RequestError> {
    outcome.map(|reply| reply.code)
}

#[test]
fn an_idempotent_call_returns_the_script_s_result() {
    for done in [Code::Done, Code::No] {
        let outcome = force_release().expect_call(FORCE_RELEASE).reply(done).expect_done();
        assert_eq!(code(outcome), Ok(done));
    }
}

#[test]
fn without_the_clock_of_redis_the_first_request_only_reads_it() {
    let it = force_release_without_clock().expect_call(FORCE_RELEASE);
    assert_eq!(it.arg(NOT_AFTER), "");
    let it = it.reply(Code::BoundRequired).expect_call(FORCE_RELEASE);
    // Three attempts, and 5 s for the pauses between them.
    assert_eq!(it.arg(NOT_AFTER), (SERVER_START + 3 * ATTEMPT_MS + 5_000).to_string());
    assert_ne!(it.calls()[0].script.request, it.calls()[1].script.request);
    assert_eq!(code(it.reply(Code::Done).expect_done()), Ok(Code::Done));
}

#[test]
fn a_late_call_was_not_executed_and_is_resent() {
    let it = force_release().expect_call(FORCE_RELEASE).reply(Code::Late);
    let outcome = it.expect_call(FORCE_RELEASE).reply(Code::Done).expect_done();
    assert_eq!(code(outcome), Ok(Code::Done));
}

#[test]
fn a_late_call_is_sent_three_times_at_most() {
    let late = |it: Conversation<ExecuteOnce>| it.expect_call(FORCE_RELEASE).reply(Code::Late);
    let it = late(late(late(force_release())));
    assert_eq!(it.expect_done(), Err(RequestError::NotExecuted(FailureKind::TimedOut)));
}

#[test]
fn an_unanswered_call_is_cancelled_under_its_own_id_and_bound() {
    let it = unconfirmed();
    let (call, cancel) = (&it.calls()[0].script, &it.calls()[3].script);
    assert_eq!(call.request, cancel.request);
    assert_eq!(call.keys()[0], cancel.keys()[0]);
    assert_eq!(call.args()[..3], cancel.args()[..3]);
}

#[test]
fn a_call_that_redis_has_cancelled_was_not_executed() {
    let outcome = unconfirmed().reply(Code::Gone).expect_done();
    assert_eq!(outcome, Err(RequestError::NotExecuted(FailureKind::Broken)));
}

#[test]
fn a_call_executed_before_its_cancellation_has_its_result() {
    assert_eq!(code(unconfirmed().reply(executed()).expect_done()), Ok(Code::Done));
}

#[test]
fn an_outcome_that_cannot_be_queried_any_more_is_unknown() {
    let outcome = unconfirmed().reply(Code::Unknown).expect_done();
    assert_eq!(outcome, Err(RequestError::Unreachable(FailureKind::Broken)));
}

#[test]
fn a_call_with_an_unanswered_cancellation_is_unknown() {
    let it = unconfirmed().fail(FailureKind::TimedOut).advance_to_timeout();
    let it = it.fail_attempts(CANCEL, 2, FailureKind::TimedOut);
    assert_eq!(it.expect_done(), Err(RequestError::Unreachable(FailureKind::Broken)));
}

#[test]
fn a_call_without_a_bound_is_never_executed_so_nothing_is_cancelled() {
    let it = force_release_without_clock();
    let it = it.fail_attempts(FORCE_RELEASE, 3, FailureKind::TimedOut);
    assert_eq!(it.expect_done(), Err(RequestError::NotExecuted(FailureKind::TimedOut)));
}

#[test]
fn a_refusal_after_an_unanswered_attempt_leaves_the_outcome_unknown() {
    let it = force_release().fail_attempts(FORCE_RELEASE, 1, FailureKind::Broken);
    let it = it.advance_to_timeout().expect_call(FORCE_RELEASE).refuse("WRONGPASS no");
    assert_eq!(it.calls()[0].script, it.calls()[1].script);
    let outcome = it.expect_call(CANCEL).refuse("WRONGPASS no").expect_done();
    assert!(matches!(outcome, Err(RequestError::Unreachable(_))), "{outcome:?}");
}

/// S66, S67.
#[test]
fn a_temporarily_refused_call_is_cancelled_since_a_copy_may_be_executed_later() {
    for error in ["LOADING Redis is loading the dataset in memory", "OOM command not allowed"] {
        let refused = || {
            let mut it = force_release().expect_call(FORCE_RELEASE).refuse(error);
            while !it.has_new_calls() {
                it = it.advance_to_timeout().expect_call(FORCE_RELEASE).refuse(error);
            }
            it.expect_call(CANCEL)
        };
        let outcome = refused().reply(Code::Gone).expect_done();
        assert!(matches!(outcome, Err(RequestError::Refused(_))), "{outcome:?}");
        // A copy was executed before the cancellation.
        assert_eq!(code(refused().reply(executed()).expect_done()), Ok(Code::Done));
        let it = refused().fail(FailureKind::Broken).advance_to_timeout();
        let outcome = it.fail_attempts(CANCEL, 2, FailureKind::Broken).expect_done();
        assert!(matches!(outcome, Err(RequestError::Unreachable(_))), "{outcome:?}");
    }
}

/// A change of permits out of their range is not recorded, so a copy of it might be executed after
/// permits were removed.
#[test]
fn a_call_beyond_a_limit_is_cancelled_since_a_copy_may_be_executed_later() {
    let refused =
        || force_release().expect_call(FORCE_RELEASE).refuse("LIMIT too many").expect_call(CANCEL);
    match refused().reply(Code::Gone).expect_done() {
        Err(RequestError::Refused(refusal)) => {
            assert_eq!(refusal.message(), "the object has reached its limit (LIMIT)");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(code(refused().reply(executed()).expect_done()), Ok(Code::Done));
}

#[test]
fn a_call_is_cancelled_if_a_loading_redis_refused_one_of_its_attempts() {
    let loading = || {
        let it = force_release().expect_call(FORCE_RELEASE).refuse("LOADING soon");
        it.advance_to_timeout()
    };
    let unsent = || loading().fail_attempts(FORCE_RELEASE, 2, FailureKind::NotSent);
    let refused = || loading().expect_call(FORCE_RELEASE).refuse("WRONGPASS no");
    // A copy was executed before the cancellation.
    for it in [unsent(), refused()] {
        assert_eq!(code(it.expect_call(CANCEL).reply(executed()).expect_done()), Ok(Code::Done));
    }
    let outcome = unsent().expect_call(CANCEL).reply(Code::Gone).expect_done();
    assert_eq!(outcome, Err(RequestError::NotExecuted(FailureKind::NotSent)));
    let outcome = refused().expect_call(CANCEL).reply(Code::Gone).expect_done();
    assert!(matches!(outcome, Err(RequestError::Refused(_))), "{outcome:?}");
}

#[test]
fn a_refusal_of_the_first_attempt_is_reported() {
    let outcome = force_release().expect_call(FORCE_RELEASE).refuse("WRONGPASS no").expect_done();
    assert!(matches!(outcome, Err(RequestError::Refused(_))), "{outcome:?}");
}

#[test]
fn a_code_that_no_cancellation_returns_leaves_the_outcome_unknown() {
    // The cancellation has a bound, so `BoundRequired` is impossible, and it is never rejected as
    // late.
    for code in [Code::Late, Code::BoundRequired] {
        let outcome = unconfirmed().reply(code).expect_done();
        let unreachable = RequestError::Unreachable(FailureKind::Broken);
        assert_eq!(outcome, Err(unreachable), "{code:?}");
    }
}

#[test]
fn a_request_that_was_never_sent_is_not_cancelled() {
    let it = force_release().fail_attempts(FORCE_RELEASE, 3, FailureKind::NotSent);
    // `NotSent` itself says that no attempt has left the client, so the call was not executed.
    let unreachable = RequestError::Unreachable(FailureKind::NotSent);
    assert_eq!(code(it.expect_done()), Err(unreachable));
}

#[test]
fn a_code_that_the_script_never_returns_is_a_garbled_reply() {
    for reply in [Code::Gone, Code::Unknown] {
        let outcome = force_release().expect_call(FORCE_RELEASE).reply(reply).expect_done();
        let garbled = RequestError::Unreachable(FailureKind::Garbled { status: 200 });
        assert_eq!(code(outcome), Err(garbled), "{reply:?}");
    }
}
