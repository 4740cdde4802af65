//! Sends a machine any events in any order: it keeps to the contract of `edgelatch_proto::machine`,
//! and its outcome is one that the responses allow.
//!
//! The input is read as choices: the machine, its parameters, and then one event after the other.

mod invariants;
mod log;
mod machines;

use std::fmt::Debug;
use std::time::Duration;

use arbitrary::{Arbitrary as _, Unstructured};
use edgelatch_proto::machine::{Input, Machine};
use edgelatch_proto::protocol::reply::{Code, Reply};

use crate::kit::{FAILURES, one_of, refusal, up_to};
use log::{Conversation, Log};

/// The largest number of events; silence follows.
const EVENTS_MAX: usize = 120;
/// The largest number of silent wake-ups before the end, whatever the machine's wait: a budget of
/// 40 calls and its pauses take far fewer.
const WAKES_MAX: usize = 3_000;

pub(crate) fn run(input: &[u8]) {
    let mut input = Unstructured::new(input);
    machines::any(&mut input);
}

/// Sends events to a machine until its end, and beyond. `keeps` checks the machine after each
/// event, `ends` checks its outcome.
fn play<M>(
    machine: M,
    input: &mut Unstructured<'_>,
    log: Log,
    keeps: impl Fn(&M, &Log),
    ends: impl Fn(&M::Outcome, &Log),
) where
    M: Machine + Clone + Debug + PartialEq,
    M::Outcome: Clone + Debug + PartialEq,
{
    let mut conversation = Conversation::begin(machine, log);
    keeps(&conversation.machine, &conversation.log);
    for _ in 0..EVENTS_MAX {
        if input.is_empty() {
            break;
        }
        happens(&mut conversation, input);
        if conversation.outcome.is_none() {
            keeps(&conversation.machine, &conversation.log);
        }
    }
    // A machine that receives nothing more and may wait for ever is cancelled.
    let mut wakes = 0;
    while conversation.outcome.is_none() {
        wakes += 1;
        let calls = conversation.log.calls.len();
        assert!(wakes < WAKES_MAX, "it never ends: {:?} after {calls} calls", conversation.wait);
        conversation.passes_to_its_wait();
        conversation.handle(if wakes == WAKES_MAX / 2 { Input::Cancelled } else { Input::Timeout });
    }
    ends(conversation.outcome.as_ref().unwrap(), &conversation.log);
    after_the_end(&mut conversation);
}

/// No event after the end changes the outcome. `Talk` checks that the machine makes no call.
fn after_the_end<M>(conversation: &mut Conversation<M>)
where
    M: Machine + Clone + Debug + PartialEq,
    M::Outcome: Clone + Debug + PartialEq,
{
    let newest = conversation.log.calls.len().checked_sub(1);
    for code in [Code::Done, Code::Lost] {
        if let Some(newest) = newest {
            let reply = reply(code, "1700000000000001", 1, conversation.log.server_ms);
            conversation.reply_to(newest, reply);
        }
    }
    for input in [
        Input::Cancelled,
        Input::Subscribed { must_retry: true },
        Input::Unsubscribed,
        Input::Timeout,
    ] {
        conversation.handle(input);
    }
}

fn reply(code: Code, value: &str, ms: i64, server_ms: u64) -> Reply {
    Reply { code, value: value.into(), ms, server_ms, acknowledged: None }
}

const CODES: [Code; 15] = [
    Code::Done,
    Code::AlreadyYours,
    Code::No,
    Code::Gone,
    Code::Late,
    Code::Lost,
    Code::Nothing,
    Code::BoundRequired,
    Code::Unknown,
    Code::TokenRange,
    Code::TooYoung,
    Code::Superseded,
    Code::TooOld,
    Code::TokenAhead,
    Code::ScriptFailed,
];
const VALUES: [&str; 8] = [
    "1700000000000000",
    "1700000000000001",
    "1",
    "0",
    "",
    "9007199254740992",
    "2,150,1",
    "nonsense",
];
const ERRORS: [&str; 5] = ["LOADING x", "NOPERM x", "OOM x", "WRONGTYPE x", "ERR x"];

/// Sends one event, about any of the calls so far or about none.
fn happens<M>(conversation: &mut Conversation<M>, input: &mut Unstructured<'_>)
where
    M: Machine + Clone + Debug + PartialEq,
    M::Outcome: Clone + Debug + PartialEq,
{
    let event = up_to(input, 15);
    let count = conversation.log.calls.len();
    // Most responses are to the newest calls.
    let back = usize::try_from(one_of(input, &[0, 0, 0, 0, 1, 2, 5, 9])).unwrap_or(0);
    let call = count.checked_sub(1 + back.min(count.saturating_sub(1)));
    match (event, call) {
        (0..=5, Some(call)) => {
            let (code, value) = (one_of(input, &CODES), one_of(input, &VALUES));
            let ms = one_of(input, &[30_000, -1, -2, 0, 1, 5_000, i64::MAX]);
            let server_ms = conversation.log.server_ms.saturating_add(up_to(input, 5));
            let acknowledged = one_of(input, &[None, Some(0), Some(1), Some(2)]);
            conversation
                .reply_to(call, Reply { acknowledged, ..reply(code, value, ms, server_ms) });
        }
        (6 | 7, Some(call)) => conversation.fails(call, one_of(input, &FAILURES)),
        (8, Some(call)) => conversation.is_refused(call, refusal(one_of(input, &ERRORS))),
        (9 | 10, _) => {
            // The clocks of a host need not advance together.
            let (monotonic, wall) = (up_to(input, 20_000), up_to(input, 20_000));
            conversation.passes(
                monotonic,
                if bool::arbitrary(input).unwrap_or(true) { monotonic } else { wall },
            );
            conversation.handle(Input::Timeout);
        }
        (11 | 12, _) => {
            conversation.passes_to_its_wait();
            conversation.handle(Input::Timeout);
        }
        (13, _) => conversation.handle(Input::Timeout),
        (14, _) if up_to(input, 7) == 0 => conversation.handle(Input::Cancelled),
        _ => {
            let within = Duration::from_millis(up_to(input, 2_000));
            let lease = Some(Duration::from_millis(up_to(input, 60_000)));
            let events = [
                Input::Subscribed { must_retry: true },
                Input::Subscribed { must_retry: false },
                Input::Notified { within: Duration::ZERO },
                Input::Notified { within },
                Input::AcquiredByOther { lease },
                Input::AcquiredByOther { lease: None },
                Input::Unsubscribed,
            ];
            let event = input.choose(&events).cloned().unwrap_or(Input::Unsubscribed);
            conversation.handle(event);
        }
    }
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    // Each kind of machine, and different starts: the fuzzer finds the rest.
    let seed = |kind: u8, pace: u8| {
        let bytes = (0..220_u8).map(|place| place.wrapping_mul(pace).wrapping_add(place >> 2));
        [kind].into_iter().chain(bytes).collect()
    };
    (0..machines::KINDS).flat_map(|kind| [0, 1, 7, 16, 61].map(|pace| seed(kind, pace))).collect()
}
