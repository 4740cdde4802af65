//! Programs and libraries from npm, for our own builds and tests.

use std::path::PathBuf;

use anyhow::{Result, ensure};

use crate::place::{Place, which};
use crate::progress::run;
use crate::stamp::{self, Digest};

/// Whether what the lock file names is installed.
pub(crate) fn is_there(place: &Place) -> bool {
    digest(place).is_ok_and(|digest| stamp::is_fresh(&stamp_file(place), &digest))
}

/// Installs exactly what the lock file names.
pub(crate) fn install(place: &Place) -> Result<()> {
    ensure!(which("npm").is_some(), "there is no npm; install Node.js 20 or newer, with npm");
    let mut command = place.command("npm");
    command.args(["ci", "--no-audit", "--no-fund"]).current_dir(place.npm_folder());
    // These programs are tried with the npm of the machine: the one Node that suits them all is among them.
    command.env("npm_config_engine_strict", "false");
    run(
        place,
        "npm tools: wrangler, workerd, Deno, Bun and others, about 800 MB, once",
        &mut command,
    )?;
    stamp::set(&stamp_file(place), &digest(place)?)
}

fn stamp_file(place: &Place) -> PathBuf {
    place.node_modules().join(".edgelatch-stamp")
}

fn digest(place: &Place) -> Result<Digest> {
    Digest::new().path(&place.npm_folder().join("package-lock.json"))
}
