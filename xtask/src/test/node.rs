//! Runs files of tests in JavaScript with Node's test runner, and prepares what they need.

use std::any::Any;
use std::process::Command;

use anyhow::Result;

use super::report::{Outcome, Report};
use super::session::Session;
use super::suite::Extent;
use crate::build;
use crate::demo::DemoServices;
use crate::docs;
use crate::interop;
use crate::progress::Stopwatch;
use crate::services::Gateway;
use crate::setup::{self, Tool, moto, npm};
use crate::workspace::firefox;

/// A gateway with its own Redis that accepts many connections from one address: all tests connect
/// from one.
const GATEWAY: [&str; 3] = ["--dev", "--address-connections", "4000"];

/// A program, a server or a file that a suite needs; the environment names it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fixture {
    /// The packed npm package.
    Package,
    /// The npm package as a machine without the source of the standard library packs it.
    PlainPackage,
    /// The package for JSR.
    Jsr,
    /// A gateway with its own Redis, which runs until the tests end.
    Gateway,
    /// A gateway that is built for release, with its own Redis. The gateway takes half of the time
    /// of a soak cycle, and a release build is several times as fast.
    FastGateway,
    /// The program of the gateway.
    GatewayProgram,
    /// The Java side of the interoperability tests.
    Peer,
    /// The demo, and the gateway behind it.
    Demo,
    /// The bundlers and frameworks.
    Bundlers,
    /// The packages that the examples use.
    Examples,
    /// The documentation site; in a full run also Firefox.
    Site,
    /// Programs that must be on the machine.
    Programs(&'static [Tool]),
}

impl Fixture {
    /// The programs that must be on the machine.
    pub(super) fn tools(self) -> &'static [Tool] {
        match self {
            Self::Package | Self::PlainPackage | Self::Jsr => setup::BUILD,
            Self::Gateway | Self::FastGateway | Self::GatewayProgram => &[Tool::Redis],
            Self::Peer => &[Tool::Java],
            Self::Demo => setup::DEMO,
            Self::Bundlers => &[],
            Self::Examples => &[Tool::Examples],
            Self::Site => &[Tool::Site],
            Self::Programs(tools) => tools,
        }
    }

    /// Prepares the fixture, and names it in the environment of the tests. The returned servers run
    /// until they are dropped.
    fn prepare(self, session: &Session<'_>, command: &mut Command) -> Result<Box<dyn Any>> {
        let workspace = session.workspace;
        match self {
            Self::Package => command.env("EDGELATCH_TARBALL", build::tarball(workspace)?),
            Self::PlainPackage => {
                command.env("EDGELATCH_TARBALL", build::plain_tarball(workspace)?)
            }
            Self::Jsr => command.env("EDGELATCH_JSR", build::jsr(workspace)?),
            Self::GatewayProgram => command.env("EDGELATCH_GATEWAY", build::gateway(workspace)?),
            Self::Peer => {
                command.env("EDGELATCH_PEER", interop::build(workspace, interop::NEWEST)?)
            }
            Self::Bundlers => {
                // A quick run uses esbuild only; the other bundlers take a gigabyte.
                if session.extent == Extent::Full {
                    setup::ensure(workspace, &[Tool::Bundlers])?;
                }
                command.env("EDGELATCH_BUNDLERS", npm::BUNDLERS.node_modules(workspace)?)
            }
            Self::Examples => {
                if session.extent == Extent::Full {
                    setup::ensure(workspace, setup::EXAMPLES)?;
                }
                command
                    .env("EDGELATCH_EXAMPLES", npm::EXAMPLES.node_modules(workspace)?)
                    .env("EDGELATCH_BUNDLERS", npm::BUNDLERS.node_modules(workspace)?)
                    .env("EDGELATCH_MOTO", moto::python(workspace)?)
            }
            Self::Site => {
                if session.extent == Extent::Full {
                    setup::ensure(workspace, &[Tool::Firefox])?;
                    command.envs(firefox().map(|firefox| ("FIREFOX", firefox)));
                }
                command.env("EDGELATCH_SITE", docs::build(workspace)?)
            }
            Self::Programs(_) => command,
            Self::Gateway | Self::FastGateway => {
                let is_fast = self == Self::FastGateway;
                let build = if is_fast { build::fast_gateway } else { build::gateway };
                let gateway = Gateway::start(workspace, &build(workspace)?, &GATEWAY)?;
                gateway.describe(command);
                return Ok(Box::new(gateway));
            }
            Self::Demo => {
                let demo = DemoServices::start(workspace, 0)?;
                demo.describe(command);
                return Ok(Box::new(demo));
            }
        };
        Ok(Box::new(()))
    }
}

/// Runs a file of tests with its fixtures.
pub(super) fn run(session: &Session<'_>, file: &str, fixtures: &[Fixture]) -> Result<Report> {
    let mut command = session.node()?;
    let prepared = fixtures.iter().map(|fixture| fixture.prepare(session, &mut command));
    let _running = prepared.collect::<Result<Vec<_>>>()?;
    let report = session.node_tests(&format!("node {file}"), command.arg(file))?;
    // A table of results has a row for each of the other tests, so it cannot be written alone.
    Ok(report.inseparable(|case| case.name.starts_with("the table of ")))
}

/// Checks the manifest and the types of the npm package.
pub(super) fn package(session: &Session<'_>) -> Result<Report> {
    let workspace = session.workspace;
    let tarball = build::tarball(workspace)?;
    let mut attw = workspace.command("attw --profile node16");
    // The omitted profile `node10` does not support `exports`, and so cannot resolve
    // `edgelatch/edgelatch.wasm`.
    let mut report = session.check("attw: the types are found", attw.arg(&tarball))?;
    let mut publint = workspace.command("publint run --strict");
    publint.arg(&tarball);
    report += session.check("publint: the manifest is right", &mut publint)?;

    let (npm, crates) = (build::npm_version(workspace)?, env!("CARGO_PKG_VERSION"));
    let differs = (npm != crates).then(|| format!("npm has {npm}, the workspace {crates}"));
    report += session.finding("npm package and crates are of one version", differs.as_slice());
    Ok(report)
}

/// Checks that a second build of the published WebAssembly is byte for byte the same.
pub(super) fn reproducible(session: &Session<'_>) -> Result<Report> {
    let watch = Stopwatch::start();
    let differs = (!build::is_reproducible(session.workspace)?).then(|| "two builds differ".into());
    let outcome = differs.map_or(Outcome::Passed, Outcome::Failed);
    Ok(Report::of("two clean builds of the WebAssembly are equal", watch.elapsed(), outcome))
}

/// Runs the README's command as users do: with its own servers, its own checks and its own end.
pub(super) fn smoke(session: &Session<'_>) -> Result<Report> {
    let mut once = session.workspace.xtask()?;
    session.check("cargo xtask demo --once", once.args(["demo", "--once"]))
}
