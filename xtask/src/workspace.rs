//! The paths of the checkout, its build and its tools, and commands that run there.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{self, Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::progress::output_of;
use crate::setup;

/// The checkout and its target folder.
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    pub(crate) target: PathBuf,
    /// The folder of everything that setup installs, shared by all checkouts of this user: below
    /// `EDGELATCH_CACHE`, `XDG_CACHE_HOME` or `~/.cache`. Each entry is named by version or
    /// content, so no entry has to be updated.
    pub(crate) cache: PathBuf,
    /// The npm tools: programs, and packages that tests import, such as wrangler, deno and the
    /// Upstash clients.
    pub(crate) node_modules: PathBuf,
    /// The folders of the programs that setup installs.
    programs: Vec<PathBuf>,
}

impl Workspace {
    /// Reads the paths from cargo, which respects `CARGO_TARGET_DIR` and configuration files.
    pub(crate) fn find() -> Result<Self> {
        let mut cargo = Command::new("cargo");
        let metadata = output_of(cargo.args(["metadata", "--format-version", "1", "--no-deps"]))?;
        let metadata: Value =
            serde_json::from_str(&metadata).context("cargo metadata gave no JSON")?;
        let path = |key: &str| {
            metadata.get(key).and_then(Value::as_str).map(PathBuf::from).context("cargo metadata")
        };
        let (root, target) = (path("workspace_root")?, path("target_directory")?);
        let (node_modules, programs) = (PathBuf::new(), Vec::new());
        let mut workspace = Self { root, target, cache: cache()?, node_modules, programs };
        workspace.node_modules = setup::npm::TOOLS.node_modules(&workspace)?;
        let tools = setup::cargo_tools(&workspace)?;
        workspace.programs = tools.into_iter().map(|tool| tool.join("bin")).collect();
        workspace.programs.push(workspace.node_modules.join(".bin"));
        Ok(workspace)
    }

    /// Creates a folder of the cache by `work`, unless it exists. An interrupted `work` leaves no
    /// such folder; if another checkout was faster, its result stays.
    pub(crate) fn cached(
        &self,
        folder: &Path,
        work: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<()> {
        if folder.exists() {
            return Ok(());
        }
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let partial = empty_folder(self.cache.join(format!("partial-{name}-{}", process::id())))?;
        work(&partial)?;
        if fs::rename(&partial, folder).is_err() {
            fs::remove_dir_all(&partial)?;
            ensure!(folder.exists(), "cannot make {}", folder.display());
        }
        Ok(())
    }

    /// Returns a folder below target, and creates it if it does not exist.
    pub(crate) fn folder(&self, name: &str) -> Result<PathBuf> {
        let folder = self.target.join(name);
        fs::create_dir_all(&folder)
            .with_context(|| format!("cannot make the folder {}", folder.display()))?;
        Ok(folder)
    }

    /// Returns the path for the output of the program with this title.
    pub(crate) fn log(&self, title: &str) -> Result<PathBuf> {
        let name: String =
            title.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        Ok(self.folder("logs")?.join(format!("{name}.log")))
    }

    /// Returns a command in the checkout: a program and arguments, which single spaces separate.
    pub(crate) fn command(&self, line: &str) -> Command {
        let mut words = line.split(' ');
        let mut command = self.program(words.next().unwrap_or_default());
        command.args(words);
        command
    }

    /// Returns a command in the checkout that finds the installed tools before those of the
    /// machine.
    pub(crate) fn program(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.root).env("PATH", self.search_path()).stdin(Stdio::null());
        // `cargo run` sets these for this program, not for the ones that it starts. Its library
        // path in particular would be searched by compilers of other versions.
        command.env_remove("LD_LIBRARY_PATH").env_remove("CARGO");
        for (name, _) in env::vars_os() {
            let ours = ["CARGO_PKG_", "CARGO_MANIFEST_"];
            if name.to_str().is_some_and(|name| ours.iter().any(|start| name.starts_with(start))) {
                command.env_remove(name);
            }
        }
        command
    }

    /// Returns a command of this program.
    pub(crate) fn xtask(&self) -> Result<Command> {
        let program = env::current_exe().context("cannot tell which program this is")?;
        // A build may have replaced the program; the system then appends a note to the old one's
        // name.
        Ok(self.program(program.to_string_lossy().replace(" (deleted)", "")))
    }

    /// Returns the search path with the installed tools before those of the machine.
    pub(crate) fn search_path(&self) -> OsString {
        let mut folders = self.programs.clone();
        folders.extend(env::split_paths(&env::var_os("PATH").unwrap_or_default()));
        env::join_paths(folders).unwrap_or_default()
    }
}

fn cache() -> Result<PathBuf> {
    let named = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    named("EDGELATCH_CACHE")
        .or_else(|| named("XDG_CACHE_HOME").map(|folder| folder.join("edgelatch")))
        .or_else(|| named("HOME").map(|home| home.join(".cache/edgelatch")))
        .context("none of EDGELATCH_CACHE, XDG_CACHE_HOME and HOME is set")
}

/// Returns the path of a program of the machine.
pub(crate) fn which(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// Returns the path of Chromium or a similar browser.
pub(crate) fn chromium() -> Option<PathBuf> {
    browser("CHROMIUM", &["chromium", "chromium-browser", "google-chrome"])
}

/// Returns the path of Firefox.
pub(crate) fn firefox() -> Option<PathBuf> {
    browser("FIREFOX", &["firefox-esr", "firefox"])
}

/// Returns the path in this variable, else that of one of the names that distributions use.
fn browser(variable: &str, names: &[&str]) -> Option<PathBuf> {
    let named = env::var_os(variable).map(PathBuf::from);
    named.or_else(|| names.iter().copied().find_map(which))
}

/// Copies a folder with all its contents.
pub(crate) fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    let mut copy = Command::new("cp");
    output_of(copy.arg("-R").arg(from.join(".")).arg(to)).map(drop)
}

/// Returns the folder after it was emptied or created.
pub(crate) fn empty_folder(folder: PathBuf) -> Result<PathBuf> {
    if folder.exists() {
        fs::remove_dir_all(&folder)
            .with_context(|| format!("cannot empty {}", folder.display()))?;
    }
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(folder)
}
