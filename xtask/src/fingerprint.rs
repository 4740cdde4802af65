//! Records the inputs of a step, so that the step is not repeated for the same inputs.

use std::fs;
use std::hash::{DefaultHasher, Hasher as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// A hash of the inputs of a step. It detects changes, and is not cryptographic.
pub(crate) struct Fingerprint(DefaultHasher);

impl Fingerprint {
    /// Creates the fingerprint of no input.
    pub(crate) fn new() -> Self {
        Self(DefaultHasher::new())
    }

    /// Adds bytes.
    pub(crate) fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.write_usize(bytes.len());
        self.0.write(bytes);
        self
    }

    /// Adds a file, or each file below a folder, with its name. The folder's own path does not
    /// count, so that two checkouts with the same files share their results.
    pub(crate) fn path(self, path: &Path) -> Result<Self> {
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        if !path.is_dir() {
            let bytes =
                fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
            return Ok(self.bytes(name).bytes(&bytes));
        }
        let entries = fs::read_dir(path)?.map(|entry| Ok(entry?.path()));
        let mut entries = entries.collect::<Result<Vec<PathBuf>>>()?;
        entries.sort();
        entries.iter().try_fold(self.bytes(name), |fingerprint, entry| fingerprint.path(entry))
    }

    /// Returns the fingerprint as text.
    pub(crate) fn text(&self) -> String {
        format!("{:016x}", self.0.finish())
    }

    /// Does `work`, and records this in a file; unless it is recorded for the same inputs, and its
    /// `result` exists.
    pub(crate) fn once(
        &self,
        record: &Path,
        result: &Path,
        work: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        if fs::read_to_string(record).is_ok_and(|text| text == self.text()) && result.exists() {
            return Ok(());
        }
        work()?;
        fs::write(record, self.text()).with_context(|| format!("cannot write {}", record.display()))
    }
}
