//! Builds the WebAssembly modules of the npm package.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::progress::run;
use crate::setup::wasm::{self, STD_FLAGS};
use crate::workspace::{Workspace, empty_folder};

/// One instruction copies memory, instead of a load and a store for each word, and no load is
/// repeated in several branches so that it is partly saved after them.
const FLAGS: &str = "-Cllvm-args=--max-store-memcpy=1 -Cllvm-args=--enable-pre=false \
     -Cllvm-args=--enable-load-pre=false";

/// A WebAssembly module of the npm package.
#[derive(Clone, Copy)]
pub(super) struct Module {
    /// The name of its files in `pkg/wasm`.
    pub(super) name: &'static str,
    /// The crate that it is built from, with the feature `js`.
    package: &'static str,
}

/// The module of the clients, and that of the entry `edgelatch/testing`.
pub(super) const MODULES: [Module; 2] = [
    Module { name: "edgelatch", package: "edgelatch" },
    Module { name: "testing", package: "edgelatch-testing" },
];

/// The standard library of a module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum StandardLibrary {
    /// Built for few bytes, as in a release.
    ForSize,
    /// As rustup distributes it: the fallback on a machine without the library's source.
    Distributed,
}

impl StandardLibrary {
    /// Returns the one that this machine can build the published module with.
    pub(super) fn available(workspace: &Workspace) -> Self {
        if wasm::std_compiler(workspace).is_some() { Self::ForSize } else { Self::Distributed }
    }

    /// Returns the folder of its builds, since cargo would otherwise build all of a changed library
    /// again.
    pub(super) fn folder(self, workspace: &Workspace) -> Result<PathBuf> {
        match self {
            Self::ForSize => workspace.folder("npm-std"),
            Self::Distributed => Ok(workspace.target.clone()),
        }
    }
}

/// Returns whether a second build of the modules and of their dependencies is byte for byte the
/// same.
pub(crate) fn is_reproducible(workspace: &Workspace) -> Result<bool> {
    let std = StandardLibrary::available(workspace);
    let again = empty_folder(workspace.folder("again")?)?;
    let mut same = true;
    for module in MODULES {
        let first = module.build(workspace, std, &std.folder(workspace)?)?;
        same &= fs::read(first)? == fs::read(module.build(workspace, std, &again)?)?;
    }
    // The second build occupies half a gigabyte.
    fs::remove_dir_all(again)?;
    Ok(same)
}

impl Module {
    /// Builds the module in a folder, and returns its file.
    pub(super) fn build(
        self,
        workspace: &Workspace,
        std: StandardLibrary,
        folder: &Path,
    ) -> Result<PathBuf> {
        let mut flags = format!("{FLAGS} {}", remap_flags(workspace));
        let mut command = match std {
            StandardLibrary::ForSize => {
                let compiler = wasm::std_compiler(workspace).context("no source of std")?;
                flags = format!("{STD_FLAGS} {flags}");
                compiler.cargo_for_std(workspace)
            }
            StandardLibrary::Distributed => {
                println!(
                    "  a plain build: the smallest package needs the standard library's source"
                );
                wasm::compiler(workspace).context("no compiler for wasm")?.cargo(workspace)
            }
        };
        command
            // Of one crate type only: if a Rust library is built too, the optimizer has to keep
            // what that may need.
            .args(["rustc", "--crate-type", "cdylib", "--profile", "npm", "--lib"])
            .args(["--package", self.package, "--target-dir"])
            .arg(folder)
            .args(["--target", wasm::TARGET, "--no-default-features", "--features", "js"])
            .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS", flags);
        if std == StandardLibrary::ForSize {
            command.args(["-Zbuild-std=std,panic_abort", "-Zbuild-std-features="]);
        }
        let about = format!("npm package: cargo build of {} to WebAssembly", self.package);
        run(workspace, &about, &mut command)?;
        let file = self.package.replace('-', "_") + ".wasm";
        Ok(folder.join(wasm::TARGET).join("npm").join(file))
    }
}

/// Maps paths in panic messages, so that they do not depend on the folder of the build.
fn remap_flags(workspace: &Workspace) -> String {
    let home = env::var_os("HOME").map(|home| Path::new(&home).join(".cargo"));
    let cargo_home = env::var_os("CARGO_HOME").map(PathBuf::from).or(home);
    let mut flags = vec![format!("--remap-path-prefix={}=edgelatch", workspace.root.display())];
    flags.extend(cargo_home.map(|home| format!("--remap-path-prefix={}=cargo", home.display())));
    flags.join(" ")
}
