//! What holds for every machine, whatever happens to it.

use edgelatch::error::FailureKind;
use edgelatch::machine::{Acquire, AcquireSpec, CallId, Input, Machine, Output};
use edgelatch::protocol::script::ScriptCall;
use proptest::prelude::*;

use crate::support::conversation::*;

/// What the world does with a call, as numbers.
type Deeds = Vec<(u8, u16)>;

/// Drives a wait through these deeds; with `needless`, it is woken once more at every step. Gives the calls it made.
fn drive(deeds: &Deeds, needless: bool) -> Vec<ScriptCall> {
    let spec = AcquireSpec { lease: lease(2_000), budget: budget(40), ..spec(up_to(20_000)) };
    let mut it = Conversation::new(Acquire::new(spec, entropy(), clock(), start()));
    let mut deeds = deeds.iter().cycle();
    let mut made = Vec::new();
    for _ in 0..5_000 {
        if needless {
            it.machine.handle(Input::Woken, it.now);
        }
        match it.machine.poll(it.now) {
            Output::Call { call, script, .. } => {
                made.push(script.clone());
                let (deed, delay) = *deeds.next().unwrap();
                if let Some(input) = answer(&mut it, call, &script, deed, u64::from(delay)) {
                    it.machine.handle(input, it.now);
                }
            }
            Output::Listen { .. } => {}
            Output::Wait { .. } => {
                it.sleeps();
            }
            Output::Done(_) => return made,
        }
    }
    panic!("it never ends");
}

fn answer(
    it: &mut Conversation<Acquire>,
    call: CallId,
    script: &ScriptCall,
    deed: u8,
    delay: u64,
) -> Option<Input> {
    let reply = |it: &Conversation<Acquire>, code, value: &str, left| {
        Some(Input::Reply { call, reply: it.reply(script, code, value, left) })
    };
    it.after(delay % 300);
    if script.script().name == "lock_release" {
        return if deed.is_multiple_of(4) { None } else { reply(it, 0, "0", 0) };
    }
    match deed % 10 {
        0..=4 => reply(it, 0, "1", i64::try_from(delay).unwrap()),
        5 => Some(Input::Failed { call, kind: FailureKind::Broken }),
        6 => Some(Input::Refused { call, refusal: refusal("LOADING soon") }),
        7 => reply(it, -3, "1", 0),
        8 => None,
        _ => reply(it, -1, "0", 0),
    }
}

proptest! {
    #[test]
    fn waking_early_or_twice_changes_nothing(deeds in proptest::collection::vec(any::<(u8, u16)>(), 1..20)) {
        prop_assert_eq!(drive(&deeds, false), drive(&deeds, true));
    }

    #[test]
    fn whatever_it_hears_it_ends_and_makes_no_call_after_its_end(
        inputs in proptest::collection::vec((0_u8..8, any::<u16>()), 0..300),
    ) {
        let spec = AcquireSpec { budget: budget(10), ..spec(up_to(5_000)) };
        let mut it = Conversation::new(Acquire::new(spec, entropy(), clock(), start()));
        let mut last = None;
        let mut over = false;
        for (kind, delay) in inputs {
            match it.machine.poll(it.now) {
                Output::Call { call, script, .. } => {
                    prop_assert!(!over, "a call after the end");
                    last = Some((call, script));
                }
                Output::Listen { .. } => prop_assert!(!over, "it listens after the end"),
                Output::Wait { .. } => prop_assert!(!over, "it waits after the end"),
                Output::Done(_) => over = true,
            }
            it.after(u64::from(delay) % 2_000);
            let input = match (&last, kind) {
                (_, 0) => Input::Woken,
                (_, 1) => Input::Cancelled,
                (Some((call, script)), code @ 2..=6) => {
                    let reply = it.reply(script, i64::from(code) - 5, TOKEN, i64::from(delay));
                    Input::Reply { call: *call, reply }
                }
                (Some((call, _)), _) => Input::Failed { call: *call, kind: FailureKind::TimedOut },
                (None, _) => Input::Woken,
            };
            it.machine.handle(input, it.now);
        }
    }
}
