//! The suites that read or compile the Rust code without running it.

use std::collections::{BTreeSet, HashMap};
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
const PUBLISHED: [&str; 5] =
    ["edgelatch", "edgelatch-cli", "edgelatch-gateway", "edgelatch-proto", "edgelatch-testing"];
const DENY_WARNINGS: [&str; 3] = ["--", "-D", "warnings"];

pub(crate) fn fmt(session: &Session<'_>) -> Result<Report> {
    session.check("cargo fmt --check", cargo(session).args(["fmt", "--all", "--check"]))
}

pub(crate) fn clippy(session: &Session<'_>) -> Result<Report> {
    let mut native = cargo(session);
    native.arg("clippy").args(WORKSPACE).arg("--all-targets").args(DENY_WARNINGS);
    let mut report = session.check("clippy: the workspace", &mut native)?;
    for (title, features) in
        [("without features", ""), ("with metrics", "metrics"), ("with tracing", "tracing")]
    {
        let mut bare = cargo(session);
        bare.args(["clippy", "--package", "edgelatch", "--lib", "--no-default-features"]);
        bare.args(["--features", features]).args(DENY_WARNINGS);
        report += session.check(&format!("clippy: {title}"), &mut bare)?;
    }

    let compiler = wasm::compiler(session.workspace).context("no compiler for the wasm target")?;
    let libraries = [
        ("edgelatch", "js"),
        ("edgelatch", "reqwest,web"),
        ("edgelatch", "metrics,tracing,web"),
        ("edgelatch-testing", "js"),
    ];
    for (package, features) in libraries {
        let mut command = compiler.cargo(session.workspace);
        // Debian's compiler has no clippy, so its own warnings are checked.
        match compiler {
            Compiler::Default => command.arg("clippy"),
            Compiler::Debian(_) => command.args(["rustc", "--profile", "check"]),
        };
        command
            .args(["--package", package, "--lib", "--target", wasm::TARGET])
            .args(["--no-default-features", "--features", features])
            .args(DENY_WARNINGS);
        report += session
            .check(&format!("lints: WebAssembly, {package} with {features}"), &mut command)?;
    }
    Ok(report)
}

pub(crate) fn doc(session: &Session<'_>) -> Result<Report> {
    let mut command = cargo(session);
    command.arg("doc").args(WORKSPACE).arg("--no-deps").env("RUSTDOCFLAGS", "-D warnings");
    session.check("cargo doc", &mut command)
}

/// Runs the examples in the documentation, which nextest does not run.
pub(crate) fn doctest(session: &Session<'_>) -> Result<Report> {
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
    for folder in ["cli", "gateway"] {
        let mut command = cargo(session);
        // Without the packages for tests, which the first check has seen.
        command.args(["deny", "--offline", "--exclude-dev", "--config", "deny.toml"]);
        command.arg("--manifest-path").arg(format!("{folder}/Cargo.toml"));
        command.args(["check", "bans", "licenses", "sources"]);
        report += session.check(&format!("cargo deny check: {folder}"), &mut command)?;
    }
    report += session.check("cargo vet", cargo(session).args(["vet", "--locked", "--frozen"]))?;
    report += advisories::crates(session)?;
    report += advisories::npm(session)?;
    Ok(report)
}

pub(crate) fn msrv(session: &Session<'_>) -> Result<Report> {
    let metadata = output_of(cargo(session).args(["metadata", "--format-version", "1"]))?;
    let metadata: Value = serde_json::from_str(&metadata).context("cargo metadata gave no JSON")?;
    let packages = metadata.get("packages").and_then(Value::as_array).context("no packages")?;
    let text = |package: &Value, key| Some(package.get(key)?.as_str()?.to_owned());
    let versions: HashMap<[String; 2], (u32, u32)> = packages
        .iter()
        .filter_map(|package| {
            let id = [text(package, "name")?, text(package, "version")?];
            Some((id, release(&text(package, "rust_version")?)?))
        })
        .collect();
    let ours = release(env!("CARGO_PKG_RUST_VERSION")).context("no Rust version")?;
    let named = format!("{}.{}", ours.0, ours.1);

    // The packages that users of the published packages get, without those for tests only.
    let mut tree = cargo(session);
    tree.args(["tree", "--edges", "no-dev", "--target", "all", "--all-features"]);
    tree.args(["--prefix", "none"]).args(published());
    let newer: BTreeSet<String> = output_of(&mut tree)?
        .lines()
        .filter_map(|line| {
            let (name, rest) = line.split_once(" v")?;
            let id = [name.to_owned(), rest.split_whitespace().next()?.to_owned()];
            let (major, minor) = versions.get(&id).filter(|version| **version > ours)?;
            Some(format!("{} wants Rust {major}.{minor}", id.join(" ")))
        })
        .collect();
    let newer = Vec::from_iter(newer);
    let mut report =
        session.finding(&format!("every dependency is content with Rust {named}"), &newer);

    let toolchains = output_of(Command::new("rustup").args(["toolchain", "list"]));
    if toolchains.is_ok_and(|list| list.lines().any(|line| line.starts_with(&named))) {
        let mut check = cargo(session);
        check.args(["check", "--target-dir"]).arg(session.workspace.target.join("msrv"));
        check.args(published()).env("RUSTUP_TOOLCHAIN", &named);
        report += session.check(&format!("cargo check with Rust {named}"), &mut check)?;
    }
    Ok(report)
}

pub(crate) fn wasm_node(session: &Session<'_>) -> Result<Report> {
    wasm(session, "Node", |_| Ok(()))
}

pub(crate) fn wasm_chromium(session: &Session<'_>) -> Result<Report> {
    wasm(session, "Chromium", |command| {
        let driver = crate::workspace::which("chromedriver").context("no chromedriver")?;
        let options = session.workspace.root.join("xtask/webdriver.json");
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
    configure: impl FnOnce(&mut Command) -> Result<()>,
) -> Result<Report> {
    let compiler = wasm::compiler(session.workspace).context("no compiler for the wasm target")?;
    let mut command = compiler.cargo(session.workspace);
    configure(&mut command)?;
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
    session.workspace.command("cargo")
}

/// The flags that select the published packages.
fn published() -> impl Iterator<Item = &'static str> {
    PUBLISHED.into_iter().flat_map(|name| ["--package", name])
}

/// Returns a Rust version without the patch release, which changes nothing here.
fn release(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}
