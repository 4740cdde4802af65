//! Programs from crates.io, each installed into a folder of the cache that is named by its version.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};

use super::Need;
use crate::place::Place;
use crate::progress::run;

/// The newest one whose lock file the registries that we reach can serve.
const NEXTEST: &str = "0.9.151";
const CARGO_DENY: &str = "0.20.2";
const CARGO_VET: &str = "0.10.3";
const CARGO_MUTANTS: &str = "27.1.0";
const CYCLONE_DX: &str = "0.5.9";

/// A program that `cargo install` brings.
struct Program {
    package: &'static str,
    name: &'static str,
    version: String,
    /// Flags of its own.
    flags: &'static [&'static str],
}

/// Where each of them is, or would be.
pub(crate) fn folders(place: &Place) -> Result<Vec<PathBuf>> {
    let needs = [
        Need::WasmBindgen,
        Need::Nextest,
        Need::CargoDeny,
        Need::CargoVet,
        Need::CargoMutants,
        Need::CycloneDx,
    ];
    let folder = |need| Ok(program(place, need)?.folder(place));
    needs.into_iter().map(folder).collect()
}

/// Whether the program is there in the wanted version.
pub(crate) fn is_there(place: &Place, need: Need) -> bool {
    program(place, need)
        .is_ok_and(|program| program.folder(place).join("bin").join(program.name).exists())
}

/// Compiles and installs the program.
pub(crate) fn install(place: &Place, need: Need) -> Result<()> {
    let program = program(place, need)?;
    let mut command = place.command("cargo");
    // Compiled for a short build, not for speed: each of them works on little.
    command
        .args(["install", "--debug", "--force", "--root"])
        .arg(program.folder(place))
        .arg("--target-dir")
        .arg(place.folder("tools")?)
        .args(["--version", &format!("={}", program.version), program.package])
        .args(program.flags)
        .env("CARGO_PROFILE_DEV_DEBUG", "0");
    let what = format!("{} {}: compiling it, once", program.package, program.version);
    run(place, &what, &mut command)
}

/// Removes what compiling has left.
pub(crate) fn clean_up(place: &Place) -> Result<()> {
    let folder = place.folder("tools")?;
    fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))
}

impl Program {
    fn folder(&self, place: &Place) -> PathBuf {
        place.cache().join(format!("{}-{}", self.package, self.version))
    }
}

/// The version of a package in our Cargo.lock.
pub(crate) fn locked_version(place: &Place, package: &str) -> Result<String> {
    let lock =
        fs::read_to_string(place.root.join("Cargo.lock")).context("cannot read Cargo.lock")?;
    let (_, entry) = lock
        .split_once(&format!("name = \"{package}\"\nversion = \""))
        .with_context(|| format!("Cargo.lock does not name {package}"))?;
    entry.split('"').next().map(str::to_owned).context("Cargo.lock is not readable")
}

fn program(place: &Place, need: Need) -> Result<Program> {
    let (package, name, version, flags): (_, _, _, &[_]) = match need {
        // It is not to be installed without its lock file, nor to update itself.
        Need::Nextest => (
            "cargo-nextest",
            "cargo-nextest",
            NEXTEST.to_owned(),
            &["--locked", "--no-default-features", "--features", "default-no-update"],
        ),
        Need::CargoDeny => ("cargo-deny", "cargo-deny", CARGO_DENY.to_owned(), &[]),
        Need::CargoVet => ("cargo-vet", "cargo-vet", CARGO_VET.to_owned(), &[]),
        Need::CargoMutants => ("cargo-mutants", "cargo-mutants", CARGO_MUTANTS.to_owned(), &[]),
        Need::CycloneDx => ("cargo-cyclonedx", "cargo-cyclonedx", CYCLONE_DX.to_owned(), &[]),
        // The generated glue and the program that generates it have to be of one version. Without
        // --locked, as its lock file has named versions that were withdrawn.
        _ => ("wasm-bindgen-cli", "wasm-bindgen", locked_version(place, "wasm-bindgen")?, &[]),
    };
    Ok(Program { package, name, version, flags })
}
