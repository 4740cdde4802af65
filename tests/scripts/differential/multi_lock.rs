//! Random calls about one to four locks at once, on a real Redis and on the model, compared after
//! each.

use std::collections::BTreeMap;
use std::time::Duration;

use edgelatch_proto::protocol::reply::Code;
use edgelatch_proto::protocol::script::{Bound, ScriptCall};
use proptest::collection::vec;
use proptest::prelude::*;

use super::coverage::{RENEWED, TAKEN, TOLD, run_all};
use super::pair::Pair;
use super::steps::Aloud;
use crate::scripts::multi_lock::{locks_that_publish, token_key};
use test_support::calls::{lease, owner, request, token};
use test_support::script_model::Value;

const NAMES: [&str; 4] = ["a", "b", "fc", "fd"];
const SETS: [&[&str]; 6] =
    [&["a"], &["a", "b"], &["fc", "a"], &["b", "fc", "fd"], &["a", "b", "fc", "fd"], &["fd", "b"]];

/// All codes of the scripts.
const VERDICTS: [(&str, &[Code]); 3] =
    [("lock_acquire", TAKEN), ("lock_renew", RENEWED), ("lock_release", TOLD)];

#[derive(Clone, Debug)]
enum Step {
    Ours {
        script: u8,
        set: usize,
        owner: u8,
        lease: u64,
        last: bool,
        limit: Option<i64>,
        keep: u64,
    },
    /// Java acquires a lock, with an expiry or without.
    Java {
        name: usize,
        ends_in: Option<u64>,
    },
    Token {
        name: usize,
        value: u64,
        ends_in: Option<u64>,
    },
    Touch {
        of: usize,
        away: bool,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let script = proptest::sample::select(vec![0, 0, 0, 1, 1, 2, 3]);
    let lease = proptest::sample::select(vec![60_000, 200_000, 3_600_000_u64]);
    let limit = prop_oneof![
        3 => Just(None),
        1 => Just(Some(-1)),
        4 => (60_000..900_000_i64).prop_map(Some),
    ];
    let keep = proptest::sample::select(vec![30_000, 600_000_u64]);
    let ours = (script, 0..6_usize, 1..4_u8, lease, any::<bool>(), limit, keep).prop_map(
        |(script, set, owner, lease, last, limit, keep)| Step::Ours {
            script,
            set,
            owner,
            lease,
            last,
            limit,
            keep,
        },
    );
    let ends = proptest::option::of(60_000..600_000_u64);
    let value =
        proptest::sample::select(vec![1, 5_000_000_000_000_000, (1 << 53) - 2, (1 << 53) - 1]);
    prop_oneof![
        20 => ours,
        1 => (0..4_usize, ends.clone()).prop_map(|(name, ends_in)| Step::Java { name, ends_in }),
        1 => (0..4_usize, value, ends)
            .prop_map(|(name, value, ends_in)| Step::Token { name, value, ends_in }),
        3 => (any::<usize>(), any::<bool>()).prop_map(|(of, away)| Step::Touch { of, away }),
    ]
}

#[test]
fn random_calls_about_several_locks_do_to_redis_what_they_do_to_the_model() {
    let channels = ["a", "fc"].map(|name| format!("redisson_lock__channel:{{{name}}}"));
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
    /// The newest token of each owner. Its latch belongs to the set's first lock.
    tokens: BTreeMap<u8, u64>,
}

impl World<'_> {
    /// Runs a step on both, and compares everything visible.
    async fn take(&mut self, step: &Step) -> Option<(&'static str, Code)> {
        let now = self.pair.now();
        let what = format!("{step:?}");
        match step {
            Step::Ours { script, owner, .. } => {
                let call = self.make(step, now);
                let reply = self.pair.call(&call, &what).await;
                if *script == 0 && matches!(reply.code, Code::Done | Code::AlreadyYours) {
                    self.tokens.insert(*owner, reply.value.parse().unwrap());
                }
                return Some((call.script().name, reply.code));
            }
            Step::Java { name, ends_in } => {
                let holder = Value::Hash(BTreeMap::from([("java:7".into(), "2".into())]));
                self.pair.write(NAMES[*name], holder, ends_in.map(|ms| now + ms)).await;
            }
            Step::Token { name, value, ends_in } => {
                let (key, value) = (token_key(NAMES[*name]), Value::Text(value.to_string()));
                self.pair.write(&key, value, ends_in.map(|ms| now + ms)).await;
            }
            Step::Touch { of, away } => self.pair.touch(*of, *away).await,
        }
        self.pair.compare_keys(&what).await;
        None
    }

    fn make(&self, step: &Step, now: u64) -> ScriptCall {
        let Step::Ours { script, set, owner: who, lease: ms, last, limit, keep } = step else {
            unreachable!("only calls of ours are made")
        };
        let not_after = limit.map(|ms| now.saturating_add_signed(ms));
        let bound = Bound { not_after, keep: Duration::from_millis(*keep) };
        let calls = locks_that_publish(SETS[*set], self.aloud.publish);
        let (who_asks, id) = (owner(*who), request(1));
        match script {
            0 => calls.acquire_aloud(id, bound, &who_asks, lease(*ms), *last, self.aloud.grants),
            1 => calls.release(id, bound, &who_asks),
            2 => {
                let grant = self.tokens.get(who).copied().unwrap_or(9);
                calls.renew(id, bound, &who_asks, lease(*ms), token(grant))
            }
            _ => calls.inspect(id, Some(who_asks)),
        }
    }
}
