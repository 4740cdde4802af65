//! Where things are, and how a program is started from there.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};
use serde_json::Value;

/// The checkout and its target folder.
pub(crate) struct Place {
    pub(crate) root: PathBuf,
    pub(crate) target: PathBuf,
}

impl Place {
    /// Asks cargo, which knows of `CARGO_TARGET_DIR` and of configuration files.
    pub(crate) fn find() -> Result<Self> {
        let output = Command::new("cargo")
            .args(["metadata", "--format-version", "1", "--no-deps"])
            .stderr(Stdio::inherit())
            .output()
            .context("cannot start cargo")?;
        let metadata: Value =
            serde_json::from_slice(&output.stdout).context("cargo metadata gave no JSON")?;
        let path = |key: &str| {
            metadata.get(key).and_then(Value::as_str).map(PathBuf::from).context("cargo metadata")
        };
        Ok(Self { root: path("workspace_root")?, target: path("target_directory")? })
    }

    /// The programs from npm, and what tests import: wrangler, deno, the Upstash clients.
    pub(crate) fn npm_folder(&self) -> PathBuf {
        self.root.join("xtask/tools")
    }

    /// Where `npm ci` puts them.
    pub(crate) fn node_modules(&self) -> PathBuf {
        self.npm_folder().join("node_modules")
    }

    /// Where `cargo install` puts the programs from crates.io.
    pub(crate) fn cargo_tools(&self) -> PathBuf {
        self.target.join("tools")
    }

    /// A folder below target, made if need be.
    pub(crate) fn folder(&self, name: &str) -> Result<PathBuf> {
        let folder = self.target.join(name);
        fs::create_dir_all(&folder)
            .with_context(|| format!("cannot make the folder {}", folder.display()))?;
        Ok(folder)
    }

    /// Where the output of the program of this title goes.
    pub(crate) fn log(&self, title: &str) -> Result<PathBuf> {
        let name: String =
            title.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        Ok(self.folder("logs")?.join(format!("{name}.log")))
    }

    /// A command in the checkout that finds our tools before those of the machine.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.root).env("PATH", self.search_path()).stdin(Stdio::null());
        // `cargo run` tells these to us; they are not meant for the programs that we start. Its library path in
        // particular would be searched by compilers other than the one it belongs to.
        command.env_remove("LD_LIBRARY_PATH").env_remove("CARGO");
        for (name, _) in env::vars_os() {
            let ours = ["CARGO_PKG_", "CARGO_MANIFEST_"];
            if name.to_str().is_some_and(|name| ours.iter().any(|start| name.starts_with(start))) {
                command.env_remove(name);
            }
        }
        command
    }

    /// Runs JavaScript with the Node of our tools.
    pub(crate) fn node(&self) -> Command {
        self.command("node")
    }

    fn search_path(&self) -> OsString {
        let mut folders = vec![self.cargo_tools().join("bin"), self.node_modules().join(".bin")];
        folders.extend(env::split_paths(&env::var_os("PATH").unwrap_or_default()));
        env::join_paths(folders).unwrap_or_default()
    }
}

/// Where the machine has this program.
pub(crate) fn which(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// Chromium or a browser of its kind: `CHROMIUM`, else what Debian and others call it.
pub(crate) fn chromium() -> Option<PathBuf> {
    if let Some(named) = env::var_os("CHROMIUM") {
        return Some(PathBuf::from(named));
    }
    ["chromium", "chromium-browser", "google-chrome"].into_iter().find_map(which)
}

/// Copies a folder with everything in it.
pub(crate) fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("cannot make {}", to.display()))?;
    let entries = fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))?;
    for entry in entries {
        let entry = entry?;
        let (source, copy) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            copy_folder(&source, &copy)?;
        } else {
            fs::copy(&source, &copy)
                .with_context(|| format!("cannot copy {}", source.display()))?;
        }
    }
    Ok(())
}

/// The folder with nothing in it, whatever was there before.
pub(crate) fn emptied(folder: PathBuf) -> Result<PathBuf> {
    if folder.exists() {
        fs::remove_dir_all(&folder)
            .with_context(|| format!("cannot empty {}", folder.display()))?;
    }
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(folder)
}
