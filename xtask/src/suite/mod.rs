//! `cargo xtask test`: every suite, what it counted, and what could not run.

mod advisories;
mod compared;
mod javascript;
mod runner;
mod rust;
mod table;
mod tally;

use std::env;
use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::place::Place;
use crate::process::Interrupted;
use crate::progress::Stopwatch;
use crate::setup::{self, Need};
pub(crate) use javascript::soak_for;
pub(crate) use runner::Runner;
use table::SUITES;
pub(crate) use tally::Tally;

/// A part of the tests that is run and counted by itself.
pub(crate) struct Suite {
    name: &'static str,
    /// What it shows, in a few words.
    about: &'static str,
    /// What has to be on the machine.
    needs: &'static [Need],
    /// What has to be in the checkout.
    files: &'static [&'static str],
    run: fn(&Runner<'_>) -> Result<Tally>,
}

/// What became of a suite.
enum Outcome {
    Ran(Tally),
    Broke(String),
    CouldNotRun(String),
}

/// One line of the summary.
struct Line {
    name: &'static str,
    outcome: Outcome,
    time: String,
}

/// Prints what suites there are.
pub(crate) fn list() {
    for suite in SUITES {
        println!("{:<14} {}", suite.name, suite.about);
    }
}

/// Runs the suites of these names, all if none is named, and prints the summary.
pub(crate) fn run(place: &Place, names: &[String]) -> Result<ExitCode> {
    let suites = chosen(names)?;
    let watch = Stopwatch::start();
    let mut needs: Vec<Need> = suites.iter().flat_map(|suite| suite.needs).copied().collect();
    let mut seen = Vec::new();
    needs.retain(|need| {
        !seen.contains(need) && {
            seen.push(*need);
            true
        }
    });
    let missing = setup::ensure_each(place, &needs)?;

    let mut lines = Vec::new();
    for suite in suites {
        println!("\n== {}: {}", suite.name, suite.about);
        let watch = Stopwatch::start();
        let outcome = match obstacle(place, suite, &missing) {
            Some(reason) => Outcome::CouldNotRun(reason),
            None => match (suite.run)(&Runner::new(place, suite.name)) {
                Ok(tally) => Outcome::Ran(tally),
                Err(error) if error.is::<Interrupted>() => return Err(error),
                Err(error) => Outcome::Broke(format!("{error:#}")),
            },
        };
        let line = Line { name: suite.name, outcome, time: watch.text() };
        println!("{line}");
        lines.push(line);
    }
    let is_ci = env::var_os("CI").is_some_and(|value| !value.is_empty());
    Ok(summary(&lines, is_ci, &watch))
}

fn chosen(names: &[String]) -> Result<Vec<&'static Suite>> {
    if let Some(unknown) = names.iter().find(|name| SUITES.iter().all(|suite| suite.name != **name))
    {
        bail!("there is no suite `{unknown}`; `cargo xtask test --list` prints them");
    }
    let is_chosen =
        |suite: &&Suite| names.is_empty() || names.iter().any(|name| name == suite.name);
    Ok(SUITES.iter().filter(is_chosen).collect())
}

fn obstacle(place: &Place, suite: &Suite, missing: &[(Need, String)]) -> Option<String> {
    let need = missing.iter().find(|(need, _)| suite.needs.contains(need));
    let file = suite.files.iter().find(|file| !place.root.join(file).exists());
    need.map(|(_, reason)| reason.clone())
        .or_else(|| file.map(|file| format!("there is no {file}")))
}

/// Prints the summary. In CI nothing may be left out, so what could not run has failed.
fn summary(lines: &[Line], is_ci: bool, watch: &Stopwatch) -> ExitCode {
    println!("\nSummary, after {}:", watch.text());
    let mut total = Tally::default();
    for line in lines {
        println!("{line}");
        total += line.tally(is_ci);
    }
    println!("{} passed, {} failed", total.passed, total.failed);
    if total.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

impl Line {
    fn tally(&self, is_ci: bool) -> Tally {
        match &self.outcome {
            Outcome::Ran(tally) if is_ci => tally.with_skipped_as_failed(),
            Outcome::Ran(tally) => *tally,
            Outcome::Broke(_) => Tally::failed(1),
            Outcome::CouldNotRun(_) => Tally::failed(u64::from(is_ci)),
        }
    }
}

impl std::fmt::Display for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (name, time) = (self.name, &self.time);
        match &self.outcome {
            Outcome::Ran(tally) => write!(f, "  {name:<14} {tally} ({time})"),
            Outcome::Broke(reason) => write!(f, "  {name:<14} FAILED: {reason} ({time})"),
            Outcome::CouldNotRun(reason) => write!(f, "  {name:<14} could not run: {reason}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(outcome: Outcome) -> Line {
        Line { name: "suite", outcome, time: String::new() }
    }

    #[test]
    fn what_could_not_run_fails_in_ci_only() {
        let line = line(Outcome::CouldNotRun("no browser".to_owned()));
        assert_eq!(line.tally(false), Tally::default());
        assert_eq!(line.tally(true), Tally::failed(1));
    }

    #[test]
    fn a_skipped_test_fails_in_ci_only() {
        let line = line(Outcome::Ran(Tally { passed: 2, failed: 0, skipped: 1 }));
        assert_eq!(line.tally(false).failed, 0);
        assert_eq!(line.tally(true).failed, 1);
    }

    #[test]
    fn a_suite_that_broke_has_failed_everywhere() {
        let line = line(Outcome::Broke("no tests were counted".to_owned()));
        assert_eq!(line.tally(false), Tally::failed(1));
    }

    #[test]
    fn an_unknown_suite_is_refused() {
        assert!(chosen(&["nonsense".to_owned()]).is_err());
        assert_eq!(chosen(&["fmt".to_owned()]).unwrap().len(), 1);
        assert_eq!(chosen(&[]).unwrap().len(), SUITES.len());
    }
}
