//! Builds the WebAssembly module of the npm package: with Debian's compiler and a standard library
//! for size if both are installed.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::progress::{output_of, run};
use crate::setup::wasm::{self, Compiler};
use crate::workspace::{Workspace, empty_folder};

/// Flags of a standard library without texts for panics, and built for few bytes: these texts are a
/// fifth of the module. One instruction copies memory, instead of a loop over words.
const STD_FLAGS: &str = "-Zunstable-options -Cpanic=immediate-abort -Zlocation-detail=none -Zfmt-debug=none \
     -Cllvm-args=--max-store-memcpy=1";
/// The path of Debian's newest compiler.
const DEBIAN_CARGO: &str = "/usr/bin/cargo";
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";

/// Returns whether a second build of the module and of its dependencies is byte for byte the same.
pub(crate) fn is_reproducible(workspace: &Workspace) -> Result<bool> {
    let (first, again) = (build(workspace, "")?, build(workspace, "again")?);
    let same = fs::read(first)? == fs::read(again)?;
    // The second build occupies half a gigabyte.
    fs::remove_dir_all(workspace.folder("again")?)?;
    Ok(same)
}

/// Builds the module, below target or in a separate folder there.
pub(super) fn build(workspace: &Workspace, separate: &str) -> Result<PathBuf> {
    let debian = debian_compiler();
    let builds_std = debian.is_some();
    let compiler = debian.or_else(|| wasm::compiler(workspace)).context("no compiler for wasm")?;
    // Builds for another standard library have a folder of their own.
    let target = match (separate, builds_std) {
        ("", true) => workspace.folder("npm-std")?,
        ("", false) => workspace.target.clone(),
        (separate, _) => empty_folder(workspace.folder(separate)?)?,
    };
    let mut command = workspace.command(if builds_std { DEBIAN_CARGO } else { "cargo" });
    compiler.apply(&mut command);
    command
        // Of one crate type only: if a Rust library is built too, the optimizer has to keep what
        // that may need.
        .args(["rustc", "--crate-type", "cdylib", "--profile", "npm", "--lib"])
        .args(["--package", "edgelatch", "--target-dir"])
        .arg(&target)
        .args(["--target", wasm::TARGET, "--no-default-features", "--features", "js"]);
    let mut flags = remap_flags(workspace);
    if builds_std {
        command.args(["-Zbuild-std=std,panic_abort", "-Zbuild-std-features=optimize_for_size"]);
        // Debian's source belongs to this compiler version, so it fits.
        command.env("RUSTC_BOOTSTRAP", "1").env("RUSTC", DEBIAN_RUSTC);
        flags = format!("{STD_FLAGS} {flags}");
    } else {
        println!(
            "  a plain build: for the smallest package Debian's rustc-web and rust-web-src are needed"
        );
    }
    command.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS", flags);
    run(workspace, "npm package: cargo build to WebAssembly", &mut command)?;
    Ok(target.join(wasm::TARGET).join("npm/edgelatch.wasm"))
}

/// Returns whether the standard library of the module is built for size, as in a release.
pub(crate) fn builds_std() -> bool {
    debian_compiler().is_some()
}

/// Returns Debian's compiler, if the source of its standard library is installed.
fn debian_compiler() -> Option<Compiler> {
    wasm::linker().filter(|_| has_std_source()).map(Compiler::Linked)
}

/// Returns whether the source of Debian's standard library is installed.
fn has_std_source() -> bool {
    let sysroot = output_of(Command::new(DEBIAN_RUSTC).args(["--print", "sysroot"]));
    sysroot.is_ok_and(|sysroot| {
        Path::new(sysroot.trim()).join("lib/rustlib/src/rust/library/std").is_dir()
    })
}

/// Maps paths in panic messages, so that they do not depend on the folder of the build.
fn remap_flags(workspace: &Workspace) -> String {
    let home = env::var_os("HOME").map(|home| Path::new(&home).join(".cargo"));
    let cargo_home = env::var_os("CARGO_HOME").map(PathBuf::from).or(home);
    let mut flags = vec![format!("--remap-path-prefix={}=edgelatch", workspace.root.display())];
    flags.extend(cargo_home.map(|home| format!("--remap-path-prefix={}=cargo", home.display())));
    flags.join(" ")
}
