//! A million random calls of the scripts, on a real Redis and on the model, compared after each.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;

use anyhow::{Context as _, Result};

use super::runner::Runner;
use super::tally::Tally;

/// So many are compared in all at least, of each script so many.
const CALLS: u64 = 1_000_000;
const CALLS_OF_EACH: u64 = 1_000;
/// So many are asked of each test. There is one for each object.
const CALLS_OF_A_TEST: u64 = 115_000;
const SCRIPTS: &str = "src/protocol/scripts";
/// Stands in front of each script and is none.
const PRELUDE: &str = "prelude";

pub(crate) fn suite(runner: &Runner<'_>) -> Result<Tally> {
    let mut command = runner.place.command("cargo");
    command
        .args(["test", "--release", "--package", "edgelatch", "--test", "scripts", "random_"])
        .args(["--", "--show-output"])
        .env("EDGELATCH_CALLS", CALLS_OF_A_TEST.to_string());
    let (mut tally, output) =
        runner.count_and_read("cargo test --release --test scripts: random calls", &mut command)?;
    let made = read(&output);
    for (script, calls) in &made {
        println!("  {calls:>9} {script}");
    }
    let total: u64 = made.values().sum();
    println!("  {total:>9} calls in all");
    tally += runner.finding("so many calls were compared", &missing(&made, &scripts(runner)?));
    Ok(tally)
}

/// Adds up what the tests say: a line for each script that they called.
fn read(output: &str) -> BTreeMap<&str, u64> {
    let mut made = BTreeMap::new();
    for line in output.lines() {
        if let Some((calls, script)) =
            line.strip_prefix("compared ").and_then(|line| line.split_once(" calls of "))
        {
            *made.entry(script).or_default() += calls.parse::<u64>().unwrap_or(0);
        }
    }
    made
}

fn missing(made: &BTreeMap<&str, u64>, scripts: &[String]) -> Vec<String> {
    let total: u64 = made.values().sum();
    let few = (total < CALLS).then(|| format!("{total} calls instead of {CALLS}"));
    let of_each = scripts.iter().filter_map(|script| {
        let calls = made.get(&**script).copied().unwrap_or(0);
        (calls < CALLS_OF_EACH).then(|| format!("{script}: {calls} calls"))
    });
    few.into_iter().chain(of_each).collect()
}

/// The names of all scripts that there are.
fn scripts(runner: &Runner<'_>) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(runner.place.root.join(SCRIPTS)).context("no scripts")? {
        let path = entry?.path();
        if path.extension() == Some(OsStr::new("lua"))
            && let Some(name) = path.file_stem().and_then(OsStr::to_str)
            && name != PRELUDE
        {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_tests_say_is_added_up() {
        let output = "---- a stdout ----\ncompared 7 calls of cancel\n\n---- b stdout ----\n\
             compared 5 calls of cancel\ncompared 2 calls of eval\ntest result: ok. 2 passed; 0 failed\n";
        assert_eq!(read(output), BTreeMap::from([("cancel", 12), ("eval", 2)]));
    }

    #[test]
    fn a_script_that_was_left_out_is_missing() {
        let scripts = ["cancel".to_owned(), "eval".to_owned()];
        let enough = BTreeMap::from([("cancel", CALLS), ("eval", CALLS_OF_EACH)]);
        assert!(missing(&enough, &scripts).is_empty());
        let few = BTreeMap::from([("cancel", CALLS - 1)]);
        assert_eq!(missing(&few, &scripts), ["999999 calls instead of 1000000", "eval: 0 calls"]);
    }
}
