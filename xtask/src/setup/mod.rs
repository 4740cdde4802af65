//! Making sure of what a task needs: look whether it is there, install it if not, look again.

mod cargo;
mod debian;
mod java;
mod npm;
pub(crate) mod wasm;

use anyhow::{Result, bail};
use clap::ValueEnum;

use crate::place::{Place, chromium, which};
use crate::process::Interrupted;

/// Something that has to be on the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Need {
    /// `redis-server`, started privately by whoever uses it.
    Redis,
    /// `webdis`, which tests speak to and the benchmark compares our gateway with.
    Webdis,
    /// `wrk`, which loads both gateways.
    Wrk,
    /// A compiler for C++, which libFuzzer is written in.
    Cxx,
    /// A browser and its WebDriver.
    Chromium,
    /// A compiler for Java with its runtime, and Maven.
    Java,
    /// A compiler for `wasm32-unknown-unknown`.
    WasmTarget,
    /// `wasm-bindgen` of the very version of the crate.
    WasmBindgen,
    /// `wasm-pack`, which runs the tests in WebAssembly.
    WasmPack,
    /// `cargo-deny`, which checks licences and sources.
    CargoDeny,
    /// `cargo-vet`, which checks that every version was let in by somebody.
    CargoVet,
    /// `cargo-mutants`, which changes one operator at a time.
    CargoMutants,
    /// `cargo-cyclonedx`, which lists what is in the crates.
    CycloneDx,
    /// The programs of `xtask/tools/package.json`.
    NpmTools,
}

/// What the machine is made ready for.
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
    /// For `interop`
    Interop,
    /// For `teeth`
    Teeth,
    /// For `teeth --mutants`
    Mutants,
}

impl Purpose {
    /// What is needed for it.
    pub(crate) fn needs(self) -> &'static [Need] {
        use Need::{
            CargoDeny, CargoMutants, CargoVet, Chromium, Cxx, Java, NpmTools, Redis, WasmBindgen,
            WasmPack, WasmTarget, Webdis, Wrk,
        };
        match self {
            Self::All => &[
                Redis,
                Webdis,
                Wrk,
                Cxx,
                Chromium,
                Java,
                WasmTarget,
                WasmBindgen,
                WasmPack,
                CargoDeny,
                CargoVet,
                NpmTools,
            ],
            Self::Build => &[WasmTarget, WasmBindgen, NpmTools],
            Self::Demo => &[Redis, WasmTarget, WasmBindgen, NpmTools],
            Self::Fuzz => &[Cxx, WasmTarget, WasmBindgen, NpmTools],
            Self::Bench => &[Redis, Webdis, Wrk, Java, WasmTarget, WasmBindgen, NpmTools],
            Self::Teeth => &[Redis, Webdis],
            Self::Mutants => &[Redis, Webdis, CargoMutants],
            Self::Interop => &[Redis, Java, WasmTarget, WasmBindgen, NpmTools],
        }
    }
}

/// Installs what is missing, and fails at the first that cannot be had.
pub(crate) fn ensure(place: &Place, needs: &[Need]) -> Result<()> {
    match ensure_each(place, needs)?.into_iter().next() {
        Some((_, reason)) => bail!(reason),
        None => Ok(()),
    }
}

/// Installs what is missing and goes on where something cannot be had; answers what that was, and why.
pub(crate) fn ensure_each(place: &Place, needs: &[Need]) -> Result<Vec<(Need, String)>> {
    let missing: Vec<Need> = needs.iter().copied().filter(|need| !is_there(place, *need)).collect();
    if missing.is_empty() {
        return Ok(Vec::new());
    }
    println!("Setting up what is missing: {missing:?}");
    // One call of the package manager for all that comes from there.
    let packages: Vec<&str> = missing.iter().flat_map(|need| packages(*need)).copied().collect();
    let from_debian = debian::install(place, &packages);
    let mut failed = Vec::new();
    for need in missing {
        let result = match need {
            Need::Redis | Need::Webdis | Need::Wrk | Need::Cxx | Need::Chromium | Need::Java => {
                from_debian
                    .as_ref()
                    .map_or_else(|error| Err(anyhow::anyhow!("{error:#}")), |()| Ok(()))
            }
            Need::WasmTarget => wasm::install(place),
            Need::WasmBindgen
            | Need::WasmPack
            | Need::CargoDeny
            | Need::CargoVet
            | Need::CargoMutants
            | Need::CycloneDx => cargo::install(place, need),
            Need::NpmTools => npm::install(place),
        };
        match result {
            Err(error) if error.is::<Interrupted>() => return Err(error),
            Err(error) => failed.push((need, format!("{need:?}: {error:#}"))),
            Ok(()) if !is_there(place, need) => {
                failed.push((need, format!("{need:?} was installed but cannot be found")));
            }
            Ok(()) => {}
        }
    }
    cargo::clean_up(place)?;
    Ok(failed)
}

fn is_there(place: &Place, need: Need) -> bool {
    match need {
        Need::Redis => which("redis-server").is_some(),
        Need::Webdis => which("webdis").is_some(),
        Need::Wrk => which("wrk").is_some(),
        Need::Cxx => which("c++").is_some(),
        Need::Chromium => chromium().is_some() && which("chromedriver").is_some(),
        Need::Java => java::is_there(),
        Need::WasmTarget => wasm::compiler(place).is_some(),
        Need::WasmBindgen
        | Need::WasmPack
        | Need::CargoDeny
        | Need::CargoVet
        | Need::CargoMutants
        | Need::CycloneDx => cargo::is_there(place, need),
        Need::NpmTools => npm::is_there(place),
    }
}

fn packages(need: Need) -> &'static [&'static str] {
    match need {
        Need::Redis => &["redis-server"],
        Need::Webdis => &["webdis"],
        Need::Wrk => &["wrk"],
        Need::Cxx => &["g++"],
        Need::Chromium => &["chromium", "chromium-driver"],
        Need::Java => java::PACKAGES,
        Need::WasmTarget
        | Need::WasmBindgen
        | Need::WasmPack
        | Need::CargoDeny
        | Need::CargoVet
        | Need::CargoMutants
        | Need::CycloneDx
        | Need::NpmTools => &[],
    }
}
