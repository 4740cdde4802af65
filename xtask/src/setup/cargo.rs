//! Programs from crates.io, each installed into a folder of the cache that is named by its version.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};

use super::debian;
use crate::progress::{output_of, run};
use crate::workspace::Workspace;

/// The newest version whose lock file the reachable registries can serve. nextest must not be
/// installed without its lock file, and must not update itself.
pub(super) const NEXTEST: Program = Program {
    flags: &["--locked", "--no-default-features", "--features", "default-no-update"],
    ..Program::new("cargo-nextest", "0.9.151")
};
pub(super) const DENY: Program = Program::new("cargo-deny", "0.20.2");
pub(super) const VET: Program = Program::new("cargo-vet", "0.10.3");
pub(super) const MUTANTS: Program = Program::new("cargo-mutants", "27.1.0");
pub(super) const CYCLONE_DX: Program = Program::new("cargo-cyclonedx", "0.5.9");
/// In the version of the library: the generated glue and its generator must have the same. Without
/// `--locked`, since its lock file has named versions that were withdrawn.
pub(super) const WASM_BINDGEN: Program =
    Program { name: "wasm-bindgen", ..Program::new("wasm-bindgen-cli", LOCKED) };
/// In the version that the README of `examples/rust-worker` names.
pub(super) const WORKER_BUILD: Program = Program::new("worker-build", "0.8.6");
pub(super) const ALL: [Program; 7] =
    [NEXTEST, DENY, VET, MUTANTS, CYCLONE_DX, WASM_BINDGEN, WORKER_BUILD];

/// The version that the workspace's Cargo.lock has for the library of the same name.
const LOCKED: &str = "";

/// A program that `cargo install` installs.
#[derive(Clone, Copy)]
pub(super) struct Program {
    package: &'static str,
    name: &'static str,
    version: &'static str,
    /// Additional flags.
    flags: &'static [&'static str],
}

impl Program {
    const fn new(package: &'static str, version: &'static str) -> Self {
        Self { package, name: package, version, flags: &[] }
    }

    fn version(&self, workspace: &Workspace) -> Result<String> {
        if self.version == LOCKED {
            return locked_version(workspace, self.name);
        }
        Ok(self.version.to_owned())
    }

    pub(super) fn folder(&self, workspace: &Workspace) -> Result<PathBuf> {
        let version = self.version(workspace)?;
        Ok(workspace.cache.join(format!("{}-{version}", self.package)))
    }

    /// Returns whether the program is installed in the required version.
    pub(super) fn is_installed(&self, workspace: &Workspace) -> bool {
        self.folder(workspace).is_ok_and(|folder| folder.join("bin").join(self.name).exists())
    }

    /// Compiles and installs the program.
    pub(super) fn install(&self, workspace: &Workspace) -> Result<()> {
        let version = self.version(workspace)?;
        // Compiled for a short build, not for speed: the programs process little data.
        let mut command = workspace.command("cargo install --debug --force --root");
        command
            .arg(self.folder(workspace)?)
            .arg("--target-dir")
            .arg(workspace.folder("tools")?)
            .args(["--version", &format!("={version}"), self.package])
            .args(self.flags)
            .env("CARGO_PROFILE_DEV_DEBUG", "0");
        let what = format!("{} {version}: compiling it, once", self.package);
        run(workspace, &what, &mut command)
    }
}

/// Installs `worker-build`, and first the headers of OpenSSL, which it needs.
pub(super) fn install_worker_build(workspace: &Workspace) -> Result<()> {
    if output_of(&mut workspace.command("pkg-config --exists openssl")).is_err() {
        debian::install(workspace, &["libssl-dev", "pkg-config"])?;
    }
    WORKER_BUILD.install(workspace)
}

/// Removes the compiler's intermediate files.
pub(super) fn clean_up(workspace: &Workspace) -> Result<()> {
    let folder = workspace.folder("tools")?;
    fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))
}

/// Returns the version of a package in the workspace's Cargo.lock.
fn locked_version(workspace: &Workspace, package: &str) -> Result<String> {
    let lock =
        fs::read_to_string(workspace.root.join("Cargo.lock")).context("cannot read Cargo.lock")?;
    let (_, entry) = lock
        .split_once(&format!("name = \"{package}\"\nversion = \""))
        .with_context(|| format!("Cargo.lock does not name {package}"))?;
    entry.split('"').next().map(str::to_owned).context("Cargo.lock is not readable")
}
