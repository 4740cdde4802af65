//! Runs the commands of one suite and records their results.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use super::report::{LEVEL, Outcome, Report};
use super::suite::Extent;
use crate::progress::{Stopwatch, TimedOut, logged_within, print, tail};
use crate::workspace::{Log, Workspace, chromium, firefox};

/// A test in JavaScript that takes longer hangs, and fails with its name. This is no statement
/// about how long a test should take.
const TEST_HANGS: Duration = Duration::from_secs(30 * 60);
/// A command of a suite that takes longer hangs, and its suite fails instead of the whole run.
const COMMAND_HANGS: Duration = Duration::from_secs(60 * 60);

/// The context of a suite's run.
#[derive(Clone, Copy)]
pub(crate) struct Session<'w> {
    pub(crate) workspace: &'w Workspace,
    pub(crate) extent: Extent,
    /// The one test to run, if the user has named one.
    pub(crate) only: Option<&'w str>,
    /// The name of the suite in the names of its logs and reports.
    pub(super) suite: &'static str,
}

impl Session<'_> {
    /// Runs a command that is one test: it passes or fails as a whole.
    pub(crate) fn check(&self, name: &str, command: &mut Command) -> Result<Report> {
        if !self.selects(name) {
            return Ok(Report::default());
        }
        let watch = Stopwatch::start();
        let (succeeded, log) = self.run(name, command)?;
        let outcome = if succeeded { Outcome::Passed } else { Outcome::Failed(tail(&log)) };
        Ok(Report::of(name, watch.elapsed(), outcome))
    }

    /// Records a check that this program does by itself; it passes if there are no problems.
    pub(crate) fn finding(&self, name: &str, problems: &[String]) -> Report {
        if !self.selects(name) {
            return Report::default();
        }
        let outcome = match problems {
            [] => Outcome::Passed,
            problems => Outcome::Failed(problems.join("\n")),
        };
        Report::of(name, Duration::ZERO, outcome)
    }

    /// Runs a test runner that writes a JUnit file.
    pub(crate) fn tests(&self, name: &str, command: &mut Command, junit: &Path) -> Result<Report> {
        Report::discard(junit)?;
        self.tests_read_by(|_| Report::read(junit), name, command)
    }

    /// Runs a test runner, whose report `read` returns; it receives the path of the log.
    pub(super) fn tests_read_by(
        &self,
        read: impl FnOnce(&Path) -> Result<Report>,
        name: &str,
        command: &mut Command,
    ) -> Result<Report> {
        let (succeeded, log) = self.run(name, command)?;
        let mut report = match read(&log).and_then(Report::not_empty) {
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

    /// Returns the command of Node's test runner, without the files of tests.
    pub(crate) fn node(&self) -> Result<Command> {
        let mut command = self.workspace.command("node");
        command
            .args(["--test-reporter=junit", "--test-reporter-destination"])
            .arg(self.junit()?)
            .args(["--test-reporter=spec", "--test-reporter-destination=stdout"]);
        // A test that failed may have left a lease or a server behind, which would keep the program
        // from ending. Programs that must end by themselves are separate processes.
        command.arg("--test-force-exit");
        command.arg(format!("--test-timeout={}", TEST_HANGS.as_millis()));
        if let Some(id) = self.only {
            command.args(["--test-name-pattern", &pattern(id)]);
            // For the cases that run in another program.
            command.env("EDGELATCH_ONLY", id);
        }
        command.env("EDGELATCH_TOOLS", &self.workspace.node_modules);
        let is_full = self.extent == Extent::Full;
        command.env("EDGELATCH_EXTENT", if is_full { "full" } else { "quick" });
        command.envs(chromium().map(|chromium| ("CHROMIUM", chromium)));
        command.envs(firefox().map(|firefox| ("FIREFOX", firefox)));
        Ok(command)
    }

    /// Runs a command that [`node`](Self::node) has returned.
    pub(crate) fn node_tests(&self, name: &str, command: &mut Command) -> Result<Report> {
        Ok(self.tests(name, command, &self.junit()?)?.selected_by_path())
    }

    /// Returns the path for the report of this suite.
    fn junit(&self) -> Result<PathBuf> {
        Ok(self.workspace.folder("junit")?.join(format!("{}.xml", self.suite)))
    }

    /// Whether the check of this name runs.
    fn selects(&self, name: &str) -> bool {
        self.only.is_none_or(|only| only == name)
    }

    /// Runs a command with its output in a log; returns whether it succeeded, and the log.
    fn run(&self, name: &str, command: &mut Command) -> Result<(bool, Log)> {
        let log = self.workspace.log(&format!("test-{}-{name}", self.suite))?;
        print(&format!("→ {name}"));
        let watch = Stopwatch::start();
        let succeeded = match logged_within(COMMAND_HANGS, command, &log) {
            Err(error) if error.is::<TimedOut>() => {
                writeln!(File::options().append(true).open(&*log)?, "error: it {error}")?;
                false
            }
            ended => ended?.success(),
        };
        print(&format!("  {} in {}", if succeeded { "ok" } else { "FAILED" }, watch.text()));
        if !succeeded {
            print(&format!("  all of its output: {}", log.display()));
        }
        Ok((succeeded, log))
    }
}

/// Returns a JavaScript regular expression that matches only the test of this name or path: Node
/// puts a space between the names of groups and of a test.
fn pattern(id: &str) -> String {
    let text = id.replace(LEVEL, " ");
    let special = |c: char| r"\^$.*+?()[]{}|/".contains(c);
    let escaped = text.chars().flat_map(|c| special(c).then_some('\\').into_iter().chain([c]));
    format!("^{}$", escaped.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_is_selected_by_its_path_and_nothing_beside_it() {
        assert_eq!(pattern("alone"), "^alone$");
        assert_eq!(pattern("programs > Deno > lock: a (b)"), r"^programs Deno lock: a \(b\)$");
    }
}
