//! Prints the progress of a task: a line when a step starts, a line when it ends, and regular lines
//! between.

use std::cell::Cell;
use std::fmt;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::process::ProcessGroup;
use crate::workspace::Workspace;

/// The longest time without a line during a step.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);
/// The number of lines that are printed from the end of a failed program's output.
const TAIL_LINES: usize = 80;
/// The number of lines that are printed before it, from the places that name a failure.
const CAUSE_LINES: usize = 40;
/// The number of lines after a line that names a failure, which belong to it.
const CAUSE_CONTEXT: usize = 4;
/// The line after which Node repeats the failures with their reasons.
const NODE_FAILURES: &str = "✖ failing tests:";

thread_local! {
    /// The beginning of this thread's lines, while several threads run side by side.
    static PREFIX: Cell<&'static str> = const { Cell::new("") };
}

/// Runs `work`, whose lines of progress begin with this name.
pub(crate) fn with_prefix<T>(name: &'static str, work: impl FnOnce() -> T) -> T {
    let outer = PREFIX.replace(name);
    let result = work();
    PREFIX.set(outer);
    result
}

/// Prints lines of progress. Lines of one call stay together.
pub(crate) fn print(text: &str) {
    let prefix = PREFIX.get();
    let lines: String = text
        .lines()
        .map(|line| match prefix {
            "" => format!("{line}\n"),
            prefix => format!("{prefix:<15} │ {line}\n"),
        })
        .collect();
    print!("{lines}");
}

/// A clock for messages to people; no decision depends on it.
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    /// Creates a stopwatch that starts now.
    #[expect(clippy::disallowed_methods, reason = "a task tells how long it took")]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// Returns the time since the start.
    pub(crate) fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    /// Returns the time since the start as text.
    pub(crate) fn text(&self) -> String {
        text(self.elapsed())
    }
}

/// Formats a time.
pub(crate) fn text(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 60.0 {
        format!("{seconds:.1} s")
    } else {
        format!("{} min {:.0} s", (seconds / 60.0) as u64, seconds % 60.0)
    }
}

/// Runs one step of a task, with a line at its start and at its end.
pub(crate) fn step<T>(what: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    print(&format!("→ {what}"));
    let watch = Stopwatch::start();
    let result = work().with_context(|| format!("failed: {what}"))?;
    print(&format!("  done in {}", watch.text()));
    Ok(result)
}

/// Runs a program as a step; its output is kept, and printed if the program fails.
pub(crate) fn run(workspace: &Workspace, what: &str, command: &mut Command) -> Result<()> {
    step(what, || quiet(workspace, what, command))
}

/// Runs a program whose output is kept, and printed if the program fails.
pub(crate) fn quiet(workspace: &Workspace, what: &str, command: &mut Command) -> Result<()> {
    let log = workspace.log(what.split([':', '(']).next().unwrap_or(what).trim())?;
    let status = logged(command, &log)?;
    if !status.success() {
        eprintln!("{}", tail(&log));
        bail!("{} ended with {status}; all of its output: {}", name(command), log.display());
    }
    Ok(())
}

/// Runs a program with its output in a file, and prints regular lines of progress.
pub(crate) fn logged(command: &mut Command, log: &Path) -> Result<ExitStatus> {
    logged_within(Duration::MAX, command, log)
}

/// Runs a program as [`logged`] does; fails with [`TimedOut`] if it does not end within `limit`.
pub(crate) fn logged_within(
    limit: Duration,
    command: &mut Command,
    log: &Path,
) -> Result<ExitStatus> {
    let mut next = SIGN_OF_LIFE;
    run_with_log(&name(command), command, log, limit, |elapsed| {
        if elapsed >= next {
            next += SIGN_OF_LIFE;
            print(&format!("  {:>3} s  {}", elapsed.as_secs(), last_line(log)));
        }
    })
}

/// A program has run for longer than its limit, and was ended.
#[derive(Debug)]
pub(crate) struct TimedOut(Duration);

impl fmt::Display for TimedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "did not end within {}", text(self.0))
    }
}

impl std::error::Error for TimedOut {}

/// Runs a program with its output in a file; fails with [`TimedOut`] if it does not end within
/// `limit`. `meanwhile` receives the time since the start.
pub(crate) fn run_with_log(
    title: &str,
    command: &mut Command,
    log: &Path,
    limit: Duration,
    mut meanwhile: impl FnMut(Duration),
) -> Result<ExitStatus> {
    let file = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
    command.stdout(file.try_clone()?).stderr(file);
    // If an error drops the group, the group ends the program.
    let mut group = ProcessGroup::spawn(title, command)?;
    let watch = Stopwatch::start();
    group.wait(|| {
        let elapsed = watch.elapsed();
        meanwhile(elapsed);
        if elapsed < limit { Ok(()) } else { Err(TimedOut(limit).into()) }
    })
}

/// Returns the program's output; fails if the program does.
pub(crate) fn output_of(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot start {}", name(command)))?;
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        bail!("{} ended with {}: {}", name(command), output.status, error.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns the part of a log that explains a failure: first the places that name one, then the end.
/// Node repeats all failures there.
pub(crate) fn tail(log: &Path) -> String {
    excerpt(&read(log))
}

fn excerpt(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !is_progress(line)).collect();
    let skipped = lines.len().saturating_sub(TAIL_LINES);
    let collected = lines.iter().rposition(|line| line.contains(NODE_FAILURES));
    let (before, end) = lines.split_at(collected.unwrap_or(skipped));
    let causes = if collected.is_some() { Vec::new() } else { causes(before) };
    let lines = causes.iter().chain(end).take(CAUSE_LINES + TAIL_LINES);
    lines.map(|line| format!("    {line}\n")).collect()
}

/// Returns the lines that name a failure, and the lines after each.
fn causes<'t>(lines: &[&'t str]) -> Vec<&'t str> {
    let mut context = 0;
    let belongs = |line: &&&str| {
        context =
            if names_failure(line) { CAUSE_CONTEXT } else { usize::saturating_sub(context, 1) };
        context > 0
    };
    lines.iter().filter(belongs).take(CAUSE_LINES).copied().collect()
}

/// Returns whether a line names a failure in the words of rustc, cargo's test harness, Node or this
/// repository's scripts.
fn names_failure(line: &str) -> bool {
    let line = line.trim_start();
    line.contains("panicked at")
        || line.ends_with("... FAILED")
        || ["error", "not ok ", "✖ ", "FAILED"].iter().any(|start| line.starts_with(start))
}

/// Returns whether the line is cargo's progress: hundreds of such lines would displace the one with
/// the reason.
fn is_progress(line: &str) -> bool {
    ["Compiling ", "Checking ", "Downloaded ", "Building "]
        .iter()
        .any(|verb| line.trim_start().starts_with(verb))
}

/// Returns a log as text, also if it is not valid UTF-8.
pub(crate) fn read(log: &Path) -> String {
    String::from_utf8_lossy(&fs::read(log).unwrap_or_default()).into_owned()
}

/// Returns the number that follows the last `title` in a program's output.
pub(crate) fn number_after(output: &str, title: &str) -> Option<u64> {
    let (_, rest) = output.rsplit_once(title)?;
    rest.trim_start().split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

fn last_line(log: &Path) -> String {
    let text = read(log);
    let line = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    line.trim().chars().take(100).collect()
}

fn name(command: &Command) -> String {
    command.get_program().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use std::{env, process};

    use super::*;

    #[test]
    fn a_program_that_does_not_end_within_its_limit_is_ended() {
        let log = env::temp_dir().join(format!("xtask-limit-{}.log", process::id()));
        let mut sleep = Command::new("sleep");
        let result = run_with_log("sleep", sleep.arg("infinity"), &log, Duration::ZERO, |_| ());
        assert!(result.is_err_and(|error| error.is::<TimedOut>()));
        fs::remove_file(log).unwrap();
    }

    #[test]
    fn a_failure_far_from_the_end_is_printed_first() {
        let passed = "test later ... ok\n".repeat(TAIL_LINES);
        let printed = excerpt(&format!(
            "test one ... ok\ntest two ... FAILED\nthread 'two' panicked at tests/a.rs:1:\nleft: 1\n{passed}error: 1 target failed\n"
        ));
        assert!(printed.trim_start().starts_with("test two ... FAILED\n"), "{printed}");
        assert!(printed.contains("left: 1"), "{printed}");
        assert!(printed.ends_with("error: 1 target failed\n"), "{printed}");
    }

    #[test]
    fn the_release_of_java_is_read_from_its_version() {
        let versions = ["javac 17.0.15\n", "javac 21\n", "javac 25-ea\n", "javac 1.8.0_392\n", ""];
        let releases = versions.map(|text| number_after(text, "javac "));
        assert_eq!(releases, [Some(17), Some(21), Some(25), Some(1), None]);
    }

    #[test]
    fn the_release_of_go_is_read_from_its_version() {
        let versions = ["go1.19.8\n", "go1.26\n", "go1.27rc1\n", "devel +abc\n"];
        let releases = versions.map(|text| number_after(text, "go1."));
        assert_eq!(releases, [Some(19), Some(26), Some(27), None]);
    }

    #[test]
    fn the_work_of_libfuzzer_is_read_from_its_output() {
        let log = "#482541\tDONE   cov: 525 ft: 913 corp: 168/15590b lim: 3188 exec/s: 30158 rss: 30Mb\n\
             stat::number_of_executed_units: 482541\nstat::average_exec_per_sec:     30158\n";
        assert_eq!(number_after(log, "stat::number_of_executed_units:"), Some(482_541));
        assert_eq!(number_after(log, " cov: "), Some(525));
        assert_eq!(number_after("nothing", " cov: "), None);
    }

    #[test]
    fn the_reasons_of_failures_in_node_are_printed() {
        let passed = "✔ another\n".repeat(TAIL_LINES);
        let log = format!(
            "✖ one (1 ms)\n{passed}ℹ fail 1\n\n✖ failing tests:\n\n✖ one (1 ms)\n  Error: never\n"
        );
        let printed = excerpt(&log);
        assert!(printed.trim_start().starts_with("✖ failing tests:"), "{printed}");
        assert!(printed.ends_with("Error: never\n"), "{printed}");
    }
}
