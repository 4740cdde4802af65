//! What is granted with an older fencing token than was granted before.

use edgelatch::error::{AcquireError, FailureKind};
use edgelatch::machine::{Acquire, AcquireSpec, GatherSpec};
use edgelatch::name::FencingToken;
use edgelatch::protocol::reply::Code;
use edgelatch::timing::{LeaseTime, Patience};

use crate::multi_lock::{self, end, gathering, machine, plain};
use crate::support::conversation::*;
use crate::support::virtual_time::{granted, says, talk};

/// S57.
#[test]
fn a_grant_with_an_older_token_than_was_granted_before_is_given_back() {
    let newest = grant(LeaseTime::DEFAULT).token;
    let asking = || {
        let spec = AcquireSpec { newest: Some(newest), ..spec(up_to(30_000)) };
        Conversation::new(Acquire::new(spec, entropy(), clock(), start()))
    };
    let older = (newest.as_u64() - 1).to_string();
    let mut it = asking();
    it.asks("lock_acquire").hears(1, &older, 30_000).asks("lock_release").hears(1, "0", 0);
    assert_eq!(it.done(), Err(AcquireError::TokenFell { newest: newest.as_u64() }));
    // Of the giving back nothing is heard.
    let mut it = asking();
    it.asks("lock_acquire").hears(1, &older, 30_000);
    for _ in 0..2 {
        it.asks("lock_release").fails(FailureKind::Broken).sleeps();
    }
    it.asks("lock_release").fails(FailureKind::Broken);
    assert!(matches!(it.done(), Err(AcquireError::Unknown { .. })));
    // The same is not older: asked for again, a grant is told with its own.
    let mut it = asking();
    assert!(it.asks("lock_acquire").hears(2, &newest.as_u64().to_string(), 30_000).done().is_ok());
}

/// S57.
#[test]
fn a_part_with_an_older_token_than_was_granted_before_is_given_back_with_all_others() {
    let newest = tokens_of(vec![None, Some(11)]);
    let spec = GatherSpec { newest, ..multi_lock::spec(vec![plain(0), plain(1)], up_to(30_000)) };
    let it = talk(machine(spec)).asks_of(&[(0, "lock_acquire"), (1, "lock_acquire")]);
    let it = it.hears_from(0, granted(5)).hears_from(1, granted(10));
    let it = it.asks_of(&[(0, "lock_release"), (1, "lock_release")]);
    let it = it.hears_from(0, says(Code::Done)).hears_from(1, says(Code::Done));
    assert_eq!(end(&it), Err(AcquireError::TokenFell { newest: 11 }));
}

/// Tokens that were granted: such are made by machines alone.
fn tokens_of(tokens: Vec<Option<u64>>) -> Vec<Option<FencingToken>> {
    let grant_of = |token| {
        let it = gathering(1, Patience::Once)
            .asks_of(&[(0, "lock_acquire")])
            .hears_from(0, granted(token));
        end(&it).unwrap().token
    };
    tokens.into_iter().map(|token| token.map(grant_of)).collect()
}

/// A token of the same millisecond as the last is no older one.
#[test]
fn the_token_that_was_granted_before_may_be_granted_again() {
    let newest = tokens_of(vec![Some(10)]);
    let spec = AcquireSpec { newest: newest[0], ..spec(up_to(30_000)) };
    let it = talk(Acquire::new(spec, entropy(), clock(), start())).asks("lock_acquire");
    assert_eq!(it.hears(granted(10)).ends().unwrap().token.as_u64(), 10);
    let spec = GatherSpec { newest, ..multi_lock::spec(vec![plain(0)], up_to(30_000)) };
    let it = talk(machine(spec)).asks_of(&[(0, "lock_acquire")]).hears_from(0, granted(10));
    assert_eq!(end(&it).unwrap().token.as_u64(), 10);
}
