//! What holds for both machines that take several parts, whatever happens: they end, keep to their budget, and do not mind being
//! woken.

use edgelatch::error::{AcquireError, FailureKind};
use edgelatch::machine::{GatherSpec, Gathered, Input, Machine, MajoritySpec, Output};
use edgelatch::protocol::reply::{Code, Reply};
use edgelatch::timing::RequestBudget;
use proptest::prelude::*;

use crate::properties::{ends, event, patience, sleeps_well};
use crate::support::fixtures::up_to;
use crate::support::virtual_time::{SERVER_START, START};
use crate::{multi_lock, red_lock};

/// Answers every call as `answers` say, in turn; tells how many calls were made until the end.
fn spend<M>(mut machine: M, answers: &[u8]) -> u32
where
    M: Machine<Outcome = Result<Gathered, AcquireError>>,
{
    let (mut now, mut made) = (START, 0);
    let mut answers = answers.iter().cycle();
    for _ in 0..20_000 {
        match machine.poll(now) {
            Output::Call { call, script, .. } => {
                made += 1;
                let answer = answers.next().unwrap();
                let value = (answer % 3 + 1).to_string();
                let reply = |code, ms| {
                    let reply =
                        Reply { code, value, ms, server_ms: SERVER_START, acknowledged: None };
                    Input::Reply { call, reply }
                };
                let input = match (script.script().name, answer % 8) {
                    ("lock_release" | "lock_raise", 0 | 1) | (_, 7) => {
                        Input::Failed { call, kind: FailureKind::Broken }
                    }
                    ("lock_release", _) | (_, 4) => reply(Code::No, 86_000),
                    (_, 5) => reply(Code::Late, 0),
                    (_, 6) => reply(Code::Lost, 0),
                    _ => reply(Code::Done, 30_000),
                };
                machine.handle(input, now);
            }
            Output::Listen { .. } => {}
            Output::Wait { until, .. } => {
                now = now + now.until(until);
                machine.handle(Input::Woken, now);
            }
            Output::Done(_) => return made,
        }
    }
    panic!("it never ends");
}

proptest! {
    #[test]
    fn all_parts_together_spend_no_more_than_the_budget(
        parts in 1_u32..=4,
        requests in 3_u32..80,
        wait in 1_u64..120_000,
        answers in proptest::collection::vec(any::<u8>(), 1..30),
    ) {
        let budget = RequestBudget::new(requests).ok();
        let targets = (0..parts).map(|part| multi_lock::plain(part as usize)).collect();
        let given = GatherSpec { budget, ..multi_lock::spec(targets, up_to(wait)) };
        let made = spend(multi_lock::machine(given), &answers);
        prop_assert!(made <= requests.max(6 * parts), "{made} of {requests}");

        let nodes = if parts < 3 { 3 } else { 5 };
        let given = MajoritySpec { budget, ..red_lock::spec(nodes as usize, up_to(wait)) };
        let made = spend(red_lock::machine(given), &answers);
        prop_assert!(made <= requests.max(8 * nodes), "{made} of {requests}");
    }

    #[test]
    fn both_end_whatever_happens_and_needless_waking_moves_nothing(
        events in prop::collection::vec(event(), 0..40),
        extra in prop::collection::vec(0_u8..3, 40),
        patience in patience(),
    ) {
        let budget = RequestBudget::new(40).ok();
        let targets = vec![multi_lock::fair(0), multi_lock::plain(1), multi_lock::plain(2)];
        let given = multi_lock::machine(GatherSpec { budget, ..multi_lock::spec(targets, patience) });
        ends(given.clone(), &events, 300)?;
        sleeps_well(given, &events, &extra)?;

        let given = red_lock::machine(MajoritySpec { budget, ..red_lock::spec(3, patience) });
        ends(given.clone(), &events, 400)?;
        sleeps_well(given, &events, &extra)?;
    }
}
