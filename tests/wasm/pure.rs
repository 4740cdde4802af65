//! The modules without I/O on a target of 32 bits: names, times, and one conversation with a
//! machine.

use std::time::Duration;

use edgelatch::error::{AcquireError, FailureKind};
use edgelatch::time::Instant;
use edgelatch::timing::{AttemptTime, LeaseTime};
use edgelatch::{LockName, Publish};
use edgelatch_proto::machine::{
    Acquire, AcquireSpec, Entropy, Input, Machine as _, Output, TimeoutReason,
};
use edgelatch_proto::protocol::calls::{LockCalls, Target};
use edgelatch_proto::protocol::reply::{Reply, RespValue};
use edgelatch_proto::protocol::script::ScriptCall;
use edgelatch_proto::timing::{RequestBudget, WaitPolicy, WaitTime};
use wasm_bindgen_test::wasm_bindgen_test;

const START: Instant = Instant::from_millis(1_000, 1_795_268_812_119);

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// S30.
#[wasm_bindgen_test]
fn names_and_times_have_the_same_ranges_everywhere() {
    for name in ["a", "é/?#% \"", "x{a}b", &"n".repeat(512)] {
        assert!(LockName::parse(name).is_ok(), "{name}");
    }
    for name in ["", "a\nb", "{}", "redisson_x", &"é".repeat(257)] {
        assert!(LockName::parse(name).is_err(), "{name}");
    }
    for good in [ms(100), ms(86_400_000)] {
        assert_eq!(LeaseTime::new(good).unwrap().get(), good);
    }
    for bad in [ms(0), ms(86_400_001), ms(u64::from(u32::MAX) + 101), Duration::MAX] {
        assert!(LeaseTime::new(bad).is_err() && WaitTime::new(bad).is_err(), "{bad:?}");
    }
    assert!(RequestBudget::new(10_000).is_ok() && RequestBudget::new(u32::MAX).is_err());
    assert!(AttemptTime::new(ms(50)).is_ok() && AttemptTime::new(ms(60_001)).is_err());
}

/// S29.
#[wasm_bindgen_test]
fn time_is_counted_in_64_bits() {
    let month = ms(31 * 24 * 3_600_000);
    assert_eq!((START + month).max_elapsed(START), month);
    assert_eq!(START.until(START + month), month);
    assert!((START + Duration::MAX).has_reached(START + month));
}

#[wasm_bindgen_test]
fn a_machine_retries_after_a_wait_and_acquires_the_lock() {
    let mut now = START;
    let mut machine =
        Acquire::new(spec(WaitPolicy::UpTo(WaitTime::DEFAULT)), Entropy::new([7; 32]), None, now);

    let (call, script) = asks(&mut machine, now);
    now = now + ms(20);
    machine.handle(Input::Reply { call, reply: reply(&script, 0, "1", 25_000) }, now);
    let Output::Subscribe { topic, .. } = machine.poll(now) else { panic!("it listens") };
    assert!(topic.channel().starts_with("redisson_lock__channel:"));
    let Output::Timeout { until, why } = machine.poll(now) else { panic!("it waits") };
    assert_eq!(why, TimeoutReason::BackOff);

    machine.handle(Input::Timeout, until);
    let (call, script) = asks(&mut machine, until);
    let token = "9007199254740991";
    machine.handle(Input::Reply { call, reply: reply(&script, 1, token, 30_000) }, until + ms(5));
    let Output::Done(Ok(grant)) = machine.poll(until + ms(5)) else { panic!("it has the lock") };
    assert_eq!(grant.token.as_u64(), 9_007_199_254_740_991);
    assert_eq!(grant.lease.remaining(until + ms(5)), ms(30_000 - 302 - 5));
}

/// S79.
#[wasm_bindgen_test]
fn a_machine_without_a_reply_undoes_its_acquisition() {
    let mut now = START;
    let mut machine = Acquire::new(spec(WaitPolicy::Once), Entropy::new([7; 32]), None, now);
    let mut asked = Vec::new();
    let outcome = loop {
        match machine.poll(now) {
            Output::Call { script, .. } => asked.push(script.script().name),
            Output::Subscribe { .. } => {}
            Output::Timeout { until, .. } => {
                now = until;
                machine.handle(Input::Timeout, now);
            }
            Output::Done(outcome) => break outcome,
        }
    };
    assert_eq!(
        asked,
        [
            "lock_acquire",
            "lock_acquire",
            "lock_acquire",
            "lock_release",
            "lock_release",
            "lock_release"
        ]
    );
    let Err(AcquireError::Unknown { cause, held_at_most }) = outcome else { panic!("{outcome:?}") };
    assert_eq!(cause, FailureKind::TimedOut);
    assert!(held_at_most >= LeaseTime::DEFAULT.get());
}

fn spec(patience: WaitPolicy) -> AcquireSpec {
    let name = LockName::parse("invoice:42").unwrap();
    AcquireSpec::new(Target::Lock(LockCalls::new(name, Publish::Plain)), patience)
}

fn asks(machine: &mut Acquire, now: Instant) -> (edgelatch_proto::machine::CallId, ScriptCall) {
    let Output::Call { call, script, .. } = machine.poll(now) else { panic!("it asks") };
    assert_eq!(script.script().name, "lock_acquire");
    let Output::Timeout { why: TimeoutReason::ReplyDue, .. } = machine.poll(now) else {
        panic!("then it waits")
    };
    (call, script)
}

fn reply(script: &ScriptCall, code: i64, value: &str, ms: i64) -> Reply {
    let echo = RespValue::Text(script.args()[0].clone());
    let server_ms = RespValue::Int(1_795_268_812_119);
    let cells =
        [RespValue::Int(code), RespValue::Text(value.into()), RespValue::Int(ms), server_ms, echo];
    Reply::read(&cells, script.request).unwrap()
}
