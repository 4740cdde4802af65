//! Running the commands of a suite.

use std::cell::Cell;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};

use super::tally::Tally;
use crate::place::Place;
use crate::progress::{Stopwatch, logged, read, tail};

/// Runs commands for one suite and keeps their output apart from each other.
pub(crate) struct Runner<'p> {
    pub(crate) place: &'p Place,
    suite: &'static str,
    commands: Cell<u32>,
}

impl<'p> Runner<'p> {
    /// For the suite of this name.
    pub(crate) fn new(place: &'p Place, suite: &'static str) -> Self {
        Self { place, suite, commands: Cell::new(0) }
    }

    /// A command that passes or fails as a whole.
    pub(crate) fn check(&self, what: &str, command: &mut Command) -> Result<Tally> {
        let (succeeded, _) = self.run(what, command)?;
        Ok(if succeeded { Tally::passed(1) } else { Tally::failed(1) })
    }

    /// A command that counts its tests.
    pub(crate) fn count(&self, what: &str, command: &mut Command) -> Result<Tally> {
        Ok(self.count_and_read(what, command)?.0)
    }

    /// The same, and what it printed.
    pub(crate) fn count_and_read(
        &self,
        what: &str,
        command: &mut Command,
    ) -> Result<(Tally, String)> {
        let (succeeded, output) = self.run(what, command)?;
        let mut tally = Tally::read(&output);
        if !succeeded && tally.failed == 0 {
            tally.failed = 1;
        }
        ensure!(tally != Tally::default(), "no test was counted: {what}");
        Ok((tally, output))
    }

    /// A finding of our own.
    pub(crate) fn finding(&self, what: &str, problems: &[String]) -> Tally {
        for problem in problems {
            println!("    {problem}");
        }
        println!("  {}: {what}", if problems.is_empty() { "ok" } else { "FAILED" });
        if problems.is_empty() { Tally::passed(1) } else { Tally::failed(1) }
    }

    fn run(&self, what: &str, command: &mut Command) -> Result<(bool, String)> {
        let number = self.commands.get() + 1;
        self.commands.set(number);
        let log = self.place.log(&format!("test-{}-{number}", self.suite))?;
        println!("→ {what}");
        let watch = Stopwatch::start();
        let succeeded = logged(command, &log)?.success();
        println!("  {} in {}", if succeeded { "ok" } else { "FAILED" }, watch.text());
        if !succeeded {
            print_failure(&log);
        }
        Ok((succeeded, read(&log)))
    }
}

fn print_failure(log: &Path) {
    println!("{}    (all of it: {})", tail(log), log.display());
}
