//! Installs a compiler for `wasm32-unknown-unknown`, and the source of its standard library: with
//! rustup, or Debian's if rustup cannot reach its server.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::debian;
use crate::progress::{output_of, run};
use crate::workspace::{Workspace, which};

/// The target of all code that runs inside a JavaScript runtime.
pub(crate) const TARGET: &str = "wasm32-unknown-unknown";
/// Debian's newest compiler, its standard library's source, and a linker for WebAssembly.
const PACKAGES: &[&str] = &["rustc-web", "cargo-web", "rust-web-src", "lld-19"];
/// The names of that linker.
const LINKERS: [&str; 2] = ["wasm-ld", "wasm-ld-19"];
/// The paths of that compiler.
const DEBIAN_CARGO: &str = "/usr/bin/cargo";
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
/// The standard library as rustup distributes it.
const WHOLE_STD: &str = "-Zbuild-std=std,panic_abort,panic_unwind,test,proc_macro";
/// Flags of a standard library without texts for panics, and without the code that formats values
/// for them: both are a tenth of the module. Only a build of the standard library can omit them.
pub(crate) const STD_FLAGS: &str =
    "-Zunstable-options -Cpanic=immediate-abort -Zlocation-detail=none -Zfmt-debug=none";

/// The compiler for the target.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Compiler {
    /// The compiler of all other code.
    Default,
    /// Debian's compiler, which has no clippy, and has the standard library only as source. Holds
    /// the path of its linker.
    Debian(PathBuf),
}

impl Compiler {
    /// Returns cargo for code with the standard library as rustup distributes it.
    pub(crate) fn cargo(&self, workspace: &Workspace) -> Command {
        match self {
            Self::Default => workspace.command("cargo"),
            Self::Debian(_) => {
                let mut command = self.cargo_for_std(workspace);
                command.arg(WHOLE_STD);
                command
            }
        }
    }

    /// Returns cargo for code with a standard library that it builds. The source belongs to the
    /// version of the compiler, so a stable compiler may build it.
    pub(crate) fn cargo_for_std(&self, workspace: &Workspace) -> Command {
        let mut command = match self {
            Self::Default => workspace.command("cargo"),
            Self::Debian(_) => workspace.command(DEBIAN_CARGO),
        };
        if let Self::Debian(linker) = self {
            command.env("RUSTC", DEBIAN_RUSTC);
            command.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker);
        }
        command.env("RUSTC_BOOTSTRAP", "1");
        command
    }

    /// Returns whether the standard library is installed; as source, if the compiler is Debian's.
    fn is_ready(&self, workspace: &Workspace) -> bool {
        match self {
            // An empty crate needs a matching standard library.
            Self::Default => workspace.folder("probe").is_ok_and(|folder| {
                let line = "rustc --crate-type lib --crate-name nothing --emit metadata --target";
                let mut command = workspace.command(line);
                output_of(command.args([TARGET, "-", "--out-dir"]).arg(folder)).is_ok()
            }),
            Self::Debian(_) => self.has_std_source(workspace),
        }
    }

    /// Returns whether the compiler can build a standard library with [`STD_FLAGS`].
    fn builds_std(&self, workspace: &Workspace) -> bool {
        let flags = STD_FLAGS.split(' ').chain(["--target", TARGET, "--print", "cfg"]);
        self.has_std_source(workspace) && output_of(self.rustc(workspace).args(flags)).is_ok()
    }

    fn has_std_source(&self, workspace: &Workspace) -> bool {
        output_of(self.rustc(workspace).args(["--print", "sysroot"])).is_ok_and(|sysroot| {
            Path::new(sysroot.trim()).join("lib/rustlib/src/rust/library/std").is_dir()
        })
    }

    fn rustc(&self, workspace: &Workspace) -> Command {
        let mut command =
            workspace.program(if *self == Self::Default { "rustc" } else { DEBIAN_RUSTC });
        command.env("RUSTC_BOOTSTRAP", "1");
        command
    }
}

/// Returns the compiler that is ready for the target, if there is one.
pub(crate) fn compiler(workspace: &Workspace) -> Option<Compiler> {
    candidates().find(|compiler| compiler.is_ready(workspace))
}

/// Returns the compiler that can build a standard library for size, if there is one.
pub(crate) fn std_compiler(workspace: &Workspace) -> Option<Compiler> {
    candidates().find(|compiler| compiler.builds_std(workspace))
}

fn candidates() -> impl Iterator<Item = Compiler> {
    let debian = LINKERS.into_iter().find_map(which).map(Compiler::Debian);
    [Some(Compiler::Default), debian].into_iter().flatten()
}

/// Installs the target.
pub(super) fn install(workspace: &Workspace) -> Result<()> {
    add(workspace, ["target", "add", TARGET], compiler)
}

/// Installs the source of the standard library.
pub(super) fn install_std_source(workspace: &Workspace) -> Result<()> {
    add(workspace, ["component", "add", "rust-src"], std_compiler)
}

/// Adds a part of the compiler with rustup; if that does not lead to a compiler, installs Debian's.
fn add(
    workspace: &Workspace,
    part: [&str; 3],
    compiler: fn(&Workspace) -> Option<Compiler>,
) -> Result<()> {
    if which("rustup").is_some() {
        let what = format!("compiler for WebAssembly: rustup {}", part.join(" "));
        let added = run(workspace, &what, workspace.command("rustup").args(part));
        if added.is_ok() && compiler(workspace).is_some() {
            return Ok(());
        }
        println!("  rustup could not add it; Debian's compiler will do");
    }
    debian::install(workspace, PACKAGES)
}
