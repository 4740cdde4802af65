//! `docs/security.md` has each rule once, with the tests that show it and the result.

use super::files::{read, root};
use super::scenarios::quoted;

const RULES: usize = 31;

/// The first folders of paths from the root of the repository; other paths start at `tests/`.
const ROOTS: [&str; 9] =
    [".ci/", ".github/", "gateway/", "pkg/", "proto/", "src/", "supply-chain/", "tests/", "xtask/"];

/// The cells of each rule: number, rule, the tests that show it, result.
fn rows<'a>(page: &'a str) -> Vec<[&'a str; 4]> {
    let row = |line: &'a str| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, number, rule, shown_by, result, _] = cells.as_slice() else { panic!("{line}") };
        [*number, *rule, *shown_by, *result]
    };
    page.lines().filter(|line| line.starts_with('|')).skip(2).map(row).collect()
}

/// The path from the root that a word between backticks names, if it names a file.
fn path(word: &str) -> Option<String> {
    let is_path = !word.contains([' ', ':']) && word.contains('.');
    let is_from_root = !word.contains('/') || ROOTS.iter().any(|root| word.starts_with(root));
    let folder = if is_from_root { "" } else { "tests/" };
    is_path.then(|| format!("{folder}{word}"))
}

#[test]
fn every_rule_has_one_row_with_a_test_and_a_result() {
    let page = read("docs/security.md");
    let rows = rows(&page);
    assert!(rows.iter().map(|[number, ..]| number.parse()).eq((1..=RULES).map(Ok)));
    for [number, rule, shown_by, result] in &rows {
        assert!(!rule.is_empty() && quoted(shown_by).next().is_some(), "{number}");
        assert!(*result == "kept" || result.starts_with("open: "), "{number}: {result}");
    }
    let kept = rows.iter().filter(|[.., result]| *result == "kept").count();
    let summary = format!("Kept: {kept}. Open: {}.", RULES - kept);
    assert!(page.contains(&summary), "{summary}");
}

#[test]
fn every_file_that_a_rule_names_exists() {
    for [number, _, shown_by, _] in rows(&read("docs/security.md")) {
        for path in quoted(shown_by).filter_map(path) {
            assert!(root().join(&path).is_file(), "{number}: {path}");
        }
    }
}
