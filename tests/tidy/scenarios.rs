//! The scenarios of `docs/reliability.md` name the tests whose comments have their numbers.

use std::collections::{BTreeMap, BTreeSet};

use super::files::{File, below, read};

const SCENARIOS: u32 = 95;

/// The pages that name tests.
const PAGES: [&str; 4] =
    ["docs/reliability.md", "docs/security.md", "docs/threat-model.md", "site/pages/comparison.md"];

/// The layer of the tests in each folder; the first folder that a path begins with counts. In the
/// order of the table of layers.
const LAYERS: [(&str, &str); 21] = [
    ("proto/", "unit"),
    ("src/", "unit"),
    ("xtask/", "unit"),
    ("conversations/", "unit"),
    ("wire/", "unit"),
    ("scripts/vectors.rs", "vectors"),
    ("scripts/differential/", "differential"),
    ("scripts/", "scripts"),
    ("schedules/", "schedules"),
    ("simulation/", "simulation"),
    ("model_checking/", "model-checking"),
    ("integration/cluster/", "cluster"),
    ("integration/", "integration"),
    ("gateway/tests/gateway/", "gateway"),
    ("cli/tests/cli/", "cli"),
    ("fault_injection/", "fault-injection"),
    ("gateway/tests/outages/", "fault-injection"),
    ("interop/", "interop"),
    ("runtimes/", "runtimes"),
    ("wasm/", "runtimes"),
    ("soak/", "soak"),
];

/// A test: its file as the page names it, and its name.
type Test = (String, String);

/// A scenario of the page.
struct Row {
    number: u32,
    tests: BTreeSet<Test>,
    layers: Vec<String>,
    result: String,
}

fn page() -> String {
    read("docs/reliability.md")
}

fn rows() -> Vec<Row> {
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, number, _, tests, layers, result, _] = cells.as_slice() else { panic!("{line}") };
        let number = number.strip_prefix('S')?.parse().ok()?;
        let layers = layers.split_whitespace().map(str::to_owned).collect();
        Some(Row { number, tests: named(tests).collect(), layers, result: (*result).to_owned() })
    };
    page().lines().filter(|line| line.starts_with("| S")).filter_map(row).collect()
}

/// The texts between backticks.
pub(crate) fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The tests that a text names: by file and name, or by the name alone if the file is that of the
/// test before.
fn named(text: &str) -> impl Iterator<Item = Test> {
    let mut last = "";
    quoted(text).filter_map(move |word| {
        let (file, name) = word.split_once("::")?;
        let is_file = file.ends_with(".rs") || file.ends_with(".mjs");
        if is_file {
            last = file;
        }
        (is_file || file.is_empty()).then(|| (last.to_owned(), name.to_owned()))
    })
}

/// The numbers that a comment line begins with.
fn numbers(line: &str) -> Option<Vec<u32>> {
    let text = line.trim_start().strip_prefix("//")?.trim_start_matches('/').strip_prefix(' ')?;
    let (list, _) = text.split_once(['.', ':'])?;
    list.split(", ").map(|number| number.strip_prefix('S')?.parse().ok()).collect()
}

/// The name of the function or case that begins in this line.
fn name(line: &str) -> Option<&str> {
    if let Some((_, rest)) = line.split_once("fn ") {
        return rest.split(['(', '<']).next();
    }
    let bare = line.split_once("test(").map_or(line, |(_, rest)| rest);
    let bare = bare.trim_start().trim_start_matches("async ");
    let quote = bare.chars().next().filter(|first| ['"', '`'].contains(first))?;
    bare.split(quote).nth(1)
}

/// Every file that may hold a test.
fn files() -> Vec<File> {
    let all = ["tests", "proto", "src", "cli", "gateway", "xtask"].into_iter().flat_map(below);
    all.filter(|file| file.has_ending(&["rs", "mjs"])).collect()
}

/// The file's path as the page names it.
fn short(file: &File) -> &str {
    file.path.strip_prefix("tests/").unwrap_or(&file.path)
}

/// The tests whose comments have each number.
fn numbered() -> BTreeMap<u32, BTreeSet<Test>> {
    let mut tests: BTreeMap<u32, BTreeSet<Test>> = BTreeMap::new();
    for file in files() {
        let mut lines = file.text.lines();
        while let Some(line) = lines.next() {
            let Some(numbers) = numbers(line) else { continue };
            let name = lines.clone().find_map(name).unwrap_or_else(|| panic!("{}", file.path));
            for number in numbers {
                let test = (short(&file).to_owned(), name.to_owned());
                tests.entry(number).or_default().insert(test);
            }
        }
    }
    tests
}

#[test]
fn every_scenario_has_one_row_and_a_result() {
    let rows = rows();
    assert!(rows.iter().map(|row| row.number).eq(1..=SCENARIOS));
    let shown = rows.iter().filter(|row| row.result == "shown").count();
    for Row { number, tests, result, .. } in &rows {
        assert!(result == "shown" || result.starts_with("open"), "S{number}: {result}");
        assert!(result != "shown" || !tests.is_empty(), "S{number}: by which test?");
    }
    let summary = format!("{shown} are shown, {} are open", rows.len() - shown);
    assert!(page().contains(&summary), "{summary}");
}

#[test]
fn a_row_names_the_tests_that_have_its_number_and_no_others() {
    let mut numbered = numbered();
    for Row { number, tests, .. } in rows() {
        assert_eq!(numbered.remove(&number).unwrap_or_default(), tests, "S{number}");
    }
    assert!(numbered.is_empty(), "of no scenario: {numbered:?}");
}

/// The layers of the table of layers, in its order.
fn all_layers() -> Vec<String> {
    let page = page();
    let (_, section) = page.split_once("\n## Layers\n").unwrap();
    let (table, _) = section.split_once("\n## ").unwrap();
    let rows = table.lines().filter(|line| line.starts_with("| `"));
    rows.map(|line| quoted(line).next().unwrap().to_owned()).collect()
}

fn layer(test: &Test) -> &'static str {
    let (file, _) = test;
    let found = LAYERS.iter().find(|(folder, _)| file.starts_with(folder));
    found.unwrap_or_else(|| panic!("{file} is in no layer")).1
}

#[test]
fn a_row_names_the_layers_of_its_tests_in_order() {
    let order = all_layers();
    for Row { number, tests, layers, .. } in rows() {
        let of_tests: BTreeSet<&str> = tests.iter().map(layer).collect();
        let expected = order.iter().filter(|layer| of_tests.contains(layer.as_str()));
        assert!(expected.eq(&layers), "S{number}: {of_tests:?}");
    }
    for (folder, layer) in LAYERS {
        assert!(order.iter().any(|name| name == layer), "{folder}: {layer}");
    }
}

#[test]
fn every_test_that_a_page_names_exists() {
    let mut all = BTreeSet::new();
    let mut paths = Vec::new();
    for file in files() {
        let module =
            short(&file).trim_end_matches(".rs").trim_end_matches("/mod").replace('/', "::");
        for name in file.text.lines().filter_map(name) {
            all.insert((short(&file).to_owned(), name.to_owned()));
            paths.push(format!("{module}::{name}"));
        }
    }
    for page in PAGES.map(read) {
        let missing: Vec<_> = named(&page).filter(|test| !all.contains(test)).collect();
        assert!(missing.is_empty(), "{missing:#?}");
        for command in quoted(&page).filter_map(|word| word.strip_prefix("--test ")) {
            let (target, filter) = command.split_once(' ').unwrap();
            let is_run = |path: &String| path.starts_with(target) && path.contains(filter);
            assert!(paths.iter().any(is_run), "{command}");
        }
    }
}
