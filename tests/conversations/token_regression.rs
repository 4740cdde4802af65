//! Grants with an older fencing token than an earlier grant.

use edgelatch_proto::error::{AcquireError, FailureKind};
use edgelatch_proto::machine::Acquire;
use edgelatch_proto::name::FencingToken;
use edgelatch_proto::protocol::reply::Code;
use edgelatch_proto::timing::{LeaseTime, WaitPolicy};

use crate::language::*;

const ACQUIRE: &str = "lock_acquire";
const RELEASE: &str = "lock_release";

/// Returns a token of a grant: only machines create values of this type.
fn token(number: u64) -> FencingToken {
    acquire(WaitPolicy::Once)
        .expect_call(ACQUIRE)
        .reply(granted(number))
        .expect_done()
        .unwrap()
        .token
}

/// S57.
#[test]
fn a_grant_with_an_older_token_than_was_granted_before_is_given_back() {
    let newest = grant(LeaseTime::DEFAULT).token;
    let acquiring = || -> Conversation<Acquire> {
        let mut spec = acquire_spec(up_to(30_000));
        spec.targets.newest_token = Some(newest);
        acquire_with(spec).expect_call(ACQUIRE)
    };
    let older = newest.as_u64() - 1;
    let it = acquiring().reply(granted(older)).expect_call(RELEASE).reply(Code::Done);
    assert_eq!(it.expect_done(), Err(AcquireError::TokenRegressed { newest: newest.as_u64() }));
    // If the release is not confirmed, the hold may still exist.
    let it = acquiring().reply(granted(older));
    let outcome = it.fail_attempts(RELEASE, 3, FailureKind::Broken).expect_done();
    assert!(matches!(outcome, Err(AcquireError::Unknown { .. })), "{outcome:?}");
    // An equal token is not older: a repeated acquisition gets the token of its own grant.
    assert!(acquiring().reply(already_yours(newest.as_u64())).expect_done().is_ok());
}

/// S57.
#[test]
fn a_part_with_an_older_token_than_was_granted_before_is_given_back_with_all_others() {
    let mut spec = multi_lock_spec(vec![plain_part(0), plain_part(1)], up_to(30_000));
    spec.targets.newest_tokens = vec![None, Some(token(11))];
    let it = multi_lock_with(spec);
    let it = it.expect_calls(&[(0, ACQUIRE), (1, ACQUIRE)]);
    let it = it.reply_from(0, granted(5)).reply_from(1, granted(10));
    let it = it.expect_calls(&[(0, RELEASE), (1, RELEASE)]);
    let it = it.reply_from(0, Code::Done).reply_from(1, Code::Done);
    assert_eq!(it.expect_outcome(), Err(AcquireError::TokenRegressed { newest: 11 }));
}

/// A second grant in the same millisecond has the last token again, which is not older.
#[test]
fn the_token_that_was_granted_before_may_be_granted_again() {
    let newest = Some(token(10));
    let mut spec = acquire_spec(up_to(30_000));
    spec.targets.newest_token = newest;
    let it = acquire_with(spec);
    let it = it.expect_call(ACQUIRE).reply(granted(10));
    assert_eq!(it.expect_done().unwrap().token.as_u64(), 10);
    let mut spec = multi_lock_spec(vec![plain_part(0)], up_to(30_000));
    spec.targets.newest_tokens = vec![newest];
    let it = multi_lock_with(spec);
    let it = it.expect_calls(&[(0, ACQUIRE)]).reply_from(0, granted(10));
    assert_eq!(it.expect_outcome().unwrap().token.as_u64(), 10);
}
