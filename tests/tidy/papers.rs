//! What is unfinished, left out, of one machine only, or says two things.

use super::files::{below, read};

#[test]
fn nothing_is_left_for_later_and_no_test_is_left_out() {
    // Put together here, so that this file does not find itself.
    let later = [["TO", "DO"], ["FIX", "ME"], ["XX", "X:"]].map(|halves| halves.concat());
    let left_out = [["#[ign", "ore"], ["test.s", "kip("], ["it.s", "kip("], ["test.on", "ly("]]
        .map(|halves| halves.concat());
    for file in below("") {
        for text in later.iter().chain(&left_out) {
            assert!(!file.text.contains(text), "{}: {text}", file.path);
        }
    }
}

#[test]
fn nothing_names_a_folder_of_one_machine() {
    let folders = [["/ro", "ot/"], ["/ho", "me/"], ["/wo", "rk/"], ["/Us", "ers/"], ["/tm", "p/"]]
        .map(|halves| halves.concat());
    for file in below("") {
        for line in file.text.lines() {
            for folder in &folders {
                // Not as the middle of an address or of a path of ours.
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
