//! The suite `interop-3`: the crate beside the last Redisson 3.

use anyhow::Result;

use super::nextest::run_beside;
use super::report::Report;
use super::session::Session;
use super::suite::Binaries;
use crate::interop::{LAST_3, Peer};

/// The tests of the suite `interop`.
const TESTS: Binaries = Binaries::new(&["edgelatch-tests::interop"]);
/// Those of the kinds that Redisson has since version 4.
const SINCE_4: &str = "test(/::non_reentrant_|_since_redisson_4$/)";

/// Runs the suite.
pub(super) fn suite(session: &Session<'_>) -> Result<Report> {
    let filter = format!("{} - {SINCE_4}", TESTS.filter(session.extent));
    let peer = Peer::start(session.workspace, LAST_3)?;
    let variable = ("EDGELATCH_PEER_PORT", peer.port.as_ref());
    run_beside(session, "cargo nextest run, beside Redisson 3", "redisson-3", &filter, variable)
}
