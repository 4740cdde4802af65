//! The suite `interop-3`: the crate beside the last Redisson 3.

use anyhow::Result;

use super::nextest::{junit, only, run_command};
use super::report::Report;
use super::session::Session;
use super::suite::{Binaries, Extent};
use crate::build::WORKSPACE;
use crate::interop::{LAST_3, Peer};

/// The profile in `.config/nextest.toml`, whose report no other run overwrites.
const PROFILE: &str = "redisson-3";
/// The tests of the suite `interop`.
const TESTS: Binaries = Binaries::new(&["edgelatch-tests::interop"]);
/// Those of the kinds that Redisson has since version 4.
const SINCE_4: &str = "test(/::non_reentrant_|_since_redisson_4$/)";

/// Runs the suite.
pub(super) fn suite(session: &Session<'_>) -> Result<Report> {
    let mut command = run_command(session, Extent::Quick);
    command.args(["--profile", PROFILE]).args(WORKSPACE);
    let filter = format!("{} - {SINCE_4}", TESTS.filter(session.extent));
    command.args(["--filterset", &only(session, &filter)]);
    let peer = Peer::start(session.workspace, LAST_3)?;
    command.env("EDGELATCH_PEER_PORT", &peer.port);
    let report = junit(&session.workspace.root, PROFILE);
    session.tests("cargo nextest run, beside Redisson 3", &mut command, &report)
}
