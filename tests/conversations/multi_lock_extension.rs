//! What was gathered so slowly that too little is left of the first of it.

use edgelatch::error::AcquireError;
use edgelatch::machine::{Gather, GatherSpec, MajoritySpec};
use edgelatch::protocol::reply::Code;
use edgelatch::timing::{LeaseTime, Patience};

use crate::multi_lock::{end, plain, tokens};
use crate::support::fixtures::up_to;
use crate::support::virtual_time::{Talk, already_yours, busy, granted, ms, says, talk};
use crate::{multi_lock, red_lock};

const ACQUIRE: &str = "lock_acquire";
const RELEASE: &str = "lock_release";

/// A hold whose second part was granted when more than half of the first one's lease was over.
fn granted_apart() -> Talk<Gather> {
    let lease = LeaseTime::new(ms(2_000)).unwrap();
    let parts = (0..2).map(plain).collect();
    let it = talk(multi_lock::machine(GatherSpec {
        lease,
        keeps: ms(2_000),
        ..multi_lock::spec(parts, up_to(30_000))
    }));
    let it = it.asks_of(&[(0, ACQUIRE), (1, ACQUIRE)]);
    let it = it.hears_from(0, granted(10)).hears_from(1, busy(3_000));
    let between = it.wait_ms();
    let it = it.wakes().asks_of(&[(1, ACQUIRE)]);
    it.travels(978 - between / 2).hears_from(1, granted(11)).asks_of(&[(0, ACQUIRE)])
}

#[test]
fn a_hold_of_which_too_little_is_left_is_extended_once_before_it_is_handed_out() {
    let gathered = granted_apart().hears_from(0, already_yours(10)).ends().unwrap();
    assert_eq!(tokens(&gathered), [10, 11]);
    // That took so long that too little of the other is left: it begins anew.
    let it = granted_apart().travels(100).hears_from(0, already_yours(10));
    it.asks_of(&[(0, RELEASE), (1, RELEASE)]);
}

#[test]
fn a_gateway_that_is_too_slow_for_the_lease_holds_nothing() {
    let lease = LeaseTime::new(ms(1_000)).unwrap();
    let parts = (0..2).map(plain).collect();
    let it =
        talk(multi_lock::machine(GatherSpec { lease, ..multi_lock::spec(parts, Patience::Once) }));
    // The second attempt at one part is answered when the other lease is half over; extending that takes too long for this one.
    let it = it.hears_from(0, granted(10)).wakes().wakes().travels(300).hears_from(1, granted(11));
    let it = it.travels(300).hears_from(0, already_yours(10));
    let it = it.hears_from(0, says(Code::Done)).hears_from(1, says(Code::Done));
    assert_eq!(end(&it).unwrap_err(), AcquireError::TooSlow);
}

#[test]
fn a_majority_of_which_too_little_is_left_is_extended_before_it_is_handed_out() {
    let lease = LeaseTime::new(ms(2_000)).unwrap();
    let it = talk(red_lock::machine(MajoritySpec {
        lease,
        keeps: ms(2_000),
        ..red_lock::spec(3, up_to(30_000))
    }));
    let it = it.hears_from(0, granted(5)).hears_from(1, busy(-1)).hears_from(2, busy(-1));
    // A majority is held, but so late that less than half of the leases is left.
    let it = it.wakes().travels(1_000).hears_from(1, granted(5)).hears_from(2, busy(-1));
    assert!(!it.is_over());
    let it = it.hears_from(0, already_yours(5)).hears_from(1, already_yours(5));
    let now = it.now();
    let gathered = it.outcome().cloned().unwrap().unwrap();
    for part in gathered.parts.iter().filter(|part| part.counts) {
        assert!(part.grant.lease.remaining(now) >= ms(1_000));
    }
}
