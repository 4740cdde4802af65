//! `cargo xtask docs`: builds the documentation site from the pages and types of the repository.

use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::Args;

use crate::fingerprint::Fingerprint;
use crate::process::forward;
use crate::progress::run as run_step;
use crate::setup::{self, Tool, npm};
use crate::workspace::{Workspace, copy_folder, empty_folder};

/// Everything that the site shows or is built by.
const INPUTS: [&str; 12] = [
    "CHANGELOG.md",
    "README.md",
    "SECURITY.md",
    "bench/results.json",
    "cli/README.md",
    "docs",
    "examples/README.md",
    "gateway/README.md",
    "pkg",
    "site",
    "www/icon.svg",
    "xtask/scripts/bench",
];

/// The options of `cargo xtask docs`.
#[derive(Args)]
pub(crate) struct Options {
    /// Serve the site after the build, until Ctrl-C
    #[arg(long)]
    serve: bool,
    /// The port to serve it on
    #[arg(long, default_value_t = 4173)]
    port: u16,
}

/// Builds the site, and prints its folder or serves it.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<ExitCode> {
    let stage = build(workspace)?;
    println!("The site is in {}", stage.join("dist").display());
    if !options.serve {
        return Ok(ExitCode::SUCCESS);
    }
    let mut preview = workspace.command("node node_modules/vitepress/bin/vitepress.js preview");
    preview.args(["--port", &options.port.to_string()]);
    forward("the server", preview.current_dir(&stage))
}

/// Builds the site unless its inputs are those of the last build, and returns the folder of the
/// build; `dist` in it is the site.
pub(crate) fn build(workspace: &Workspace) -> Result<PathBuf> {
    setup::ensure(workspace, &[Tool::Site])?;
    workspace.exclusively(|| build_changed(workspace))
}

fn build_changed(workspace: &Workspace) -> Result<PathBuf> {
    let inputs = INPUTS.iter().try_fold(Fingerprint::new(), |fingerprint, input| {
        fingerprint.path(&workspace.root.join(input))
    })?;
    let stage = workspace.folder("site")?;
    inputs.once(&stage.join("fingerprint"), &stage.join("dist"), || {
        copy_folder(&workspace.root.join("site"), &empty_folder(stage.clone())?)?;
        symlink(npm::SITE.node_modules(workspace)?, stage.join("node_modules"))
            .context("cannot link the site's packages")?;
        let mut build = workspace.command("node");
        build.arg(stage.join("build.mjs")).arg(&workspace.root).arg(env!("CARGO_PKG_REPOSITORY"));
        run_step(workspace, "documentation site: TypeDoc, VitePress", &mut build)
    })?;
    Ok(stage)
}
