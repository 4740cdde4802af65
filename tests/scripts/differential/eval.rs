//! Random calls of callers' own scripts under a lease, on a real Redis and on the model, compared
//! after each.

use std::time::Duration;

use edgelatch_proto::protocol::reply::Code;
use edgelatch_proto::protocol::script::Bound;
use proptest::collection::vec;
use proptest::prelude::*;

use super::coverage::run_all;
use super::pair::Pair;
use crate::scripts::eval::held::{count, targets};
use test_support::calls::{Calls, UNBOUND, lease, owner, request, token};

#[derive(Clone, Debug)]
enum Step {
    Eval { request: u64, owner: u8, once: bool, most: u32, limit: Option<i64> },
    Cancel { request: u64, limit: Option<i64> },
    Acquire { owner: u8 },
    Release { owner: u8 },
    Touch { of: usize, away: bool },
}

fn step() -> impl Strategy<Value = Step> {
    let limit = || {
        proptest::sample::select(vec![None, Some(-1), Some(-90_000), Some(600_000), Some(700_000)])
    };
    let eval = (1..=5_u64, 1..3_u8, any::<bool>(), 0..3_u32, limit()).prop_map(
        |(request, owner, once, most, limit)| Step::Eval {
            request,
            owner,
            once,
            most: most * 4,
            limit,
        },
    );
    prop_oneof![
        8 => eval,
        1 => (1..=5_u64, limit()).prop_map(|(request, limit)| Step::Cancel { request, limit }),
        3 => (1..3_u8).prop_map(|owner| Step::Acquire { owner }),
        1 => (1..3_u8).prop_map(|owner| Step::Release { owner }),
        1 => (any::<usize>(), any::<bool>()).prop_map(|(of, away)| Step::Touch { of, away }),
    ]
}

/// All codes of a script under a lease.
const VERDICTS: &[Code] = &[
    Code::Done,
    Code::Late,
    Code::Gone,
    Code::Lost,
    Code::BoundRequired,
    Code::Unknown,
    Code::ScriptFailed,
];

#[test]
fn random_scripts_under_leases_do_to_redis_what_they_do_to_the_model() {
    let steps = vec((step(), 0..3_usize), 1..30);
    run_all(
        &[("eval", VERDICTS), ("cancel", &[Code::Done])],
        &[],
        &steps,
        async |redis, steps, replies| {
            let mut pair = Pair::new(redis).await;
            let mut grants = [1; 2];
            // One kind per run: a lock, several locks, or values of a group.
            let kind = [0, 1, 5][steps[0].1];
            for (step, _) in &steps {
                replies.extend(take(&mut pair, step, &mut grants, kind).await);
            }
        },
    );
}

async fn take(
    pair: &mut Pair<'_>,
    step: &Step,
    grants: &mut [u64; 2],
    kind: usize,
) -> Option<(&'static str, Code)> {
    let (what, now) = (format!("{step:?}"), pair.now());
    let calls = Calls(targets().swap_remove(kind));
    let at = |limit: &Option<i64>| Bound {
        not_after: limit.map(|ms| now.saturating_add_signed(ms)),
        keep: Duration::from_secs(90),
    };
    let grant = |who: u8| grants[usize::from(who) - 1];
    match step {
        Step::Eval { request: id, owner: who, once, most, limit } => {
            let script = if *once { count(*most) } else { count(*most).repeatable() };
            let eval = calls.0.eval(owner(*who), token(grant(*who)), &script).unwrap();
            Some(("eval", pair.call(&eval.call(request(*id), at(limit)), &what).await.code))
        }
        Step::Cancel { request: id, limit } => {
            let eval = calls.0.eval(owner(1), token(grant(1)), &count(9)).unwrap();
            Some(("cancel", pair.call(&eval.cancel(request(*id), at(limit)), &what).await.code))
        }
        Step::Acquire { owner: who } => {
            let take = calls.acquire(request(7), UNBOUND, &owner(*who), lease(200_000), false);
            let reply = pair.call(&take, &what).await;
            if matches!(reply.code, Code::Done | Code::AlreadyYours) {
                grants[usize::from(*who) - 1] = reply.value.parse().unwrap();
            }
            Some((take.script().name, reply.code))
        }
        Step::Release { owner: who } => {
            let release = calls.release(request(8), UNBOUND, &owner(*who));
            Some((release.script().name, pair.call(&release, &what).await.code))
        }
        Step::Touch { of, away } => {
            pair.touch(*of, *away).await;
            pair.compare_keys(&what).await;
            None
        }
    }
}
