//! Random calls on a Redis, until all has been heard that the scripts can say.

use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

use edgelatch::protocol::reply::Code::{self, *};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use tokio::runtime::Builder;
use tokio::task::{JoinError, LocalSet};

use test_support::random::{cases, given as variable};
use test_support::redis::{DATABASES, Redis};

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

/// How many times as many calls there are at most, so that bad luck is no reason to fail: what is
/// not heard by then is never said.
const LUCK: u64 = 20;
/// How many calls are made for a test, unless the environment says otherwise; a hundredth of them
/// of each script at least.
const CALLS: u64 = 4_000;
/// Says how many.
const HOW_MANY: &str = "EDGELATCH_CALLS";

/// Does `act` to a Redis with random cases of `given`, some of them side by side, and on until
/// every one of `verdicts` was heard and every script was called so often. Somebody listens to
/// these channels.
pub(crate) fn hear_all<S: Strategy<Value: Clone + 'static>>(
    verdicts: &Verdicts,
    channels: &[String],
    given: &S,
    act: impl AsyncFn(&Redis, S::Value, &mut Heard) + 'static,
) {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let mut redis = runtime.block_on(Redis::start());
    runtime.block_on(redis.learn());
    runtime.block_on(redis.listen(channels));
    // It draws and shrinks; the loop below counts.
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
                Ok(heard) => calls.count(&heard),
                Err(error) => {
                    shrink(&mut runner, case, |given| {
                        let alone = redis.beside(0);
                        runtime.block_on(act(&alone, given, &mut Heard::new()));
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

/// Does it with each case in a database of its own.
async fn side_by_side<V: Clone + 'static>(
    redis: &Redis,
    cases: &[impl ValueTree<Value = V>],
    act: &Rc<impl AsyncFn(&Redis, V, &mut Heard) + 'static>,
) -> Vec<Result<Heard, JoinError>> {
    let tasks = LocalSet::new();
    let running = cases.iter().enumerate().map(|(database, case)| {
        let (redis, given, act) = (redis.beside(database), case.current(), act.clone());
        tasks.spawn_local(async move {
            let mut heard = Heard::new();
            act(&redis, given, &mut heard).await;
            heard
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

/// Looks for the smallest case that fails as this one did, and fails with it.
fn shrink<T: ValueTree>(runner: &mut TestRunner, case: T, act: impl Fn(T::Value)) {
    let outcome = runner.run_one(case, |given| {
        act(given);
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

/// How often each script was called, and what was not heard yet.
struct Calls {
    made: BTreeMap<&'static str, u64>,
    silent: Vec<(&'static str, Code)>,
    least: u64,
}

impl Calls {
    fn of(verdicts: &Verdicts) -> Self {
        let made = verdicts.iter().map(|(script, _)| (*script, 0)).collect();
        let said = |(script, codes): &(&'static str, &'static [Code])| {
            let script = *script;
            codes.iter().map(move |code| (script, *code))
        };
        let least = variable(HOW_MANY).unwrap_or(CALLS);
        Self { made, silent: verdicts.iter().flat_map(said).collect(), least }
    }

    fn count(&mut self, heard: &Heard) {
        for (script, _) in heard {
            *self.made.entry(script).or_default() += 1;
        }
        self.silent.retain(|verdict| !heard.contains(verdict));
    }

    fn made(&self) -> u64 {
        self.made.values().sum()
    }

    /// What is still missing, if anything is.
    fn wanted(&self) -> Option<String> {
        let rare = self.made.iter().filter(|(_, made)| **made < self.least / 100);
        let rare = Vec::from_iter(rare.map(|(script, _)| script));
        let is_enough = self.made() >= self.least && rare.is_empty() && self.silent.is_empty();
        (!is_enough).then(|| format!("{:?}; too rarely called: {rare:?}", self.silent))
    }
}

/// One line for each script.
impl fmt::Display for Calls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.made
            .iter()
            .try_for_each(|(script, made)| writeln!(f, "compared {made} calls of {script}"))
    }
}
