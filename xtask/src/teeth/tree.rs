//! A copy of the checkout that faults are put into, so that the checkout itself is never touched.

use std::collections::HashSet;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::fault::Fault;
use super::storey::Storey;
use crate::place::Place;
use crate::process::check_stop;
use crate::progress::{kept, logged, output_of, read, tail};

/// For how long a storey may run once it is built. Whatever takes longer hangs: the slowest is done in a third of that.
const SECONDS_MAX: u64 = 600;

/// The copy, and where it is built.
pub(super) struct Tree<'p> {
    place: &'p Place,
    folder: PathBuf,
}

/// What a storey made of the tree.
#[derive(Debug)]
pub(super) enum Finding {
    /// Nothing.
    Passed,
    /// This failed first.
    Failed(String),
    /// It was not done in time.
    Hung,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passed => f.write_str("found nothing"),
            Self::Failed(what) => write!(f, "found it by {what}"),
            Self::Hung => f.write_str("found it, as it was not done in time"),
        }
    }
}

impl<'p> Tree<'p> {
    /// The checkout as it is now, with whatever is not committed.
    pub(super) fn of(place: &'p Place) -> Result<Self> {
        let folder = place.folder("teeth/tree")?;
        let tree = Self { place, folder };
        let mut git = Command::new("git");
        git.current_dir(&place.root);
        let listed = output_of(git.args(["ls-files", "-z", "-co", "--exclude-standard"]))?;
        let files: HashSet<&Path> = listed.split_terminator('\0').map(Path::new).collect();
        for file in &files {
            // One that is deleted and not committed is listed too.
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

    /// Puts a fault in, does something, and takes it out again.
    pub(super) fn with<T>(&self, fault: &Fault, act: impl FnOnce() -> Result<T>) -> Result<T> {
        let file = Path::new(&fault.file);
        let sound = fs::read_to_string(self.place.root.join(file))
            .with_context(|| format!("cannot read {}", fault.file))?;
        self.write(file, fault.plant(&sound)?.as_bytes())?;
        let result = act();
        self.write(file, sound.as_bytes())?;
        result
    }

    /// Builds and runs a storey; ends it at the first test that fails.
    pub(super) fn run(&self, storey: &Storey, title: &str) -> Result<Finding> {
        let built = self.place.log(&format!("teeth-{title}-{}-build", storey.name))?;
        let mut build = self.test(storey);
        let status = logged(build.arg("--no-run"), &built)?;
        ensure!(status.success(), "{title} does not compile:\n{}", tail(&built));

        let log = self.place.log(&format!("teeth-{title}-{}", storey.name))?;
        let mut run = self.test(storey);
        run.arg("--").args(storey.run);
        let mut failed = None;
        let mut hung = false;
        let ended = kept("cargo", &mut run, &log, |elapsed| {
            failed = first_failure(&read(&log));
            hung = elapsed.as_secs() > SECONDS_MAX;
            ensure!(failed.is_none() && !hung, "enough is known");
            Ok(())
        });
        check_stop()?;
        Ok(match ended {
            Ok(status) if status.success() => Finding::Passed,
            Err(_) if hung => Finding::Hung,
            Ok(_) => Finding::Failed(
                first_failure(&read(&log)).unwrap_or_else(|| "it ended with an error".to_owned()),
            ),
            Err(error) => Finding::Failed(failed.with_context(|| format!("{error:#}"))?),
        })
    }

    fn test(&self, storey: &Storey) -> Command {
        let mut command = self.cargo();
        command.arg("test").args(storey.build);
        command
    }

    /// Cargo in the copy. Only what was changed is built, and without what nobody looks at.
    pub(super) fn cargo(&self) -> Command {
        let mut command = self.place.command("cargo");
        command
            .current_dir(&self.folder)
            .env("CARGO_TARGET_DIR", self.place.target.join("teeth/build"))
            .env("CARGO_INCREMENTAL", "1")
            .env("CARGO_PROFILE_DEV_DEBUG", "0");
        command
    }
}

/// The first test that a log tells to have failed.
fn first_failure(log: &str) -> Option<String> {
    let line = log.lines().find(|line| line.contains(" ... FAILED"))?;
    let name = line.split(" ... ").next().unwrap_or_default();
    Some(name.strip_prefix("test ").unwrap_or(name).to_owned())
}
