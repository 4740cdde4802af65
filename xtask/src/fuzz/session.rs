//! Runs fuzzers side by side.

use std::collections::VecDeque;
use std::fs::File;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use super::regressions;
use crate::process::{ProcessGroup, check_stop, tick};
use crate::progress::{Stopwatch, read, tail};
use crate::workspace::Workspace;

/// The number of concurrent targets: the cores of a small machine.
const AT_ONCE: usize = 2;

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

impl TargetRun {
    fn start(mut self, workspace: &Workspace) -> Result<Running> {
        let log = workspace.log(&format!("fuzz-{}", self.name))?;
        let file = File::create(&log)?;
        self.command.arg(&self.end).args(&self.inputs);
        self.command.stdout(file.try_clone()?).stderr(file);
        println!("→ {}", self.name);
        let group = ProcessGroup::spawn(&self.name, &mut self.command)?;
        Ok(Running { name: self.name, watch: Stopwatch::start(), group, log })
    }
}

struct Running {
    name: String,
    watch: Stopwatch,
    group: ProcessGroup,
    log: PathBuf,
}

/// Runs all targets to their ends, and calls `report` for each with its time and its result or
/// problem.
pub(super) fn side_by_side(
    workspace: &Workspace,
    sessions: Vec<TargetRun>,
    mut report: impl FnMut(&str, Duration, Result<String, String>),
) -> Result<()> {
    let mut waiting = VecDeque::from(sessions);
    let mut running: Vec<Running> = Vec::new();
    while !(waiting.is_empty() && running.is_empty()) {
        check_stop()?;
        while running.len() < AT_ONCE
            && let Some(session) = waiting.pop_front()
        {
            running.push(session.start(workspace)?);
        }
        let mut going_on = Vec::new();
        for mut one in running {
            match one.group.ended()? {
                None => going_on.push(one),
                Some(status) => {
                    report(
                        &one.name,
                        one.watch.elapsed(),
                        ended(workspace, &one, status.success()),
                    );
                }
            }
        }
        running = going_on;
        tick();
    }
    Ok(())
}

/// Returns the work of a target; or its finding, or the reason why it did not run.
fn ended(workspace: &Workspace, one: &Running, succeeded: bool) -> Result<String, String> {
    let text = read(&one.log);
    if !succeeded {
        let found = regressions::keep_failure(workspace, &one.name, &text);
        return Err(format!("{}{found}", tail(&one.log)));
    }
    let executions = number_after(&text, "stat::number_of_executed_units:").unwrap_or(0);
    let coverage = text.lines().rev().find_map(|line| number_after(line, " cov: ")).unwrap_or(0);
    if executions == 0 || coverage == 0 {
        return Err(format!("it has executed nothing:\n{}", tail(&one.log)));
    }
    Ok(format!("{executions} executions, coverage {coverage}"))
}

fn number_after(text: &str, title: &str) -> Option<u64> {
    let (_, rest) = text.rsplit_once(title)?;
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_work_of_libfuzzer_is_read_from_its_output() {
        let log = "#482541\tDONE   cov: 525 ft: 913 corp: 168/15590b lim: 3188 exec/s: 30158 rss: 30Mb\n\
             stat::number_of_executed_units: 482541\nstat::average_exec_per_sec:     30158\n";
        assert_eq!(number_after(log, "stat::number_of_executed_units:"), Some(482_541));
        assert_eq!(number_after(log, " cov: "), Some(525));
        assert_eq!(number_after("nothing", " cov: "), None);
    }
}
