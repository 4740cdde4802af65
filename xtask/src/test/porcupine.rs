//! The suite `porcupine`: the simulation exports histories, and a checker in Go judges them.

use anyhow::Result;

use super::go;
use super::report::Report;
use super::session::Session;
use crate::progress::{output_of, run};
use crate::sim;
use crate::workspace::empty_folder;

/// The folder of the checker.
const FOLDER: &str = "tests/porcupine";
/// The check of the layout of its files.
const GOFMT: &str = "gofmt";
/// The schedules of all kinds of objects together whose histories are exported.
const SCHEDULES: &str = "36000";
/// The schedules with a deliberate fault.
const SCHEDULES_WITH_FAULT: &str = "2000";
/// The deliberate faults of the simulation that a client can see while Redis loses nothing, and a
/// kind of object with each: the checker must reject histories with each of them.
const FAULTS: [(&str, &str); 10] = [
    ("blind-grant", "lock"),
    ("blind-release", "fenced"),
    ("blind-renewal", "lock"),
    ("fast-server", "lock"),
    ("forged-echo", "spin"),
    ("lazy-release", "lock"),
    ("no-latch", "lock"),
    ("no-record", "latch"),
    ("shared-entropy", "lock"),
    ("stopped-clocks", "lock"),
];

/// Runs the suite.
pub(super) fn suite(session: &Session<'_>) -> Result<Report> {
    let workspace = session.workspace;
    let unformatted = output_of(workspace.command("gofmt -l").arg(FOLDER))?;
    let unformatted: Vec<String> = unformatted.lines().map(str::to_owned).collect();
    let mut report = session.finding(GOFMT, &unformatted);
    if session.only == Some(GOFMT) {
        return Ok(report);
    }
    let exports = empty_folder(workspace.target.join("porcupine"))?;
    let export = |name: &str, flags: &[&str]| {
        let mut command = sim::command(workspace);
        command.args(["--seed", "1", "--export"]).arg(exports.join(format!("{name}.jsonl")));
        run(workspace, &format!("simulation: {name}"), command.args(flags))
    };
    export("histories", &["--schedules", SCHEDULES])?;
    for (fault, kind) in FAULTS {
        let schedules = ["--kind", kind, "--schedules", SCHEDULES_WITH_FAULT];
        let flags = [&["--blind", "--without", fault], schedules.as_slice()].concat();
        export(&format!("without-{fault}"), &flags)?;
    }
    let mut command = workspace.command("go test -tags export -modcacherw");
    // In the cache of setup, so that CI keeps these files with the other tools.
    let cache = workspace.cache.join("go");
    command
        .current_dir(workspace.root.join(FOLDER))
        .env("EDGELATCH_EXPORTS", exports)
        .env("GOCACHE", cache.join("build"))
        .env("GOMODCACHE", cache.join("mod"))
        // The machine's compiler, which downloads no newer one and needs none for C.
        .envs([("GOTOOLCHAIN", "local"), ("CGO_ENABLED", "0")]);
    report += go::test(session, &mut command)?;
    Ok(report)
}
