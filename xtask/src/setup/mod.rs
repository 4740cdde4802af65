//! Installs the programs that a task needs, and checks that they are installed afterwards.

mod cargo;
mod debian;
pub(crate) mod moto;
pub(crate) mod npm;
pub(crate) mod servers;
pub(crate) mod wasm;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::{Error, Result, bail};
use clap::ValueEnum;

use crate::process::check_stop;
use crate::progress;
use crate::workspace::{Workspace, chromium, firefox, which};
use Tool::{
    Bundlers, CargoDeny, CargoMutants, CargoVet, Chromium, Cxx, CycloneDx, Examples, Firefox, Go,
    Java, Moto, Nextest, NpmTools, Postgres, Proxies, Redis, Servers, Site, StdSource, WasmBindgen,
    WasmTarget, WebKit, Webdis, WorkerBuild, Wrk,
};

/// The tools of a build of the npm package.
pub(crate) const BUILD: &[Tool] = &[WasmTarget, StdSource, WasmBindgen, NpmTools];
pub(crate) const DEMO: &[Tool] = &[Redis, WasmTarget, StdSource, WasmBindgen, NpmTools];
/// The tools of tests of the npm package in a browser.
pub(crate) const BROWSER: &[Tool] =
    &[Redis, WasmTarget, StdSource, WasmBindgen, NpmTools, Chromium];
pub(crate) const BENCH: &[Tool] =
    &[Redis, Webdis, Wrk, Java, WasmTarget, StdSource, WasmBindgen, NpmTools];
pub(crate) const FUZZ: &[Tool] = &[Cxx, WasmTarget, StdSource, WasmBindgen, NpmTools];
/// The tools of the examples that only a full run starts.
pub(crate) const EXAMPLES: &[Tool] = &[Bundlers, Chromium, Java, Moto, Postgres, WorkerBuild];

/// A program or library that a task needs on the machine.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, ValueEnum)]
pub(crate) enum Tool {
    /// `redis-server`, which each user of it starts privately.
    Redis,
    /// Redis 8 and Valkey, for tests beside the machine's own Redis.
    Servers,
    /// `webdis`, for tests, and for the benchmark's comparison with the gateway.
    Webdis,
    /// `wrk`, which puts load on both gateways.
    Wrk,
    /// `nginx` and `caddy`, for tests of the gateway behind them.
    Proxies,
    /// A C++ compiler, for libFuzzer.
    Cxx,
    /// A browser and its WebDriver.
    Chromium,
    /// The release of Firefox with long support, or any other.
    Firefox,
    /// WebKitGTK with a small browser, its WebDriver, and a display for it.
    WebKit,
    /// A compiler for Java with its runtime, and Maven.
    Java,
    /// A compiler for Go, for the checker of histories.
    Go,
    /// A compiler for `wasm32-unknown-unknown`.
    WasmTarget,
    /// The source of the compiler's standard library: the npm package has a smaller build of it.
    StdSource,
    /// `wasm-bindgen` in the version of the crate.
    WasmBindgen,
    /// `cargo-nextest`, which runs the tests in Rust.
    Nextest,
    /// `cargo-deny`, which checks licences and sources.
    CargoDeny,
    /// `cargo-vet`, which checks that a person has reviewed or exempted each version.
    CargoVet,
    /// `cargo-mutants`, which changes one operator at a time.
    CargoMutants,
    /// `cargo-cyclonedx`, which lists the contents of the crates.
    CycloneDx,
    /// The programs of `xtask/tools/package.json`.
    NpmTools,
    /// The bundlers and frameworks of `tests/bundlers/package.json`.
    Bundlers,
    /// The packages of `tests/examples/package.json`.
    Examples,
    /// A local S3, for an example.
    Moto,
    /// PostgreSQL, for an example.
    Postgres,
    /// `worker-build`, which compiles Workers in Rust, for an example.
    WorkerBuild,
    /// The generators of the documentation site, of `site/package.json`.
    Site,
}

/// How a tool is installed.
enum Source {
    /// Packages of Debian and its derivatives, and whether the machine has the programs in them.
    Debian(&'static [&'static str], fn() -> bool),
    /// A program that `cargo install` compiles.
    Cargo(cargo::Program),
    Npm(&'static npm::List),
    /// Returns whether the tool is installed, and installs it.
    Own(fn(&Workspace) -> bool, fn(&Workspace) -> Result<()>),
}

impl Tool {
    /// Returns the tools of all tasks, except for two that compile for minutes and that only
    /// `seeded-faults --mutants` and `sbom` need.
    pub(crate) fn all() -> Vec<Self> {
        let is_common = |tool: &Self| !matches!(tool, CargoMutants | CycloneDx);
        Self::value_variants().iter().copied().filter(is_common).collect()
    }

    fn source(self) -> Source {
        match self {
            Redis => Source::Debian(&["redis-server"], || has("redis-server")),
            Servers => Source::Own(servers::are_installed, servers::install),
            Webdis => Source::Debian(&["webdis"], || has("webdis")),
            Wrk => Source::Debian(&["wrk"], || has("wrk")),
            // Debian installs nginx where only the search path of root finds it.
            Proxies => Source::Debian(&["nginx-light", "caddy"], || {
                (has("nginx") || Path::new("/usr/sbin/nginx").exists()) && has("caddy")
            }),
            Cxx => Source::Debian(&["g++"], || has("c++")),
            Chromium => Source::Debian(&["chromium", "chromium-driver"], || {
                chromium().is_some() && has("chromedriver")
            }),
            Firefox => Source::Debian(&["firefox-esr"], || firefox().is_some()),
            WebKit => Source::Debian(&["webkit2gtk-driver", "xvfb"], || {
                has("WebKitWebDriver") && has("Xvfb")
            }),
            // Without graphics.
            Java => Source::Debian(&["default-jdk-headless", "maven"], || {
                has("mvn") && debian::has_java()
            }),
            Go => Source::Debian(&["golang-go"], || has("gofmt") && debian::has_go()),
            WasmTarget => Source::Own(|at| wasm::compiler(at).is_some(), wasm::install),
            StdSource => {
                Source::Own(|at| wasm::std_compiler(at).is_some(), wasm::install_std_source)
            }
            WasmBindgen => Source::Cargo(cargo::WASM_BINDGEN),
            Nextest => Source::Cargo(cargo::NEXTEST),
            CargoDeny => Source::Cargo(cargo::DENY),
            CargoVet => Source::Cargo(cargo::VET),
            CargoMutants => Source::Cargo(cargo::MUTANTS),
            CycloneDx => Source::Cargo(cargo::CYCLONE_DX),
            NpmTools => Source::Npm(&npm::TOOLS),
            Bundlers => Source::Npm(&npm::BUNDLERS),
            Examples => Source::Npm(&npm::EXAMPLES),
            Moto => Source::Own(moto::is_installed, moto::install),
            // Debian's programs are in a folder for each version, not in the search path.
            Postgres => {
                Source::Debian(&["postgresql"], || Path::new("/usr/lib/postgresql").exists())
            }
            WorkerBuild => {
                Source::Own(|at| cargo::WORKER_BUILD.is_installed(at), cargo::install_worker_build)
            }
            Site => Source::Npm(&npm::SITE),
        }
    }

    fn is_installed(self, workspace: &Workspace) -> bool {
        match self.source() {
            Source::Debian(_, is_installed) => is_installed(),
            Source::Cargo(program) => program.is_installed(workspace),
            Source::Npm(list) => list.is_installed(workspace),
            Source::Own(is_installed, _) => is_installed(workspace),
        }
    }
}

fn has(program: &str) -> bool {
    which(program).is_some()
}

/// Installs the missing programs; fails at the first that cannot be installed.
pub(crate) fn ensure(workspace: &Workspace, tools: &[Tool]) -> Result<()> {
    match ensure_each(workspace, tools.iter().copied())?.into_iter().next() {
        Some((_, reason)) => bail!(reason),
        None => Ok(()),
    }
}

/// Installs the missing programs, and continues if one cannot be installed; returns these and the
/// reasons, except for programs that tasks do without.
pub(crate) fn ensure_each(
    workspace: &Workspace,
    tools: impl IntoIterator<Item = Tool>,
) -> Result<Vec<(Tool, String)>> {
    let mut missing = BTreeSet::from_iter(tools);
    missing.retain(|tool| !tool.is_installed(workspace));
    if missing.is_empty() {
        return Ok(Vec::new());
    }
    workspace.exclusively(|| install_missing(workspace, missing))
}

fn install_missing(
    workspace: &Workspace,
    mut missing: BTreeSet<Tool>,
) -> Result<Vec<(Tool, String)>> {
    // Another suite may have installed some of them until now.
    missing.retain(|tool| !tool.is_installed(workspace));
    if missing.is_empty() {
        return Ok(Vec::new());
    }
    println!("Setting up what is missing: {missing:?}");
    let (compiled, downloaded): (Vec<Tool>, Vec<Tool>) =
        missing.into_iter().partition(|tool| matches!(tool.source(), Source::Cargo(_)));
    // Compilation needs the processor and downloads need the network, so they run side by side.
    let mut failed = thread::scope(|scope| {
        let download = || progress::with_prefix("setup", || install(workspace, &downloaded));
        let downloads = scope.spawn(download);
        let mut failed = progress::with_prefix("cargo", || install(workspace, &compiled));
        failed.extend(downloads.join().unwrap_or_default());
        failed
    });
    cargo::clean_up(workspace)?;
    check_stop()?;
    for (_, reason) in failed.extract_if(.., |(tool, _)| *tool == StdSource) {
        println!("  {reason}: the npm package becomes a tenth larger");
    }
    Ok(failed)
}

/// Installs tools; returns those that cannot be installed, and the reasons.
fn install(workspace: &Workspace, tools: &[Tool]) -> Vec<(Tool, String)> {
    let packages = tools.iter().flat_map(|tool| match tool.source() {
        Source::Debian(packages, _) => packages,
        Source::Cargo(_) | Source::Npm(_) | Source::Own(..) => &[],
    });
    // One call of the package manager for all its packages.
    let packages: Vec<&str> = packages.copied().collect();
    let from_debian = debian::install(workspace, &packages).map_err(|error| format!("{error:#}"));
    let failure = |tool: &Tool| {
        let installed = match tool.source() {
            Source::Debian(..) => from_debian.clone().map_err(Error::msg),
            Source::Cargo(program) => program.install(workspace),
            Source::Npm(list) => list.install(workspace),
            Source::Own(_, install) => install(workspace),
        };
        match installed {
            Err(error) => Some((*tool, format!("{tool:?}: {error:#}"))),
            Ok(()) if tool.is_installed(workspace) => None,
            Ok(()) => Some((*tool, format!("{tool:?} was installed but cannot be found"))),
        }
    };
    tools.iter().filter_map(failure).collect()
}

/// Returns the folders of the programs from crates.io, whether they are installed or not.
pub(crate) fn cargo_tools(workspace: &Workspace) -> Result<Vec<PathBuf>> {
    cargo::ALL.iter().map(|program| program.folder(workspace)).collect()
}
