//! The paths of the checkout, its build and its tools, and commands that run there.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
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

/// A name that nothing else uses until this is dropped.
pub(crate) struct Claim {
    pub(crate) name: String,
    _lock: Flock<File>,
}

/// The path of a log that nothing else writes until this is dropped.
pub(crate) struct Log {
    path: PathBuf,
    _claim: Claim,
}

impl Deref for Log {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.path
    }
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
    /// such folder. Suites and checkouts that need the same folder wait for the first of them.
    /// `work` must not call this function again: it would wait for itself.
    pub(crate) fn cached(
        &self,
        folder: &Path,
        work: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<()> {
        if folder.exists() {
            return Ok(());
        }
        fs::create_dir_all(&self.cache)
            .with_context(|| format!("cannot make {}", self.cache.display()))?;
        let _lock = lock(&self.cache.join("cache.lock"))?;
        if folder.exists() {
            return Ok(());
        }
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let partial = empty_folder(self.cache.join(format!("partial-{name}")))?;
        work(&partial)?;
        fs::rename(&partial, folder).with_context(|| format!("cannot make {}", folder.display()))
    }

    /// Returns a folder below target, and creates it if it does not exist.
    pub(crate) fn folder(&self, name: &str) -> Result<PathBuf> {
        let folder = self.target.join(name);
        fs::create_dir_all(&folder)
            .with_context(|| format!("cannot make the folder {}", folder.display()))?;
        Ok(folder)
    }

    /// Does `work` while no other thread, and no other run of this program, does such work in this
    /// checkout: builds share files, and one of them uses what another has built. Suites run side
    /// by side, so each file that several of them use is written in here. `work` must not call this
    /// function again: it would wait for itself.
    pub(crate) fn exclusively<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let _lock = lock(&self.target.join("build.lock"))?;
        work()
    }

    /// Claims a name for files below target: `name`, or `name-2` and so on if that is in use.
    /// Suites run side by side, and so may this program: their servers must not share a folder or
    /// a log.
    pub(crate) fn claim(&self, name: &str) -> Result<Claim> {
        let folder = self.folder("claims")?;
        for number in 1_u32.. {
            let name = if number == 1 { name.to_owned() } else { format!("{name}-{number}") };
            let file = File::create(folder.join(&name))
                .with_context(|| format!("cannot write in {}", folder.display()))?;
            match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                Ok(lock) => return Ok(Claim { name, _lock: lock }),
                Err((_, Errno::EWOULDBLOCK)) => {}
                Err((_, error)) => return Err(error).context("cannot claim a name"),
            }
        }
        bail!("every name is claimed")
    }

    /// Returns the path for the output of a program or server with this title.
    pub(crate) fn log(&self, title: &str) -> Result<Log> {
        let name: String =
            title.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let claim = self.claim(&name)?;
        Ok(Log { path: self.folder("logs")?.join(format!("{}.log", claim.name)), _claim: claim })
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

/// Waits until no other thread or program has locked this file, and locks it.
fn lock(path: &Path) -> Result<Flock<File>> {
    let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
    Flock::lock(file, FlockArg::LockExclusive)
        .map_err(|(_, error)| error)
        .with_context(|| format!("cannot lock {}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::process;
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use super::*;

    /// A workspace whose target and cache are a new folder.
    fn workspace(name: &str) -> Workspace {
        let folder = env::temp_dir().join(format!("xtask-{name}-{}", process::id()));
        let folder = empty_folder(folder).unwrap();
        Workspace {
            root: PathBuf::new(),
            target: folder.clone(),
            cache: folder,
            node_modules: PathBuf::new(),
            programs: Vec::new(),
        }
    }

    #[test]
    fn a_log_in_use_is_not_written_by_another_program() {
        let workspace = workspace("logs");
        let path = |log: &Log| log.strip_prefix(&workspace.target).unwrap().display().to_string();
        let server = workspace.log("gateway").unwrap();
        let build = workspace.log("gateway").unwrap();
        assert_eq!([&server, &build].map(path), ["logs/gateway.log", "logs/gateway-2.log"]);
        drop(server);
        assert_eq!(path(&workspace.log("gateway").unwrap()), "logs/gateway.log");
        fs::remove_dir_all(&workspace.target).unwrap();
    }

    #[test]
    fn suites_that_need_the_same_folder_of_the_cache_create_it_once() {
        const SUITES: usize = 4;
        let workspace = workspace("cache");
        let folder = workspace.cache.join("tool-1.0");
        let (begun, works) = (Barrier::new(SUITES), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..SUITES {
                scope.spawn(|| {
                    begun.wait();
                    let work = |partial: &Path| {
                        works.fetch_add(1, Ordering::Relaxed);
                        // Fails if another thread has made it, or has removed its parent.
                        fs::create_dir(partial.join("bin")).map_err(Into::into)
                    };
                    workspace.cached(&folder, work).unwrap();
                    assert!(folder.join("bin").exists());
                });
            }
        });
        assert_eq!(works.into_inner(), 1);
        fs::remove_dir_all(&workspace.cache).unwrap();
    }

    #[test]
    fn an_interrupted_work_leaves_no_folder_and_is_done_again() {
        let workspace = workspace("partial");
        let folder = workspace.cache.join("tool-1.0");
        let interrupted = |partial: &Path| {
            fs::write(partial.join("half"), "")?;
            bail!("interrupted")
        };
        assert!(workspace.cached(&folder, interrupted).is_err() && !folder.exists());
        workspace.cached(&folder, |partial| Ok(fs::write(partial.join("whole"), "")?)).unwrap();
        assert!(folder.join("whole").exists() && !folder.join("half").exists());
        fs::remove_dir_all(&workspace.cache).unwrap();
    }
}
