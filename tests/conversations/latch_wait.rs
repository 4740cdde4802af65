//! Waiting until a latch is open.

use edgelatch::LockName;
use edgelatch::error::{AcquireError, FailureKind, RefusalKind};
use edgelatch::machine::{Awaiting, Entropy, Wake};
use edgelatch::protocol::calls::CountDownLatchCalls;
use edgelatch::protocol::reply::Code;
use edgelatch::protocol::script::Publish;
use edgelatch::timing::{AttemptTime, RequestBudget};

use crate::support::fixtures::up_to;
use crate::support::virtual_time::{START, Says, Talk, says, talk};

const INSPECT: &str = "latch_inspect";

/// Waits for so long, with so many questions.
fn awaits(wait_ms: u64, questions: Option<u32>) -> Talk<Awaiting> {
    let calls = CountDownLatchCalls::new(LockName::parse("job").unwrap(), Publish::Plain);
    let budget = questions.map(|number| RequestBudget::new(number).unwrap());
    let entropy = Entropy::new([7; 32]);
    let it = Awaiting::new(calls, up_to(wait_ms), budget, AttemptTime::DEFAULT, entropy, START);
    talk(it).asks(INSPECT)
}

fn closed() -> Says {
    says(Code::Done)
}

/// Up to the last question, each answered at once: the latch is closed.
fn to_the_last(mut it: Talk<Awaiting>, wait_ms: u64) -> Talk<Awaiting> {
    for _ in 0..1_000 {
        it = it.hears(closed()).wakes().asks(INSPECT);
        if it.elapsed_ms() == wait_ms {
            return it;
        }
    }
    panic!("still asking after {} ms", it.elapsed_ms());
}

#[test]
fn a_wait_that_is_over_ends_with_what_its_last_question_says() {
    let closed_still = to_the_last(awaits(20_000, None), 20_000).hears(closed()).ends();
    assert_eq!(closed_still, Err(AcquireError::Busy { remaining: None }));
    let open = to_the_last(awaits(20_000, None), 20_000).hears(says(Code::No)).ends();
    assert_eq!(open, Ok(()));
}

#[test]
fn the_last_question_is_worth_three_attempts_and_the_others_one() {
    let broken = |it: Talk<Awaiting>| it.fails(FailureKind::Broken);
    let mut it = broken(to_the_last(awaits(20_000, None), 20_000));
    for _ in 0..2 {
        it = broken(it.waits(Wake::BackOff).wakes().asks(INSPECT));
    }
    assert_eq!(it.ends(), Err(AcquireError::Unreachable(FailureKind::Broken)));
    // The same where the budget ends first; of an earlier one, which another follows, it is enough to have it failed.
    let it = broken(awaits(60_000, Some(4))).wakes().asks(INSPECT);
    let it = broken(it).wakes().asks(INSPECT);
    let mut it = broken(it).waits(Wake::LastTry).wakes().asks(INSPECT);
    for _ in 0..2 {
        it = broken(it).waits(Wake::BackOff).wakes().asks(INSPECT);
    }
    assert_eq!(it.hears(says(Code::No)).ends(), Ok(()));
}

#[test]
fn a_budget_lasts_for_the_whole_wait() {
    let mut it = awaits(60_000, Some(20)).hears(closed());
    for _ in 0..18 {
        it = it.wakes().asks(INSPECT).hears(closed());
    }
    // The mean of the pauses is such that the last question is due when the wait is over.
    assert!((45_000..60_000).contains(&it.elapsed_ms()), "{}", it.elapsed_ms());
    assert_eq!(it.wakes().asks(INSPECT).elapsed_ms(), 60_000);
}

#[test]
fn a_refusal_that_lasts_ends_it_and_one_that_may_pass_does_not() {
    let refused = awaits(20_000, None).refused("WRONGPASS no").ends();
    let Err(AcquireError::Refused(refusal)) = refused else { panic!("{refused:?}") };
    assert_eq!(refusal.kind(), RefusalKind::Unauthorized);
    let it = awaits(20_000, None).refused("LOADING not yet").waits(Wake::BackOff);
    assert_eq!(it.wakes().asks(INSPECT).hears(says(Code::No)).ends(), Ok(()));
    // Said to the last question, it is told.
    let mut it = to_the_last(awaits(20_000, None), 20_000).refused("LOADING not yet");
    for _ in 0..2 {
        it = it.wakes().asks(INSPECT).refused("LOADING not yet");
    }
    let refused = it.ends();
    let Err(AcquireError::Refused(refusal)) = refused else { panic!("{refused:?}") };
    assert_eq!(refusal.kind(), RefusalKind::Unavailable);
}

#[test]
fn whoever_has_enough_of_it_is_done_at_once() {
    let cancelled = Err(AcquireError::Cancelled { held_at_most: None });
    assert_eq!(awaits(20_000, None).cancelled().ends(), cancelled);
    assert_eq!(awaits(20_000, None).hears(closed()).cancelled().ends(), cancelled);
}
