//! The suite `servers`: the scripts, the gateway and the client on servers that take Redis' place.

use std::env;
use std::ffi::OsString;

use anyhow::Result;

use super::nextest::run_beside;
use super::report::Report;
use super::session::Session;
use super::suite::{Binaries, Extent};
use super::table::{GATEWAY, INTEGRATION, SCRIPTS};
use crate::progress::output_of;
use crate::setup::servers::{SUBSTITUTES, Substitute};

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
    let mut command = session.workspace.command("redis-server --version");
    command.env("PATH", search_path(session, server)?);
    let version = output_of(&mut command)?;
    let problem = (!version.starts_with(server.version)).then_some(version);
    let name = format!("the search path leads to {}", server.name);
    Ok(session.finding(&name, problem.as_slice()))
}

/// Runs the tests on this server. A few random calls are enough: the suite `differential` makes the
/// many.
fn run_tests(session: &Session<'_>, server: &Substitute) -> Result<Report> {
    let title = format!("cargo nextest run, on {}", server.name);
    let filter = TESTS.map(|tests| tests.filter(Extent::Quick)).join(" | ");
    let path = search_path(session, server)?;
    let mut report = run_beside(session, &title, "servers", &filter, ("PATH", &path))?;
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
