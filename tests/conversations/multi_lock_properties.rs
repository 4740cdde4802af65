//! Properties of the acquisition of a multi-lock and of a redLock under arbitrary events: it ends,
//! it keeps to its budget, and needless wake-ups change nothing.

use edgelatch_proto::error::{AcquireError, FailureKind};
use edgelatch_proto::machine::{AcquireAllSpec, AcquireQuorumSpec, Machine, MultiGrant};
use edgelatch_proto::protocol::reply::Code;
use proptest::prelude::*;
use test_support::random::cases;

use crate::language::*;
use crate::properties::{check_end, check_needless_wakeups, event, wait_policy};

/// Returns how many calls the machine makes until its end. `replies` select the replies to them, in
/// turn.
fn count_calls<M>(machine: M, replies: &[u8]) -> usize
where
    M: Machine<Outcome = Result<MultiGrant, AcquireError>>,
{
    let mut replies = replies.iter().cycle();
    let run = run(machine, |call, _| {
        let number = replies.next().unwrap();
        let reply =
            |code, ms| Some(call.reply(ScriptReply::new(code, number % 3 + 1, ms), SERVER_START));
        match (call.name(), number % 8) {
            ("lock_release" | "lock_raise", 0 | 1) | (_, 7) => Some(call.fail(FailureKind::Broken)),
            ("lock_release", _) | (_, 4) => reply(Code::No, 86_000),
            (_, 5) => reply(Code::Late, 0),
            (_, 6) => reply(Code::Lost, 0),
            _ => reply(Code::Done, 30_000),
        }
    });
    run.calls.len()
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn all_parts_together_spend_no_more_than_the_budget(
        parts in 1_usize..=4,
        requests in 3_u32..80,
        wait_ms in 1_u64..120_000,
        replies in proptest::collection::vec(any::<u8>(), 1..30),
    ) {
        let (budget, requests) = (budget(requests), requests as usize);
        let spec = multi_lock_spec((0..parts).map(plain_part).collect(), up_to(wait_ms));
        let calls = count_calls(multi_lock_machine(AcquireAllSpec { budget, ..spec }), &replies);
        // Six calls are reserved for each part, and eight for each node, whatever the budget is.
        prop_assert!(calls <= requests.max(6 * parts), "{calls} of {requests}");

        let nodes = if parts < 3 { 3 } else { 5 };
        let spec = red_lock_spec(nodes, up_to(wait_ms));
        let calls = count_calls(red_lock_machine(AcquireQuorumSpec { budget, ..spec }), &replies);
        prop_assert!(calls <= requests.max(8 * nodes), "{calls} of {requests}");
    }

    #[test]
    fn multi_locks_and_red_locks_end_for_any_inputs_and_ignore_needless_timeouts(
        events in prop::collection::vec(event(), 0..40),
        extra in prop::collection::vec(0_u8..3, 40),
        wait_policy in wait_policy(),
    ) {
        let budget = budget(40);
        let spec = multi_lock_spec(vec![fair_part(0), plain_part(1), plain_part(2)], wait_policy);
        let machine = multi_lock_machine(AcquireAllSpec { budget, ..spec });
        check_end(machine.clone(), &events, 300)?;
        check_needless_wakeups(machine, &events, &extra)?;

        let spec = red_lock_spec(3, wait_policy);
        let machine = red_lock_machine(AcquireQuorumSpec { budget, ..spec });
        check_end(machine.clone(), &events, 400)?;
        check_needless_wakeups(machine, &events, &extra)?;
    }
}
