//! Runs fuzzers side by side.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use anyhow::{Result, bail};

use super::regressions;
use crate::progress::{Stopwatch, number_after, read, run_with_log, tail};
use crate::test::{Outcome, Report};
use crate::workspace::Workspace;

/// A target, and the command that runs it.
pub(super) struct TargetRun {
    pub(super) name: String,
    /// The command without the inputs.
    pub(super) command: Command,
    /// The argument that limits the run.
    pub(super) end: String,
    /// The folders of the initial inputs.
    pub(super) inputs: Vec<PathBuf>,
}

/// Runs all targets to their ends, two at a time: the cores of a small machine.
pub(super) fn side_by_side(workspace: &Workspace, runs: Vec<TargetRun>) -> Result<Report> {
    let waiting = Mutex::new(runs.into_iter());
    let next = || waiting.lock().ok()?.next();
    let work = || {
        let mut report = Report::default();
        while let Some(run) = next() {
            report += run.run(workspace)?;
        }
        Ok(report)
    };
    thread::scope(|scope| {
        let other = scope.spawn(work);
        let first = work();
        let mut report = other.join().unwrap_or_else(|_| bail!("a fuzzer's thread has failed"))?;
        report += first?;
        Ok(report)
    })
}

impl TargetRun {
    fn run(mut self, workspace: &Workspace) -> Result<Report> {
        let log = workspace.log(&format!("fuzz-{}", self.name))?;
        self.command.arg(&self.end).args(&self.inputs);
        println!("→ {}", self.name);
        let watch = Stopwatch::start();
        let status = run_with_log(&self.name, &mut self.command, &log, Duration::MAX, |_| ())?;
        let outcome = match result(workspace, &self.name, &log, status.success()) {
            Ok(done) => {
                println!("  ok: {}: {done}", self.name);
                Outcome::Passed
            }
            Err(problem) => Outcome::Failed(problem),
        };
        Ok(Report::of(&self.name, watch.elapsed(), outcome))
    }
}

/// Returns the work of a target; or its finding, or the reason why it did not run.
fn result(
    workspace: &Workspace,
    name: &str,
    log: &Path,
    succeeded: bool,
) -> Result<String, String> {
    let text = read(log);
    if !succeeded {
        let found = regressions::save_failure(workspace, name, &text)
            .unwrap_or_else(|error| format!("{name} failed: {error:#}"));
        return Err(format!("{}{found}", tail(log)));
    }
    let executions = number_after(&text, "stat::number_of_executed_units:").unwrap_or(0);
    let coverage = number_after(&text, " cov: ").unwrap_or(0);
    if executions == 0 || coverage == 0 {
        return Err(format!("it has executed nothing:\n{}", tail(log)));
    }
    Ok(format!("{executions} executions, coverage {coverage}"))
}
