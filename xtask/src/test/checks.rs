//! The suites that read or compile the Rust code without running it.

use std::collections::{HashMap, HashSet};
use std::process::Command;

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::advisories;
use super::report::Report;
use super::session::Session;
use crate::build::WORKSPACE;
use crate::progress::output_of;
use crate::setup::wasm::{self, Compiler};

/// The published packages; the rest of the workspace is internal.
const PUBLISHED: [&str; 3] = ["edgelatch", "edgelatch-gateway", "edgelatch-proto"];
const DENY_WARNINGS: [&str; 3] = ["--", "-D", "warnings"];

pub(crate) fn fmt(session: &Session<'_>) -> Result<Report> {
    session.check("cargo fmt --check", cargo(session).args(["fmt", "--all", "--check"]))
}

pub(crate) fn clippy(session: &Session<'_>) -> Result<Report> {
    let mut native = cargo(session);
    native.arg("clippy").args(WORKSPACE).arg("--all-targets").args(DENY_WARNINGS);
    let mut report = session.check("clippy: the workspace", &mut native)?;
    let mut bare = cargo(session);
    bare.args(["clippy", "--package", "edgelatch", "--lib", "--no-default-features"]);
    report += session.check("clippy: without features", bare.args(DENY_WARNINGS))?;

    let compiler = wasm::compiler(session.place).context("no compiler for the wasm target")?;
    for features in ["js", "reqwest,web"] {
        let mut command = cargo(session);
        compiler.apply(&mut command);
        // A linked compiler has no clippy, so its own warnings are checked.
        match compiler {
            Compiler::Default => command.arg("clippy"),
            Compiler::Linked(_) => command.args(["rustc", "--profile", "check"]),
        };
        command
            .args(["--package", "edgelatch", "--lib", "--target", wasm::TARGET])
            .args(["--no-default-features", "--features", features])
            .args(DENY_WARNINGS);
        report += session.check(&format!("lints: WebAssembly, with {features}"), &mut command)?;
    }
    Ok(report)
}

pub(crate) fn doc(session: &Session<'_>) -> Result<Report> {
    let mut command = cargo(session);
    command.arg("doc").args(WORKSPACE).arg("--no-deps").env("RUSTDOCFLAGS", "-D warnings");
    session.check("cargo doc", &mut command)
}

/// Runs the examples in the documentation, which nextest does not run.
pub(crate) fn examples(session: &Session<'_>) -> Result<Report> {
    let mut command = cargo(session);
    session.check("cargo test --doc", command.arg("test").args(WORKSPACE).arg("--doc"))
}

pub(crate) fn deny(session: &Session<'_>) -> Result<Report> {
    // Downloads the remaining dependencies: a build downloads only those of its own platform and
    // features.
    output_of(cargo(session).args(["fetch", "--locked"]))?;
    let mut command = cargo(session);
    command.args(["deny", "--offline", "check", "bans", "licenses", "sources"]);
    let mut report = session.check("cargo deny check bans licenses sources", &mut command)?;
    report += session.check("cargo vet", cargo(session).args(["vet", "--locked", "--frozen"]))?;
    report += advisories::crates(session)?;
    report += advisories::npm(session)?;
    Ok(report)
}

pub(crate) fn msrv(session: &Session<'_>) -> Result<Report> {
    let metadata = metadata(session)?;
    let ours = package(&metadata, "edgelatch")
        .and_then(rust_version)
        .context("edgelatch states no rust-version")?;
    let newer: Vec<String> = shipped(&metadata)
        .into_iter()
        .filter_map(|package| Some((package, rust_version(package)?)))
        .filter(|(_, theirs)| *theirs > ours)
        .map(|(package, theirs)| format!("{} wants Rust {theirs:?}", text(package, "id")))
        .collect();
    let named = format!("{}.{}", ours.0, ours.1);
    let mut report =
        session.finding(&format!("every dependency is content with Rust {named}"), &newer);

    let toolchains = output_of(Command::new("rustup").args(["toolchain", "list"]));
    if toolchains.is_ok_and(|list| list.lines().any(|line| line.starts_with(&named))) {
        let mut check = cargo(session);
        check
            .args(["check", "--target-dir"])
            .arg(session.place.target.join("msrv"))
            .args(PUBLISHED.iter().flat_map(|name| ["--package", *name]))
            .env("RUSTUP_TOOLCHAIN", &named);
        report += session.check(&format!("cargo check with Rust {named}"), &mut check)?;
    }
    Ok(report)
}

pub(crate) fn wasm_node(session: &Session<'_>) -> Result<Report> {
    wasm(session, "Node", |_| Ok(()))
}

pub(crate) fn wasm_chromium(session: &Session<'_>) -> Result<Report> {
    wasm(session, "Chromium", |command| {
        let driver = crate::place::which("chromedriver").context("no chromedriver")?;
        let options = session.place.root.join("xtask/webdriver.json");
        command
            .env("CHROMEDRIVER", driver)
            .env("WASM_BINDGEN_USE_BROWSER", "1")
            .env("WASM_BINDGEN_TEST_WEBDRIVER_JSON", options);
        Ok(())
    })
}

/// Runs the tests in WebAssembly by wasm-bindgen's own runner, which comes with `wasm-bindgen`.
fn wasm(
    session: &Session<'_>,
    runtime: &str,
    tell: impl FnOnce(&mut Command) -> Result<()>,
) -> Result<Report> {
    let mut command = cargo(session);
    let compiler = wasm::compiler(session.place).context("no compiler for the wasm target")?;
    compiler.apply(&mut command);
    tell(&mut command)?;
    // One program for all of its tests, and one test here. nextest would start a runtime and
    // compile the module for each test; the runner itself prints results only for people
    // (`--format` supports only `terse`), so no report names each test.
    command
        .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUNNER", "wasm-bindgen-test-runner")
        .args(["test", "--target", wasm::TARGET, "--package", "edgelatch", "--test", "wasm"])
        .args(["--no-default-features", "--features", "js,reqwest"]);
    session.check(&format!("cargo test --target {}, in {runtime}", wasm::TARGET), &mut command)
}

fn cargo(session: &Session<'_>) -> Command {
    session.place.command("cargo")
}

fn metadata(session: &Session<'_>) -> Result<Value> {
    let mut command = cargo(session);
    let output = output_of(command.args(["metadata", "--format-version", "1"]))?;
    serde_json::from_str(&output).context("cargo metadata gave no JSON")
}

/// Returns the packages that users of the published packages get, without those for tests only.
fn shipped(metadata: &Value) -> Vec<&Value> {
    let nodes: HashMap<&str, &Value> = metadata
        .get("resolve")
        .map(|resolve| list(resolve, "nodes"))
        .unwrap_or_default()
        .iter()
        .map(|node| (text(node, "id"), node))
        .collect();
    let roots = PUBLISHED.iter().filter_map(|name| package(metadata, name));
    let mut to_visit: Vec<&str> = roots.map(|package| text(package, "id")).collect();
    let mut seen = HashSet::new();
    while let Some(id) = to_visit.pop() {
        if seen.insert(id) {
            let dependencies = nodes.get(id).map(|node| list(node, "deps")).unwrap_or_default();
            let shipped = dependencies.iter().filter(|dependency| {
                list(dependency, "dep_kinds")
                    .iter()
                    .any(|kind| kind.get("kind") != Some(&"dev".into()))
            });
            to_visit.extend(shipped.map(|dependency| text(dependency, "pkg")));
        }
    }
    let packages = list(metadata, "packages").iter();
    packages.filter(|package| seen.contains(text(package, "id"))).collect()
}

fn package<'m>(metadata: &'m Value, name: &str) -> Option<&'m Value> {
    let is_it = |package: &&Value| {
        text(package, "name") == name && package.get("source").is_none_or(Value::is_null)
    };
    list(metadata, "packages").iter().find(is_it)
}

/// Returns the oldest Rust version that a package supports, without the patch release, which
/// changes nothing here.
fn rust_version(package: &Value) -> Option<(u32, u32)> {
    let mut numbers = package.get("rust_version")?.as_str()?.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}
