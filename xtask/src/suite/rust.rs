//! The suites that cargo runs.

use std::collections::{HashMap, HashSet};
use std::process::Command;

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::advisories;
use super::runner::Runner;
use super::tally::Tally;
use crate::progress::output_of;
use crate::setup::wasm::{self, Compiler};

/// What others build on; the rest of the workspace is for us.
const PUBLISHED: [&str; 2] = ["edgelatch", "edgelatch-gateway"];
/// Run by themselves, with optimisation.
const MODELS: [&str; 2] = ["model", "model_multi"];
/// The same, with flags of its own.
const SIM: &str = "sim";
/// What is left out by default, and no less ours.
const FEATURES: [&str; 2] = ["--features", "edgelatch/blocking"];
/// Runs inside JavaScript runtimes.
const WASM: &str = "wasm";
/// Wants a JVM and what is built for it.
const INTEROP: &str = "interop";
const DENY_WARNINGS: [&str; 3] = ["--", "-D", "warnings"];

pub(crate) fn fmt(runner: &Runner<'_>) -> Result<Tally> {
    runner.check("cargo fmt --check", cargo(runner).args(["fmt", "--all", "--check"]))
}

pub(crate) fn clippy(runner: &Runner<'_>) -> Result<Tally> {
    let mut native = cargo(runner);
    native.args(["clippy", "--workspace", "--all-targets"]).args(FEATURES).args(DENY_WARNINGS);
    let mut tally = runner.check("clippy: the workspace", &mut native)?;
    let mut bare = cargo(runner);
    bare.args(["clippy", "--package", "edgelatch", "--lib", "--no-default-features"]);
    tally += runner.check("clippy: without features", bare.args(DENY_WARNINGS))?;

    let compiler = wasm::compiler(runner.place).context("no compiler for the wasm target")?;
    for features in ["js", "reqwest,web"] {
        let mut command = cargo(runner);
        compiler.apply(&mut command);
        // A linked compiler has no clippy; its own warnings have to do.
        match compiler {
            Compiler::Default => command.arg("clippy"),
            Compiler::Linked(_) => command.args(["rustc", "--profile", "check"]),
        };
        command
            .args(["--package", "edgelatch", "--lib", "--target", wasm::TARGET])
            .args(["--no-default-features", "--features", features])
            .args(DENY_WARNINGS);
        tally += runner.check(&format!("lints: WebAssembly, with {features}"), &mut command)?;
    }
    Ok(tally)
}

pub(crate) fn doc(runner: &Runner<'_>) -> Result<Tally> {
    let mut command = cargo(runner);
    command
        .args(["doc", "--workspace", "--no-deps"])
        .args(FEATURES)
        .env("RUSTDOCFLAGS", "-D warnings");
    runner.check("cargo doc", &mut command)
}

pub(crate) fn deny(runner: &Runner<'_>) -> Result<Tally> {
    // Brings here what nothing has needed yet: a build takes but what its own platform and features want.
    output_of(cargo(runner).args(["fetch", "--locked"]))?;
    let mut command = cargo(runner);
    command.args(["deny", "--offline", "check", "bans", "licenses", "sources"]);
    let mut tally = runner.check("cargo deny check bans licenses sources", &mut command)?;
    tally += runner.check("cargo vet", cargo(runner).args(["vet", "--locked", "--frozen"]))?;
    tally += advisories::crates(runner)?;
    tally += advisories::npm(runner)?;
    Ok(tally)
}

pub(crate) fn msrv(runner: &Runner<'_>) -> Result<Tally> {
    let metadata = metadata(runner)?;
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
    let mut tally =
        runner.finding(&format!("every dependency is content with Rust {named}"), &newer);

    let toolchains = output_of(Command::new("rustup").args(["toolchain", "list"]));
    if toolchains.is_ok_and(|list| list.lines().any(|line| line.starts_with(&named))) {
        let mut check = cargo(runner);
        check
            .args(["check", "--target-dir"])
            .arg(runner.place.target.join("msrv"))
            .args(PUBLISHED.iter().flat_map(|name| ["--package", *name]))
            .env("RUSTUP_TOOLCHAIN", &named);
        tally += runner.check(&format!("cargo check with Rust {named}"), &mut check)?;
    }
    Ok(tally)
}

pub(crate) fn tests(runner: &Runner<'_>) -> Result<Tally> {
    let mut command = cargo(runner);
    command.args(["test", "--workspace", "--no-fail-fast", "--lib", "--bins"]).args(FEATURES);
    for name in integration_tests(&metadata(runner)?) {
        if ![WASM, INTEROP, SIM].contains(&name.as_str()) && !MODELS.contains(&name.as_str()) {
            command.args(["--test", &name]);
        }
    }
    let mut tally = runner.count("cargo test: units and integration", &mut command)?;
    let mut doc = cargo(runner);
    doc.args(["test", "--workspace", "--no-fail-fast", "--doc"]).args(FEATURES);
    tally += runner.count("cargo test: the examples in the documentation", &mut doc)?;
    Ok(tally)
}

pub(crate) fn model(runner: &Runner<'_>) -> Result<Tally> {
    let mut command = cargo(runner);
    command.args(["test", "--release", "--package", "edgelatch", "--no-fail-fast"]);
    command.args(MODELS.iter().flat_map(|name| ["--test", *name]));
    runner.count("cargo test --release: the models", &mut command)
}

pub(crate) fn wasm_node(runner: &Runner<'_>) -> Result<Tally> {
    let mut command = wasm_pack(runner, &["--node"])?;
    runner.count("wasm-pack test --node", &mut command)
}

pub(crate) fn wasm_chromium(runner: &Runner<'_>) -> Result<Tally> {
    let driver = crate::place::which("chromedriver").context("no chromedriver")?;
    let driver = driver.to_string_lossy();
    let browser = ["--headless", "--chrome", "--chromedriver", driver.as_ref()];
    let mut command = wasm_pack(runner, &browser)?;
    command
        .env("WASM_BINDGEN_USE_BROWSER", "1")
        .env("WASM_BINDGEN_TEST_WEBDRIVER_JSON", runner.place.root.join("xtask/webdriver.json"));
    runner.count("wasm-pack test --headless --chrome", &mut command)
}

fn wasm_pack(runner: &Runner<'_>, runtime: &[&str]) -> Result<Command> {
    let mut command = runner.place.command("wasm-pack");
    let compiler = wasm::compiler(runner.place).context("no compiler for the wasm target")?;
    compiler.apply(&mut command);
    command.args(["test", "--mode", "no-install"]).args(runtime);
    command.args(["--", "--no-default-features", "--features", "js,reqwest", "--test", WASM]);
    Ok(command)
}

fn cargo(runner: &Runner<'_>) -> Command {
    runner.place.command("cargo")
}

fn metadata(runner: &Runner<'_>) -> Result<Value> {
    let mut command = cargo(runner);
    let output = output_of(command.args(["metadata", "--format-version", "1"]))?;
    serde_json::from_str(&output).context("cargo metadata gave no JSON")
}

/// The names of all `tests/*.rs` of the workspace.
fn integration_tests(metadata: &Value) -> Vec<String> {
    let members: HashSet<&str> =
        list(metadata, "workspace_members").iter().filter_map(Value::as_str).collect();
    let packages = list(metadata, "packages").iter();
    let targets = packages
        .filter(|package| members.contains(text(package, "id")))
        .flat_map(|package| list(package, "targets"));
    targets
        .filter(|target| list(target, "kind").iter().any(|kind| kind == "test"))
        .map(|target| text(target, "name").to_owned())
        .collect()
}

/// The packages that get to the users of what we publish: no dependency for tests only.
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

/// The oldest Rust that a package is content with; a patch release changes nothing for us.
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
