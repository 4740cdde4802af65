//! A gateway reads exactly the names and the lease of every call.

use std::collections::BTreeSet;
use std::time::Duration;

use edgelatch_proto::name::LockName;
use edgelatch_proto::protocol::calls::{FairCalls, FairSettings, Target};
use edgelatch_proto::protocol::scope::{Prefix, Touched, touched};
use edgelatch_proto::protocol::script::{Publish, scripts};
use proptest::prelude::*;

use test_support::calls::token;
use test_support::every_call::{Known, TOKEN, every_call, of_target};
use test_support::random::cases;

/// Valid names, with and without a hash tag.
fn name() -> impl Strategy<Value = String> {
    let text = "[a-zA-Z0-9:/._é -]{1,12}";
    prop_oneof![text, (text, text, text).prop_map(|(a, tag, b)| format!("{a}{{{tag}}}{b}"))]
        .prop_filter("a name", |name| LockName::parse(name).is_ok())
}

pub(crate) fn read(known: &Known) -> Option<Touched> {
    let (keys, args) = known.words();
    touched(known.call.script(), &keys, &args)
}

/// Checks what a gateway reads of a call whose keys contain all of its names.
pub(crate) fn assert_read(known: &Known) {
    let script = known.call.script().name;
    let touched = read(known).unwrap_or_else(|| panic!("{script}: {:?}", known.call.keys()));
    let names: BTreeSet<&str> = touched.names().collect();
    assert_eq!(names, known.names.iter().map(String::as_str).collect(), "{script}");
    assert_eq!((touched.kind, touched.right), (known.kind, known.right), "{script}");
    assert_eq!(touched.lease, known.lease, "{script}");
    let lasting: &[String] = if known.lasts { &known.names } else { &[] };
    assert_eq!(touched.lasting, lasting, "{script}");
    assert!(!touched.has_own_settings, "{script}");
    let not_after = &known.call.args()[1];
    assert_eq!(touched.not_after.map_or_else(String::new, |ms| ms.to_string()), *not_after);
    let stored = script.starts_with("guard_write").then_some(token(TOKEN));
    assert_eq!(touched.stores, stored, "{script}");
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn every_call_is_about_its_names_and_its_lease(
        one in name(),
        two in name(),
        publish in proptest::sample::select(vec![Publish::Plain, Publish::Sharded, Publish::Both]),
    ) {
        prop_assume!(one != two);
        every_call(&one, &two, publish).iter().for_each(assert_read);
    }
}

#[test]
fn every_script_is_read_but_the_one_that_runs_another_s() {
    let calls = every_call("a", "b", Publish::Plain);
    for script in scripts::ALL {
        // Only a redLock's machine makes `lock_raise`; its test is beside the code. No prefix
        // covers the names that `fair_rw_query` shows.
        let is_made = calls.iter().any(|known| known.call.script() == script);
        let is_absent = matches!(script.name, "eval" | "lock_raise" | "fair_rw_query");
        assert_eq!(is_made, !is_absent, "{}", script.name);
    }
}

#[test]
fn a_name_in_braces_is_recognized_by_the_first_key() {
    for known in every_call("{a}", "{a}b", Publish::Plain) {
        let touched = read(&known).unwrap();
        assert!(Prefix::new("{a").unwrap().covers(&touched), "{}", known.call.script().name);
        let shared = ["cancel", "guard_newest", "permits_renew", "semaphore_renew"];
        let script = known.call.script().name;
        // Both names spell the same fair read-write lock.
        let is_shared = shared.contains(&script) || script.starts_with("fair_rw_");
        assert_eq!(Prefix::new("a").unwrap().covers(&touched), is_shared);
    }
}

/// Attack H1 and similar ones: a gateway rejects the call by its number of keys before it compares
/// any two keys.
#[test]
fn a_call_with_too_many_keys_or_arguments_is_rejected() {
    for known in every_call("app:a", "app:b", Publish::Plain) {
        let (script, (mut keys, mut args)) = (known.call.script(), known.words());
        let names: Vec<String> = (0..20_000).map(|number| format!("el:{{{number}}}:")).collect();
        keys.extend(names.iter().map(String::as_str));
        assert!(touched(script, &keys, &args).is_none(), "{}", script.name);
        let keys = known.words().0;
        args.extend(names.iter().map(String::as_str));
        assert!(touched(script, &keys, &args).is_none(), "{}", script.name);
    }
}

#[test]
fn settings_of_a_fair_lock_s_queue_are_sent_if_they_differ_from_the_default() {
    let s = Duration::from_secs;
    let reads = |settings: FairSettings| {
        let calls = FairCalls::new(LockName::parse("a").unwrap(), settings, Publish::Plain);
        let target = Target::Fair(calls);
        let known = of_target(&target).into_iter().filter(|known| known.lease.is_some());
        let is_own: Vec<bool> = known
            .filter(|known| known.call.script().name == "fair_acquire")
            .map(|known| read(&known).unwrap().has_own_settings)
            .collect();
        assert!(!is_own.is_empty() && is_own.iter().all(|own| *own == is_own[0]));
        is_own[0]
    };
    let default = FairSettings::default();
    // A waiter that returned to its place widens its skew by itself.
    assert!(!reads(default) && !reads(default.widened()) && reads(default.widened().widened()));
    assert!(reads(default.life(s(11)).unwrap()) && reads(default.life(s(9)).unwrap()));
    assert!(reads(default.grace(s(6), s(30)).unwrap()));
    assert!(reads(default.grace(s(5), s(31)).unwrap()));
    assert!(reads(default.allowance(s(301)).unwrap()));
    assert!(!reads(default.allowance(s(10)).unwrap()));
}
