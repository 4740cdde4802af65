//! Calls that were changed on the way: about other names, or not valid.

use std::sync::LazyLock;

use edgelatch_proto::name::PermitId;
use edgelatch_proto::protocol::calls::GroupCalls;
use edgelatch_proto::protocol::scope::{Prefix, touched};
use edgelatch_proto::protocol::script::{Publish, Script, scripts};
use proptest::prelude::*;
use proptest::sample::Index;

use test_support::calls::{lock, owner, request};
use test_support::every_call::{Known, every_call};
use test_support::random::cases;

/// Names within the prefix, and names of the same length outside it.
const OURS: [(&str, &str); 4] = [
    ("app:a", "app:b"),
    ("app:{x}:a", "app:{x}:b"),
    ("app:ab", "app:{y}"),
    ("app:a:timeout", "app:c"),
];
const THEIRS: [(&str, &str); 4] = [
    ("apq:a", "apq:b"),
    ("apq:{x}:a", "apq:{x}:b"),
    ("apq:ab", "apq:{y}"),
    ("apq:a:timeout", "apq:c"),
];

static CALLS: LazyLock<Vec<Known>> =
    LazyLock::new(|| every_call("app:a", "app:{b}c", Publish::Both));

/// Whether a caller that is limited to names with the prefix `app:` may make this call.
fn passes(script: &Script, keys: &[&str], args: &[&str]) -> bool {
    let prefix = Prefix::new("app:").unwrap();
    touched(script, keys, args).is_some_and(|touched| prefix.covers(&touched))
}

/// Checks that the call is rejected with `word` as this argument.
#[track_caller]
fn refuses(known: &Known, place: usize, word: &str) {
    let (script, (keys, mut args)) = (known.call.script(), known.words());
    args[place] = word;
    assert!(!passes(script, &keys, &args), "{}: {keys:?} {args:?}", script.name);
}

#[test]
fn a_call_passes_that_is_about_one_s_own_names_and_no_other() {
    for ((one, two), (other, another)) in OURS.into_iter().zip(THEIRS) {
        let ours = every_call(one, two, Publish::Plain);
        let theirs = every_call(other, another, Publish::Plain);
        for (ours, theirs) in ours.iter().zip(&theirs) {
            let script = ours.call.script();
            assert_eq!(script.name, theirs.call.script().name);
            let ((keys, args), (their_keys, their_args)) = (ours.words(), theirs.words());
            assert!(passes(script, &keys, &args), "{}: {keys:?}", script.name);
            assert!(!passes(script, &their_keys, &their_args), "{}: {their_keys:?}", script.name);
            // Replaces each key, and each argument that contains a name, by another caller's.
            // Fair read-write locks with one hash tag share a registry.
            for place in (0..keys.len()).filter(|place| keys[*place] != their_keys[*place]) {
                let mut keys = keys.clone();
                keys[place] = their_keys[place];
                assert!(!passes(script, &keys, &args), "{}: {keys:?}", script.name);
            }
            for place in (0..args.len()).filter(|place| args[*place] != their_args[*place]) {
                refuses(ours, place, their_args[place]);
            }
        }
    }
}

#[test]
fn one_key_more_or_less_is_no_call() {
    for known in every_call("app:a", "app:b", Publish::Plain) {
        let (script, (keys, args)) = (known.call.script(), known.words());
        let latch = "el:{apq:a}:01010101-0101-8101-8101-010101010101:1";
        for extra in ["app:a", "apq:a", "el:{app:a}:token", "", latch] {
            let more = [&keys[..], &[extra]].concat();
            assert!(!passes(script, &more, &args), "{}: {more:?}", script.name);
        }
        assert!(!passes(script, &[], &args), "{}", script.name);
        let (_, less) = args.split_at(1);
        assert!(!passes(script, &keys, less), "{}", script.name);
    }
}

#[test]
fn the_arguments_of_a_call_must_name_one_owner() {
    let text = |number| lock("x").inspect(request(1), Some(owner(number))).args()[4].clone();
    let (me, other) = (text(1), text(9));
    let mut changed = 0;
    for known in every_call("app:a", "app:b", Publish::Plain) {
        let (keys, args) = known.words();
        let occurrences = keys.iter().chain(&args).filter(|word| word.contains(&me)).count();
        for place in (0..args.len()).filter(|place| occurrences > 1 && args[*place].contains(&me)) {
            refuses(&known, place, &args[place].replace(&me, &other));
            changed += 1;
        }
    }
    assert!(changed > 50, "{changed}");
}

#[test]
fn a_call_with_an_invalid_group_value_is_rejected() {
    let calls = every_call("app:a", "app:b", Publish::Plain);
    let is_field = |word: &&str| {
        word.len() == 22
            && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/".contains(&byte))
    };
    let mut changed = 0;
    for known in calls.iter().filter(|known| known.call.script().name.starts_with("group_")) {
        let (script, (keys, args)) = (known.call.script(), known.words());
        let fields: Vec<usize> = (0..args.len()).filter(|place| is_field(&args[*place])).collect();
        for place in &fields {
            for bad in [
                "",
                "x",
                "0123456789012345678901-",
                "-123456789012345678901",
                "é12345678901234567890",
            ] {
                refuses(known, *place, bad);
                changed += 1;
            }
        }
        if let Some(first) = fields.first() {
            let field = args[*first];
            let too_many = [&args[..], &[field; GroupCalls::VALUES_MAX]].concat();
            assert!(!passes(script, &keys, &too_many), "{}", script.name);
        }
    }
    assert!(changed > 10, "{changed}");
}

#[test]
fn a_call_with_an_invalid_permit_id_or_lock_kind_is_rejected() {
    let is_kind = |word: &str| !word.is_empty() && word.bytes().all(|byte| b"fx".contains(&byte));
    let (mut ids, mut kinds) = (0, 0);
    for known in every_call("app:a", "app:b", Publish::Plain) {
        // The first argument is the request id, which may be any text.
        for (place, word) in known.words().1.into_iter().enumerate().skip(1) {
            if PermitId::parse(word).is_ok() {
                ["", "x", &word[1..]].iter().for_each(|bad| refuses(&known, place, bad));
                ids += 1;
            }
            if is_kind(word) {
                refuses(&known, place, &"z".repeat(word.len()));
                refuses(&known, place, &"f".repeat(word.len() + 1));
                kinds += 1;
            }
        }
    }
    assert!(ids > 5 && kinds > 5, "{ids} {kinds}");
}

#[test]
fn a_name_that_is_a_key_of_another_object_does_not_reach_that_object() {
    let prefix = Prefix::new("{a}:").unwrap();
    let covers = |name: &str| {
        let mut calls = every_call(name, "{a}:x", Publish::Plain).into_iter();
        calls.all(|known| {
            let (keys, args) = known.words();
            prefix.covers(&touched(known.call.script(), &keys, &args).unwrap())
        })
    };
    assert!(covers("{a}:y") && covers("{a}:timeouts"));
    let reader = "{a}:00000000-0000-4000-8000-000000000000:1:rwlock_timeout:1";
    assert!(!covers("{a}:timeout") && !covers(reader));
    // The same spelling within the scope is accepted.
    assert!(covers("{a}:y:timeout"));
}

#[test]
fn a_prefix_is_the_beginning_of_names() {
    for good in ["a", "app:", "{tenant}:", "é"] {
        assert!(Prefix::new(good).is_ok(), "{good}");
    }
    for bad in ["", "redisson_lock", "el:", "a\n", &"a".repeat(513)] {
        assert_eq!(Prefix::new(bad).unwrap_err().option(), "prefix", "{bad}");
    }
    assert_eq!(format!("{:?}", Prefix::new("secret").unwrap()), "Prefix(..)");
}

/// Replaces, inserts or removes one character of a text.
fn change(text: &str, place: Index, by: char, how: u8) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    let place = place.index(chars.len().max(1));
    match how % 3 {
        0 if place < chars.len() => chars[place] = by,
        1 if place < chars.len() => drop(chars.remove(place)),
        _ => chars.insert(place.min(chars.len()), by),
    }
    chars.into_iter().collect()
}

proptest! {
    #![proptest_config(cases(2048))]

    #[test]
    fn a_changed_key_is_refused_or_still_one_s_own(
        which in any::<Index>(),
        key in any::<Index>(),
        place in any::<Index>(),
        by in proptest::sample::select("abq:{}0189el_\u{e9}".chars().collect::<Vec<_>>()),
        how in any::<u8>(),
    ) {
        let known = &CALLS[which.index(CALLS.len())];
        let (mut keys, args) = known.words();
        let at = key.index(keys.len());
        let changed = change(keys[at], place, by, how);
        prop_assume!(changed != keys[at]);
        keys[at] = &changed;
        let script = known.call.script();
        let Some(touched) = touched(script, &keys, &args) else { return Ok(()) };
        // The names that are now read belong to another name, or to another owner of this name.
        let names: Vec<&str> = touched.names().collect();
        for key in &keys {
            prop_assert!(names.iter().any(|name| key.contains(name)), "{}: {names:?} {keys:?}", script.name);
        }
        let is_same = names.iter().all(|name| known.names.iter().any(|known| known == name));
        // A name that stands alone, or among others without keys of its own, is read as it is.
        let may_touch = keys.len() == 1 || names.contains(&changed.as_str());
        let by_owner = changed.starts_with("el:") || changed.contains(":rwlock_timeout:");
        prop_assert!(may_touch || is_same && by_owner, "{}: {names:?} {keys:?}", script.name);
    }

    #[test]
    fn arbitrary_calls_cause_no_panic(
        which in any::<Index>(),
        keys in proptest::collection::vec("\\PC{0,20}", 0..6),
        args in proptest::collection::vec("\\PC{0,20}", 0..12),
        known in any::<bool>(),
    ) {
        let script = scripts::ALL[which.index(scripts::ALL.len())];
        let head = CALLS[0].words().1;
        let mut all: Vec<&str> = if known { head[..4].to_vec() } else { Vec::new() };
        all.extend(args.iter().map(String::as_str));
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        prop_assert!(!passes(script, &keys, &all));
    }
}
