//! moto, a local S3, in a Python environment of its own in the cache.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use super::debian;
use crate::fingerprint::Fingerprint;
use crate::progress::{output_of, quiet, run};
use crate::workspace::Workspace;

/// The list of the packages and their versions.
const LIST: &str = "tests/examples/requirements.txt";

/// Returns the environment: in the cache, named by the list's content.
fn folder(workspace: &Workspace) -> Result<PathBuf> {
    let list = Fingerprint::new().path(&workspace.root.join(LIST))?;
    Ok(workspace.cache.join(format!("python-{}", list.text())))
}

/// Returns the Python that finds the packages.
pub(crate) fn python(workspace: &Workspace) -> Result<PathBuf> {
    Ok(folder(workspace)?.join("bin/python"))
}

/// Returns whether the packages of the list are installed.
pub(super) fn is_installed(workspace: &Workspace) -> bool {
    folder(workspace).is_ok_and(|folder| folder.exists())
}

/// Installs exactly the packages of the list.
pub(super) fn install(workspace: &Workspace) -> Result<()> {
    if output_of(Command::new("python3").args(["-c", "import ensurepip"])).is_err() {
        debian::install(workspace, &["python3-venv"])?;
    }
    workspace.cached(&folder(workspace)?, |partial| {
        let mut create = workspace.command("python3 -m venv");
        quiet(workspace, "python3 -m venv", create.arg(partial))?;
        let mut pip = workspace.program(partial.join("bin/python"));
        pip.args(["-m", "pip", "install", "--no-deps", "--disable-pip-version-check", "-r", LIST]);
        run(workspace, "Python: moto, a local S3, about 140 MB, once", &mut pip)
    })
}
