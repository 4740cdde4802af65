//! What a task says while it works: a line when a step starts, one when it ends, and a sign of life between.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::place::Place;
use crate::process::Group;

/// How long a step may be silent.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);
/// How much of a failed program's output is printed.
const TAIL_LINES: usize = 80;

/// A clock for what is told to people; nothing is decided by it.
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts now.
    #[expect(clippy::disallowed_methods, reason = "a task tells how long it took")]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// Since the start.
    pub(crate) fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    /// Since the start, as people read it.
    pub(crate) fn text(&self) -> String {
        let seconds = self.elapsed().as_secs_f64();
        if seconds < 60.0 {
            format!("{seconds:.1} s")
        } else {
            format!("{} min {:.0} s", (seconds / 60.0) as u64, seconds % 60.0)
        }
    }
}

/// Does one step of a task, told at its start and at its end.
pub(crate) fn step<T>(what: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    println!("→ {what}");
    let watch = Stopwatch::start();
    let result = work().with_context(|| format!("failed: {what}"))?;
    println!("  done in {}", watch.text());
    Ok(result)
}

/// Runs a program as a step of its own; its output is kept, and printed when it fails.
pub(crate) fn run(place: &Place, what: &str, command: &mut Command) -> Result<()> {
    step(what, || quiet(place, what, command))
}

/// Runs a program whose output is kept, and printed when it fails.
pub(crate) fn quiet(place: &Place, what: &str, command: &mut Command) -> Result<()> {
    let log = place.log(what.split([':', '(']).next().unwrap_or(what).trim())?;
    let status = logged(command, &log)?;
    if !status.success() {
        eprintln!("{}", tail(&log));
        bail!("{} ended with {status}; all of its output: {}", name(command), log.display());
    }
    Ok(())
}

/// Runs a program with its output in a file, with a sign of life now and then.
pub(crate) fn logged(command: &mut Command, log: &Path) -> Result<ExitStatus> {
    let file = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
    command.stdout(file.try_clone()?).stderr(file);
    let mut group = Group::spawn(&name(command), command)?;
    let watch = Stopwatch::start();
    let mut told = SIGN_OF_LIFE;
    group.wait(|| {
        if watch.elapsed() >= told {
            told += SIGN_OF_LIFE;
            println!("  {:>3} s  {}", watch.elapsed().as_secs(), last_line(log));
        }
    })
}

/// The program's output, if it ended well.
pub(crate) fn output_of(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot start {}", name(command)))?;
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        bail!("{} ended with {}: {}", name(command), output.status, error.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The end of a log, where the reason of a failure is.
pub(crate) fn tail(log: &Path) -> String {
    let text = read(log);
    let lines: Vec<&str> = text.lines().collect();
    let skipped = lines.len().saturating_sub(TAIL_LINES);
    lines.into_iter().skip(skipped).map(|line| format!("    {line}\n")).collect()
}

/// A log as text, whatever bytes a program wrote into it.
pub(crate) fn read(log: &Path) -> String {
    String::from_utf8_lossy(&fs::read(log).unwrap_or_default()).into_owned()
}

fn last_line(log: &Path) -> String {
    let text = read(log);
    let line = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    line.trim().chars().take(100).collect()
}

fn name(command: &Command) -> String {
    command.get_program().to_string_lossy().into_owned()
}
