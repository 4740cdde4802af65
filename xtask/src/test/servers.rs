//! The suite `servers`: the scripts, the gateway and the client on servers that take Redis' place.

use std::env;
use std::ffi::OsString;

use anyhow::Result;

use super::nextest::{junit, only, run_command};
use super::report::Report;
use super::session::Session;
use super::suite::{Binaries, Extent};
use super::table::{GATEWAY, INTEGRATION, SCRIPTS};
use crate::build::WORKSPACE;
use crate::progress::output_of;
use crate::setup::servers::{SUBSTITUTES, Substitute};

/// The profile in `.config/nextest.toml`, whose report no other run overwrites.
const PROFILE: &str = "servers";
/// The tests, which start `redis-server` from the search path: those of a quick run, since a full
/// one adds clusters and failovers.
const TESTS: [Binaries; 3] = [SCRIPTS, GATEWAY, INTEGRATION];

/// Runs the suite.
pub(super) fn suite(session: &Session<'_>) -> Result<Report> {
    let mut report = Report::default();
    for server in SUBSTITUTES {
        report += check_version(session, &server)?;
    }
    let is_only_a_check = session.only.is_some() && !report.cases.is_empty();
    if !is_only_a_check {
        for server in SUBSTITUTES {
            report += run_tests(session, &server)?;
        }
    }
    Ok(report)
}

/// Checks that `redis-server` is this server: the tests would pass on the machine's Redis too.
fn check_version(session: &Session<'_>, server: &Substitute) -> Result<Report> {
    let mut command = session.workspace.command("redis-server");
    command.arg("--version").env("PATH", search_path(session, server)?);
    let version = output_of(&mut command)?;
    let problem = (!version.starts_with(server.version)).then_some(version);
    let name = format!("the search path leads to {}", server.name);
    Ok(session.finding(&name, problem.as_slice()))
}

/// Runs the tests on this server.
fn run_tests(session: &Session<'_>, server: &Substitute) -> Result<Report> {
    // A few random calls are enough: the suite `differential` makes the many.
    let mut command = run_command(session, Extent::Quick);
    command.args(["--profile", PROFILE]).args(WORKSPACE);
    let filters = TESTS.map(|tests| tests.filter(Extent::Quick));
    command.args(["--filterset", &only(session, &filters.join(" | "))]);
    command.env("PATH", search_path(session, server)?);
    let name = format!("cargo nextest run, on {}", server.name);
    let mut report =
        session.tests(&name, &mut command, &junit(&session.workspace.root, PROFILE))?;
    for case in &mut report.cases {
        case.group = format!("{} on {}", case.group, server.name);
    }
    Ok(report)
}

/// Returns the search path with this server in front.
fn search_path(session: &Session<'_>, server: &Substitute) -> Result<OsString> {
    let own = server.folder(session.workspace);
    let others = session.workspace.search_path();
    Ok(env::join_paths([own].into_iter().chain(env::split_paths(&others)))?)
}
