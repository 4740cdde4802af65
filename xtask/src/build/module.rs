//! The WebAssembly module of the npm package: with Debian's compiler and a standard library for
//! size where they are there.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::place::{Place, emptied};
use crate::progress::{output_of, run};
use crate::setup::wasm::{self, Compiler};

/// A standard library without texts for panics, and built for few bytes: they take a fifth of the
/// module. What is copied is copied by one instruction, and not word by word.
const STD_FLAGS: &str = "-Zunstable-options -Cpanic=immediate-abort -Zlocation-detail=none -Zfmt-debug=none \
     -Cllvm-args=--max-store-memcpy=1";
/// Where Debian puts its newest compiler.
const DEBIAN_CARGO: &str = "/usr/bin/cargo";
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";

/// Whether the module comes out byte for byte the same when everything that it is made of is built
/// again.
pub(crate) fn is_reproducible(place: &Place) -> Result<bool> {
    let (first, again) = (build(place, "")?, build(place, "again")?);
    let same = fs::read(first)? == fs::read(again)?;
    // Half a gigabyte that nobody needs any more.
    fs::remove_dir_all(place.folder("again")?)?;
    Ok(same)
}

/// Builds the module, below target or in a folder there that is kept apart.
pub(super) fn build(place: &Place, apart: &str) -> Result<PathBuf> {
    let debian = debian_compiler();
    let builds_std = debian.is_some();
    let compiler = debian.or_else(|| wasm::compiler(place)).context("no compiler for wasm")?;
    // What is built for another standard library is kept apart.
    let target = match (apart, builds_std) {
        ("", true) => place.folder("npm-std")?,
        ("", false) => place.target.clone(),
        (apart, _) => emptied(place.folder(apart)?)?,
    };
    let mut command = place.command(if builds_std { DEBIAN_CARGO } else { "cargo" });
    compiler.apply(&mut command);
    command
        // Of one crate type only: as long as a library for Rust is made too, the optimizer has to
        // keep what that might need.
        .args(["rustc", "--crate-type", "cdylib", "--profile", "npm", "--lib"])
        .args(["--package", "edgelatch", "--target-dir"])
        .arg(&target)
        .args(["--target", wasm::TARGET, "--no-default-features", "--features", "js"]);
    let mut flags = remapped(place);
    if builds_std {
        command.args(["-Zbuild-std=std,panic_abort", "-Zbuild-std-features=optimize_for_size"]);
        // Debian's source is of this very compiler, so it fits.
        command.env("RUSTC_BOOTSTRAP", "1").env("RUSTC", DEBIAN_RUSTC);
        flags = format!("{STD_FLAGS} {flags}");
    } else {
        println!(
            "  a plain build: for the smallest package Debian's rustc-web and rust-web-src are needed"
        );
    }
    command.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS", flags);
    run(place, "npm package: cargo build to WebAssembly", &mut command)?;
    Ok(target.join(wasm::TARGET).join("npm/edgelatch.wasm"))
}

/// Whether the standard library of the module is built for size, as in a release.
pub(crate) fn builds_std() -> bool {
    debian_compiler().is_some()
}

/// Debian's compiler, if the source of its standard library is there.
fn debian_compiler() -> Option<Compiler> {
    wasm::linker().filter(|_| has_std_source()).map(Compiler::Linked)
}

/// Whether the source of Debian's standard library is there to be built anew.
fn has_std_source() -> bool {
    let sysroot = output_of(Command::new(DEBIAN_RUSTC).args(["--print", "sysroot"]));
    sysroot.is_ok_and(|sysroot| {
        Path::new(sysroot.trim()).join("lib/rustlib/src/rust/library/std").is_dir()
    })
}

/// Panic messages name source files; not by where they lie on the machine that built them.
fn remapped(place: &Place) -> String {
    let home = env::var_os("HOME").map(|home| Path::new(&home).join(".cargo"));
    let cargo_home = env::var_os("CARGO_HOME").map(PathBuf::from).or(home);
    let mut flags = vec![format!("--remap-path-prefix={}=edgelatch", place.root.display())];
    flags.extend(cargo_home.map(|home| format!("--remap-path-prefix={}=cargo", home.display())));
    flags.join(" ")
}
