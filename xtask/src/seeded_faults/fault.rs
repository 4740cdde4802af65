//! The faults of `tests/seeded_faults`: one file each, with a text of the product and its
//! replacement.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};

use super::layer::Layer;

/// The folder of the faults.
const FOLDER: &str = "tests/seeded_faults";
/// The number of layers that have to find each fault.
pub(super) const CATCHERS: usize = 2;

/// A fault that can be put into the product.
#[derive(Debug)]
pub(super) struct Fault {
    /// The file's name without its ending.
    pub(super) name: String,
    /// The first line.
    pub(super) title: String,
    /// The weaknesses and scenarios of `docs/reliability.md` that it brings back.
    pub(super) shows: Vec<String>,
    /// The file that it is put into.
    pub(super) file: String,
    /// The layers that have to find it, the fastest first.
    pub(super) caught_by: Vec<&'static Layer>,
    original: String,
    replacement: String,
}

impl Fault {
    /// Returns all faults, by name.
    pub(super) fn all(root: &Path) -> Result<Vec<Self>> {
        let folder = root.join(FOLDER);
        let mut all = Vec::new();
        for entry in fs::read_dir(&folder).with_context(|| format!("cannot read {FOLDER}"))? {
            let path = entry?.path();
            let name = path.file_stem().and_then(|name| name.to_str()).context("a file's name")?;
            if path.extension().is_some_and(|ending| ending == "txt") {
                let text = fs::read_to_string(&path)?;
                all.push(Self::read(name, &text).with_context(|| format!("{FOLDER}/{name}.txt"))?);
            }
        }
        all.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(all)
    }

    fn read(name: &str, text: &str) -> Result<Self> {
        let (head, body) = text.split_once("\noriginal:\n").context("no line `original:`")?;
        let (original, replacement) =
            body.split_once("\nreplacement:\n").context("no line `replacement:`")?;
        let line = |key: &str| {
            let found = head.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(": "));
            found.with_context(|| format!("no line `{key}:`"))
        };
        let words = |key| Ok::<_, anyhow::Error>(line(key)?.split_whitespace());
        let caught_by = words("caught by")?.map(Layer::named).collect::<Result<Vec<_>>>()?;
        ensure!(caught_by.len() >= CATCHERS, "fewer than {CATCHERS} layers are named");
        Ok(Self {
            name: name.to_owned(),
            title: head.lines().next().unwrap_or_default().to_owned(),
            shows: words("shows")?.map(str::to_owned).collect(),
            file: line("in")?.to_owned(),
            caught_by,
            original: original.to_owned(),
            replacement: replacement.trim_end_matches('\n').to_owned(),
        })
    }

    /// Returns the file's text with the fault in it. Fails unless the text that it replaces occurs
    /// there exactly once.
    pub(super) fn seed(&self, text: &str) -> Result<String> {
        match text.matches(&self.original).count() {
            1 => Ok(text.replacen(&self.original, &self.replacement, 1)),
            times => bail!(
                "{}: the text that it replaces occurs {times} times in {}, not once",
                self.name,
                self.file
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::PathBuf;

    use super::*;

    /// The weaknesses that `docs/reliability.md` lists.
    const WEAKNESSES: u32 = 25;

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a parent").to_owned()
    }

    #[test]
    fn every_fault_can_be_put_in_exactly_once() {
        let all = Fault::all(&root()).unwrap();
        assert!(all.len() >= 30, "{}", all.len());
        for fault in all {
            let text = fs::read_to_string(root().join(&fault.file)).unwrap();
            let seeded = fault.seed(&text).unwrap();
            assert_ne!(seeded, text, "{}", fault.name);
            assert!(!fault.file.starts_with("tests/"), "{}: in a test", fault.name);
        }
    }

    #[test]
    fn every_known_weakness_is_put_in_by_some_fault() {
        let all = Fault::all(&root()).unwrap();
        let shown: BTreeSet<&str> =
            all.iter().flat_map(|fault| &fault.shows).map(String::as_str).collect();
        let missing: Vec<String> = (1..=WEAKNESSES)
            .map(|number| format!("W{number}"))
            .filter(|weakness| !shown.contains(weakness.as_str()))
            .collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn the_documentation_lists_every_fault_and_the_layers_that_find_it() {
        let paper = fs::read_to_string(root().join("docs/reliability.md")).unwrap();
        for fault in Fault::all(&root()).unwrap() {
            let names: Vec<&str> = fault.caught_by.iter().map(|layer| layer.name).collect();
            let row = format!(
                "| `{}` | {} | {} | {} |",
                fault.name,
                fault.title,
                fault.shows.join(" "),
                names.join(" ")
            );
            assert!(paper.lines().any(|line| line == row), "no such row:\n{row}");
        }
        let rows = paper.lines().filter(|line| line.starts_with("| W")).count();
        assert_eq!(rows, usize::try_from(WEAKNESSES).unwrap());
    }

    #[test]
    fn the_text_that_a_fault_replaces_occurs_exactly_once() {
        let text = "A title\n\nshows: W1\nin: src/a.rs\ncaught by: unit simulation\noriginal:\nb\nreplacement:\nc\n";
        let fault = Fault::read("name", text).unwrap();
        assert_eq!(fault.seed("abd").unwrap(), "acd");
        assert!(fault.seed("ad").is_err() && fault.seed("abbd").is_err());
    }

    #[test]
    fn a_fault_that_one_layer_alone_finds_is_refused() {
        let text =
            "A title\n\nshows: W1\nin: src/a.rs\ncaught by: unit\noriginal:\nb\nreplacement:\nc\n";
        assert!(Fault::read("name", text).is_err());
    }
}
