//! Random guarded writes on a real Redis and on the model, compared after each.

use std::time::Duration;

use edgelatch_proto::protocol::calls::GuardedWrite;
use edgelatch_proto::protocol::reply::Code;
use edgelatch_proto::protocol::script::Bound;
use edgelatch_proto::timing::{GuardMemory, LifeTime};
use proptest::collection::vec;
use proptest::prelude::*;

use super::coverage::run_all;
use super::pair::Pair;
use crate::scripts::guard::writes::{KEY, guard, minutes, stamp};
use test_support::calls::request;
use test_support::script_model::Value;

/// All codes of a write.
const WRITTEN: &[Code] = &[
    Code::Done,
    Code::AlreadyYours,
    Code::No,
    Code::Late,
    Code::Superseded,
    Code::TooOld,
    Code::TokenAhead,
];

#[derive(Clone, Debug)]
enum Step {
    Write {
        /// A token that is this many seconds from now, or a small number.
        token: Result<i64, u64>,
        owner: u8,
        number: u64,
        op: u8,
        memory: Option<u64>,
        late: bool,
    },
    Newest,
    /// The key of the name is a held lock.
    Lock,
    Touch {
        of: usize,
        away: bool,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let token = prop_oneof![
        6 => proptest::sample::select(vec![Ok(-7_200), Ok(-90), Ok(-30), Ok(0), Ok(120)]),
        2 => (1..4_u64).prop_map(Err),
    ];
    let memory = proptest::sample::select(vec![Some(1), Some(60), None]);
    let write = (token, 1..3_u8, 1..4_u64, 0..4_u8, memory, 0..8_u8).prop_map(
        |(token, owner, number, op, memory, late)| Step::Write {
            token,
            owner,
            number,
            op,
            memory,
            late: late == 0,
        },
    );
    prop_oneof![
        12 => write,
        2 => Just(Step::Newest),
        1 => Just(Step::Lock),
        1 => (any::<usize>(), any::<bool>()).prop_map(|(of, away)| Step::Touch { of, away }),
    ]
}

#[test]
fn random_writes_do_to_redis_what_they_do_to_the_model() {
    let verdicts = [("guard_write", WRITTEN), ("guard_newest", &[Code::Done])];
    run_all(&verdicts, &[], &vec(step(), 1..30), async |redis, steps, replies| {
        let mut pair = Pair::new(redis).await;
        pair.says_the_same = close;
        // One base for all steps, so that they meet each other's tokens.
        let base = redis.now_ms().await;
        for step in &steps {
            replies.extend(take(&mut pair, step, base).await);
        }
    });
}

async fn take(pair: &mut Pair<'_>, step: &Step, base: u64) -> Option<(&'static str, Code)> {
    let what = format!("{step:?}");
    match step {
        Step::Write { token, owner, number, op, memory, late } => {
            let micros = |seconds: i64| (base.saturating_add_signed(seconds * 1_000)) * 1_000;
            let stamp = stamp(token.map_or_else(|small| small, micros), *owner, *number);
            let write = match op {
                0 => GuardedWrite::set("x", None),
                1 => GuardedWrite::set("y", Some(LifeTime::new(Duration::from_secs(600)).unwrap())),
                2 => GuardedWrite::delete(),
                _ => GuardedWrite::claim(),
            };
            let not_after = if *late { base - 1 } else { base + 600_000 };
            let bound = Bound { not_after: Some(not_after), keep: Duration::ZERO };
            let guard = guard(memory.map_or(GuardMemory::FOR_EVER, minutes));
            let call = guard.write(request(1), bound, stamp, &write);
            let reply = pair.try_call(&call, &what).await.ok()?;
            Some(("guard_write", reply.code))
        }
        Step::Newest => {
            let newest = guard(GuardMemory::DEFAULT).newest(request(2));
            Some(("guard_newest", pair.call(&newest, &what).await.code))
        }
        Step::Lock => {
            let holder = Value::Hash([("java:7".into(), "1".into())].into());
            pair.write(KEY, holder, Some(base + 600_000)).await;
            pair.compare_keys(&what).await;
            None
        }
        Step::Touch { of, away } => {
            pair.touch(*of, *away).await;
            pair.compare_keys(&what).await;
            None
        }
    }
}

/// The model does not know the microseconds of Redis' clock.
fn close(real: &str, model: &str, allowance: u64) -> bool {
    let (real, model): (u64, u64) = (real.parse().unwrap(), model.parse().unwrap());
    real == model || real > 1 << 49 && real.abs_diff(model) <= (allowance + 1) * 1_000
}
