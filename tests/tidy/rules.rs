//! `docs/security.md` has each rule once, with what shows it, and says what is open.

use super::files::{read, root};
use super::scenarios::quoted;

const RULES: usize = 31;

/// Roots of what is named from the root of the repository; everything else is below `tests/`.
const ROOTS: [&str; 9] =
    [".ci/", ".github/", "gateway/", "pkg/", "proto/", "src/", "supply-chain/", "tests/", "xtask/"];

/// The rules' cells: number, rule, what shows it, result.
fn rows<'a>(paper: &'a str) -> Vec<[&'a str; 4]> {
    let row = |line: &'a str| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, number, rule, shown_by, result, _] = cells.as_slice() else { panic!("{line}") };
        [*number, *rule, *shown_by, *result]
    };
    paper.lines().filter(|line| line.starts_with('|')).skip(2).map(row).collect()
}

/// Whether a word between backticks is the path of a file, and where that has to be.
fn place(word: &str) -> Option<String> {
    let is_path = !word.contains([' ', ':']) && word.contains('.');
    let is_named_whole = !word.contains('/') || ROOTS.iter().any(|root| word.starts_with(root));
    let folder = if is_named_whole { "" } else { "tests/" };
    is_path.then(|| format!("{folder}{word}"))
}

#[test]
fn every_rule_has_one_row_something_that_shows_it_and_a_result() {
    let paper = read("docs/security.md");
    let rows = rows(&paper);
    assert!(rows.iter().map(|[number, ..]| number.parse()).eq((1..=RULES).map(Ok)));
    for [number, rule, shown_by, result] in &rows {
        assert!(!rule.is_empty() && quoted(shown_by).next().is_some(), "{number}");
        assert!(*result == "kept" || result.starts_with("open: "), "{number}: {result}");
    }
    let kept = rows.iter().filter(|[.., result]| *result == "kept").count();
    let told = format!("Kept: {kept}. Open: {}.", RULES - kept);
    assert!(paper.contains(&told), "{told}");
}

#[test]
fn every_file_that_shows_a_rule_is_there() {
    for [number, _, shown_by, _] in rows(&read("docs/security.md")) {
        for place in quoted(shown_by).filter_map(place) {
            assert!(root().join(&place).is_file(), "{number}: {place}");
        }
    }
}
