//! The suite `servers`: the scripts on servers that take Redis' place.

use std::env;

use anyhow::Result;

use super::nextest::{junit, only, run_command};
use super::report::Report;
use super::session::Session;
use super::suite::{Binaries, Extent};
use crate::build::WORKSPACE;
use crate::setup::servers::SUBSTITUTES;

/// The profile in `.config/nextest.toml`, whose report no other run overwrites.
const PROFILE: &str = "servers";
/// The tests of the scripts, which start `redis-server` from the search path.
const TESTS: Binaries = Binaries::new(&["edgelatch-tests::scripts"]);

/// Runs the suite.
pub(super) fn suite(session: &Session<'_>) -> Result<Report> {
    let mut report = Report::default();
    for server in SUBSTITUTES {
        // A few random calls on each are enough: the suite `differential` makes the many.
        let mut command = run_command(session, Extent::Quick);
        command.args(["--profile", PROFILE]).args(WORKSPACE);
        command.args(["--filterset", &only(session, &TESTS.filter(session.extent))]);
        let own = [server.search_path(session.workspace)];
        let search_path = session.workspace.search_path();
        command
            .env("PATH", env::join_paths(own.into_iter().chain(env::split_paths(&search_path)))?);
        let name = format!("cargo nextest run, on {}", server.name);
        let mut run =
            session.tests(&name, &mut command, &junit(&session.workspace.root, PROFILE))?;
        for case in &mut run.cases {
            case.group = format!("{} on {}", case.group, server.name);
        }
        report += run;
    }
    Ok(report)
}
