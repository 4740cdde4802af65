//! How often the parts of several are asked, and what a budget leaves of that.

use edgelatch::error::{AcquireError, FailureKind};
use edgelatch::machine::{Entropy, Gather, GatherSpec, Machine, MajoritySpec};
use edgelatch::protocol::reply::Code;
use edgelatch::timing::{Patience, RequestBudget};

use crate::multi_lock::{fair, gathering, plain};
use crate::support::fixtures::up_to;
use crate::support::virtual_time::{START, Says, Talk, busy, granted, says, talk};
use crate::{multi_lock, red_lock};

const ACQUIRE: &str = "lock_acquire";
const RELEASE: &str = "lock_release";
const OWNER: usize = 5;

/// How often this script was run.
fn runs<M: Machine>(it: &Talk<M>, script: &str) -> usize {
    it.scripts().iter().filter(|other| **other == script).count()
}

/// How often a part is asked of which nothing is heard, and how often it is undone, with so many requests.
fn spent(requests: Option<u32>) -> (usize, usize) {
    let budget = requests.map(|number| RequestBudget::new(number).unwrap());
    let parts = vec![plain(0), plain(1)];
    let given = GatherSpec { budget, ..multi_lock::spec(parts, Patience::Once) };
    let it = talk(multi_lock::machine(given)).hears_from(0, busy(4_000));
    let it = it.unheard(&[1], FailureKind::Broken);
    assert!(
        matches!(multi_lock::end(&it), Err(AcquireError::Unknown { .. })),
        "{:?}",
        it.outcome()
    );
    (runs(&it, ACQUIRE) - 1, runs(&it, RELEASE))
}

#[test]
fn a_last_try_is_worth_two_attempts_and_its_undoing_three_if_the_budget_has_them() {
    assert_eq!(spent(None), (2, 3));
    assert_eq!(spent(Some(40)), (2, 3));
    for requests in 3..=12 {
        let (tries, undoings) = spent(Some(requests));
        assert!((1..=2).contains(&tries) && (1..=3).contains(&undoings), "{requests}");
        // Two tries of each part and their undoing are made whatever the budget says.
        assert!(1 + tries + undoings <= requests.max(12) as usize, "{requests}");
    }
}

#[test]
fn everything_that_is_let_go_for_good_is_asked_for_three_times() {
    let cancelled = gathering(2, up_to(30_000)).hears_from(0, granted(10)).cancelled();
    assert_eq!(runs(&cancelled.unheard(&[0, 1], FailureKind::Broken), RELEASE), 6);
    let nodes = red_lock::machine(red_lock::spec(3, up_to(30_000)));
    let cancelled = talk(nodes).cancelled();
    assert_eq!(runs(&cancelled.unheard(&[0, 1, 2], FailureKind::Broken), RELEASE), 9);
}

#[test]
fn what_is_undone_while_the_wait_goes_on_is_asked_for_twice() {
    let it = gathering(2, up_to(60_000)).hears_from(0, busy(-1)).hears_from(1, granted(11));
    let it = it.fails_at(1, FailureKind::Broken).wakes().passes(600);
    let it = it.fails_at(1, FailureKind::Broken).passes(3_000);
    assert_eq!(it.scripts(), [ACQUIRE, ACQUIRE, RELEASE, ACQUIRE, RELEASE]);
}

#[test]
fn a_budget_lasts_for_the_whole_wait() {
    /// When the tenth question is asked.
    fn tenth<M: Machine>(mut it: Talk<M>, places: usize) -> u64 {
        for _ in 0..10 {
            it = (0..places).fold(it, |it, place| it.hears_from(place, busy(-1))).wakes();
        }
        it.elapsed_ms()
    }
    let budget = RequestBudget::new(60).ok();
    let parts = vec![plain(0), plain(1)];
    let several = GatherSpec { budget, ..multi_lock::spec(parts, up_to(60_000)) };
    let told = tenth(talk(multi_lock::machine(several)), 2);
    assert!((15_000..50_000).contains(&told), "{told} ms");
    let nodes = MajoritySpec { budget, ..red_lock::spec(3, up_to(60_000)) };
    let told = tenth(talk(red_lock::machine(nodes)), 3);
    assert!((15_000..50_000).contains(&told), "{told} ms");
}

#[test]
fn one_that_has_lost_its_hold_was_too_slow() {
    let it = gathering(2, Patience::Once).hears_from(1, busy(4_000));
    let it = it.hears_from(0, says(Code::Lost)).hears_from(0, says(Code::No));
    assert_eq!(multi_lock::end(&it), Err(AcquireError::TooSlow));
}

#[test]
fn an_owner_that_has_ended_is_busy_for_nobody_knows_how_long() {
    let it = gathering(1, Patience::Once).hears_from(0, Says(Code::Gone, "1".into(), 5_000));
    assert_eq!(multi_lock::end(&it), Err(AcquireError::Busy { remaining: None }));
}

#[test]
fn a_bound_that_is_asked_for_again_although_it_was_given_is_no_answer() {
    let garbled = Err(AcquireError::Unreachable(FailureKind::Garbled { status: 200 }));
    // Of a part that has one from the beginning.
    let it = gathering(1, Patience::Once).asks(ACQUIRE).hears(says(Code::BoundRequired));
    let it = it.asks(RELEASE).hears(says(Code::No));
    assert_eq!(it.ends(), garbled);
    // And of one that was given one when it was asked for.
    let spec = multi_lock::spec(vec![plain(0)], Patience::Once);
    let it = talk(Gather::new(spec, Entropy::new([7; 32]), vec![], START)).asks(ACQUIRE);
    let it = it.hears(says(Code::BoundRequired)).asks(ACQUIRE).hears(says(Code::BoundRequired));
    assert_eq!(it.asks(RELEASE).hears(says(Code::No)).ends(), garbled);
}

#[test]
fn in_a_queue_whoever_comes_late_goes_on_in_its_seat_and_no_more_than_once() {
    let asks = |patience| {
        let spec = multi_lock::spec(vec![fair(0)], patience);
        talk(multi_lock::machine(spec)).asks("fair_acquire")
    };
    let it = asks(up_to(60_000));
    let first = it.arg_at(0, OWNER).to_owned();
    let it = it.hears(says(Code::Late)).asks("fair_acquire");
    assert_ne!(it.arg_at(0, OWNER), first);
    // Late again, it gives up both owners.
    it.hears(says(Code::Late)).asks("fair_release");
    // The last try has no seat: it is undone first.
    asks(Patience::Once).hears(says(Code::Late)).asks("fair_release");
}

#[test]
fn cancelled_while_it_lets_everything_go_it_says_so() {
    let it = gathering(2, Patience::Once).hears_from(0, granted(10)).hears_from(1, busy(900));
    let it = it.cancelled().hears_from(0, says(Code::Done));
    assert_eq!(multi_lock::end(&it), Err(AcquireError::Cancelled { held_at_most: None }));
}
