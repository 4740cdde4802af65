//! Runs the commands of one suite and records their results.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use super::report::{Outcome, Report};
use super::suite::Extent;
use crate::place::Place;
use crate::progress::{Stopwatch, logged, say, tail};

/// The context of a suite's run.
pub(crate) struct Session<'p> {
    pub(crate) place: &'p Place,
    pub(crate) extent: Extent,
    /// The one test to run, if the user has named one.
    pub(crate) only: Option<&'p str>,
    suite: &'static str,
    commands: Cell<u32>,
}

impl<'p> Session<'p> {
    /// Creates the session of the suite with this name.
    pub(crate) fn new(
        place: &'p Place,
        suite: &'static str,
        extent: Extent,
        only: Option<&'p str>,
    ) -> Self {
        Self { place, extent, only, suite, commands: Cell::new(0) }
    }

    /// Runs a command that is one test: it passes or fails as a whole.
    pub(crate) fn check(&self, name: &str, command: &mut Command) -> Result<Report> {
        if !self.wants(name) {
            return Ok(Report::default());
        }
        let watch = Stopwatch::start();
        let (succeeded, log) = self.run(name, command)?;
        let outcome = if succeeded { Outcome::Passed } else { Outcome::Failed(tail(&log)) };
        Ok(Report::of(name, watch.elapsed(), outcome))
    }

    /// Records a check that this program does by itself; it passes if there are no problems.
    pub(crate) fn finding(&self, name: &str, problems: &[String]) -> Report {
        if !self.wants(name) {
            return Report::default();
        }
        let outcome = if problems.is_empty() {
            Outcome::Passed
        } else {
            Outcome::Failed(problems.join("\n"))
        };
        Report::of(name, Duration::ZERO, outcome)
    }

    /// Runs a test runner that writes a JUnit file.
    pub(crate) fn tests(&self, name: &str, command: &mut Command, junit: &Path) -> Result<Report> {
        Report::discard(junit)?;
        let (succeeded, log) = self.run(name, command)?;
        let mut report = match Report::read(junit).and_then(Report::not_empty) {
            Ok(report) => report,
            Err(error) => {
                return Ok(Report::of_failure(name, format!("{error:#}\n{}", tail(&log))));
            }
        };
        // A failure outside of a test, such as in a hook, is in no case.
        if !succeeded && report.counts().failed == 0 {
            report += Report::of_failure(name, tail(&log));
        }
        Ok(report)
    }

    /// Returns the path for the report of this suite's next command.
    pub(crate) fn junit(&self) -> Result<PathBuf> {
        let name = format!("{}-{}.xml", self.suite, self.commands.get() + 1);
        Ok(self.place.folder("junit")?.join(name))
    }

    /// Whether the check of this name runs.
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.only.is_none_or(|only| only == name)
    }

    /// Runs a command with its output in a log; returns whether it succeeded, and the log.
    pub(crate) fn run(&self, name: &str, command: &mut Command) -> Result<(bool, PathBuf)> {
        let number = self.commands.get() + 1;
        self.commands.set(number);
        let log = self.place.log(&format!("test-{}-{number}", self.suite))?;
        say(&format!("→ {name}"));
        let watch = Stopwatch::start();
        let succeeded = logged(command, &log)?.success();
        say(&format!("  {} in {}", if succeeded { "ok" } else { "FAILED" }, watch.text()));
        if !succeeded {
            say(&format!("  all of its output: {}", log.display()));
        }
        Ok((succeeded, log))
    }
}
