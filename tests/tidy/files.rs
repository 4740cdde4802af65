//! The files of the repository.

use std::fs;
use std::path::Path;

/// A text file, by its path from the root.
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) text: String,
}

/// Files and folders that tools generate, and no checkout has.
const GENERATED: [&str; 7] = [
    ".git",
    ".wrangler",
    "examples/rust-worker/build",
    "examples/rust-worker/target",
    "node_modules",
    "pkg/wasm",
    "target",
];

impl File {
    pub(crate) fn has_ending(&self, endings: &[&str]) -> bool {
        self.path.rsplit('.').next().is_some_and(|ending| endings.contains(&ending))
    }

    /// The lines that are neither comments nor after the beginning of the unit tests.
    pub(crate) fn code(&self) -> impl Iterator<Item = &str> {
        let lines = self.text.lines().take_while(|line| *line != "#[cfg(test)]");
        lines.filter(|line| !line.trim_start().starts_with("//"))
    }
}

/// The root of the repository, which is the folder above this package's.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// Every text file below `folder`, a path from the root; `""` is the root itself.
pub(crate) fn below(folder: &str) -> Vec<File> {
    let mut files = Vec::new();
    collect(folder, &mut files);
    files.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(!files.is_empty(), "{folder} is empty");
    files
}

pub(crate) fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn collect(folder: &str, files: &mut Vec<File>) {
    for entry in fs::read_dir(root().join(folder)).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
        if name == "node_modules" || GENERATED.contains(&path.as_str()) {
            continue;
        }
        if entry.file_type().unwrap().is_dir() {
            collect(&path, files);
        } else if let Ok(text) = fs::read_to_string(entry.path()) {
            files.push(File { path, text });
        }
    }
}
