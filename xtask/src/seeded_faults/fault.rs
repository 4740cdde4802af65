//! The faults of `tests/seeded_faults`: patches of the product, each with a header that says what
//! it breaks and which layers have to find it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use super::layer::Layer;

/// The folder of the faults.
const FOLDER: &str = "tests/seeded_faults";
/// The number of layers that have to find each fault.
pub(super) const MIN_LAYERS: usize = 2;

/// A fault that can be put into the product.
#[derive(Debug)]
pub(super) struct Fault {
    /// The file's name without its ending.
    pub(super) name: String,
    /// The patch.
    pub(super) file: PathBuf,
    /// The difference to users.
    pub(super) effect: String,
    /// The weaknesses and scenarios of `docs/reliability.md` that it brings back.
    pub(super) shows: String,
    /// The layers that have to find it, the fastest first.
    pub(super) found_by: Vec<&'static Layer>,
    /// The files that it changes.
    pub(super) changes: Vec<String>,
}

impl Fault {
    /// Returns all faults, by name.
    pub(super) fn all(root: &Path) -> Result<Vec<Self>> {
        let mut all = Vec::new();
        for entry in fs::read_dir(root.join(FOLDER)).context("cannot read the faults")? {
            let file = entry?.path();
            if file.extension().is_some_and(|ending| ending == "patch") {
                let text = fs::read_to_string(&file)?;
                all.push(Self::read(&file, &text).with_context(|| file.display().to_string())?);
            }
        }
        all.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(all)
    }

    fn read(file: &Path, text: &str) -> Result<Self> {
        let value = |key: &str| {
            let value = text.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
            value.filter(|value| !value.is_empty()).with_context(|| format!("no line `{key}`"))
        };
        let found_by = value("Found by:")?.split_whitespace().map(Layer::with_name);
        let found_by = found_by.collect::<Result<Vec<_>>>()?;
        ensure!(found_by.len() >= MIN_LAYERS, "fewer than {MIN_LAYERS} layers are named");
        let changes = text.lines().filter_map(|line| line.strip_prefix("+++ b/"));
        Ok(Self {
            name: file.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
            file: file.to_owned(),
            effect: value("Effect:")?.to_owned(),
            shows: value("Shows:")?.to_owned(),
            found_by,
            changes: changes.map(str::to_owned).collect(),
        })
    }

    /// Whether a layer can find the fault: one that does not run the scripts cannot find a fault in
    /// a script.
    pub(super) fn can_be_found_by(&self, layer: &Layer) -> bool {
        layer.runs_scripts || !self.changes.iter().all(|file| file.ends_with(".lua"))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::process::Command;

    use super::*;
    use crate::progress::output_of;

    /// The number of weaknesses that `docs/reliability.md` lists.
    const WEAKNESSES: u32 = 25;

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a parent").to_owned()
    }

    #[test]
    fn every_fault_applies_to_the_product_and_not_to_a_test() {
        let all = Fault::all(&root()).unwrap();
        assert!(all.len() >= 50, "{}", all.len());
        for fault in all {
            let mut git = Command::new("git");
            output_of(git.current_dir(root()).args(["apply", "--check"]).arg(&fault.file)).unwrap();
            assert!(!fault.changes.is_empty(), "{}", fault.name);
            assert!(fault.changes.iter().all(|file| !file.starts_with("tests/")), "{}", fault.name);
        }
    }

    #[test]
    fn every_known_weakness_is_put_in_by_some_fault() {
        let all = Fault::all(&root()).unwrap();
        let shown: BTreeSet<&str> =
            all.iter().flat_map(|fault| fault.shows.split_whitespace()).collect();
        let missing: Vec<String> = (1..=WEAKNESSES)
            .map(|number| format!("W{number}"))
            .filter(|weakness| !shown.contains(weakness.as_str()))
            .collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn the_documentation_lists_every_fault_and_the_layers_that_find_it() {
        let page = fs::read_to_string(root().join("docs/reliability.md")).unwrap();
        for Fault { name, effect, shows, found_by, .. } in Fault::all(&root()).unwrap() {
            let layers: Vec<&str> = found_by.iter().map(|layer| layer.name).collect();
            let row = format!("| `{name}` | {effect} | {shows} | {} |", layers.join(" "));
            assert!(page.lines().any(|line| line == row), "no such row:\n{row}");
        }
        let rows = page.lines().filter(|line| line.starts_with("| W")).count();
        assert_eq!(rows, usize::try_from(WEAKNESSES).unwrap());
    }

    #[test]
    fn a_fault_that_one_layer_alone_finds_is_refused() {
        let read = |layers: &str| {
            let text =
                format!("Effect: it breaks\nShows: W1\nFound by: {layers}\n+++ b/src/a.lua\n");
            Fault::read(Path::new("name.patch"), &text)
        };
        assert!(read("unit").is_err());
        let fault = read("unit scripts").unwrap();
        assert_eq!(
            (fault.name.as_str(), fault.changes.as_slice()),
            ("name", &["src/a.lua".into()][..])
        );
        let layer = |name| Layer::with_name(name).unwrap();
        assert!(fault.can_be_found_by(layer("scripts")) && !fault.can_be_found_by(layer("unit")));
    }
}
