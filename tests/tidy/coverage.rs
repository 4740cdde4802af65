//! Tests that must cover every item of a kind do so.

use super::files::below;

/// The common beginning of all scripts, which is no script itself.
const PRELUDE: &str = "prelude";

#[test]
fn every_script_is_compared_with_its_model() {
    let tests: String =
        below("tests/scripts/differential").into_iter().map(|file| file.text).collect();
    for file in below("proto/src/protocol/scripts") {
        let Some(name) = file.path.strip_suffix(".lua").and_then(|path| path.rsplit('/').next())
        else {
            continue;
        };
        let is_script = name != PRELUDE && !file.path.contains("/parts/");
        assert!(!is_script || tests.contains(&format!("\"{name}\"")), "{name}");
    }
}
