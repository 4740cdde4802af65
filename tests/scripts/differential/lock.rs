//! Random calls of a lock on a real Redis and on the model, compared after each.

use std::collections::BTreeMap;

use edgelatch_proto::protocol::reply::Code;
use edgelatch_proto::protocol::script::ScriptCall;
use proptest::collection::vec;

use super::coverage::{ONCE, RENEWED, TAKEN, TOLD, run_all};
use super::pair::Pair;
use super::steps::lock::{Step, step};
use super::steps::{Aloud, LOCKS, TOKEN_KEYS};
use crate::scripts::group::fixtures::field;
use test_support::calls::{announced_lock, lease, owner, request, token};
use test_support::script_model::Value;

/// All codes of the scripts.
const VERDICTS: [(&str, &[Code]); 6] = [
    ("lock_acquire", TAKEN),
    ("lock_release", TOLD),
    ("lock_renew", RENEWED),
    ("lock_force_release", ONCE),
    ("cancel", &[Code::Done, Code::No, Code::Gone, Code::BoundRequired, Code::Unknown]),
    ("lock_inspect", TOLD),
];

/// S65, S70.
#[test]
fn random_calls_do_to_redis_what_they_do_to_the_model() {
    let channels = ["redisson_lock__channel:{job}".to_owned()];
    let given = (Aloud::any(), vec(step(), 1..40));
    run_all(&VERDICTS, &channels, &given, async |redis, (aloud, steps), replies| {
        let mut world = World { pair: Pair::new(redis).await, aloud, tokens: BTreeMap::new() };
        for step in &steps {
            replies.extend(world.take(step).await);
        }
    });
}

/// The objects of the steps.
struct World<'a> {
    pair: Pair<'a>,
    aloud: Aloud,
    /// The newest token of each owner on each lock.
    tokens: BTreeMap<(usize, u8), u64>,
}

impl World<'_> {
    /// Runs a step on both, and compares everything visible.
    async fn take(&mut self, step: &Step) -> Option<(&'static str, Code)> {
        let now = self.pair.now();
        match step {
            Step::Call { .. } => return self.call(step, now).await,
            Step::Java { lock, ends_in } => {
                let holder = Value::Hash(BTreeMap::from([("java:7".into(), "2".into())]));
                self.pair.write(LOCKS[*lock], holder, ends_in.map(|ms| now + ms)).await;
            }
            Step::Group { lock, ends_in } => {
                let holder = Value::Hash(BTreeMap::from([(field("A"), "java:7".into())]));
                self.pair.write(LOCKS[*lock], holder, Some(now + ends_in)).await;
            }
            Step::Token { lock, value, ends_in } => {
                let value = Value::Text(value.to_string());
                self.pair.write(TOKEN_KEYS[*lock], value, ends_in.map(|ms| now + ms)).await;
            }
            Step::Loss { of } | Step::Persist { of } => {
                self.pair.touch(*of, matches!(step, Step::Loss { .. })).await;
            }
        }
        self.pair.compare_keys(&format!("{step:?}")).await;
        None
    }

    /// Returns `None` if the call failed.
    async fn call(&mut self, step: &Step, now: u64) -> Option<(&'static str, Code)> {
        let call = self.make(step, now);
        let reply = self.pair.try_call(&call, &format!("{step:?}")).await.ok()?;
        if let Step::Call { script: 0, lock, owner, .. } = step
            && matches!(reply.code, Code::Done | Code::AlreadyYours)
        {
            self.tokens.insert((*lock, *owner), reply.value.parse().unwrap());
        }
        Some((call.script().name, reply.code))
    }

    fn make(&self, step: &Step, now: u64) -> ScriptCall {
        let Step::Call {
            script,
            lock: number,
            owner: who,
            request: id,
            lease: ms,
            last,
            bound,
            keep,
        } = step
        else {
            unreachable!("only calls are made")
        };
        let bound = bound.bound(now, *keep);
        let lock = announced_lock(LOCKS[*number], self.aloud.publish);
        let (owner, id) = (owner(*who), request(*id));
        match script {
            0 => lock.acquire_aloud(id, bound, &owner, lease(*ms), *last, self.aloud.grants),
            1 => lock.release(id, bound, &owner),
            2 => {
                let grant = self.tokens.get(&(*number, *who)).copied().unwrap_or(9);
                lock.renew(id, bound, &owner, lease(*ms), token(grant))
            }
            3 => lock.force_release(id, bound),
            4 => lock.0.force_release().cancel(id, bound),
            _ => lock.inspect(id, Some(owner)),
        }
    }
}
