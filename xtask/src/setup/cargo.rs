//! Programs from crates.io, each installed into a folder of the cache that is named by its version.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};

use super::Need;
use crate::place::Place;
use crate::progress::run;

/// The newest version whose lock file the reachable registries can serve.
const NEXTEST: &str = "0.9.151";
const CARGO_DENY: &str = "0.20.2";
const CARGO_VET: &str = "0.10.3";
const CARGO_MUTANTS: &str = "27.1.0";
const CYCLONE_DX: &str = "0.5.9";

/// A program that `cargo install` installs.
struct Program {
    package: &'static str,
    name: &'static str,
    version: String,
    /// Additional flags.
    flags: &'static [&'static str],
}

/// Returns the folders of the programs, whether they are installed or not.
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

/// Returns whether the program is installed in the required version.
pub(crate) fn is_there(place: &Place, need: Need) -> bool {
    program(place, need)
        .is_ok_and(|program| program.folder(place).join("bin").join(program.name).exists())
}

/// Compiles and installs the program.
pub(crate) fn install(place: &Place, need: Need) -> Result<()> {
    let program = program(place, need)?;
    let mut command = place.command("cargo");
    // Compiled for a short build, not for speed: the programs process little data.
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

/// Removes the compiler's intermediate files.
pub(crate) fn clean_up(place: &Place) -> Result<()> {
    let folder = place.folder("tools")?;
    fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))
}

impl Program {
    fn folder(&self, place: &Place) -> PathBuf {
        place.cache().join(format!("{}-{}", self.package, self.version))
    }
}

/// Returns the version of a package in the workspace's Cargo.lock.
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
        // nextest must not be installed without its lock file, and must not update itself.
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
        // The generated glue and its generator must have the same version. Without --locked, since
        // its lock file has named versions that were withdrawn.
        _ => ("wasm-bindgen-cli", "wasm-bindgen", locked_version(place, "wasm-bindgen")?, &[]),
    };
    Ok(Program { package, name, version, flags })
}
