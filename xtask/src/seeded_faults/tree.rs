//! A copy of the checkout that faults are put into, so that the checkout itself never changes.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::fault::Fault;
use super::layer::Layer;
use crate::process::check_stop;
use crate::progress::{TimedOut, output_of, quiet, run_with_log, tail};
use crate::test::{DEFAULT_PROFILE, Report, junit};
use crate::workspace::Workspace;

/// The longest run of a layer that is built. The slowest passes in a third of that time.
const MAX_RUN: Duration = Duration::from_secs(600);
/// The number of schedules that the simulation plays, of all kinds of objects together.
const SCHEDULES: &str = "60000";
/// The exit code of cargo-nextest when a test has failed.
const TEST_RUN_FAILED: i32 = 100;

/// The copy. git compares it with the files of the checkout, so that it writes only what differs
/// and cargo builds no more than it has to.
pub(super) struct Tree<'w> {
    workspace: &'w Workspace,
    folder: PathBuf,
    /// The files of the checkout as an object of git.
    sound: String,
}

impl<'w> Tree<'w> {
    /// Creates a copy of the checkout as it is now, with changes that are not committed.
    pub(super) fn new(workspace: &'w Workspace) -> Result<Self> {
        let folder = workspace.folder("seeded-faults/tree")?;
        let mut tree = Self { workspace, folder, sound: String::new() };
        output_of(tree.git("checkout", &workspace.root).args(["add", "--all"]))?;
        let written = output_of(tree.git("checkout", &workspace.root).arg("write-tree"))?;
        written.trim().clone_into(&mut tree.sound);
        tree.restore()?;
        Ok(tree)
    }

    /// Returns git with an index of its own for the files in `folder`.
    fn git(&self, index: &str, folder: &Path) -> Command {
        let index = self.workspace.target.join("seeded-faults").join(format!("{index}.index"));
        let mut git = self.workspace.command("git");
        git.env("GIT_INDEX_FILE", index).env("GIT_WORK_TREE", folder).current_dir(folder);
        git.env("GIT_DIR", self.workspace.root.join(".git"));
        git
    }

    fn restore(&self) -> Result<()> {
        let mut git = self.git("tree", &self.folder);
        output_of(git.args(["read-tree", "--reset", "-u", &self.sound])).map(drop)
    }

    /// Applies a fault, calls `work`, and reverts the fault.
    pub(super) fn with<T>(&self, fault: &Fault, work: impl FnOnce() -> Result<T>) -> Result<T> {
        output_of(self.git("tree", &self.folder).args(["apply", "--3way"]).arg(&fault.file))
            .with_context(|| format!("{} does not apply", fault.name))?;
        let result = work();
        self.restore()?;
        result
    }

    /// Builds and runs a layer, which ends at the first test that fails. Returns what has found a
    /// fault, unless all tests have passed.
    pub(super) fn run(&self, layer: &Layer, title: &str) -> Result<Option<String>> {
        let title = format!("seeded-faults-{title}-{}", layer.name);
        let build = format!("{title}-build");
        quiet(self.workspace, &build, self.nextest(layer).arg("--no-run"))?;

        let junit = junit(&self.folder, DEFAULT_PROFILE);
        Report::discard(&junit)?;
        let log = self.workspace.log(&title)?;
        let mut run = self.nextest(layer);
        run.args(["--fail-fast", "--no-tests=fail", "--hide-progress-bar"]);
        if !layer.filter.is_empty() {
            run.args(["--filterset", layer.filter]);
        }
        let ended = run_with_log("cargo nextest", &mut run, &log, MAX_RUN, |_| ());
        check_stop()?;
        let status = match ended {
            Err(error) if error.is::<TimedOut>() => {
                return Ok(Some("found it, since it did not end in time".to_owned()));
            }
            ended => ended?,
        };
        if status.success() {
            return Ok(None);
        }
        // Any other code is a failure of nextest itself, which proves nothing about the fault.
        let has_failed = status.code() == Some(TEST_RUN_FAILED);
        ensure!(has_failed, "cargo nextest ended with {status}:\n{}", tail(&log));
        let report = Report::read(&junit)?;
        let first = report.failures().next().map(|(case, _)| case.title());
        let first = first.unwrap_or_else(|| "a failure outside of any test".to_owned());
        Ok(Some(format!("found it by {first}")))
    }

    /// Returns the command of a layer. It builds incrementally and without debug information, since
    /// each fault changes one file.
    fn nextest(&self, layer: &Layer) -> Command {
        let mut command = self.workspace.command(&format!("cargo nextest run {}", layer.build));
        command
            .current_dir(&self.folder)
            .env("CARGO_TARGET_DIR", self.workspace.target.join("seeded-faults/build"))
            .env("CARGO_INCREMENTAL", "1")
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            .env("EDGELATCH_SCHEDULES", SCHEDULES);
        command
    }
}
