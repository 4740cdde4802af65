//! Names and their keys: two names have no key in common, and all keys of a name are in its slot.
//!
//! The input is two names, with a line feed between them.

use std::collections::BTreeSet;

use edgelatch_proto::name::{GuardKey, LockName};
use edgelatch_proto::protocol::calls::{
    BatchSize, CountDownLatchCalls, FairCalls, FairSettings, GroupCalls, GuardCalls, LockCalls,
    PermitCalls, PermitCount, ReadCalls, SemaphoreCalls, Target, Try, WriteCalls,
};
use edgelatch_proto::protocol::script::{Publish, ScriptCall};
use edgelatch_proto::protocol::slot::slot;
use edgelatch_proto::time::Instant;
use edgelatch_proto::timing::{GuardMemory, LeaseTime, PeerSkew};

use crate::kit::{granted, inspect, lock};

pub(crate) fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let (one, other) = text.split_once('\n').unwrap_or((text, text));
    for name in [one, other] {
        assert_eq!(LockName::parse(name).is_ok(), is_name(name), "{name:?}");
        guarded(name);
    }
    let (Ok(one), Ok(other)) = (LockName::parse(one), LockName::parse(other)) else { return };
    let (keys, others) = (keys(&one), keys_of_another(&one, &other));
    let common: Vec<&String> = keys.intersection(&others).collect();
    if one == other {
        assert_eq!(keys, others);
    } else if is_inside(&one, &other) || is_inside(&other, &one) {
        // A lock that is named like one of another lock's keys may collide with it, in Redisson as
        // here.
    } else {
        assert!(common.is_empty(), "{one:?} and {other:?} have {common:?}");
    }
}

/// The promise of `LockName`.
fn is_name(name: &str) -> bool {
    let tag = match (name.find('{'), name.find('}')) {
        (None, None) => true,
        (Some(open), Some(close)) => close > open + 1 && name.matches(['{', '}']).count() == 2,
        _ => false,
    };
    let taken = ["redisson_", "el:"].iter().any(|start| name.starts_with(start));
    (1..=512).contains(&name.len()) && tag && !taken && !name.contains(char::is_control)
}

/// Whether `other` begins with `one` in braces: then both have the same slot, and may have the same
/// keys.
fn is_inside(one: &LockName, other: &LockName) -> bool {
    let (one, other) = (one.as_str(), other.as_str());
    let form = if one.contains('{') { one.to_owned() } else { format!("{{{one}}}") };
    other.strip_prefix(&form).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
}

/// The fence of a caller's own key is in the slot of the key, and is no other caller's key.
fn guarded(text: &str) {
    let Ok(key) = GuardKey::parse(text) else { return };
    let call = GuardCalls::new(key, GuardMemory::DEFAULT).newest(inspect(1).request);
    for key in call.keys() {
        assert_eq!(slot(key), slot(text), "{key}");
        assert!(key == text || key.starts_with("el:"), "{key}");
    }
}

fn keys_of_another(one: &LockName, other: &LockName) -> BTreeSet<String> {
    let theirs = keys(other);
    let elsewhere = slot(one.as_str()) != slot(other.as_str());
    assert!(theirs.iter().all(|key| !elsewhere || slot(key) != slot(one.as_str())));
    theirs
}

/// All keys that any object of this name declares.
fn keys(name: &LockName) -> BTreeSet<String> {
    let grant = granted(lock("x"), LeaseTime::DEFAULT, Instant::from_millis(0, 0));
    let (request, bound, owner) = (inspect(1).request, grant.bound, grant.owner);
    let attempt = Try {
        request,
        bound,
        owner,
        lease: LeaseTime::DEFAULT,
        last: false,
        number: 1,
        previous: Some(owner),
        announces: true,
    };
    let mut calls: Vec<ScriptCall> = Vec::new();
    for target in targets(name) {
        calls.extend([
            target.acquire(&attempt),
            target.renew(request, bound, owner, LeaseTime::DEFAULT, grant.token),
            target.release(request, bound, owner),
            target.inspect(request, Some(owner)),
            target.force_release().call(request, bound),
            target.force_release().cancel(request, bound),
        ]);
    }
    let latch = CountDownLatchCalls::new(name.clone(), Publish::Plain);
    calls.extend([latch.inspect(request), latch.count_down().call(request, bound)]);
    let keys: BTreeSet<String> = calls.iter().flat_map(ScriptCall::keys).cloned().collect();
    for key in &keys {
        assert_eq!(slot(key), slot(name.as_str()), "{key} of {name:?}");
    }
    assert!(keys.contains(name.as_str()), "the object itself");
    keys
}

/// Every target that can be held under a name.
pub(crate) fn targets(name: &LockName) -> [Target; 7] {
    let plain = Publish::Plain;
    let group = GroupCalls::new(name.clone(), ["a", "b"], PeerSkew::DEFAULT, plain).unwrap();
    let permits = PermitCount::new(2).unwrap();
    let batch = BatchSize::new(2).unwrap();
    [
        Target::Lock(LockCalls::new(name.clone(), plain)),
        Target::Fair(FairCalls::new(name.clone(), FairSettings::default(), plain)),
        Target::Group(group),
        Target::Semaphore(SemaphoreCalls::new(name.clone(), plain, permits)),
        Target::Permits(PermitCalls::new(name.clone(), plain, batch, PeerSkew::DEFAULT)),
        Target::Read(ReadCalls::new(name.clone(), plain)),
        Target::Write(WriteCalls::new(name.clone(), plain)),
    ]
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let pairs = [
        "a\nb",
        "a\n{a}",
        "a\na:want",
        "{a}\n{a}:timeout",
        "a:b\na",
        "x{a}b\nx{a}",
        "{a}b\n{a}",
        "a\na:",
        "job\njob:beat",
        "é\ne\u{301}",
        "x/../../flushall\nx%2e%2e",
        "{x}y\n{x}z",
        "redisson_x\nel:x",
        "{}\n}{",
        "a{b\na}b",
        "a:{b}\nb",
        "\u{7f}\n\u{85}",
        "00000000-0000-8000-8000-000000000000:1\na",
    ];
    let mut seeds: Vec<Vec<u8>> = pairs.iter().map(|pair| pair.as_bytes().to_vec()).collect();
    seeds.push("n".repeat(512).into_bytes());
    seeds.push("é".repeat(257).into_bytes());
    seeds
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// The parts of names and keys.
    const PARTS: [&str; 14] = [
        "a", "b", ":", "{a}", "{b}", "{a:b}", "held", "timeout", "beat", "seat", "watch", "epoch",
        "token", "fence",
    ];

    #[test]
    fn no_two_names_of_up_to_three_such_parts_have_a_key_in_common() {
        let mut texts = vec![String::new()];
        let mut owners: BTreeMap<String, Vec<LockName>> = BTreeMap::new();
        let mut names = 0;
        for _ in 0..3 {
            texts =
                texts.iter().flat_map(|text| PARTS.map(|part| format!("{text}{part}"))).collect();
            for name in texts.iter().filter_map(|text| LockName::parse(text).ok()) {
                names += 1;
                for key in keys(&name) {
                    let others = owners.entry(key).or_default();
                    for other in others.iter().filter(|other| **other != name) {
                        let inside = is_inside(&name, other) || is_inside(other, &name);
                        assert!(inside, "{name:?} and {other:?}");
                    }
                    others.push(name.clone());
                }
            }
        }
        assert!(names > 2_000, "{names}");
    }
}
