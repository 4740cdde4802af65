//! The suites that test the npm package and the gateway from JavaScript.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};

use super::report::{LEVEL, Outcome, Report};
use super::session::Session;
use super::suite::Extent;
use crate::build;
use crate::demo::Stack;
use crate::interop;
use crate::place::chromium;
use crate::progress::Stopwatch;
use crate::services::Gateway;
use crate::setup::{self, Need, npm};

pub(crate) fn types(session: &Session<'_>) -> Result<Report> {
    let tarball = build::tarball(session.place)?;
    script(session, "tests/types/run.mjs", |command| tell_package(command, &tarball))
}

pub(crate) fn package(session: &Session<'_>) -> Result<Report> {
    let tarball = build::tarball(session.place)?;
    let mut attw = session.place.command("attw");
    // The omitted profile `node10` does not support `exports`, and so cannot resolve
    // `edgelatch/edgelatch.wasm`.
    let mut report = session
        .check("attw: the types are found", attw.arg(&tarball).args(["--profile", "node16"]))?;
    let mut publint = session.place.command("publint");
    publint.arg("run").arg(&tarball).arg("--strict");
    report += session.check("publint: the manifest is right", &mut publint)?;

    let (npm, crates) = (build::npm_version(session.place)?, env!("CARGO_PKG_VERSION"));
    let differs = (npm != crates).then(|| format!("npm has {npm}, the workspace {crates}"));
    report += session.finding("npm package and crates are of one version", differs.as_slice());
    Ok(report)
}

/// Checks that a second build of the published WebAssembly is byte for byte the same.
pub(crate) fn reproducible(session: &Session<'_>) -> Result<Report> {
    let watch = Stopwatch::start();
    let differs = (!build::is_reproducible(session.place)?).then(|| "two builds differ".to_owned());
    let outcome = differs.map_or(Outcome::Passed, Outcome::Failed);
    Ok(Report::of("two clean builds of the WebAssembly are equal", watch.elapsed(), outcome))
}

pub(crate) fn recipes(session: &Session<'_>) -> Result<Report> {
    script(session, "tests/recipes/run.mjs", |_| {})
}

pub(crate) fn workflows(session: &Session<'_>) -> Result<Report> {
    script(session, "tests/workflows/run.mjs", |_| {})
}

pub(crate) fn upstash(session: &Session<'_>) -> Result<Report> {
    with_gateway(session, "tests/upstash/run.mjs", |_| {})
}

pub(crate) fn proxies(session: &Session<'_>) -> Result<Report> {
    let gateway = build::gateway(session.place)?;
    script(session, "tests/proxies/run.mjs", |command| {
        command.env("EDGELATCH_GATEWAY", gateway);
    })
}

pub(crate) fn runtimes(session: &Session<'_>) -> Result<Report> {
    with_gateway(session, "tests/runtimes/run.mjs", |_| {})
}

pub(crate) fn bundlers(session: &Session<'_>) -> Result<Report> {
    // A quick run uses esbuild only; the other bundlers take a gigabyte.
    if session.extent == Extent::Full {
        setup::ensure(session.place, &[Need::Bundlers])?;
    }
    let modules = npm::BUNDLERS.node_modules(session.place)?;
    let report = with_gateway(session, "tests/bundlers/run.mjs", |command| {
        command.env("EDGELATCH_BUNDLERS", modules);
    })?;
    // The table has a row for each of the other tests.
    Ok(report.inseparable(|case| case.name.starts_with("the table of ")))
}

pub(crate) fn readme(session: &Session<'_>) -> Result<Report> {
    with_gateway(session, "tests/readme/run.mjs", |_| {})
}

pub(crate) fn hosts(session: &Session<'_>) -> Result<Report> {
    with_gateway(session, "tests/runtimes/hosts.mjs", |_| {})
}

pub(crate) fn interop(session: &Session<'_>) -> Result<Report> {
    let tarball = build::tarball(session.place)?;
    let gateway = build::gateway(session.place)?;
    let peer = interop::build(session.place)?;
    script(session, "tests/interop/npm/run.mjs", |command| {
        tell_package(command, &tarball);
        command.env("EDGELATCH_GATEWAY", gateway).env("EDGELATCH_PEER", peer);
    })
}

pub(crate) fn soak(session: &Session<'_>) -> Result<Report> {
    soak_for(session, 0)
}

/// Runs the soak test for at least this many minutes.
pub(crate) fn soak_for(session: &Session<'_>, minutes: u32) -> Result<Report> {
    // The gateway takes half of the time of a cycle, and is several times as fast when it is built
    // for release.
    let program = build::fast_gateway(session.place)?;
    with_program(session, "tests/soak/run.mjs", &program, |command| {
        command.env("EDGELATCH_SOAK_MINUTES", minutes.to_string());
    })
}

/// Runs the README's command as users do: with its own servers, its own checks and its own end.
pub(crate) fn smoke(session: &Session<'_>) -> Result<Report> {
    let mut once = session.place.command(&this_program()?);
    session.check("cargo xtask demo --once", once.args(["demo", "--once"]))
}

pub(crate) fn demo(session: &Session<'_>) -> Result<Report> {
    let stack = Stack::start(session.place, 0)?;
    script(session, "tests/demo/run.mjs", |command| {
        tell_gateway(command, &stack.gateway);
        command.env("EDGELATCH_DEMO_URL", &stack.worker.url);
    })
}

/// Runs a script that needs the packed package and a gateway with its own Redis.
fn with_gateway(
    session: &Session<'_>,
    file: &str,
    tell: impl FnOnce(&mut Command),
) -> Result<Report> {
    let program = build::gateway(session.place)?;
    with_program(session, file, &program, tell)
}

/// Runs a script that needs the packed package and this gateway with its own Redis.
fn with_program(
    session: &Session<'_>,
    file: &str,
    program: &Path,
    tell: impl FnOnce(&mut Command),
) -> Result<Report> {
    let tarball = build::tarball(session.place)?;
    let gateway = Gateway::start(session.place, program)?;
    script(session, file, |command| {
        tell_gateway(command, &gateway);
        tell_package(command, &tarball);
        tell(command);
    })
}

/// Runs a file of tests with Node's test runner; `tell` sets its environment.
fn script(session: &Session<'_>, file: &str, tell: impl FnOnce(&mut Command)) -> Result<Report> {
    let junit = session.junit()?;
    let mut command = session.place.node();
    command
        .args(["--test-reporter=junit", "--test-reporter-destination"])
        .arg(&junit)
        .args(["--test-reporter=spec", "--test-reporter-destination=stdout"]);
    // A test that failed may have left a lease or a server behind, which would keep the program
    // from ending. Programs that must end by themselves are separate processes.
    command.arg("--test-force-exit");
    if let Some(id) = session.only {
        command.args(["--test-name-pattern", &pattern(id)]);
        // For the cases that run in another program.
        command.env("EDGELATCH_ONLY", id);
    }
    command.arg(file).env("EDGELATCH_TOOLS", session.place.node_modules());
    command.env("EDGELATCH_EXTENT", session.extent.name());
    if let Some(chromium) = chromium() {
        command.env("CHROMIUM", chromium);
    }
    tell(&mut command);
    Ok(session.tests(&format!("node {file}"), &mut command, &junit)?.selected_by_path())
}

/// Returns a JavaScript regular expression that matches only the test of this name or path: Node
/// puts a space between the names of groups and of a test.
fn pattern(id: &str) -> String {
    let text = id.replace(LEVEL, " ");
    let special = |c: char| r"\^$.*+?()[]{}|/".contains(c);
    let escaped = text.chars().flat_map(|c| special(c).then_some('\\').into_iter().chain([c]));
    format!("^{}$", escaped.collect::<String>())
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
    // A build during the tests may have replaced the program; the system then appends a note to the
    // old one's name.
    let path = program.to_string_lossy().replace(" (deleted)", "");
    Ok(Path::new(&path).to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_is_selected_by_its_path_and_nothing_beside_it() {
        assert_eq!(pattern("alone"), "^alone$");
        assert_eq!(pattern("programs > Deno > lock: a (b)"), r"^programs Deno lock: a \(b\)$");
    }
}
