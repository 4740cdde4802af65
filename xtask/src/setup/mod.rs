//! Installs the programs that a task needs, and checks that they are installed afterwards.

mod cargo;
mod debian;
mod java;
pub(crate) mod npm;
pub(crate) mod wasm;

use std::path::{Path, PathBuf};
use std::thread;

use anyhow::{Result, bail};
use clap::ValueEnum;

use crate::place::{Place, chromium, which};
use crate::process::Interrupted;
use crate::progress;

/// Debian installs it where only the search path of root finds it.
const NGINX: &str = "/usr/sbin/nginx";

/// A program or library that a task needs on the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Need {
    /// `redis-server`, which each user of it starts privately.
    Redis,
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
    /// A compiler for Java with its runtime, and Maven.
    Java,
    /// A compiler for `wasm32-unknown-unknown`.
    WasmTarget,
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
    pub(crate) fn needs(self) -> &'static [Need] {
        use Need::{
            Bundlers, CargoDeny, CargoMutants, CargoVet, Chromium, Cxx, Java, Nextest, NpmTools,
            Proxies, Redis, WasmBindgen, WasmTarget, Webdis, Wrk,
        };
        match self {
            Self::All => &[
                Redis,
                Webdis,
                Wrk,
                Proxies,
                Cxx,
                Chromium,
                Java,
                WasmTarget,
                WasmBindgen,
                Nextest,
                CargoDeny,
                CargoVet,
                NpmTools,
                Bundlers,
            ],
            Self::Build => &[WasmTarget, WasmBindgen, NpmTools],
            Self::Demo => &[Redis, WasmTarget, WasmBindgen, NpmTools],
            Self::Fuzz => &[Cxx, WasmTarget, WasmBindgen, NpmTools],
            Self::Bench => &[Redis, Webdis, Wrk, Java, WasmTarget, WasmBindgen, NpmTools],
            Self::SeededFaults => &[Redis, Webdis, Nextest],
            Self::Mutants => &[Redis, Webdis, CargoMutants],
        }
    }
}

/// Installs the missing programs; fails at the first that cannot be installed.
pub(crate) fn ensure(place: &Place, needs: &[Need]) -> Result<()> {
    match ensure_each(place, needs)?.into_iter().next() {
        Some((_, reason)) => bail!(reason),
        None => Ok(()),
    }
}

/// Installs the missing programs, and continues if one cannot be installed; returns these and the
/// reasons.
pub(crate) fn ensure_each(place: &Place, needs: &[Need]) -> Result<Vec<(Need, String)>> {
    let missing: Vec<Need> = needs.iter().copied().filter(|need| !is_there(place, *need)).collect();
    if missing.is_empty() {
        return Ok(Vec::new());
    }
    println!("Setting up what is missing: {missing:?}");
    let (compiled, downloaded): (Vec<Need>, Vec<Need>) =
        missing.into_iter().partition(|need| is_compiled(*need));
    // Compilation needs the processor and downloads need the network, so they run side by side.
    let mut results = thread::scope(|scope| {
        let downloads = scope.spawn(|| progress::lane("setup", || download(place, &downloaded)));
        let mut results = progress::lane("cargo", || compile(place, &compiled));
        results.extend(downloads.join().unwrap_or_default());
        results
    });
    cargo::clean_up(place)?;
    if let Some(at) = results.iter().position(is_interrupted) {
        results.swap_remove(at).1?;
    }
    let failed = results.into_iter().filter_map(|(need, result)| match result {
        Err(error) => Some((need, format!("{need:?}: {error:#}"))),
        Ok(()) if is_there(place, need) => None,
        Ok(()) => Some((need, format!("{need:?} was installed but cannot be found"))),
    });
    Ok(failed.collect())
}

/// The result of each installation.
type Results = Vec<(Need, Result<()>)>;

fn is_interrupted((_, result): &(Need, Result<()>)) -> bool {
    result.as_ref().is_err_and(|error| error.is::<Interrupted>())
}

/// Returns whether `cargo install` installs it.
fn is_compiled(need: Need) -> bool {
    matches!(
        need,
        Need::WasmBindgen
            | Need::Nextest
            | Need::CargoDeny
            | Need::CargoVet
            | Need::CargoMutants
            | Need::CycloneDx
    )
}

fn compile(place: &Place, needs: &[Need]) -> Results {
    needs.iter().map(|need| (*need, cargo::install(place, *need))).collect()
}

fn download(place: &Place, needs: &[Need]) -> Results {
    // One call of the package manager for all its packages.
    let packages: Vec<&str> = needs.iter().flat_map(|need| packages(*need)).copied().collect();
    let from_debian = debian::install(place, &packages);
    let install = |need| match need {
        Need::WasmTarget => wasm::install(place),
        Need::NpmTools => npm::TOOLS.install(place),
        Need::Bundlers => npm::BUNDLERS.install(place),
        _ => {
            from_debian.as_ref().map_or_else(|error| Err(anyhow::anyhow!("{error:#}")), |()| Ok(()))
        }
    };
    needs.iter().map(|need| (*need, install(*need))).collect()
}

/// Returns the folders of the programs from crates.io, whether they are installed or not.
pub(crate) fn cargo_tools(place: &Place) -> Result<Vec<PathBuf>> {
    cargo::folders(place)
}

fn is_there(place: &Place, need: Need) -> bool {
    match need {
        Need::Redis => which("redis-server").is_some(),
        Need::Webdis => which("webdis").is_some(),
        Need::Wrk => which("wrk").is_some(),
        Need::Proxies => {
            let has_nginx = which("nginx").is_some() || Path::new(NGINX).exists();
            has_nginx && which("caddy").is_some()
        }
        Need::Cxx => which("c++").is_some(),
        Need::Chromium => chromium().is_some() && which("chromedriver").is_some(),
        Need::Java => java::is_there(),
        Need::WasmTarget => wasm::compiler(place).is_some(),
        Need::WasmBindgen
        | Need::Nextest
        | Need::CargoDeny
        | Need::CargoVet
        | Need::CargoMutants
        | Need::CycloneDx => cargo::is_there(place, need),
        Need::NpmTools => npm::TOOLS.is_there(place),
        Need::Bundlers => npm::BUNDLERS.is_there(place),
    }
}

fn packages(need: Need) -> &'static [&'static str] {
    match need {
        Need::Redis => &["redis-server"],
        Need::Webdis => &["webdis"],
        Need::Wrk => &["wrk"],
        Need::Proxies => &["nginx-light", "caddy"],
        Need::Cxx => &["g++"],
        Need::Chromium => &["chromium", "chromium-driver"],
        Need::Java => java::PACKAGES,
        Need::WasmTarget
        | Need::WasmBindgen
        | Need::Nextest
        | Need::CargoDeny
        | Need::CargoVet
        | Need::CargoMutants
        | Need::CycloneDx
        | Need::NpmTools
        | Need::Bundlers => &[],
    }
}
