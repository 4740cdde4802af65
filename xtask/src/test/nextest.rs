//! The Rust tests: one run of cargo-nextest for all suites of a profile, so that the long tests of
//! one fill the pauses of another.

use std::collections::BTreeSet;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::report::Report;
use super::session::Session;
use super::suite::{Binaries, Extent, Profile, Suite, Work};
use crate::build::{TESTS, WORKSPACE};
use crate::interop::{NEWEST, Peer};
use crate::process::Interrupted;
use crate::setup::Tool;

/// The number of tests that run side by side on each core: most wait for a server or a timer more
/// than they compute.
const TESTS_PER_CORE: usize = 2;

/// The profile of nextest for all suites together.
pub(crate) const DEFAULT_PROFILE: &str = "default";

/// Inputs of the random tests. Every value has a default in the tests; a full run uses larger ones.
const FULL_INPUTS: [(&str, &str); 4] = [
    // Calls of each differential test: a million in all.
    ("EDGELATCH_CALLS", "115000"),
    // Calls of an attacker with a scoped token (some tests take a part of them), and requests of
    // one without.
    ("EDGELATCH_ATTACKS", "10000"),
    // Schedules of all kinds of objects together.
    ("EDGELATCH_SCHEDULES", "1000000"),
    // How long both sides contend for each kind of object.
    ("EDGELATCH_INTEROP_SECONDS", "10"),
];
const QUICK_INPUTS: [(&str, &str); 4] = [
    ("EDGELATCH_CALLS", "2000"),
    ("EDGELATCH_ATTACKS", "2000"),
    ("EDGELATCH_SCHEDULES", "3000"),
    ("EDGELATCH_INTEROP_SECONDS", "1"),
];

/// Runs the tests of these suites that belong to a profile; returns a report for each suite.
pub(crate) fn run(
    session: &Session<'_>,
    suites: &[&'static Suite],
    profile: Profile,
) -> Result<Vec<(&'static Suite, Report)>> {
    let selected = with_profile(suites, session.extent, profile);
    if selected.is_empty() {
        return Ok(Vec::new());
    }
    let mut report = match run_all(session, &selected, profile) {
        Err(error) if !error.is::<Interrupted>() => {
            Report::of_failure("cargo nextest", format!("{error:#}"))
        }
        report => report?,
    };

    let mut reports: Vec<(&'static Suite, Report)> = Vec::new();
    for (suite, binaries) in selected {
        let (cases, others) =
            report.cases.into_iter().partition(|case| binaries.contains(&case.group, &case.name));
        report.cases = others;
        reports.push((suite, Report { cases }));
    }
    // A failure outside of any test, such as in the build, counts once.
    if let Some((_, first)) = reports.first_mut() {
        first.cases.extend(report.cases);
    }
    Ok(reports)
}

/// Runs the tests of all these suites together.
fn run_all(
    session: &Session<'_>,
    selected: &[(&'static Suite, &Binaries)],
    profile: Profile,
) -> Result<Report> {
    let mut command = command(session, profile, selected);
    let filters: Vec<String> =
        selected.iter().map(|(_, tests)| tests.filter(session.extent)).collect();
    command.args(["--filterset", &only(session, &filters.join(" | "))]);
    // One JVM for all tests, since each test is a separate process.
    let wants_peer = selected.iter().any(|(suite, _)| suite.tools().contains(&Tool::Java));
    let peer = wants_peer.then(|| Peer::start(session.workspace, NEWEST)).transpose()?;
    command.envs(peer.as_ref().map(|peer| ("EDGELATCH_PEER_PORT", &peer.port)));
    let name = match profile {
        Profile::Dev => "cargo nextest run",
        Profile::Release => "cargo nextest run --release",
    };
    session.tests(name, &mut command, &junit(&session.workspace.root, DEFAULT_PROFILE))
}

/// The suites whose tests a run of this extent builds in this profile.
fn with_profile<'s>(
    suites: &'s [&'static Suite],
    extent: Extent,
    profile: Profile,
) -> Vec<(&'static Suite, &'s Binaries)> {
    let tests = |suite: &&'static Suite| match &suite.work {
        Work::Nextest(tests, _) if tests.profile(extent) == profile => Some((*suite, tests)),
        Work::Nextest(..) | Work::Node(..) | Work::Task(..) => None,
    };
    suites.iter().filter_map(tests).collect()
}

fn command(session: &Session<'_>, profile: Profile, selected: &[(&Suite, &Binaries)]) -> Command {
    let mut command = run_command(session, session.extent);
    match profile {
        Profile::Dev => command.args(WORKSPACE),
        // Builds only what runs in this profile.
        Profile::Release => command.args(["--release", "--package", TESTS]).args(tests(selected)),
    };
    command
}

/// The command that runs tests with the inputs of this extent, without the packages to build.
pub(super) fn run_command(session: &Session<'_>, extent: Extent) -> Command {
    let mut command = session.workspace.command("cargo");
    command.args(["nextest", "run", "--no-tests=fail", "--hide-progress-bar"]);
    let threads = TESTS_PER_CORE * std::thread::available_parallelism().map_or(1, usize::from);
    command.args(["--test-threads", &threads.to_string()]);
    let inputs = match extent {
        Extent::Full => FULL_INPUTS,
        Extent::Quick => QUICK_INPUTS,
    };
    // Variables that the user has set are kept.
    command.envs(inputs.into_iter().filter(|(name, _)| env::var_os(name).is_none()));
    command
}

/// The flags that have cargo build these binaries of the package with the integration tests, and no
/// others.
fn tests(selected: &[(&Suite, &Binaries)]) -> Vec<String> {
    let names: BTreeSet<&str> =
        selected.iter().flat_map(|(_, binaries)| binaries.names()).collect();
    names.into_iter().flat_map(|name| ["--test".to_owned(), name.to_owned()]).collect()
}

/// The filter, narrowed to the one test that the user has named.
pub(super) fn only(session: &Session<'_>, filter: &str) -> String {
    match session.only {
        Some(name) => format!("({filter}) & test(={name})"),
        None => filter.to_owned(),
    }
}

/// The report that a profile of `.config/nextest.toml` has nextest write, of a run in this folder.
/// nextest's own folder is below the workspace, wherever `CARGO_TARGET_DIR` is.
pub(crate) fn junit(root: &Path, profile: &str) -> PathBuf {
    root.join("target/nextest").join(profile).join("junit.xml")
}
