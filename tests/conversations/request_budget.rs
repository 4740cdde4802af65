//! What a wait may spend.

use edgelatch::error::{AcquireError, FailureKind};
use edgelatch::machine::{Acquire, AcquireSpec, Input, Machine, Output};
use edgelatch::protocol::reply::ServerClock;
use proptest::prelude::*;

use crate::support::conversation::*;

/// Runs a wait against a gateway that answers as `answers` say, in turn. Gives the calls made, the time and the end.
fn spend(
    requests: u32,
    wait: u64,
    clock: Option<ServerClock>,
    answers: &[u8],
) -> (u32, u64, Result<(), AcquireError>) {
    let spec = AcquireSpec { budget: budget(requests), ..spec(up_to(wait)) };
    let mut it = Conversation::new(Acquire::new(spec, entropy(), clock, start()));
    let mut answers = answers.iter().cycle();
    let mut made = 0;
    for _ in 0..20_000 {
        match it.machine.poll(it.now) {
            Output::Call { call, script, .. } => {
                made += 1;
                let is_release = script.script().name == "lock_release";
                let input = match answers.next().unwrap() % 6 {
                    _ if is_release => Input::Reply { call, reply: it.reply(&script, 0, "0", 0) },
                    0 | 1 => Input::Reply { call, reply: it.reply(&script, 0, "1", 86_000) },
                    2 => Input::Reply { call, reply: it.reply(&script, -3, "1", 0) },
                    // What has no lease is not granted without a bound.
                    4 => Input::Reply { call, reply: it.reply(&script, -4, "0", 0) },
                    3 => Input::Failed { call, kind: FailureKind::Broken },
                    _ => Input::Reply { call, reply: it.reply(&script, -1, "0", 0) },
                };
                it.machine.handle(input, it.now);
            }
            Output::Listen { .. } => {}
            Output::Wait { .. } => {
                it.sleeps();
            }
            Output::Done(outcome) => {
                let passed = u64::try_from(it.now.since(start()).as_millis()).unwrap();
                return (made, passed, outcome.map(drop));
            }
        }
    }
    panic!("it never ends");
}

#[test]
fn a_small_budget_lasts_for_the_whole_wait() {
    for requests in [3, 4, 10, 40] {
        let (made, passed, outcome) = spend(requests, 30_000, clock(), &[0]);
        assert!(made <= requests, "{made} of {requests}");
        assert_eq!(passed, 30_000, "{requests}");
        assert!(matches!(outcome, Err(AcquireError::Busy { .. })));
    }
}

proptest! {
    /// S18.
    #[test]
    fn no_wait_spends_more_than_its_budget(
        requests in 3_u32..60,
        wait in 1_u64..120_000,
        knows_clock: bool,
        answers in proptest::collection::vec(any::<u8>(), 1..30),
    ) {
        let clock = clock().filter(|_| knows_clock);
        let (made, ..) = spend(requests, wait, clock, &answers);
        prop_assert!(made <= requests, "{} of {}", made, requests);
    }
}
