//! Installs the programs that a task needs, and checks that they are installed afterwards.

mod cargo;
mod debian;
pub(crate) mod moto;
pub(crate) mod npm;
pub(crate) mod servers;
pub(crate) mod wasm;

use std::path::{Path, PathBuf};
use std::thread;

use anyhow::{Result, anyhow, bail};
use clap::ValueEnum;

use crate::process::Interrupted;
use crate::progress;
use crate::workspace::{Workspace, chromium, firefox, which};
use Tool::{
    Bundlers, CargoDeny, CargoMutants, CargoVet, Chromium, Cxx, CycloneDx, Examples, Firefox, Go,
    Java, Moto, Nextest, NpmTools, Postgres, Proxies, Redis, Servers, Site, StdSource, WasmBindgen,
    WasmTarget, WebKit, Webdis, Wrk,
};

/// Debian installs it where only the search path of root finds it.
const NGINX: &str = "/usr/sbin/nginx";
/// The folder in which Debian has a folder for each version of PostgreSQL.
const POSTGRES: &str = "/usr/lib/postgresql";

/// The tools of a build of the npm package.
pub(crate) const BUILD: &[Tool] = &[WasmTarget, StdSource, WasmBindgen, NpmTools];
/// The tools of a build of the documentation site.
pub(crate) const DOCS: &[Tool] = &[Site];
pub(crate) const DEMO: &[Tool] = &[Redis, WasmTarget, StdSource, WasmBindgen, NpmTools];
/// The tools of tests of the npm package in a browser.
pub(crate) const BROWSER: &[Tool] =
    &[Redis, WasmTarget, StdSource, WasmBindgen, NpmTools, Chromium];
pub(crate) const BENCH: &[Tool] =
    &[Redis, Webdis, Wrk, Java, WasmTarget, StdSource, WasmBindgen, NpmTools];
pub(crate) const FUZZ: &[Tool] = &[Cxx, WasmTarget, StdSource, WasmBindgen, NpmTools];
pub(crate) const SEEDED_FAULTS: &[Tool] = &[Redis, Webdis, Nextest];
pub(crate) const MUTANTS: &[Tool] = &[Redis, Webdis, CargoMutants];
/// The tools of the examples that only a full run starts.
pub(crate) const EXAMPLES: &[Tool] = &[Bundlers, Chromium, Java, Moto, Postgres];
const ALL: &[Tool] = &[
    Redis,
    Servers,
    Webdis,
    Wrk,
    Proxies,
    Cxx,
    Chromium,
    Firefox,
    WebKit,
    Java,
    Go,
    WasmTarget,
    StdSource,
    WasmBindgen,
    Nextest,
    CargoDeny,
    CargoVet,
    NpmTools,
    Bundlers,
    Examples,
    Moto,
    Postgres,
    Site,
];

/// A program or library that a task needs on the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
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
    /// The generators of the documentation site, of `site/package.json`.
    Site,
}

/// How a tool is installed.
enum Source {
    /// Packages of Debian and its derivatives.
    Debian(&'static [&'static str]),
    /// A program that `cargo install` compiles.
    Cargo(cargo::Program),
    Npm(&'static npm::List),
    /// A part of the compiler's toolchain.
    Rustup(fn(&Workspace) -> Result<()>),
    /// Packages that are unpacked into the cache and not installed.
    Unpacked(fn(&Workspace) -> Result<()>),
}

/// The purpose of a setup.
#[derive(Clone, Copy, Default, ValueEnum)]
pub(crate) enum Purpose {
    /// For every task
    #[default]
    All,
    /// For `build`, `pack` and `size`
    Build,
    /// For `demo` and `soak`
    Demo,
    /// For `docs`
    Docs,
    /// For `bench`
    Bench,
    /// For `fuzz`
    Fuzz,
    /// For `seeded-faults`
    SeededFaults,
    /// For `seeded-faults --mutants`
    Mutants,
}

impl Purpose {
    /// Returns the programs that the purpose needs.
    pub(crate) fn tools(self) -> &'static [Tool] {
        match self {
            Self::All => ALL,
            Self::Build => BUILD,
            Self::Demo => DEMO,
            Self::Docs => DOCS,
            Self::Bench => BENCH,
            Self::Fuzz => FUZZ,
            Self::SeededFaults => SEEDED_FAULTS,
            Self::Mutants => MUTANTS,
        }
    }
}

impl Tool {
    fn source(self) -> Source {
        match self {
            Redis => Source::Debian(&["redis-server"]),
            Servers => Source::Unpacked(servers::install),
            Webdis => Source::Debian(&["webdis"]),
            Wrk => Source::Debian(&["wrk"]),
            Proxies => Source::Debian(&["nginx-light", "caddy"]),
            Cxx => Source::Debian(&["g++"]),
            Chromium => Source::Debian(&["chromium", "chromium-driver"]),
            Firefox => Source::Debian(&["firefox-esr"]),
            WebKit => Source::Debian(&["webkit2gtk-driver", "xvfb"]),
            // Without graphics.
            Java => Source::Debian(&["default-jdk-headless", "maven"]),
            Go => Source::Debian(&["golang-go"]),
            WasmTarget => Source::Rustup(wasm::install),
            StdSource => Source::Rustup(wasm::install_std_source),
            WasmBindgen => Source::Cargo(cargo::WASM_BINDGEN),
            Nextest => Source::Cargo(cargo::NEXTEST),
            CargoDeny => Source::Cargo(cargo::DENY),
            CargoVet => Source::Cargo(cargo::VET),
            CargoMutants => Source::Cargo(cargo::MUTANTS),
            CycloneDx => Source::Cargo(cargo::CYCLONE_DX),
            NpmTools => Source::Npm(&npm::TOOLS),
            Bundlers => Source::Npm(&npm::BUNDLERS),
            Examples => Source::Npm(&npm::EXAMPLES),
            Moto => Source::Unpacked(moto::install),
            Postgres => Source::Debian(&["postgresql"]),
            Site => Source::Npm(&npm::SITE),
        }
    }

    /// Returns what changes without the tool, if tasks do without it.
    fn without_it(self) -> Option<&'static str> {
        (self == StdSource).then_some("the npm package becomes a tenth larger")
    }

    fn is_installed(self, workspace: &Workspace) -> bool {
        let has = |program| which(program).is_some();
        match (self, self.source()) {
            (Proxies, _) => (has("nginx") || Path::new(NGINX).exists()) && has("caddy"),
            (Cxx, _) => has("c++"),
            (Moto, _) => moto::is_installed(workspace),
            // Debian's programs are not in the search path.
            (Postgres, _) => Path::new(POSTGRES).exists(),
            (Chromium, _) => chromium().is_some() && has("chromedriver"),
            (Firefox, _) => firefox().is_some(),
            (WebKit, _) => has("WebKitWebDriver") && has("Xvfb"),
            (Java, _) => has("mvn") && debian::has_java(),
            (Go, _) => has("gofmt") && debian::has_go(),
            (_, Source::Debian(packages)) => packages.iter().all(|package| has(package)),
            (_, Source::Cargo(program)) => program.is_installed(workspace),
            (_, Source::Npm(list)) => list.is_installed(workspace),
            (StdSource, _) => wasm::std_compiler(workspace).is_some(),
            (_, Source::Rustup(_)) => wasm::compiler(workspace).is_some(),
            (_, Source::Unpacked(_)) => servers::are_installed(workspace),
        }
    }
}

/// Installs the missing programs; fails at the first that cannot be installed.
pub(crate) fn ensure(workspace: &Workspace, tools: &[Tool]) -> Result<()> {
    match ensure_each(workspace, tools)?.into_iter().next() {
        Some((_, reason)) => bail!(reason),
        None => Ok(()),
    }
}

/// Installs the missing programs, and continues if one cannot be installed; returns these and the
/// reasons, except for programs that tasks do without.
pub(crate) fn ensure_each(workspace: &Workspace, tools: &[Tool]) -> Result<Vec<(Tool, String)>> {
    let is_missing = |tool: &Tool| !tool.is_installed(workspace);
    let missing: Vec<Tool> = tools.iter().copied().filter(is_missing).collect();
    if missing.is_empty() {
        return Ok(Vec::new());
    }
    println!("Setting up what is missing: {missing:?}");
    let (compiled, downloaded): (Vec<Tool>, Vec<Tool>) =
        missing.into_iter().partition(|tool| matches!(tool.source(), Source::Cargo(_)));
    // Compilation needs the processor and downloads need the network, so they run side by side.
    let mut results = thread::scope(|scope| {
        let download = || progress::with_prefix("setup", || install(workspace, &downloaded));
        let downloads = scope.spawn(download);
        let mut results = progress::with_prefix("cargo", || install(workspace, &compiled));
        results.extend(downloads.join().unwrap_or_default());
        results
    });
    cargo::clean_up(workspace)?;
    if let Some(at) = results.iter().position(is_interrupted) {
        results.swap_remove(at).1?;
    }
    let failed = results.into_iter().filter_map(|(tool, result)| match result {
        Err(error) => Some((tool, format!("{tool:?}: {error:#}"))),
        Ok(()) if tool.is_installed(workspace) => None,
        Ok(()) => Some((tool, format!("{tool:?} was installed but cannot be found"))),
    });
    let (dispensable, required): (Vec<_>, Vec<_>) =
        failed.partition(|(tool, _)| tool.without_it().is_some());
    for (tool, reason) in dispensable {
        println!("  {reason}: {}", tool.without_it().unwrap_or_default());
    }
    Ok(required)
}

/// The result of each installation.
type Results = Vec<(Tool, Result<()>)>;

fn is_interrupted((_, result): &(Tool, Result<()>)) -> bool {
    result.as_ref().is_err_and(|error| error.is::<Interrupted>())
}

fn install(workspace: &Workspace, tools: &[Tool]) -> Results {
    let packages = tools.iter().flat_map(|tool| match tool.source() {
        Source::Debian(packages) => packages,
        Source::Cargo(_) | Source::Npm(_) | Source::Rustup(_) | Source::Unpacked(_) => &[],
    });
    // One call of the package manager for all its packages.
    let packages: Vec<&str> = packages.copied().collect();
    let from_debian = debian::install(workspace, &packages);
    let install = |tool: Tool| match tool.source() {
        Source::Cargo(program) => program.install(workspace),
        Source::Npm(list) => list.install(workspace),
        Source::Rustup(install) | Source::Unpacked(install) => install(workspace),
        Source::Debian(_) => match &from_debian {
            Ok(()) => Ok(()),
            Err(error) if error.is::<Interrupted>() => Err(Interrupted.into()),
            Err(error) => Err(anyhow!("{error:#}")),
        },
    };
    tools.iter().map(|tool| (*tool, install(*tool))).collect()
}

/// Returns the folders of the programs from crates.io, whether they are installed or not.
pub(crate) fn cargo_tools(workspace: &Workspace) -> Result<Vec<PathBuf>> {
    cargo::ALL.iter().map(|program| program.folder(workspace)).collect()
}
