//! Multi-locks and redLocks whose last part is granted so late that the first leases must be
//! extended.

use edgelatch_proto::error::AcquireError;
use edgelatch_proto::machine::{AcquireAll, AcquireAllSpec, AcquireQuorumSpec, TimeoutReason};
use edgelatch_proto::protocol::reply::Code;
use edgelatch_proto::timing::WaitPolicy;

use crate::language::*;
use crate::multi_lock::tokens;

const ACQUIRE: &str = "lock_acquire";
const RELEASE: &str = "lock_release";

/// A hold whose second part is granted after more than half of the first part's lease. Parts may be
/// kept for `keep_ms`.
fn granted_in_parts_kept_for(keep_ms: u64) -> Conversation<AcquireAll> {
    let mut spec = multi_lock_spec(vec![plain_part(0), plain_part(1)], up_to(30_000));
    spec.targets.keep_time = ms(keep_ms);
    let it = multi_lock_with(AcquireAllSpec { lease: lease(2_000), ..spec })
        .expect_calls(&[(0, ACQUIRE), (1, ACQUIRE)])
        .reply_from(0, granted(10))
        .reply_from(1, busy(3_000));
    let pause = it.timeout_ms();
    // Half of a lease is left until this time after its sending. When the second part is granted,
    // the first part's request is older than that by half of the pause, and its own request is
    // younger by as much.
    let half_left_ms = trusted_ms(2_000) - 1_000;
    it.advance_to_timeout()
        .expect_calls(&[(1, ACQUIRE)])
        .advance(half_left_ms - pause / 2)
        .reply_from(1, granted(11))
        .expect_calls(&[(0, ACQUIRE)])
}

fn granted_in_parts() -> Conversation<AcquireAll> {
    granted_in_parts_kept_for(2_000)
}

#[test]
fn a_hold_with_too_short_a_lease_is_extended_once_before_it_is_returned() {
    let multi_grant = granted_in_parts().reply_from(0, already_yours(10)).expect_done().unwrap();
    assert_eq!(tokens(&multi_grant), [10, 11]);
    // The extension takes so long that too little of the other lease is left: the machine starts
    // again.
    let it = granted_in_parts().advance(100).reply_from(0, already_yours(10));
    it.expect_calls(&[(0, RELEASE), (1, RELEASE)]);
}

#[test]
fn a_machine_that_starts_again_pauses_even_if_its_parts_may_be_kept_no_longer() {
    let it = granted_in_parts_kept_for(1_000).advance(100).reply_from(0, already_yours(10));
    assert!(it.elapsed_ms() > 1_000);
    let it = it.expect_calls(&[(0, RELEASE), (1, RELEASE)]);
    let it = it.reply_from(0, Code::Done).reply_from(1, Code::Done);
    it.expect_timeout(TimeoutReason::BackOff)
        .advance_to_timeout()
        .expect_calls(&[(0, ACQUIRE), (1, ACQUIRE)]);
}

#[test]
fn nothing_is_held_if_a_gateway_is_too_slow_for_the_lease() {
    let spec = multi_lock_spec(vec![plain_part(0), plain_part(1)], WaitPolicy::Once);
    let it = multi_lock_with(AcquireAllSpec { lease: lease(1_000), ..spec });
    // The second attempt at one part gets its reply after half of the other part's lease; extending
    // that lease takes too long for this part.
    let it = it.reply_from(0, granted(10)).advance_to_timeout().advance_to_timeout();
    let it = it.advance(300).reply_from(1, granted(11));
    let it = it.advance(300).reply_from(0, already_yours(10));
    let it = it.reply_from(0, Code::Done).reply_from(1, Code::Done);
    assert_eq!(it.expect_outcome(), Err(AcquireError::TooSlow));
}

#[test]
fn a_majority_with_too_short_a_lease_is_extended_before_it_is_returned() {
    let mut spec = red_lock_spec(3, up_to(30_000));
    spec.targets.keep_time = ms(2_000);
    let it = red_lock_with(AcquireQuorumSpec { lease: lease(2_000), ..spec });
    let it = it.reply_from(0, granted(5)).reply_from(1, busy(-1)).reply_from(2, busy(-1));
    // A majority is held, but less than half of the leases is left.
    let it = it.advance_to_timeout().advance(1_000);
    let it = it.reply_from(1, granted(5)).reply_from(2, busy(-1));
    assert!(!it.is_done());
    let it = it.reply_from(0, already_yours(5)).reply_from(1, already_yours(5));
    let multi_grant = it.expect_outcome().unwrap();
    for part in multi_grant.parts.iter().filter(|part| part.counts) {
        assert!(part.grant.lease.remaining(it.now()) >= ms(1_000));
    }
}
