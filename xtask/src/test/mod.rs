//! `cargo xtask test`: chooses suites, runs them, and prints the counts of each.

mod advisories;
mod checks;
mod go;
mod nextest;
mod node;
mod porcupine;
mod redisson;
mod report;
mod servers;
mod session;
mod stalls;
mod suite;
mod table;

use std::env;
use std::iter;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use clap::Args;

use crate::process::{exit_code, forward};
use crate::progress::{self, Stopwatch, print, with_prefix};
use crate::setup;
use crate::workspace::Workspace;
pub(crate) use nextest::{DEFAULT_PROFILE, junit};
use report::Case;
pub(crate) use report::{Counts, Outcome, Report};
pub(crate) use session::Session;
use suite::{Extent, Profile, Suite, Work};
use table::SUITES;

/// Which tests are run.
#[derive(Args)]
pub(crate) struct Selection {
    /// Names of suites; `--list` prints them. Without names: the suites of a quick run
    suites: Vec<String>,
    /// Everything there is, with the large inputs, as CI runs it
    #[arg(long)]
    full: bool,
    /// Print the suites and end
    #[arg(long)]
    list: bool,
    /// Only the test of this name, as a failure prints it
    #[arg(long, value_name = "TEST", requires = "suites")]
    only: Option<String>,
    /// Stop the programs that the tests start for seconds, one after the other, to find tests that
    /// fail on a busy machine. Suites that stop programs themselves may then fail for no reason
    #[arg(long)]
    stalls: bool,
}

/// The result of a suite.
struct Line {
    name: &'static str,
    counts: Counts,
    /// The line in the table of suites: the counts, or why the suite could not run.
    text: String,
    /// The tests that failed, each with its reason and the command that repeats it.
    failures: String,
    /// The tests that failed, each with the first lines of its reason.
    failed: String,
}

/// The number of lines of a reason in the list of failed tests.
const FIRST_LINES: usize = 3;

/// `cargo xtask test`.
pub(crate) fn run(workspace: &Workspace, selection: &Selection) -> Result<ExitCode> {
    if selection.list {
        list();
        return Ok(ExitCode::SUCCESS);
    }
    let suites = selected(selection)?;
    let extent = selection.extent();
    let watch = Stopwatch::start();
    let missing = setup::ensure_each(workspace, suites.iter().flat_map(|suite| suite.tools()))?;
    println!("Ready to test after {}.", watch.text());

    let session = Session { workspace, extent, only: selection.only.as_deref(), suite: "" };
    let mut lines = Vec::new();
    let (mut rust, mut others) = (Vec::new(), Vec::new());
    for suite in suites {
        match missing.iter().find(|(tool, _)| suite.tools().contains(tool)) {
            Some((_, reason)) => lines.push(Line::could_not_run(suite, reason)),
            None => match suite.work {
                Work::Nextest(..) => rust.push(suite),
                Work::Node(..) | Work::Task(..) => others.push(suite),
            },
        }
    }
    let work = || side_by_side(session, &rust, &others);
    lines.extend(if selection.stalls { stalls::during(work) } else { work() }?);
    Ok(summary(&lines, &watch))
}

/// `cargo xtask soak`: the suite of this name, for at least this many minutes.
pub(crate) fn soak(workspace: &Workspace, minutes: u32) -> Result<ExitCode> {
    let mut suite = workspace.xtask()?;
    suite.args(["test", "soak", "--full"]).env("EDGELATCH_SOAK_MINUTES", minutes.to_string());
    forward("the soak test", &mut suite)
}

impl Selection {
    fn extent(&self) -> Extent {
        if self.full { Extent::Full } else { Extent::Quick }
    }
}

/// Prints the suites.
fn list() {
    for suite in SUITES {
        let extent = if suite.from == Extent::Full { "--full" } else { "" };
        println!("{:<16} {:<7} {}", suite.name, extent, suite.about);
    }
}

fn selected(selection: &Selection) -> Result<Vec<&'static Suite>> {
    let names = &selection.suites;
    if let Some(unknown) = names.iter().find(|name| SUITES.iter().all(|suite| suite.name != **name))
    {
        bail!("there is no suite `{unknown}`; `cargo xtask test --list` prints them");
    }
    let one_test = selection.only.is_none() || names.len() == 1;
    ensure!(one_test, "`--only` names a test of one suite; name that suite alone");
    let is_selected = |suite: &&Suite| match names.is_empty() {
        true => suite.from <= selection.extent(),
        false => names.iter().any(|name| name == suite.name),
    };
    Ok(SUITES.iter().filter(is_selected).collect())
}

/// Runs the tests in Rust that each profile builds, and the other suites, side by side: most of
/// them wait for servers, timers or a compiler's last unit more than they compute. A lane that has
/// ended its suites begins the next of the others.
fn side_by_side(
    session: Session<'_>,
    rust: &[&'static Suite],
    others: &[&'static Suite],
) -> Result<Vec<Line>> {
    let next = AtomicUsize::new(0);
    let rest = || {
        let suites = iter::from_fn(|| others.get(next.fetch_add(1, Ordering::Relaxed)));
        let run = |suite: &&'static Suite| with_prefix(suite.name, || run_task(session, suite));
        suites.map(run).collect::<Result<Vec<Line>>>()
    };
    let tests = |profile| {
        let mut lines = run_nextest(session, rust, profile)?;
        lines.extend(rest()?);
        Ok(lines)
    };
    thread::scope(|scope| {
        let lanes = [
            scope.spawn(|| tests(Profile::Dev)),
            scope.spawn(|| tests(Profile::Release)),
            scope.spawn(rest),
            scope.spawn(rest),
        ];
        let ended = lanes
            .into_iter()
            .map(|lane| lane.join().unwrap_or_else(|_| bail!("this program ended a suite early")));
        Ok(ended.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
    })
}

/// Runs a suite that is not in Rust.
fn run_task(session: Session<'_>, suite: &'static Suite) -> Result<Line> {
    print(&format!("== {}: {}", suite.name, suite.about));
    let watch = Stopwatch::start();
    let session = Session { suite: suite.name, ..session };
    let report = match suite.work {
        Work::Task(task, _) => task(&session),
        Work::Node(file, fixtures) => node::run(&session, file, fixtures),
        Work::Nextest(..) => bail!("cargo-nextest runs {}", suite.name),
    };
    let report = Report::from_result(suite.name, report)?;
    Ok(Line::print(suite, &report, watch.elapsed(), session.extent))
}

/// Runs the suites in Rust that a profile builds. The time of each is that of its tests, one after
/// the other.
fn run_nextest(
    session: Session<'_>,
    suites: &[&'static Suite],
    profile: Profile,
) -> Result<Vec<Line>> {
    let name = if profile == Profile::Dev { "rust" } else { "rust-release" };
    let session = Session { suite: name, ..session };
    let line = |(suite, report): (&'static Suite, Report)| {
        let report = Report::from_result(suite.name, Ok(report))?;
        Ok(Line::print(suite, &report, report.time(), session.extent))
    };
    with_prefix(name, || nextest::run(&session, suites, profile)?.into_iter().map(line).collect())
}

/// Prints the failures once more, the table of suites, the names of the failed tests, which must be
/// among the last lines for a reader who has only these, and the sum as the last line.
fn summary(lines: &[Line], watch: &Stopwatch) -> ExitCode {
    for line in lines.iter().filter(|line| !line.failures.is_empty()) {
        print!("\n== {}\n{}", line.name, line.failures);
    }
    println!("\nSummary, after {}:", watch.text());
    let mut total = Counts::default();
    for suite in SUITES {
        for line in lines.iter().filter(|line| line.name == suite.name) {
            println!("{}", line.text);
            total += line.counts;
        }
    }
    for line in lines.iter().filter(|line| !line.failed.is_empty()) {
        print!("Failed in {}:\n{}", line.name, line.failed);
    }
    println!("{total}");
    exit_code(total.failed == 0)
}

impl Line {
    /// Prints the result of a suite: failures with the command that repeats each, the slowest
    /// tests, and the counts.
    fn print(suite: &'static Suite, report: &Report, time: Duration, extent: Extent) -> Self {
        let (mut failures, mut failed) = (String::new(), String::new());
        for (case, reason) in report.failures() {
            failed += &format!("  {}\n", case.title());
            let first = reason.lines().filter(|line| !line.trim().is_empty()).take(FIRST_LINES);
            first.for_each(|line| failed += &format!("    {line}\n"));
            failures += &format!("  FAILED {}\n", case.title());
            reason.lines().for_each(|line| failures += &format!("    {line}\n"));
            failures += &format!("  again: {}\n", repeat_command(suite, case, extent));
        }
        let mut slowest = String::new();
        if report.cases.len() > 1 {
            slowest += "  slowest:\n";
            for case in report.slowest() {
                slowest += &format!("  {:>8.2} s  {}\n", case.time.as_secs_f64(), case.title());
            }
        }
        let mut counts = report.counts();
        if is_ci() {
            counts.failed += std::mem::take(&mut counts.skipped);
        }
        let (name, about) = (suite.name, suite.about);
        let text = format!("  {name:<16} {counts} ({})", progress::text(time));
        print(&format!("== {name}: {about}\n{failures}{slowest}{text}"));
        Self { name, counts, text, failures, failed }
    }

    fn could_not_run(suite: &'static Suite, reason: &str) -> Self {
        let counts = Counts { failed: u64::from(is_ci()), ..Counts::default() };
        let text = format!("  {:<16} could not run: {reason}", suite.name);
        Self { name: suite.name, counts, text, failures: String::new(), failed: String::new() }
    }
}

/// Returns the command that runs one test alone, or the suite if a failure is not in a test.
fn repeat_command(suite: &Suite, case: &Case, extent: Extent) -> String {
    let full = if extent == Extent::Full { " --full" } else { "" };
    let mut command = format!("cargo xtask test {}{full}", suite.name);
    if case.is_test {
        command += &format!(" --only '{}'", case.id.replace('\'', r"'\''"));
    }
    command
}

/// Whether this is CI, where a suite that could not run counts as failed.
fn is_ci() -> bool {
    env::var_os("CI").is_some_and(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selection(suites: &[&str], full: bool) -> Selection {
        let suites = suites.iter().map(|&name| name.to_owned()).collect();
        Selection { suites, full, list: false, only: None, stalls: false }
    }

    #[test]
    fn a_run_without_names_selects_by_extent() {
        assert_eq!(selected(&selection(&[], true)).unwrap().len(), SUITES.len());
        let quick = selected(&selection(&[], false)).unwrap();
        assert!(quick.iter().all(|suite| suite.from == Extent::Quick));
        assert!(!quick.is_empty() && quick.len() < SUITES.len());
    }

    #[test]
    fn a_named_suite_is_selected_whatever_its_extent() {
        let last = SUITES.last().unwrap();
        assert_eq!(selected(&selection(&[last.name], false)).unwrap().len(), 1);
        assert!(selected(&selection(&["nonsense"], false)).is_err());
    }

    #[test]
    fn one_test_is_selected_from_one_suite_only() {
        let only = Some("a::b".to_owned());
        assert!(selected(&Selection { only, ..selection(&["fmt", "clippy"], false) }).is_err());
    }

    #[test]
    fn the_command_that_repeats_a_test_survives_a_shell() {
        let suite = SUITES.first().unwrap();
        let report = Report::of("it's one", Duration::ZERO, Outcome::Passed);
        let command = repeat_command(suite, &report.cases[0], Extent::Full);
        assert_eq!(
            command,
            format!(r"cargo xtask test {} --full --only 'it'\''s one'", suite.name)
        );
        let report = Report::of_failure("a build", String::new());
        let command = repeat_command(suite, &report.cases[0], Extent::Quick);
        assert_eq!(command, format!("cargo xtask test {}", suite.name));
    }

    #[test]
    fn suites_have_names_of_their_own() {
        let names: std::collections::BTreeSet<&str> =
            SUITES.iter().map(|suite| suite.name).collect();
        assert_eq!(names.len(), SUITES.len());
    }
}
