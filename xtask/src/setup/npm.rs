//! Programs and libraries from npm, for our own builds and tests.

use std::fs;

use anyhow::{Context as _, Result, ensure};

use crate::place::{Place, emptied, which};
use crate::progress::run;

/// Whether what the lock file names is installed.
pub(crate) fn is_there(place: &Place) -> bool {
    place.node_modules().exists()
}

/// Installs exactly what the lock file names, into the cache.
pub(crate) fn install(place: &Place) -> Result<()> {
    ensure!(which("npm").is_some(), "there is no npm; install Node.js 20 or newer, with npm");
    let folder = place.node_modules().parent().context("node_modules has a parent")?;
    let building = emptied(place.cache().join(format!("partial-npm-{}", std::process::id())))?;
    for file in ["package.json", "package-lock.json"] {
        fs::copy(place.npm_folder().join(file), building.join(file))?;
    }
    let mut command = place.command("npm");
    command.args(["ci", "--no-audit", "--no-fund"]).current_dir(&building);
    // These programs are tried with the npm of the machine: the one Node that suits them all is among them.
    command.env("npm_config_engine_strict", "false");
    run(
        place,
        "npm tools: wrangler, workerd, Deno, Bun and others, about 800 MB, once",
        &mut command,
    )?;
    // Renamed when it is complete, so that an interrupted installation is none. Another checkout may have been faster.
    if fs::rename(&building, folder).is_err() {
        fs::remove_dir_all(&building)?;
    }
    Ok(())
}
