//! Of each call exactly its names and its lease are read.

use std::collections::BTreeSet;

use edgelatch::protocol::scope::{Prefix, Touched, touched};
use edgelatch::protocol::script::{Publish, scripts};
use proptest::prelude::*;

use super::calls::{Known, every_call};

/// Names that anybody may choose, plain ones and such with a hash tag.
fn name() -> impl Strategy<Value = String> {
    let text = "[a-zA-Z0-9:/._é -]{1,12}";
    prop_oneof![text, (text, text, text).prop_map(|(a, tag, b)| format!("{a}{{{tag}}}{b}"))]
        .prop_filter("a name", |name| edgelatch::LockName::parse(name).is_ok())
}

pub(crate) fn read(known: &Known) -> Option<Touched> {
    let (keys, args) = known.words();
    touched(known.call.script(), &keys, &args)
}

/// What is read of a call, in which each of its names is.
pub(crate) fn assert_read(known: &Known) {
    let script = known.call.script().name;
    let touched = read(known).unwrap_or_else(|| panic!("{script}: {:?}", known.call.keys()));
    let names: BTreeSet<&str> = touched.names().collect();
    assert_eq!(names, known.names.iter().map(String::as_str).collect(), "{script}");
    assert_eq!((touched.lease, touched.forces), (known.lease, known.forces), "{script}");
    let not_after = &known.call.args()[1];
    assert_eq!(touched.not_after.map_or_else(String::new, |ms| ms.to_string()), *not_after);
    assert_eq!(touched.stores, None, "{script}");
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 64,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

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
        // What a majority raises is made by its machine alone, and has a test beside the code.
        let is_made = calls.iter().any(|known| known.call.script() == script);
        assert_eq!(is_made, !matches!(script.name, "eval" | "lock_raise"), "{}", script.name);
    }
}

#[test]
fn a_name_in_braces_is_told_apart_where_its_first_key_is_there() {
    for known in every_call("{a}", "{a}b", Publish::Plain) {
        let touched = read(&known).unwrap();
        assert!(Prefix::new("{a").unwrap().covers(&touched), "{}", known.call.script().name);
        let shared = ["cancel", "guard_newest", "permits_renew", "semaphore_renew"];
        let is_shared = shared.contains(&known.call.script().name);
        assert_eq!(Prefix::new("a").unwrap().covers(&touched), is_shared);
    }
}
