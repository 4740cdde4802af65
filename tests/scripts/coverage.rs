//! Random calls on a Redis, until all has been heard that the scripts can say.

use std::cell::RefCell;

use edgelatch::protocol::reply::Code::{self, *};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use crate::support::redis::Redis;

/// Scripts, and what each can say.
pub(crate) type Verdicts = [(&'static str, &'static [Code])];
/// What scripts have said.
pub(crate) type Heard = Vec<(&'static str, Code)>;

/// What an acquisition can say.
pub(crate) const TAKEN: &[Code] = &[Done, AlreadyYours, No, Late, Gone, Lost, TokenRange];
/// What a renewal can say.
pub(crate) const RENEWED: &[Code] = &[Done, Late, Lost];
/// What can be said of what is done once.
pub(crate) const ONCE: &[Code] = &[Done, No, Late, BoundRequired, Gone, Unknown];
/// What a release or a question can say.
pub(crate) const TOLD: &[Code] = &[Done, No];

/// How many times as many cases there are at most, so that bad luck is no reason to fail: what is not heard by then is never said.
const LUCK: u32 = 20;

/// Does `act` to a Redis with as many random cases of `given`, and on until every one of `verdicts` was heard.
pub(crate) fn hear_all<S: Strategy>(
    cases: u32,
    verdicts: &Verdicts,
    given: &S,
    act: impl AsyncFn(&Redis, S::Value, &mut Heard),
) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let redis = runtime.block_on(Redis::start());
    let config = ProptestConfig { cases: 1, failure_persistence: None, ..Default::default() };
    let mut seeds = TestRunner::new(config.clone());
    let heard = RefCell::new(Heard::new());
    let mut silent = Vec::from_iter(
        verdicts.iter().flat_map(|(script, codes)| codes.iter().map(move |code| (*script, *code))),
    );
    let mut case = 0;
    while case < cases || !silent.is_empty() {
        case += 1;
        assert!(case <= cases * LUCK, "never said: {silent:?}");
        // A runner is over with its last case, so each case has one; all of them follow from one seed.
        let outcome =
            TestRunner::new_with_rng(config.clone(), seeds.new_rng()).run(given, |given| {
                runtime.block_on(act(&redis, given, &mut heard.borrow_mut()));
                Ok(())
            });
        outcome.unwrap_or_else(|error| panic!("{error}"));
        let said = heard.take();
        silent.retain(|verdict| !said.contains(verdict));
    }
    let _context = runtime.enter();
    drop(redis);
}
