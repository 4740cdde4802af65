//! Random tests draw from a fixed seed: `support/random.rs` has it, and no test draws from another
//! source.

use super::files::{File, below};

/// The folders with tests in Rust.
const TESTS: [&str; 7] = ["cli", "gateway", "proto", "src", "testing", "tests", "xtask/src"];
/// The only file that may read a seed.
const SOURCE: &str = "tests/support/random.rs";
/// This file, which spells the words that it forbids.
const HERE: &str = "tests/tidy/inputs.rs";

/// Draws from a generator whose seed is random, or from the system. Product code outside of tests
/// may name `getrandom`.
const UNSEEDED: [&str; 10] = [
    "Rng::new(",
    "fastrand::bool(",
    "fastrand::choice(",
    "fastrand::shuffle(",
    "fastrand::u32(",
    "fastrand::u64(",
    "fastrand::u8(",
    "fastrand::usize(",
    "ProptestConfig",
    "TestRunner::default(",
];

fn files() -> impl Iterator<Item = File> {
    let all = TESTS.into_iter().flat_map(below);
    all.filter(|file| file.has_ending(&["rs"]) && file.path != HERE)
}

/// Each block of properties that does not say by which seed its inputs are drawn.
fn unseeded_properties(text: &str) -> usize {
    let blocks = text.split("proptest! {").skip(1);
    blocks.filter(|rest| !rest.trim_start().starts_with("#![proptest_config(cases(")).count()
}

#[test]
fn no_test_draws_from_a_random_seed() {
    for file in files().filter(|file| file.path != SOURCE) {
        for word in UNSEEDED {
            assert!(!file.text.contains(word), "{}: {word}", file.path);
        }
        assert!(!file.text.contains("\"EDGELATCH_SEED\""), "{} reads the seed itself", file.path);
    }
}

#[test]
fn every_property_names_the_source_of_its_inputs() {
    let mut blocks = 0;
    for file in files() {
        assert_eq!(unseeded_properties(&file.text), 0, "{}", file.path);
        blocks += file.text.matches("proptest! {").count();
    }
    assert!(blocks >= 8, "{blocks}");
}

#[test]
fn a_property_without_a_source_is_noticed() {
    assert_eq!(unseeded_properties("proptest! {\n    #[test]\n"), 1);
    assert_eq!(unseeded_properties("proptest! {\n    #![proptest_config(cases(9))]\n"), 0);
}
