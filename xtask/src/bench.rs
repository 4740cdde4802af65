//! `cargo xtask bench`: builds the measured programs, and has `xtask/scripts/bench` measure them.

use std::process::{Command, ExitCode};

use anyhow::{Result, ensure};
use clap::Args;

use crate::build;
use crate::interop;
use crate::process::forward;
use crate::progress::run as run_step;
use crate::setup;
use crate::test::{Report, Session};
use crate::workspace::Workspace;

/// The extent of a run.
#[derive(Args)]
pub(crate) struct Options {
    /// Every table from few figures, in under a minute; the published results stay as they are
    #[arg(long)]
    quick: bool,
    /// Measure nothing; draw charts and write pages from bench/results.json
    #[arg(long, conflicts_with = "quick")]
    draw: bool,
}

/// Measures everything and prints it. A whole run writes `bench/results.json`, a chart of each
/// table beside it, and the figures in the pages; a quick run changes none of these files and
/// writes below target.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<ExitCode> {
    setup::ensure(workspace, setup::BENCH)?;
    let mut node = workspace.command("node xtask/scripts/bench/bench.mjs");
    if options.quick {
        node.arg(workspace.folder("bench")?).arg("--quick");
    } else {
        node.arg(workspace.root.join("bench")).args(options.draw.then_some("--draw"));
    }
    if !options.draw {
        let mut cargo = workspace.command("cargo build --release --package edgelatch-gateway");
        run_step(workspace, "gateway: cargo build --release, as published", &mut cargo)?;
        let gateway = workspace.target.join("release/edgelatch-gateway");
        prepare(workspace, node.env("EDGELATCH_GATEWAY", gateway))?;
    }
    forward("the benchmark", &mut node)
}

/// The suite of `cargo xtask test`: checks that every table has a figure in every cell. No test
/// checks the values, so the gateway is the one that other suites have built.
pub(crate) fn suite(session: &Session<'_>) -> Result<Report> {
    ensure!(
        session.only.is_none(),
        "the tables are measured together; run `bench` without `--only`"
    );
    let workspace = session.workspace;
    let mut node = session.node()?;
    node.arg("xtask/scripts/bench/suite.mjs");
    node.env("EDGELATCH_RESULTS", workspace.folder("bench")?);
    prepare(workspace, node.env("EDGELATCH_GATEWAY", build::fast_gateway(workspace)?))?;
    Ok(session.node_tests("the benchmark", &mut node)?.inseparable(|_| true))
}

/// Builds the other measured programs, and sets the environment of the measurements.
fn prepare(workspace: &Workspace, node: &mut Command) -> Result<()> {
    let consumer = build::consumer(workspace, "consumer")?;
    let peer = interop::build(workspace, interop::NEWEST)?;
    let mut cargo =
        workspace.command("cargo bench --quiet --package edgelatch-tests --benches --no-run");
    run_step(workspace, "crate: cargo bench --no-run", &mut cargo)?;
    node.env("EDGELATCH_CONSUMER", consumer)
        .env("EDGELATCH_PEER", peer)
        .env("EDGELATCH_TOOLS", &workspace.node_modules)
        .env("EDGELATCH_LOGS", workspace.folder("logs")?);
    Ok(())
}
