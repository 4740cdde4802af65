//! Random calls of edgelatch and of Redisson about values, on a real Redis and on the model,
//! compared after each.

use std::collections::BTreeMap;
use std::time::Duration;

use edgelatch_proto::protocol::reply::Code;
use edgelatch_proto::protocol::script::{Bound, ScriptCall};
use proptest::collection::vec;
use proptest::prelude::*;

use super::coverage::{ONCE, RENEWED, TAKEN, TOLD, run_all};
use super::pair::Pair;
use super::steps::Aloud;
use crate::scripts::group::fixtures::{GROUP, Java, PAD, field, values_of};
use test_support::calls::{lease, owner, request, token};
use test_support::script_model::Value as Stored;
use test_support::script_model::java_group::JavaGroup;

const SETS: [&[&str]; 4] = [&["A"], &["A", "B"], &["B", "C"], &["A", "B", "C"]];
const HOLDERS: [&str; 2] =
    ["8743c9c0-0795-4907-87fd-6c719a6b4586:1", "1f1d3b8e-5a0a-4d2f-9f0e-0a6b7c8d9e0f:7"];
const TOKEN_KEY: &str = "redisson_lock_token:{students}";

/// All codes of the scripts.
const VERDICTS: [(&str, &[Code]); 5] = [
    ("group_acquire", TAKEN),
    ("group_renew", RENEWED),
    ("group_release", TOLD),
    ("group_force_release", ONCE),
    ("group_inspect", TOLD),
];

/// One step.
#[derive(Clone, Debug)]
enum Step {
    Ours(Ours),
    Java {
        act: u8,
        holder: usize,
        set: usize,
        ahead: i64,
        lease: u64,
    },
    /// One of the keys, or its expiry, is removed.
    Touch {
        of: usize,
        away: bool,
    },
    /// The key of the group's name is a held lock.
    Lock {
        read_write: bool,
    },
    /// Another program writes a token.
    Token {
        value: u64,
        ends_in: Option<u64>,
    },
}

#[derive(Clone, Debug)]
struct Ours {
    script: u8,
    set: usize,
    owner: u8,
    request: u64,
    lease: u64,
    last: bool,
    /// The not-after, relative to now.
    bound: Option<i64>,
    keep: u64,
}

fn step() -> impl Strategy<Value = Step> {
    let script = proptest::sample::select(vec![0, 0, 0, 0, 1, 1, 2, 2, 3, 4, 5]);
    let lease = proptest::sample::select(vec![60_000, 200_000, 3_600_000_u64]);
    let bound = prop_oneof![
        3 => Just(None),
        2 => proptest::sample::select(vec![Some(-1), Some(-90_000)]),
        4 => (60_000..900_000_i64).prop_map(Some),
    ];
    let keep = proptest::sample::select(vec![30_000, 600_000_u64]);
    let ours = (script, 0..4_usize, 1..4_u8, 1..=6_u64, lease.clone(), any::<bool>(), bound, keep)
        .prop_map(|(script, set, owner, request, lease, last, bound, keep)| {
            Step::Ours(Ours { script, set, owner, request, lease, last, bound, keep })
        });
    // Far enough ahead to take values from their holder, and far enough behind to lose them.
    let ahead = proptest::sample::select(vec![0, 500, -500, 7_200_000, -7_200_000_i64]);
    let java = (0..4_u8, 0..2_usize, 0..4_usize, ahead, lease)
        .prop_map(|(act, holder, set, ahead, lease)| Step::Java { act, holder, set, ahead, lease });
    let value = proptest::sample::select(vec![1, 5_000_000_000_000_000, (1 << 53) - 1]);
    let ends = proptest::option::of(60_000..600_000_u64);
    prop_oneof![
        20 => ours,
        6 => java,
        2 => (any::<usize>(), any::<bool>()).prop_map(|(of, away)| Step::Touch { of, away }),
        1 => any::<bool>().prop_map(|read_write| Step::Lock { read_write }),
        1 => (value, ends).prop_map(|(value, ends_in)| Step::Token { value, ends_in }),
    ]
}

#[test]
fn random_calls_about_values_do_to_redis_what_they_do_to_the_model() {
    let channel = "redisson_lock__channel:{students}".to_owned();
    let given = (Aloud::any(), vec(step(), 1..40));
    run_all(&VERDICTS, &[channel], &given, async |redis, (aloud, steps), replies| {
        let pair = Pair::new(redis).await;
        let mut world = World { pair, aloud, tokens: BTreeMap::new(), unlocks: 0 };
        for step in &steps {
            replies.extend(world.take(step).await);
        }
    });
}

/// The objects of the steps.
struct World<'a> {
    pair: Pair<'a>,
    aloud: Aloud,
    /// The newest token of each owner.
    tokens: BTreeMap<u8, u64>,
    unlocks: u64,
}

impl World<'_> {
    /// Runs a step on both, and compares everything visible.
    async fn take(&mut self, step: &Step) -> Option<(&'static str, Code)> {
        let now = self.pair.now();
        let what = format!("{step:?}");
        match step {
            Step::Ours(ours) => {
                let call = self.make(ours, now);
                let reply = self.pair.try_call(&call, &what).await.ok()?;
                if ours.script == 0 && matches!(reply.code, Code::Done | Code::AlreadyYours) {
                    self.tokens.insert(ours.owner, reply.value.parse().unwrap());
                }
                return Some((call.script().name, reply.code));
            }
            Step::Java { act, holder, set, ahead, lease } => {
                let before = self.pair.redis.now_ms().await;
                let java = Java {
                    redis: self.pair.redis,
                    group: GROUP,
                    holder: HOLDERS[*holder],
                    ahead: *ahead,
                };
                self.java(java, *act, SETS[*set], *lease).await;
                self.pair.took(before, &what).await;
            }
            Step::Touch { of, away } => self.pair.touch(*of, *away).await,
            Step::Lock { read_write } => {
                let field = if *read_write { "mode" } else { HOLDERS[0] };
                let lock = Stored::Hash(BTreeMap::from([(field.into(), "1".into())]));
                self.pair.write(GROUP, lock, Some(now + 600_000)).await;
            }
            Step::Token { value, ends_in } => {
                let value = Stored::Text(value.to_string());
                self.pair.write(TOKEN_KEY, value, ends_in.map(|ms| now + ms)).await;
            }
        }
        self.pair.compare_keys(&what).await;
        None
    }

    fn make(&self, ours: &Ours, now: u64) -> ScriptCall {
        let not_after = ours.bound.map(|ms| now.saturating_add_signed(ms));
        let bound = Bound { not_after, keep: Duration::from_millis(ours.keep) };
        let calls = values_of(GROUP, SETS[ours.set], PAD, self.aloud.publish);
        let (who, id) = (owner(ours.owner), request(ours.request));
        match ours.script {
            0 => {
                let grants = self.aloud.grants;
                calls.acquire_aloud(id, bound, &who, lease(ours.lease), ours.last, grants)
            }
            1 => calls.release(id, bound, &who),
            2 => {
                let grant = self.tokens.get(&ours.owner).copied().unwrap_or(9);
                calls.renew(id, bound, &who, lease(ours.lease), token(grant))
            }
            3 => calls.force_release(id, bound),
            4 => calls.0.force_release().cancel(id, bound),
            _ => calls.inspect(id, Some(who)),
        }
    }

    /// Runs Redisson's script and its model; both must return the same.
    async fn java(&mut self, java: Java<'_>, act: u8, values: &[&str], lease: u64) {
        self.unlocks += 1;
        let reply = match act {
            0 | 1 => java.acquires(values, lease).await,
            2 => java.renews(values, lease).await,
            _ => java.unlocks(values, self.unlocks).await,
        };
        let fields: Vec<String> = values.iter().map(|value| field(value)).collect();
        let run =
            JavaGroup { group: GROUP, holder: java.holder, clock: reply.clock, fields: &fields };
        let (model, now) = (&mut self.pair.model, reply.server);
        match act {
            0 | 1 => {
                let left = model.java_group_acquire(&run, lease, now);
                assert_eq!(left.map(u64::cast_signed), reply.number);
            }
            2 => {
                assert_eq!(Some(i64::from(model.java_group_renew(&run, lease, now))), reply.number)
            }
            _ => {
                let whole = model.java_group_unlock(&run, 60_000, now);
                assert_eq!(whole.map(i64::from), reply.number);
                if let Some(whole) = whole {
                    let latch = format!("redisson_unlock_latch:{{{GROUP}}}:{:032x}", self.unlocks);
                    let verdict = Stored::Text(i64::from(whole).to_string());
                    model.put(&latch, verdict, Some(now + 60_000));
                }
            }
        }
    }
}
