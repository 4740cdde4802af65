//! No file has unfinished work, disabled tests, paths of one machine or a version that differs from
//! another file's.

use super::files::{below, read};

#[test]
fn no_file_has_unfinished_work_or_a_disabled_test() {
    // Put together here, so that this file does not find itself.
    let unfinished = [["TO", "DO"], ["FIX", "ME"], ["XX", "X:"]].map(|halves| halves.concat());
    let disabled = [["#[ign", "ore"], ["test.s", "kip("], ["it.s", "kip("], ["test.on", "ly("]]
        .map(|halves| halves.concat());
    for file in below("") {
        for text in unfinished.iter().chain(&disabled) {
            assert!(!file.text.contains(text), "{}: {text}", file.path);
        }
    }
}

#[test]
fn no_file_names_a_folder_of_one_machine() {
    let folders = [["/ro", "ot/"], ["/ho", "me/"], ["/wo", "rk/"], ["/Us", "ers/"], ["/tm", "p/"]]
        .map(|halves| halves.concat());
    for file in below("") {
        for line in file.text.lines() {
            for folder in &folders {
                // In the middle of a URL or of a relative path it is no folder of a machine.
                let named = line.match_indices(folder.as_str()).any(|(at, _)| {
                    !line[..at].ends_with(|c: char| c.is_alphanumeric() || "._-}".contains(c))
                });
                assert!(!named, "{}: {line}", file.path);
            }
        }
    }
}

#[test]
fn the_crate_and_the_package_have_one_version() {
    let manifest = read("Cargo.toml");
    let line = manifest.lines().find_map(|line| line.strip_prefix("version = \"")).unwrap();
    let version = line.trim_end_matches('"');
    let package: serde_json::Value = serde_json::from_str(&read("pkg/package.json")).unwrap();
    assert_eq!(package["version"], version);
}

#[test]
fn every_test_is_named_by_a_sentence() {
    for file in below("tests").iter().filter(|file| file.has_ending(&["rs"])) {
        let lines: Vec<&str> = file.text.lines().map(str::trim).collect();
        for (place, line) in lines.iter().enumerate() {
            if !(*line == "#[test]" || line.starts_with("#[tokio::test")) {
                continue;
            }
            let function = lines[place..].iter().find(|line| line.contains("fn ")).unwrap();
            let name = function.split("fn ").nth(1).unwrap().split('(').next().unwrap();
            assert!(name.split('_').count() >= 3, "{}: {name}", file.path);
            assert!(!name.starts_with("test_"), "{}: {name}", file.path);
        }
    }
}
