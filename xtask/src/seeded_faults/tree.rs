//! A copy of the checkout that faults are put into, so that the checkout itself never changes.

use std::collections::HashSet;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::fault::Fault;
use super::layer::Layer;
use crate::place::Place;
use crate::process::check_stop;
use crate::progress::{kept, logged, output_of, tail};
use crate::test::{Report, junit_below};

/// The longest run of a layer that is built, in seconds. The slowest passes in a third of that
/// time.
const SECONDS_MAX: u64 = 600;
/// The number of schedules that the simulation plays, of all kinds of objects together.
const SCHEDULES: &str = "60000";
/// The exit code of cargo-nextest when a test has failed.
const TEST_RUN_FAILED: i32 = 100;

/// The copy, and the folder of its build.
pub(super) struct Tree<'p> {
    place: &'p Place,
    folder: PathBuf,
}

/// The result of a layer.
#[derive(Debug)]
pub(super) enum Finding {
    Passed,
    /// The test that failed first.
    Failed(String),
    /// The layer did not end within [`SECONDS_MAX`].
    TimedOut,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passed => f.write_str("found nothing"),
            Self::Failed(what) => write!(f, "found it by {what}"),
            Self::TimedOut => f.write_str("found it, since it did not end in time"),
        }
    }
}

impl<'p> Tree<'p> {
    /// Creates a copy of the checkout as it is now, with changes that are not committed.
    pub(super) fn of(place: &'p Place) -> Result<Self> {
        let folder = place.folder("seeded-faults/tree")?;
        let tree = Self { place, folder };
        let mut git = Command::new("git");
        git.current_dir(&place.root);
        let listed = output_of(git.args(["ls-files", "-z", "-co", "--exclude-standard"]))?;
        let files: HashSet<&Path> = listed.split_terminator('\0').map(Path::new).collect();
        for file in &files {
            // git also lists a file that is deleted and not committed.
            if let Ok(text) = fs::read(place.root.join(file)) {
                tree.write(file, &text)?;
            }
        }
        tree.remove_others(&tree.folder, &files)?;
        Ok(tree)
    }

    /// Writes a file unless it is the same, so that cargo builds no more than it has to.
    fn write(&self, file: &Path, text: &[u8]) -> Result<()> {
        let path = self.folder.join(file);
        if fs::read(&path).is_ok_and(|present| present == text) {
            return Ok(());
        }
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    fn remove_others(&self, folder: &Path, files: &HashSet<&Path>) -> Result<()> {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                self.remove_others(&path, files)?;
            } else if !files.contains(path.strip_prefix(&self.folder)?) {
                fs::remove_file(&path)?;
            }
        }
        Ok(())
    }

    /// Applies a fault, calls `act`, and reverts the fault.
    pub(super) fn with<T>(&self, fault: &Fault, act: impl FnOnce() -> Result<T>) -> Result<T> {
        let file = Path::new(&fault.file);
        let sound = fs::read_to_string(self.place.root.join(file))
            .with_context(|| format!("cannot read {}", fault.file))?;
        self.write(file, fault.seed(&sound)?.as_bytes())?;
        let result = act();
        self.write(file, sound.as_bytes())?;
        result
    }

    /// Builds and runs a layer, which ends at the first test that fails.
    pub(super) fn run(&self, layer: &Layer, title: &str) -> Result<Finding> {
        let built = self.place.log(&format!("seeded-faults-{title}-{}-build", layer.name))?;
        let mut build = self.nextest(layer);
        let status = logged(build.arg("--no-run"), &built)?;
        ensure!(status.success(), "{title} does not compile:\n{}", tail(&built));

        let junit = junit_below(&self.folder);
        Report::discard(&junit)?;
        let log = self.place.log(&format!("seeded-faults-{title}-{}", layer.name))?;
        let mut run = self.nextest(layer);
        run.args(["--fail-fast", "--no-tests=fail", "--hide-progress-bar"]);
        if !layer.filter.is_empty() {
            run.args(["--filterset", layer.filter]);
        }
        let mut has_timed_out = false;
        let ended = kept("cargo nextest", &mut run, &log, |elapsed| {
            has_timed_out = elapsed.as_secs() > SECONDS_MAX;
            ensure!(!has_timed_out, "the layer takes too long");
            Ok(())
        });
        check_stop()?;
        let status = match ended {
            Err(_) if has_timed_out => return Ok(Finding::TimedOut),
            ended => ended?,
        };
        if status.success() {
            return Ok(Finding::Passed);
        }
        // Any other code is a failure of nextest itself, which proves nothing about the fault.
        let has_failed = status.code() == Some(TEST_RUN_FAILED);
        ensure!(has_failed, "cargo nextest ended with {status}:\n{}", tail(&log));
        Ok(Finding::Failed(first_failure(&Report::read(&junit)?)))
    }

    fn nextest(&self, layer: &Layer) -> Command {
        let mut command = self.cargo();
        command.args(["nextest", "run"]).args(layer.build).env("EDGELATCH_SCHEDULES", SCHEDULES);
        command
    }

    /// Returns a cargo command for the copy. It builds incrementally and without debug information,
    /// since each fault changes one file.
    pub(super) fn cargo(&self) -> Command {
        let mut command = self.place.command("cargo");
        command
            .current_dir(&self.folder)
            .env("CARGO_TARGET_DIR", self.place.target.join("seeded-faults/build"))
            .env("CARGO_INCREMENTAL", "1")
            .env("CARGO_PROFILE_DEV_DEBUG", "0");
        command
    }
}

/// Returns the first test that failed.
fn first_failure(report: &Report) -> String {
    let first = report.failures().next().map(|(case, _)| case.title());
    first.unwrap_or_else(|| "a failure outside of any test".to_owned())
}
