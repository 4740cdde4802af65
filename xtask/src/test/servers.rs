//! The suite `servers`: the scripts on servers that take Redis' place.

use std::env;

use anyhow::Result;

use super::nextest::{inputs, junit, only};
use super::report::Report;
use super::session::Session;
use super::suite::Extent;
use crate::build::WORKSPACE;
use crate::setup::servers::SUBSTITUTES;

/// The profile in `.config/nextest.toml`, whose report no other run overwrites.
const PROFILE: &str = "servers";
/// The tests of the scripts, which start `redis-server` from the search path.
const TESTS: &str = "binary_id(=edgelatch-tests::scripts)";

/// Runs the suite.
pub(super) fn suite(session: &Session<'_>) -> Result<Report> {
    let mut report = Report::default();
    for server in SUBSTITUTES {
        let mut command = session.workspace.command("cargo");
        command
            .args(["nextest", "run", "--profile", PROFILE, "--hide-progress-bar"])
            .args(WORKSPACE)
            .args(["--filterset", &only(session, TESTS)])
            .envs(inputs(Extent::Quick));
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
