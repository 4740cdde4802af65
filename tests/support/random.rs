//! The inputs of random tests: the same in each run, unless `EDGELATCH_SEED` selects others.

use std::env;
use std::str::FromStr;

use proptest::test_runner::{Config, RngSeed};

/// The variable that selects another seed than 1.
pub const SEED: &str = "EDGELATCH_SEED";
const DEFAULT_SEED: u64 = 1;

/// The value of an environment variable, or `None` if it is not set. Fails if the value is
/// malformed.
pub fn given<T: FromStr>(variable: &str) -> Option<T> {
    let parse = |text: String| text.parse().unwrap_or_else(|_| panic!("{variable}={text}"));
    env::var(variable).ok().map(parse)
}

/// The seed of a random test: 1, or the value of `EDGELATCH_SEED`. Prints it, which a test runner
/// shows when the test fails.
pub fn seed() -> u64 {
    let seed = given(SEED).unwrap_or(DEFAULT_SEED);
    println!("{SEED}={seed}");
    seed
}

/// The configuration of a property that is tried on `count` random inputs, drawn from [`seed`].
/// Nothing is written into the repository: the seed repeats a failure.
pub fn cases(count: u32) -> Config {
    Config {
        cases: count,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(seed()),
        ..Config::default()
    }
}
