//! The npm package has no install scripts, and no dependencies except one that a program installs
//! if it uses the entry for it.

use serde_json::Value;

use super::files::read;

/// The fields of the manifest that make npm install other packages.
const DEPENDENCY_FIELDS: [&str; 4] =
    ["bundleDependencies", "bundledDependencies", "dependencies", "optionalDependencies"];
/// The only peer dependency. npm does not install it, since it is optional.
const OPTIONAL_PEER: &str = "@opentelemetry/api";

#[test]
fn the_npm_package_depends_on_nothing_and_runs_nothing_when_it_is_installed() {
    let manifest: Value = serde_json::from_str(&read("pkg/package.json")).unwrap();
    for field in DEPENDENCY_FIELDS.iter().chain(&["scripts", "bin", "gypfile"]) {
        assert_eq!(manifest.get(field), None, "{field}");
    }
    let peers = manifest["peerDependencies"].as_object().unwrap();
    assert!(peers.keys().eq([OPTIONAL_PEER]), "{peers:?}");
    assert_eq!(manifest["peerDependenciesMeta"][OPTIONAL_PEER]["optional"], true);
    let files = manifest["files"].as_array().unwrap();
    let names: Vec<&str> = files.iter().map(|file| file.as_str().unwrap()).collect();
    assert!(!names.is_empty() && names.iter().all(|name| !name.contains(['*', '!', '/'])));
    assert_eq!(manifest["publishConfig"]["provenance"], true);
}
