//! The Rust tests: one run of cargo-nextest for all suites of a profile, so that the long tests of
//! one fill the pauses of another.

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::report::Report;
use super::session::Session;
use super::suite::{Binaries, Extent, Profile, Suite, Work};
use crate::build::TESTS;
use crate::interop::{NEWEST, Peer};
use crate::setup::Tool;

/// The number of tests that run side by side on each core: most wait for a server or a timer more
/// than they compute.
const TESTS_PER_CORE: usize = 2;

/// The profile of nextest for the tests that cargo builds in its dev profile.
pub(crate) const DEFAULT_PROFILE: &str = "default";
/// The profile of nextest for the tests that cargo builds for release. They run beside the others,
/// so `.config/nextest.toml` gives them a report of their own.
const RELEASE_PROFILE: &str = "release";

/// Inputs of the random tests in a quick run and in a full one.
const INPUTS: [(&str, &str, &str); 4] = [
    // Calls of each differential test: a million in all.
    ("EDGELATCH_CALLS", "2000", "115000"),
    // Calls of an attacker with a scoped token (some tests take a part of them), and requests of
    // one without.
    ("EDGELATCH_ATTACKS", "2000", "5000"),
    // Schedules of all kinds of objects together.
    ("EDGELATCH_SCHEDULES", "3000", "1000000"),
    // How long both sides contend for each kind of object.
    ("EDGELATCH_INTEROP_SECONDS", "1", "10"),
];

/// Runs the tests of these suites that belong to a profile; returns a report for each suite.
pub(crate) fn run(
    session: &Session<'_>,
    suites: &[&'static Suite],
    profile: Profile,
) -> Result<Vec<(&'static Suite, Report)>> {
    let selected = suites.iter().filter_map(|suite| match &suite.work {
        Work::Nextest(tests, _) => Some((*suite, tests)),
        Work::Node(..) | Work::Task(..) => None,
    });
    let selected: Vec<(&'static Suite, &Binaries)> =
        selected.filter(|(_, tests)| tests.profile(session.extent) == profile).collect();
    if selected.is_empty() {
        return Ok(Vec::new());
    }
    let mut report = Report::from_result("cargo nextest", run_all(session, &selected, profile))?;
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
    let filters: Vec<String> =
        selected.iter().map(|(_, tests)| tests.filter(session.extent)).collect();
    let (name, nextest_profile) = match profile {
        Profile::Dev => ("cargo nextest run", DEFAULT_PROFILE),
        Profile::Release => ("cargo nextest run --release", RELEASE_PROFILE),
    };
    let mut command = command(session, session.extent, nextest_profile, &filters.join(" | "));
    match profile {
        Profile::Dev => {
            command.arg("--workspace");
        }
        Profile::Release => {
            // Builds only what runs in this profile.
            let names = selected.iter().flat_map(|(_, binaries)| binaries.names());
            let names: BTreeSet<&str> = names.collect();
            command.args(["--release", "--package", TESTS]);
            command.args(names.into_iter().flat_map(|name| ["--test", name]));
        }
    }
    // One JVM for all tests, since each test is a separate process.
    let wants_peer = selected.iter().any(|(suite, _)| suite.tools().contains(&Tool::Java));
    let peer = wants_peer.then(|| Peer::start(session.workspace, NEWEST)).transpose()?;
    command.envs(peer.as_ref().map(|peer| ("EDGELATCH_PEER_PORT", &peer.port)));
    session.tests(name, &mut command, &junit(&session.workspace.root, nextest_profile))
}

/// Runs tests with the inputs of a quick run beside another server or another Redisson, which the
/// variable names. The profile of `.config/nextest.toml` has a report that no other run overwrites.
pub(super) fn run_beside(
    session: &Session<'_>,
    title: &str,
    profile: &str,
    filter: &str,
    (name, value): (&str, &OsStr),
) -> Result<Report> {
    let mut command = command(session, Extent::Quick, profile, filter);
    command.arg("--workspace").env(name, value);
    session.tests(title, &mut command, &junit(&session.workspace.root, profile))
}

/// Returns the command that runs the tests of a filter, or the one of them that the user has named,
/// with the inputs of this extent. The caller adds the packages to build.
fn command(session: &Session<'_>, extent: Extent, profile: &str, filter: &str) -> Command {
    let mut command =
        session.workspace.command("cargo nextest run --no-tests=fail --hide-progress-bar");
    let threads = TESTS_PER_CORE * std::thread::available_parallelism().map_or(1, usize::from);
    command.args(["--test-threads", &threads.to_string(), "--profile", profile, "--filterset"]);
    command.arg(match session.only {
        Some(name) => format!("({filter}) & test(={name})"),
        None => filter.to_owned(),
    });
    // Variables that the user has set are kept.
    for (name, quick, full) in INPUTS.into_iter().filter(|(name, ..)| env::var_os(name).is_none()) {
        command.env(name, if extent == Extent::Full { full } else { quick });
    }
    command
}

/// The report that a profile of `.config/nextest.toml` has nextest write, of a run in this folder.
/// nextest's own folder is below the workspace, wherever `CARGO_TARGET_DIR` is.
pub(crate) fn junit(root: &Path, profile: &str) -> PathBuf {
    root.join("target/nextest").join(profile).join("junit.xml")
}
