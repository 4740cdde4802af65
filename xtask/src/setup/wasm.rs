//! Installs a compiler for `wasm32-unknown-unknown`, and the source of its standard library: with
//! rustup, or Debian's if rustup cannot reach its server.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

use super::debian;
use crate::progress::{output_of, run, step};
use crate::workspace::{Workspace, which};

/// The target of all code that runs inside a JavaScript runtime.
pub(crate) const TARGET: &str = "wasm32-unknown-unknown";
/// The name of Debian's compiler in rustup.
const LINKED: &str = "web";
/// The paths of Debian's newest compiler.
const DEBIAN_CARGO: &str = "/usr/bin/cargo";
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
/// Flags of a standard library without texts for panics, and without the code that formats values
/// for them: both are a tenth of the module. Only a build of the standard library can omit them.
pub(crate) const STD_FLAGS: &str =
    "-Zunstable-options -Cpanic=immediate-abort -Zlocation-detail=none -Zfmt-debug=none";
/// Debian's newest compiler, its standard library's source, and a linker for WebAssembly.
const PACKAGES: &[&str] = &["rustc-web", "cargo-web", "rust-web-src", "lld-19"];

/// The compiler for the target.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Compiler {
    /// The compiler of all other code.
    Default,
    /// Debian's compiler, linked into rustup as a toolchain; it has no clippy. Holds the path of
    /// its linker.
    Linked(PathBuf),
}

impl Compiler {
    /// Makes a command use this compiler for the target.
    pub(crate) fn apply(&self, command: &mut Command) {
        if let Self::Linked(linker) = self {
            command
                .env("RUSTUP_TOOLCHAIN", LINKED)
                .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker);
        }
    }

    /// Returns a command of cargo that builds the standard library with this compiler. The source
    /// belongs to the version of the compiler, so a stable compiler may build it.
    pub(crate) fn cargo_for_std(&self, workspace: &Workspace) -> Command {
        let mut command = match self {
            Self::Default => workspace.command("cargo"),
            Self::Linked(linker) => {
                let mut command = workspace.command(DEBIAN_CARGO);
                command.env("RUSTC", DEBIAN_RUSTC);
                command.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker);
                command
            }
        };
        command.env("RUSTC_BOOTSTRAP", "1");
        command
    }

    /// Whether the source of the standard library is installed, and the compiler accepts
    /// [`STD_FLAGS`].
    fn builds_std(&self, workspace: &Workspace) -> bool {
        let rustc = |arguments: &[&str]| {
            let program = if *self == Self::Default { "rustc" } else { DEBIAN_RUSTC };
            let mut command = workspace.command(program);
            output_of(command.env("RUSTC_BOOTSTRAP", "1").args(arguments))
        };
        let has_source = rustc(&["--print", "sysroot"]).is_ok_and(|sysroot| {
            Path::new(sysroot.trim()).join("lib/rustlib/src/rust/library/std").is_dir()
        });
        let flags: Vec<&str> =
            STD_FLAGS.split(' ').chain(["--target", TARGET, "--print", "cfg"]).collect();
        has_source && rustc(&flags).is_ok()
    }
}

/// Returns the compiler that is ready for the target, if there is one. It checks by compiling an
/// empty crate, which needs a matching standard library.
pub(crate) fn compiler(workspace: &Workspace) -> Option<Compiler> {
    candidates().find(|compiler| {
        let mut command = workspace.command("rustc");
        compiler.apply(&mut command);
        command.args(["--target", TARGET, "--crate-type", "lib", "--crate-name", "nothing"]);
        workspace.folder("probe").is_ok_and(|folder| {
            output_of(command.args(["--emit", "metadata", "-", "--out-dir"]).arg(folder)).is_ok()
        })
    })
}

/// Returns the compiler that can build a standard library for size, if there is one.
pub(crate) fn std_compiler(workspace: &Workspace) -> Option<Compiler> {
    candidates().find(|compiler| compiler.builds_std(workspace))
}

fn candidates() -> impl Iterator<Item = Compiler> {
    [Some(Compiler::Default), linker().map(Compiler::Linked)].into_iter().flatten()
}

/// Installs the target, with rustup if possible.
pub(crate) fn install(workspace: &Workspace) -> Result<()> {
    ensure!(
        which("rustup").is_some(),
        "the compiler has no standard library for {TARGET}, and there is no rustup to add it with"
    );
    let mut add = workspace.command("rustup");
    add.args(["target", "add", TARGET]);
    let added = run(workspace, "wasm target: rustup target add", &mut add);
    if compiler(workspace).is_some() {
        return Ok(());
    }
    println!("  rustup could not add the target; Debian's compiler will do");
    if which("apt-get").is_none() {
        added?;
        bail!("rustup has added the target {TARGET}, but the compiler does not find it");
    }
    debian::install(workspace, PACKAGES)?;
    build_std(workspace)?;
    link()
}

/// Installs the source of the standard library, with rustup if possible.
pub(crate) fn install_std_source(workspace: &Workspace) -> Result<()> {
    if which("rustup").is_some() {
        let mut add = workspace.command("rustup");
        add.args(["component", "add", "rust-src"]);
        let added = run(workspace, "standard library: rustup component add rust-src", &mut add);
        if added.is_ok() && std_compiler(workspace).is_some() {
            return Ok(());
        }
    }
    debian::install(workspace, PACKAGES)
}

/// Builds the standard library for the target, and puts it where the compiler looks for it.
fn build_std(workspace: &Workspace) -> Result<()> {
    let folder = workspace.folder("web-std")?;
    let empty = folder.join("empty");
    fs::create_dir_all(empty.join("src"))?;
    fs::write(
        empty.join("Cargo.toml"),
        "[package]\nname = \"edgelatch-empty\"\nedition = \"2024\"\n[workspace]\n",
    )?;
    fs::write(empty.join("src/lib.rs"), "")?;
    let mut build = workspace.command(DEBIAN_CARGO);
    build
        .current_dir(&empty)
        .args(["build", "--release", "--target", TARGET])
        .arg("-Zbuild-std=std,panic_abort,panic_unwind,test,proc_macro")
        .arg("--target-dir")
        .arg(&folder)
        // Building the standard library needs a nightly compiler; Debian's source belongs to this
        // compiler version, so it fits.
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTC", DEBIAN_RUSTC);
    run(workspace, "wasm standard library: building it with Debian's compiler, once", &mut build)?;
    step("wasm standard library: installing it", || {
        install_std(workspace, &folder.join(TARGET).join("release/deps"))
    })?;
    fs::remove_dir_all(&folder).context("cannot remove what the build left")
}

fn install_std(workspace: &Workspace, built: &Path) -> Result<()> {
    let libdir = debian_libdir()?;
    let to = libdir.to_string_lossy();
    // A standard library that was installed for an earlier version of the compiler would be found
    // too.
    for old in rlibs(&libdir) {
        debian::run_as_root(workspace, "rm", &["-f", &old.to_string_lossy()])?;
    }
    debian::run_as_root(workspace, "mkdir", &["-p", to.as_ref()])?;
    let mut files = rlibs(built);
    files.retain(|file| !file.to_string_lossy().contains("libedgelatch_empty"));
    ensure!(!files.is_empty(), "the build left no library in {}", built.display());
    for file in files {
        debian::run_as_root(
            workspace,
            "install",
            &["-m", "644", "-t", &to, &file.to_string_lossy()],
        )?;
    }
    Ok(())
}

fn link() -> Result<()> {
    let linked =
        output_of(Command::new("rustup").args(["run", LINKED, "rustc", "--print", "sysroot"]));
    match linked {
        Ok(sysroot) if sysroot.trim() != "/usr" => bail!(
            "rustup has a toolchain `{LINKED}` that is not Debian's compiler; rename it and try again"
        ),
        Ok(_) => Ok(()),
        Err(_) => {
            output_of(Command::new("rustup").args(["toolchain", "link", LINKED, "/usr"])).map(drop)
        }
    }
}

fn rlibs(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|ending| ending == "rlib"));
    files
}

fn debian_libdir() -> Result<PathBuf> {
    let sysroot = output_of(Command::new(DEBIAN_RUSTC).args(["--print", "sysroot"]))?;
    Ok(Path::new(sysroot.trim()).join("lib/rustlib").join(TARGET).join("lib"))
}

/// Returns the path of Debian's linker, whose name ends with the version of LLVM.
fn linker() -> Option<PathBuf> {
    which("wasm-ld").or_else(|| {
        let path = env::var_os("PATH")?;
        let files =
            env::split_paths(&path).filter_map(|folder| fs::read_dir(folder).ok()).flatten();
        let paths = files.flatten().map(|entry| entry.path());
        paths
            .filter(|file| {
                file.file_name().is_some_and(|n| n.to_string_lossy().starts_with("wasm-ld-"))
            })
            .max()
    })
}
