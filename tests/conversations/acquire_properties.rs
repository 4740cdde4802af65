//! Properties of an acquisition under arbitrary replies: it ends, it keeps to its budget, and
//! needless wake-ups change nothing.

use edgelatch_proto::error::{AcquireError, FailureKind};
use edgelatch_proto::machine::{Acquire, AcquireSpec, Grant, Input, Machine, Output};
use edgelatch_proto::protocol::reply::{Code, ServerClock};
use edgelatch_proto::protocol::script::ScriptCall;
use proptest::prelude::*;
use test_support::random::cases;

use crate::language::*;

/// Runs a wait with a budget of `requests`. `replies` select the replies to its acquire calls, in
/// turn; each release is confirmed.
fn run_wait(
    requests: u32,
    wait_ms: u64,
    clock: Option<ServerClock>,
    replies: &[u8],
) -> Run<Result<Grant, AcquireError>> {
    let spec = AcquireSpec { budget: budget(requests), ..acquire_spec(up_to(wait_ms)) };
    let machine = Acquire::new(spec, entropy(), clock, START);
    let mut replies = replies.iter().cycle();
    run(machine, |call, clocks| {
        let reply = |reply: ScriptReply| Some(call.reply(reply, clocks.server_ms()));
        match replies.next().unwrap() % 7 {
            _ if call.name() == "lock_release" => reply(Code::No.into()),
            0 | 1 => reply(busy(86_000)),
            2 => reply(ScriptReply::new(Code::Lost, 1, 0)),
            3 => Some(call.fail(FailureKind::Broken)),
            // For holds that may have no lease, Redis requires a bound.
            4 => reply(Code::BoundRequired.into()),
            5 => reply(Code::Late.into()),
            _ => reply(Code::Gone.into()),
        }
    })
}

#[test]
fn a_small_budget_lasts_for_the_whole_wait() {
    for requests in [3, 4, 10, 40] {
        // 0 selects a refusal for each reply.
        let run = run_wait(requests, 30_000, Some(known_clock()), &[0]);
        assert!(run.calls.len() <= requests as usize, "{} of {requests}", run.calls.len());
        assert_eq!(run.elapsed_ms, 30_000, "{requests}");
        assert!(matches!(run.outcome, Err(AcquireError::Busy { .. })), "{:?}", run.outcome);
    }
}

/// For each call, in turn: the kind of its reply, and its delay in milliseconds.
type Replies = Vec<(u8, u16)>;

/// Returns the input about a call after its delay; `None` if the reply is lost.
fn respond_to(call: &Call, (kind, delay): (u8, u16), clocks: &mut Clocks) -> Option<Input> {
    let delay = u64::from(delay);
    clocks.advance(delay % 300);
    let reply = |reply: ScriptReply| Some(call.reply(reply, clocks.server_ms()));
    if call.name() == "lock_release" {
        return if kind.is_multiple_of(4) { None } else { reply(Code::No.into()) };
    }
    match kind % 10 {
        0..=4 => reply(busy(i64::try_from(delay).unwrap())),
        5 => Some(call.fail(FailureKind::Broken)),
        6 => Some(call.refuse("LOADING soon")),
        7 => reply(ScriptReply::new(Code::Lost, 1, 0)),
        8 => None,
        _ => reply(Code::Late.into()),
    }
}

/// Returns the calls of a wait with these replies, with or without a needless wake-up before every
/// poll.
fn calls_of_wait(replies: &Replies, needless_wakeups: bool) -> Vec<ScriptCall> {
    let (lease, budget) = (lease(2_000), budget(40));
    let machine = acquire_machine(AcquireSpec { lease, budget, ..acquire_spec(up_to(20_000)) });
    let mut replies = replies.iter().cycle();
    let respond =
        |call: &Call, clocks: &mut Clocks| respond_to(call, *replies.next().unwrap(), clocks);
    let run = if needless_wakeups {
        run_with_needless_wakeups(machine, respond)
    } else {
        run(machine, respond)
    };
    run.calls.into_iter().map(|call| call.script).collect()
}

/// Returns one of the codes with which a script may reply.
fn code(number: u8) -> Code {
    [Code::Lost, Code::Gone, Code::Late, Code::No, Code::Done][usize::from(number) % 5]
}

proptest! {
    #![proptest_config(cases(256))]

    /// S18.
    #[test]
    fn no_wait_spends_more_than_its_budget(
        requests in 3_u32..60,
        wait_ms in 1_u64..120_000,
        knows_clock: bool,
        replies in proptest::collection::vec(any::<u8>(), 1..30),
    ) {
        let calls = run_wait(requests, wait_ms, knows_clock.then(known_clock), &replies).calls.len();
        prop_assert!(calls <= requests as usize, "{} of {}", calls, requests);
    }

    #[test]
    fn an_early_or_repeated_timeout_changes_nothing(
        replies in proptest::collection::vec(any::<(u8, u16)>(), 1..20),
    ) {
        let (undisturbed, woken) = (calls_of_wait(&replies, false), calls_of_wait(&replies, true));
        prop_assert_eq!(undisturbed, woken);
    }

    /// Each input follows a single poll, so the machine need not have been polled until it waits.
    #[test]
    fn an_acquisition_that_has_ended_sends_no_call_for_any_input(
        inputs in proptest::collection::vec((0_u8..8, any::<u16>()), 0..300),
    ) {
        let spec = AcquireSpec { budget: budget(10), ..acquire_spec(up_to(5_000)) };
        let (mut machine, mut clocks) = (acquire_machine(spec), Clocks::default());
        let mut last: Option<Call> = None;
        let mut is_done = false;
        for (kind, delay) in inputs {
            match machine.poll(clocks.now()) {
                Output::Call { call, to, script } => {
                    prop_assert!(!is_done, "a call after the end");
                    last = Some(Call { id: call, gateway: to.0, script });
                }
                Output::Subscribe { .. } => prop_assert!(!is_done, "it subscribes after the end"),
                Output::Timeout { .. } => prop_assert!(!is_done, "it waits after the end"),
                Output::Done(_) => is_done = true,
            }
            clocks.advance(u64::from(delay) % 2_000);
            let input = match (&last, kind) {
                (_, 0) => Input::Timeout,
                (_, 1) => Input::Cancelled,
                (None, _) => Input::Timeout,
                (Some(call), number @ 2..=6) => {
                    let reply = ScriptReply::new(code(number - 2), TOKEN, i64::from(delay));
                    call.reply(reply, clocks.server_ms())
                }
                (Some(call), _) => call.fail(FailureKind::TimedOut),
            };
            machine.handle(input, clocks.now());
        }
    }
}
