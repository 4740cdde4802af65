//! `tests/README.md`, the map of the tests: its links lead to files, and it names every test file.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use super::files::{File, below, read, root};

/// The folder that the map is in, which its links start from.
const HERE: &str = "tests";

/// The folders with tests: the map names each file in them.
const FOLDERS: [&str; 3] = ["cli/tests", "gateway/tests", HERE];
/// The languages of the tests. Those in Java are one program.
const LANGUAGES: [&str; 5] = ["rs", "mjs", "js", "ts", "go"];

/// The path of a link, from the root of the repository.
fn from_root(link: &str) -> String {
    let mut path = PathBuf::new();
    for component in Path::new(HERE).join(link).components() {
        match component {
            Component::ParentDir => assert!(path.pop(), "{link} leads out of the repository"),
            other => path.push(other),
        }
    }
    path.to_str().unwrap().to_owned()
}

/// The targets of all links, from the root of the repository.
fn links() -> BTreeSet<String> {
    let map = read("tests/README.md");
    let targets = map.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    targets.map(|(link, _)| from_root(link)).collect()
}

/// Whether a file is the root of its folder or of a test binary, and has no tests itself.
fn is_folder_root(file: &File) -> bool {
    let (folder, name) = file.path.rsplit_once('/').unwrap();
    (folder == HERE || ["mod.rs", "main.rs"].contains(&name)) && !has_tests(file)
}

fn has_tests(file: &File) -> bool {
    ["#[test]", "#[tokio::test", "#[wasm_bindgen_test", "\ntest(", " test(", "\nfunc Test"]
        .iter()
        .any(|mark| file.text.contains(mark))
}

#[test]
fn every_link_of_the_map_leads_to_a_file() {
    let links = links();
    assert!(links.len() > 100, "{}", links.len());
    for link in links {
        assert!(root().join(&link).exists(), "{link}");
    }
}

#[test]
fn the_map_names_every_file_of_the_tests() {
    let links = links();
    let files = FOLDERS.into_iter().flat_map(below).filter(|file| file.has_ending(&LANGUAGES));
    let named: Vec<File> = files.filter(|file| !is_folder_root(file)).collect();
    for language in LANGUAGES {
        assert!(named.iter().any(|file| file.has_ending(&[language])), "no file in {language}");
    }
    let missing = named.into_iter().map(|file| file.path).filter(|path| !links.contains(path));
    let missing: Vec<String> = missing.collect();
    assert!(missing.is_empty(), "the map does not name {missing:#?}");
}

#[test]
fn the_map_names_the_folder_of_every_test_file() {
    let links = links();
    let all = FOLDERS.into_iter().flat_map(below);
    let files = all.filter(|file| file.has_ending(&["go", "rs", "mjs"]) && has_tests(file));
    for file in files {
        let is_named = Path::new(&file.path)
            .ancestors()
            .any(|path| path != Path::new(HERE) && links.contains(path.to_str().unwrap()));
        assert!(is_named, "{}", file.path);
    }
}
