//! Random schedules of holders who come one after the other, each with a few writes of which copies come at any time later.

use std::collections::BTreeMap;

use edgelatch::name::GuardKey;
use edgelatch::protocol::calls::{GuardCalls, GuardedWrite};
use edgelatch::protocol::reply::{Code, Reply};
use edgelatch::protocol::script::ScriptCall;
use edgelatch::timing::GuardMemory;
use fastrand::Rng;

use super::table::{minutes, stamp};
use crate::support::calls::{UNBOUND, request};
use crate::support::script_model::{Latches, ScriptModel, Value};

const EPOCH: u64 = 1_700_000_000_000;
const MEMORY_MS: u64 = 600_000;

/// How a schedule is played.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Play {
    AllRules,
    /// A fence that is forgotten is no reason to look at a token's age.
    Without(&'static str),
    /// All writes of a holder carry one number.
    OneNumber,
}

/// A write: whose, its place among all, and what it says.
#[derive(Clone)]
struct Letter {
    token: u64,
    place: usize,
    call: ScriptCall,
}

/// Whether what is stored only ever moves on: from holder to holder, and from write to write.
fn play(how: Play, seed: u64) -> Result<u32, String> {
    let (mut rng, mut model) = (Rng::with_seed(seed), ScriptModel::new(Latches::On));
    if let Play::Without(rule) = how {
        model.without = Some(rule);
    }
    let guard = GuardCalls::new(GuardKey::parse("total").unwrap(), minutes(10));
    let (mut letters, mut sent, mut now, mut written) = (Vec::<Letter>::new(), 0, EPOCH, 0);
    let mut stored: BTreeMap<&str, (u64, usize)> = BTreeMap::new();
    for holder in 1..=4_u8 {
        // Tokens are times at which the lock was granted.
        let token = now * 1_000;
        for number in 1..=rng.u64(1..4) {
            let number = if how == Play::OneNumber { sent as u64 % 2 + 1 } else { number };
            let write = GuardedWrite::set(sent.to_string(), None);
            let call = guard.write(request(1), UNBOUND, stamp(token, holder, number), &write);
            letters.push(Letter { token, place: sent, call });
            sent += 1;
            for _ in 0..rng.u8(0..3) {
                let letter = letters[rng.usize(0..letters.len())].clone();
                let cells = model.run(&letter.call, now);
                let code = Reply::read(&cells, letter.call.request).unwrap().code;
                if code == Code::Done {
                    written += 1;
                    let at = (letter.token, letter.place);
                    let last = stored.insert("total", at);
                    if last.is_some_and(|last| at < last) {
                        return Err(format!("{at:?} came over {last:?}"));
                    }
                }
                now += [5, 5, MEMORY_MS / 3][rng.usize(0..3)];
            }
        }
        // Long enough for a fence to be forgotten, at times.
        now += [10, MEMORY_MS + 61_000][rng.usize(0..2)];
    }
    Ok(written)
}

#[test]
fn what_a_guard_stores_only_moves_on() {
    let written: u32 = (0..3_000).map(|seed| play(Play::AllRules, seed).unwrap()).sum();
    assert!(written > 6_000, "{written}");
}

#[test]
fn a_guard_bites_when_it_forgets_without_looking_at_a_token_s_age() {
    let broken =
        (0..3_000).any(|seed| play(Play::Without("an old token is refused"), seed).is_err());
    assert!(broken);
}

#[test]
fn a_guard_bites_when_the_writes_of_a_lease_are_not_numbered() {
    assert!((0..3_000).any(|seed| play(Play::OneNumber, seed).is_err()));
}

#[test]
fn a_guard_that_remembers_for_ever_needs_no_clock() {
    let guard = GuardCalls::new(GuardKey::parse("total").unwrap(), GuardMemory::FOR_EVER);
    let mut model = ScriptModel::new(Latches::On);
    for (number, code) in [(5, Code::Done), (4, Code::No), (6, Code::Done)] {
        let call = guard.write(request(1), UNBOUND, stamp(number, 1, 1), &GuardedWrite::claim());
        let cells = model.run(&call, EPOCH);
        assert_eq!(Reply::read(&cells, call.request).unwrap().code, code);
    }
    let fence = model.dump(u64::MAX - 1).remove("el:{total}:fence").unwrap();
    assert_eq!(fence.expires_at, None);
    assert!(matches!(fence.value, Value::Text(text) if text.starts_with("6:1:")));
}
