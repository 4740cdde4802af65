//! Redisson itself, in a JVM, beside the crate and the npm package on the same Redis.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::Result;

use crate::build;
use crate::place::{Place, emptied};
use crate::progress::{logged, run as run_step};
use crate::setup::{self, Purpose};
use crate::stamp::{self, Digest};
use crate::suite::{Runner, Tally};

/// How long both sides contend for each kind when all suites are run.
const SECONDS: u32 = 10;

/// `cargo xtask interop`.
pub(crate) fn run(place: &Place, seconds: u32) -> Result<ExitCode> {
    setup::ensure(place, Purpose::Interop.needs())?;
    let tally = tests(&Runner::new(place, "interop"), seconds)?;
    println!("{tally}");
    let good = tally.failed == 0 && tally.skipped == 0;
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The suite of `cargo xtask test`.
pub(crate) fn suite(runner: &Runner<'_>) -> Result<Tally> {
    tests(runner, SECONDS)
}

fn tests(runner: &Runner<'_>, seconds: u32) -> Result<Tally> {
    let place = runner.place;
    let peer = peer(place)?;
    let seconds = seconds.to_string();
    let told = |command: &mut Command| {
        command.env("EDGELATCH_INTEROP_SECONDS", &seconds);
    };
    let mut rust = place.command("cargo");
    rust.args(["test", "--package", "edgelatch", "--test", "interop"]);
    // They wait more than they compute; what the contenders have come to is told.
    rust.args(["--", "--test-threads=4", "--show-output"]);
    told(&mut rust);
    let mut tally = runner.count("cargo test --test interop", &mut rust)?;

    let tarball = build::tarball(place)?;
    let gateway = build::gateway(place)?;
    let file = "tests/interop/npm/run.mjs";
    let mut npm = place.node();
    npm.arg(file)
        .env("EDGELATCH_TARBALL", tarball)
        .env("EDGELATCH_GATEWAY", gateway)
        .env("EDGELATCH_PEER", peer);
    told(&mut npm);
    tally += runner.count(&format!("node {file}"), &mut npm)?;
    Ok(tally)
}

/// Builds the Java side and answers the folder with its classes and libraries. The Rust tests look for it there, too.
pub(crate) fn peer(place: &Place) -> Result<PathBuf> {
    let source = place.root.join("tests/interop/java");
    let digest = Digest::new().path(&source)?;
    let folder = place.folder("interop")?;
    let stamp = folder.join("peer.stamp");
    if stamp::is_fresh(&stamp, &digest) {
        return Ok(folder);
    }
    let folder = emptied(folder)?;
    let maven = || {
        let mut maven = place.command("mvn");
        maven
            .args(["--batch-mode", "--quiet", "--file"])
            .arg(source.join("pom.xml"))
            .args(["-Dstyle.color=never", "process-classes"])
            .arg(format!("-Dpeer.target={}", folder.display()));
        maven
    };
    // First with what was downloaded once: that wants no network.
    let offline = logged(maven().arg("--offline"), &place.log("mvn-offline")?)?;
    if !offline.success() {
        run_step(place, "Java side: mvn, with Redisson from its registry", &mut maven())?;
    }
    stamp::set(&stamp, &digest)?;
    Ok(folder)
}
