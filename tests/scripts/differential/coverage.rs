//! Random calls on a Redis, until every code that the scripts can reply has occurred.

use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

use edgelatch_proto::protocol::reply::Code::{self, *};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use tokio::runtime::Builder;
use tokio::task::{JoinError, LocalSet};

use test_support::random::{cases, given as variable};
use test_support::redis::{DATABASES, Redis};

/// Scripts, and the codes that each can reply.
pub(crate) type Verdicts = [(&'static str, &'static [Code])];
/// The codes that scripts have replied.
pub(crate) type Replies = Vec<(&'static str, Code)>;

/// The codes of an acquisition.
pub(crate) const TAKEN: &[Code] = &[Done, AlreadyYours, No, Late, Gone, Lost, TokenRange];
/// The codes of a renewal.
pub(crate) const RENEWED: &[Code] = &[Done, Late, Lost];
/// The codes of an idempotent call.
pub(crate) const ONCE: &[Code] = &[Done, No, Late, BoundRequired, Gone, Unknown];
/// The codes of a release or a query.
pub(crate) const TOLD: &[Code] = &[Done, No];

/// The largest factor by which a run is extended, so that bad luck fails no test: a code that has
/// not occurred by then never does.
const LUCK: u64 = 20;
/// The number of calls of a test, unless the environment says otherwise; each script gets at least
/// a hundredth of them.
const CALLS: u64 = 4_000;
/// The variable with the number of calls.
const HOW_MANY: &str = "EDGELATCH_CALLS";

/// Runs `act` on a Redis with random cases of `given`, concurrently, until each of `verdicts` has
/// occurred and every script was called often enough. The Redis is subscribed to `channels`.
pub(crate) fn run_all<S: Strategy<Value: Clone + 'static>>(
    verdicts: &Verdicts,
    channels: &[String],
    given: &S,
    act: impl AsyncFn(&Redis, S::Value, &mut Replies) + 'static,
) {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let mut redis = runtime.block_on(Redis::start());
    runtime.block_on(redis.load_scripts());
    runtime.block_on(redis.listen(channels));
    // The runner draws and shrinks; the loop below counts.
    let mut runner = TestRunner::new(cases(1));
    let mut calls = Calls::of(verdicts);
    let act = Rc::new(act);
    while let Some(wanted) = calls.wanted() {
        assert!(calls.made() < LUCK * calls.least.max(CALLS), "never said: {wanted}");
        let trees: Vec<S::Tree> =
            (0..DATABASES).map(|_| given.new_tree(&mut runner).unwrap()).collect();
        let outcomes = runtime.block_on(side_by_side(&redis, &trees, &act));
        for (case, outcome) in trees.into_iter().zip(outcomes) {
            match outcome {
                Ok(replies) => calls.count(&replies),
                Err(error) => {
                    shrink(&mut runner, case, |given| {
                        let alone = redis.beside(0);
                        runtime.block_on(act(&alone, given, &mut Replies::new()));
                    });
                    panic!("not when it is alone: {error}");
                }
            }
        }
    }
    println!("{calls}");
    let _context = runtime.enter();
    drop(redis);
}

/// Runs each case in a database of its own.
async fn side_by_side<V: Clone + 'static>(
    redis: &Redis,
    cases: &[impl ValueTree<Value = V>],
    act: &Rc<impl AsyncFn(&Redis, V, &mut Replies) + 'static>,
) -> Vec<Result<Replies, JoinError>> {
    let tasks = LocalSet::new();
    let running = cases.iter().enumerate().map(|(database, case)| {
        let (redis, given, act) = (redis.beside(database), case.current(), act.clone());
        tasks.spawn_local(async move {
            let mut replies = Replies::new();
            act(&redis, given, &mut replies).await;
            replies
        })
    });
    let running = Vec::from_iter(running);
    tasks
        .run_until(async {
            let mut outcomes = Vec::new();
            for task in running {
                outcomes.push(task.await);
            }
            outcomes
        })
        .await
}

/// Searches for the smallest case that fails, and fails with it.
fn shrink<T: ValueTree>(runner: &mut TestRunner, case: T, act: impl Fn(T::Value)) {
    let outcome = runner.run_one(case, |given| {
        act(given);
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

/// The number of calls of each script, and the codes that have not occurred yet.
struct Calls {
    made: BTreeMap<&'static str, u64>,
    silent: Vec<(&'static str, Code)>,
    least: u64,
}

impl Calls {
    fn of(verdicts: &Verdicts) -> Self {
        let made = verdicts.iter().map(|(script, _)| (*script, 0)).collect();
        let is_expected = |(script, codes): &(&'static str, &'static [Code])| {
            let script = *script;
            codes.iter().map(move |code| (script, *code))
        };
        let least = variable(HOW_MANY).unwrap_or(CALLS);
        Self { made, silent: verdicts.iter().flat_map(is_expected).collect(), least }
    }

    fn count(&mut self, replies: &Replies) {
        for (script, _) in replies {
            *self.made.entry(script).or_default() += 1;
        }
        self.silent.retain(|verdict| !replies.contains(verdict));
    }

    fn made(&self) -> u64 {
        self.made.values().sum()
    }

    /// A description of the missing codes and calls; `None` if nothing is missing.
    fn wanted(&self) -> Option<String> {
        let rare = self.made.iter().filter(|(_, made)| **made < self.least / 100);
        let rare = Vec::from_iter(rare.map(|(script, _)| script));
        let is_enough = self.made() >= self.least && rare.is_empty() && self.silent.is_empty();
        (!is_enough).then(|| format!("{:?}; too rarely called: {rare:?}", self.silent))
    }
}

/// Prints one line for each script.
impl fmt::Display for Calls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.made
            .iter()
            .try_for_each(|(script, made)| writeln!(f, "compared {made} calls of {script}"))
    }
}
