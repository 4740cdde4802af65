//! The suites that look at the npm package and the gateway from JavaScript.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};

use super::runner::Runner;
use super::tally::Tally;
use crate::build;
use crate::demo::Stack;
use crate::place::chromium;
use crate::stack::Gateway;

pub(crate) fn types(runner: &Runner<'_>) -> Result<Tally> {
    let tarball = build::tarball(runner.place)?;
    script(runner, "tests/types/run.mjs", |command| tell_package(command, &tarball))
}

pub(crate) fn package(runner: &Runner<'_>) -> Result<Tally> {
    let tarball = build::tarball(runner.place)?;
    let mut attw = runner.place.command("attw");
    let mut tally = runner
        .check("attw: the types are found", attw.arg(&tarball).args(["--profile", "esm-only"]))?;
    let mut publint = runner.place.command("publint");
    publint.arg("run").arg(&tarball).arg("--strict");
    tally += runner.check("publint: the manifest is right", &mut publint)?;

    let (npm, crates) = (build::npm_version(runner.place)?, env!("CARGO_PKG_VERSION"));
    let differs = (npm != crates).then(|| format!("npm has {npm}, the workspace {crates}"));
    tally += runner.finding("npm package and crates are of one version", differs.as_slice());
    let differs = (!build::is_reproducible(runner.place)?).then(|| "two builds differ".to_owned());
    tally += runner.finding("two clean builds of the WebAssembly are equal", differs.as_slice());
    Ok(tally)
}

pub(crate) fn recipes(runner: &Runner<'_>) -> Result<Tally> {
    script(runner, "tests/recipes/run.mjs", |_| {})
}

pub(crate) fn upstash(runner: &Runner<'_>) -> Result<Tally> {
    with_gateway(runner, "tests/upstash/run.mjs", |_| {})
}

pub(crate) fn runtimes(runner: &Runner<'_>) -> Result<Tally> {
    with_gateway(runner, "tests/runtimes/run.mjs", |_| {})
}

pub(crate) fn soak(runner: &Runner<'_>) -> Result<Tally> {
    soak_for(runner, 0)
}

/// The same for at least so many minutes.
pub(crate) fn soak_for(runner: &Runner<'_>, minutes: u32) -> Result<Tally> {
    with_gateway(runner, "tests/soak/run.mjs", |command| {
        command.env("EDGELATCH_SOAK_MINUTES", minutes.to_string());
    })
}

pub(crate) fn demo(runner: &Runner<'_>) -> Result<Tally> {
    // The command as users type it, with its own stack, its own checks and its own end.
    let mut once = runner.place.command(&this_program()?);
    let mut tally = runner.check("cargo xtask demo --once", once.args(["demo", "--once"]))?;
    let stack = Stack::start(runner.place, 0)?;
    tally += script(runner, "tests/demo/run.mjs", |command| {
        tell_gateway(command, &stack.gateway);
        command.env("EDGELATCH_DEMO_URL", &stack.worker.url);
    })?;
    Ok(tally)
}

/// Runs a script that wants the packed package and a gateway with a Redis of its own.
fn with_gateway(runner: &Runner<'_>, file: &str, tell: impl FnOnce(&mut Command)) -> Result<Tally> {
    let tarball = build::tarball(runner.place)?;
    let program = build::gateway(runner.place)?;
    let gateway = Gateway::start(runner.place, &program)?;
    script(runner, file, |command| {
        tell_gateway(command, &gateway);
        tell_package(command, &tarball);
        tell(command);
    })
}

/// Runs a script that counts its tests, told by its environment where things are.
fn script(runner: &Runner<'_>, file: &str, tell: impl FnOnce(&mut Command)) -> Result<Tally> {
    let mut command = runner.place.node();
    command.arg(file).env("EDGELATCH_TOOLS", runner.place.node_modules());
    if let Some(chromium) = chromium() {
        command.env("CHROMIUM", chromium);
    }
    tell(&mut command);
    runner.count(&format!("node {file}"), &mut command)
}

fn tell_gateway(command: &mut Command, gateway: &Gateway) {
    command
        .env("EDGELATCH_TEST_URL", &gateway.url)
        .env("EDGELATCH_TEST_TOKEN", &gateway.token)
        .env("EDGELATCH_TEST_SCOPE_KEY", &gateway.scope_key);
}

fn tell_package(command: &mut Command, tarball: &Path) {
    command.env("EDGELATCH_TARBALL", tarball);
}

fn this_program() -> Result<String> {
    let program = std::env::current_exe().context("cannot tell which program this is")?;
    // A build during the tests may have put a new one in its place; the system then adds a note to the old one's name.
    let path = program.to_string_lossy().replace(" (deleted)", "");
    Ok(Path::new(&path).to_string_lossy().into_owned())
}
