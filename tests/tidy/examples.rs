//! The examples agree with what the tests install for them.

use super::files::read;

/// Returns the version of a package in a lock file of cargo.
fn locked(file: &str, package: &str) -> String {
    let lock = read(file);
    let (_, entry) = lock.split_once(&format!("name = \"{package}\"\nversion = \"")).unwrap();
    entry.split('"').next().unwrap().into()
}

/// `wasm-bindgen` reads only modules that were built with the library of its own version, and setup
/// installs it in the version of the workspace.
#[test]
fn the_worker_in_rust_has_the_workspaces_version_of_wasm_bindgen() {
    let version = locked("examples/rust-worker/Cargo.lock", "wasm-bindgen");
    assert_eq!(
        version,
        locked("Cargo.lock", "wasm-bindgen"),
        "cargo update --manifest-path examples/rust-worker/Cargo.toml wasm-bindgen"
    );
}

#[test]
fn the_worker_in_rust_is_compiled_by_the_program_that_its_readme_installs() {
    let setup = read("xtask/src/setup/cargo.rs");
    let (_, rest) = setup.split_once("Program::new(\"worker-build\", \"").unwrap();
    let command = format!("\ncargo install worker-build@{}\n", rest.split('"').next().unwrap());
    assert!(read("examples/rust-worker/README.md").contains(&command), "{command}");
}
