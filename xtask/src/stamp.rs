//! Records the inputs of a step, so that the step is not repeated for the same inputs.

use std::fs;
use std::hash::{DefaultHasher, Hasher as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// A digest of the inputs of a step. It detects changes, and is not cryptographic.
pub(crate) struct Digest(DefaultHasher);

impl Digest {
    /// Creates the digest of no input.
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
        let mut entries: Vec<PathBuf> = Vec::new();
        for entry in fs::read_dir(path)? {
            entries.push(entry?.path());
        }
        entries.sort();
        entries.iter().try_fold(self.bytes(name), |digest, entry| digest.path(entry))
    }

    /// Returns the digest as text.
    pub(crate) fn text(&self) -> String {
        format!("{:016x}", self.0.finish())
    }
}

/// Returns whether the stamp file contains this digest.
pub(crate) fn is_fresh(stamp: &Path, digest: &Digest) -> bool {
    fs::read_to_string(stamp).is_ok_and(|text| text == digest.text())
}

/// Writes the stamp file, after the work.
pub(crate) fn set(stamp: &Path, digest: &Digest) -> Result<()> {
    fs::write(stamp, digest.text()).with_context(|| format!("cannot write {}", stamp.display()))
}
