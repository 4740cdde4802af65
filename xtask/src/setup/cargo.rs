//! Programs from crates.io, installed below target and nowhere else.

use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result};

use super::Need;
use crate::place::Place;
use crate::progress::{output_of, run};

const WASM_PACK: &str = "0.15.1";
const CARGO_DENY: &str = "0.20.2";
const CARGO_VET: &str = "0.10.3";
const CARGO_MUTANTS: &str = "27.1.0";
const CYCLONE_DX: &str = "0.5.9";

/// Whether the program is there in the wanted version.
pub(crate) fn is_there(place: &Place, need: Need) -> bool {
    let Ok(program) = program(place, need) else { return false };
    let file = place.cargo_tools().join("bin").join(program.name);
    // Some are told by cargo which of its commands they are.
    let command = program
        .name
        .strip_prefix("cargo-")
        .filter(|_| matches!(need, Need::CycloneDx | Need::CargoMutants));
    output_of(Command::new(file).args(command).arg("--version"))
        .is_ok_and(|text| text.split_whitespace().any(|word| word == program.version))
}

/// Compiles and installs the program.
pub(crate) fn install(place: &Place, need: Need) -> Result<()> {
    let program = program(place, need)?;
    let mut command = place.command("cargo");
    // Compiled for a short build, not for speed: each of them works on little. Without --locked, as
    // wasm-bindgen-cli's lock file has named versions that were withdrawn.
    command
        .args(["install", "--debug", "--force", "--root"])
        .arg(place.cargo_tools())
        .arg("--target-dir")
        .arg(place.cargo_tools().join("build"))
        .args(["--version", &format!("={}", program.version), program.package])
        .env("CARGO_PROFILE_DEV_DEBUG", "0");
    run(
        place,
        &format!("{} {}: compiling it, {}", program.package, program.version, WHY),
        &mut command,
    )
}

/// Removes what compiling has left.
pub(crate) fn clean_up(place: &Place) -> Result<()> {
    let folder = place.cargo_tools().join("build");
    if folder.exists() {
        fs::remove_dir_all(&folder)
            .with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    Ok(())
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

const WHY: &str = "one to two minutes, once";

struct Program {
    package: &'static str,
    name: &'static str,
    version: String,
}

fn program(place: &Place, need: Need) -> Result<Program> {
    let (package, name, version) = match need {
        Need::WasmPack => ("wasm-pack", "wasm-pack", WASM_PACK.to_owned()),
        Need::CargoDeny => ("cargo-deny", "cargo-deny", CARGO_DENY.to_owned()),
        Need::CargoVet => ("cargo-vet", "cargo-vet", CARGO_VET.to_owned()),
        Need::CargoMutants => ("cargo-mutants", "cargo-mutants", CARGO_MUTANTS.to_owned()),
        Need::CycloneDx => ("cargo-cyclonedx", "cargo-cyclonedx", CYCLONE_DX.to_owned()),
        // The generated glue and the program that generates it have to be of one version.
        _ => ("wasm-bindgen-cli", "wasm-bindgen", locked_version(place, "wasm-bindgen")?),
    };
    Ok(Program { package, name, version })
}
