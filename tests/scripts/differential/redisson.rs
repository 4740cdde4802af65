//! Redisson's calls of semaphores and count-down latches: the arguments of its scripts, and the
//! effect of each on the model.

use redis::Value as Raw;

use super::steps::semaphores_and_latch::{GATE, Java, PERM, SEM};
use crate::scripts::semaphores_and_latch::id;
use test_support::calls::owner;
use test_support::script_model::ScriptModel;
use test_support::script_model::holds::{NEVER, raw};
use test_support::script_model::java_permits::JavaPermits;

/// The sets of holds of the two semaphores.
pub(super) const SETS: [&str; 2] = ["el:{sem}:held", "x{a}b:timeout"];
/// The number that represents `OK`.
const TAKEN: i64 = -7;

/// A script, its arguments, and the number that it returns.
type Does = (&'static str, Vec<String>, Option<i64>);

/// Runs a step on the model at this time of Redis.
pub(super) fn does(model: &mut ScriptModel, step: Java, server: u64) -> Does {
    let args = |args: &[&str]| args.iter().map(|arg| (*arg).to_owned()).collect();
    let args_of = |n: i64| vec![n.to_string(), "PUBLISH".into()];
    match step {
        Java::Take(n) => {
            ("semaphore_acquire", vec![n.to_string()], number(model.java_takes(SEM, n)))
        }
        Java::Give(n) => {
            model.java_gives(SEM, n);
            ("semaphore_release", args_of(n), None)
        }
        Java::Drain => ("semaphore_drain", vec![], Some(model.java_drains(SEM))),
        Java::Begin(n) => ("semaphore_set", args_of(n), number(model.java_begins(SEM, n))),
        Java::Add(n) => {
            model.java_adds(SEM, n);
            ("semaphore_add", args_of(n), None)
        }
        Java::SetCount(n) => {
            let set = args(&["1", &n.to_string(), "PUBLISH"]);
            ("latch_set", set, number(model.java_begins(GATE, n)))
        }
        Java::CountDown => {
            model.java_counts_down(GATE);
            ("latch_count_down", args(&["0", "PUBLISH"]), None)
        }
        Java::Delete => ("latch_delete", args(&["1", "PUBLISH"]), number(model.delete(GATE))),
        of_permits => does_to_permits(model, of_permits, server),
    }
}

fn does_to_permits(model: &mut ScriptModel, step: Java, server: u64) -> Does {
    let now = |off: i64| i64::try_from(server).unwrap() + off;
    let end = |ends: Option<i64>| ends.map_or(NEVER, now);
    let ours = |number: u8| id(owner(number), 0).to_text();
    let theirs = |number: u8| format!("a{number}f1f2f3f4f5f6f7f8f9fafbfcfdfe{number}0");
    let at = |off| JavaPermits { name: PERM, held: SETS[1], now: now(off), server };
    let publish = || "PUBLISH".to_owned();
    match step {
        Java::TakePermits { id, ends, off } => {
            let taken = model.java_takes_ids(at(off), end(ends), &[raw(&theirs(id))]);
            let answer = taken.map_or_else(|ends| ends, |()| Some(TAKEN));
            let args = [1, end(ends), now(off), NEVER].map(|number| number.to_string());
            let args = args.into_iter().chain([publish(), format!("hex:{}", theirs(id))]);
            ("permits_acquire", args.collect(), answer)
        }
        Java::GivePermit { id, off } => {
            give(model.java_gives_one(at(off), &raw(&theirs(id))), theirs(id), now(off))
        }
        Java::GiveOurs { owner, off } => {
            give(model.java_gives_one(at(off), &raw(&ours(owner))), ours(owner), now(off))
        }
        Java::GiveAll { id, owner, off } => {
            let ids = [theirs(id), ours(owner)];
            let given = model.java_gives_all(at(off), &ids.clone().map(|id| raw(&id)));
            let args = ["2".into(), now(off).to_string(), publish()];
            let ids = ids.map(|id| format!("hex:{id}"));
            ("permits_release_all", args.into_iter().chain(ids).collect(), Some(given))
        }
        Java::Update { owner, ends, off } => {
            let held = model.java_updates(at(off), &raw(&ours(owner)), end(ends));
            let (id, ends) = (format!("hex:{}", ours(owner)), end(ends).to_string());
            let args = vec![now(off).to_string(), publish(), "update".into(), id, ends];
            ("permits_ask", args, number(held))
        }
        Java::Count { off } => {
            let args = vec![now(off).to_string(), publish(), "total".into()];
            ("permits_ask", args, Some(model.java_counts(at(off))))
        }
        Java::SetPermits(n) => {
            model.java_sets(at(0), n);
            ("permits_set", vec![n.to_string(), publish(), "all".into()], None)
        }
        other => panic!("{other:?} is not about permits"),
    }
}

fn give(given: bool, id: String, now: i64) -> Does {
    let args = vec![format!("hex:{id}"), "1".into(), now.to_string(), "PUBLISH".into()];
    ("permits_release", args, number(given))
}

fn number(yes: bool) -> Option<i64> {
    Some(i64::from(yes))
}

/// The keys of a script, in its order.
pub(super) fn keys(script: &str) -> Vec<String> {
    let channel = "redisson_sc:x{a}b";
    let keys = match script {
        "permits_acquire" | "permits_ask" => vec![PERM, SETS[1], channel],
        "permits_release" | "permits_release_all" | "permits_set" => vec![PERM, channel, SETS[1]],
        name if name.starts_with("latch") => vec![GATE, "redisson_countdownlatch__channel__{gate}"],
        _ => vec![SEM, "redisson_sc:{sem}"],
    };
    keys.into_iter().map(String::from).collect()
}

/// A number, also as text or after a colon; `OK` is [`TAKEN`].
pub(super) fn integer(raw: &Raw) -> Option<i64> {
    let text = match raw {
        Raw::Int(number) => return Some(*number),
        Raw::Nil => return None,
        Raw::Okay => return Some(TAKEN),
        other => redis::from_redis_value::<String>(other.clone()).unwrap(),
    };
    if text == "OK" { Some(TAKEN) } else { text.trim_start_matches(':').parse().ok() }
}
