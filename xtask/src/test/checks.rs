//! The suites that read or compile the Rust code without running it.

use std::ffi::OsString;
use std::process::Command;

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::advisories;
use super::report::Report;
use super::session::Session;
use super::suite::Extent;
use crate::build::PUBLISHED;
use crate::progress::output_of;
use crate::setup::wasm::{self, Compiler};
use crate::workspace::which;

/// The oldest version of Rust that the published packages support.
const OLDEST_RUST: &str = env!("CARGO_PKG_RUST_VERSION");
/// The manifest of the only Rust program that is no member of the workspace.
const RUST_WORKER: &str = "examples/rust-worker/Cargo.toml";

pub(crate) fn fmt(session: &Session<'_>) -> Result<Report> {
    let mut report = check(session, "cargo fmt --check", "cargo fmt --all --check")?;
    let line = format!("cargo fmt --check --manifest-path {RUST_WORKER}");
    report += check(session, "cargo fmt --check: examples/rust-worker", &line)?;
    Ok(report)
}

pub(crate) fn clippy(session: &Session<'_>) -> Result<Report> {
    let line = "cargo clippy --workspace --all-targets -- -D warnings";
    let mut report = check(session, "clippy: the workspace", line)?;
    for (title, features) in [
        ("without features", ""),
        ("with metrics", "--features metrics "),
        ("with tracing", "--features tracing "),
    ] {
        let line = format!(
            "cargo clippy --package edgelatch --lib --no-default-features {features}-- -D warnings"
        );
        report += check(session, &format!("clippy: {title}"), &line)?;
    }

    let compiler = wasm::compiler(session.workspace).context("no compiler for the wasm target")?;
    let libraries = [
        ("edgelatch", "js"),
        ("edgelatch", "reqwest,web"),
        ("edgelatch", "metrics,tracing,web"),
        ("edgelatch-testing", "js"),
    ];
    for (package, features) in libraries {
        let mut command = lint(&compiler, session);
        command.args(["--package", package, "--lib"]);
        command.args(["--no-default-features", "--features", features, "--", "-D", "warnings"]);
        report += session
            .check(&format!("lints: WebAssembly, {package} with {features}"), &mut command)?;
    }
    // A quick run does not compile the dependencies of this example.
    if session.extent == Extent::Full {
        let mut command = lint(&compiler, session);
        command.args(["--manifest-path", RUST_WORKER, "--locked", "--target-dir"]);
        command.arg(session.workspace.target.join("rust-worker")).args(["--", "-D", "warnings"]);
        report += session.check("lints: WebAssembly, examples/rust-worker", &mut command)?;
    }
    Ok(report)
}

/// Returns a command that lints code for the WebAssembly target.
fn lint(compiler: &Compiler, session: &Session<'_>) -> Command {
    let mut command = compiler.cargo(session.workspace);
    // Debian's compiler has no clippy, so its own warnings are checked.
    match compiler {
        Compiler::Default => command.arg("clippy"),
        Compiler::Debian(_) => command.args(["rustc", "--profile", "check"]),
    };
    command.args(["--target", wasm::TARGET]);
    command
}

pub(crate) fn doc(session: &Session<'_>) -> Result<Report> {
    let mut command = session.workspace.command("cargo doc --workspace --no-deps");
    session.check("cargo doc", command.env("RUSTDOCFLAGS", "-D warnings"))
}

/// Runs the examples in the documentation, which nextest does not run.
pub(crate) fn doctest(session: &Session<'_>) -> Result<Report> {
    check(session, "cargo test --doc", "cargo test --workspace --doc")
}

pub(crate) fn deny(session: &Session<'_>) -> Result<Report> {
    // Downloads the remaining dependencies: a build downloads only those of its own platform and
    // features.
    output_of(&mut session.workspace.command("cargo fetch --locked"))?;
    let line = format!("cargo fetch --locked --manifest-path {RUST_WORKER}");
    output_of(&mut session.workspace.command(&line))?;
    let title = "cargo deny check bans licenses sources";
    let mut report = check(session, title, "cargo deny --offline check bans licenses sources")?;
    for folder in ["cli", "gateway"] {
        // Without the packages for tests, which the first check has seen.
        let line = format!(
            "cargo deny --offline --exclude-dev --config deny.toml \
             --manifest-path {folder}/Cargo.toml check bans licenses sources"
        );
        report += check(session, &format!("cargo deny check: {folder}"), &line)?;
    }
    // Without `bans`, which refuses build scripts: this example depends on `edgelatch-proto`, which
    // has one.
    let line = format!(
        "cargo deny --offline --config deny.toml --manifest-path {RUST_WORKER} \
         check licenses sources"
    );
    report += check(session, "cargo deny check: examples/rust-worker", &line)?;
    report += check(session, "cargo vet", "cargo vet --locked --frozen")?;
    report += advisories::crates(session)?;
    report += advisories::npm(session)?;
    Ok(report)
}

pub(crate) fn msrv(session: &Session<'_>) -> Result<Report> {
    let workspace = session.workspace;
    let metadata = output_of(&mut workspace.command("cargo metadata --format-version 1"))?;
    let metadata: Value = serde_json::from_str(&metadata).context("cargo metadata gave no JSON")?;
    let packages = metadata.get("packages").and_then(Value::as_array).context("no packages")?;
    // The packages that users of the published packages get, without those for tests only.
    let line = "cargo tree --edges no-dev --target all --all-features --prefix none";
    let tree = output_of(workspace.command(line).args(published()))?;
    let problem = |package: &Value| {
        let text = |key| package.get(key).and_then(Value::as_str);
        let (name, version, rust) = (text("name")?, text("version")?, text("rust_version")?);
        let words = [name, &format!("v{version}")];
        let is_used = tree.lines().any(|line| line.split(' ').take(2).eq(words));
        (is_used && release(rust) > release(OLDEST_RUST))
            .then(|| format!("{name} {version} wants Rust {rust}"))
    };
    let problems: Vec<String> = packages.iter().filter_map(problem).collect();
    let what = format!("every dependency is content with Rust {OLDEST_RUST}");
    let mut report = session.finding(&what, &problems);

    let toolchains = output_of(&mut workspace.command("rustup toolchain list"));
    if toolchains.is_ok_and(|list| list.lines().any(|line| line.starts_with(OLDEST_RUST))) {
        let mut check = workspace.command("cargo check --target-dir");
        check.arg(workspace.target.join("msrv"));
        check.args(published()).env("RUSTUP_TOOLCHAIN", OLDEST_RUST);
        report += session.check(&format!("cargo check with Rust {OLDEST_RUST}"), &mut check)?;
    }
    Ok(report)
}

pub(crate) fn wasm_node(session: &Session<'_>) -> Result<Report> {
    wasm(session, "Node", [].into())
}

pub(crate) fn wasm_chromium(session: &Session<'_>) -> Result<Report> {
    let driver = which("chromedriver").context("no chromedriver")?;
    let options = session.workspace.root.join("xtask/webdriver.json");
    let variables = [
        ("CHROMEDRIVER", driver.into()),
        ("WASM_BINDGEN_USE_BROWSER", "1".into()),
        ("WASM_BINDGEN_TEST_WEBDRIVER_JSON", options.into()),
    ];
    wasm(session, "Chromium", variables.into())
}

/// Runs the tests in WebAssembly by wasm-bindgen's own runner, which comes with `wasm-bindgen`.
fn wasm(session: &Session<'_>, runtime: &str, variables: Vec<(&str, OsString)>) -> Result<Report> {
    let compiler = wasm::compiler(session.workspace).context("no compiler for the wasm target")?;
    let mut command = compiler.cargo(session.workspace);
    // One program for all of its tests, and one test here. nextest would start a runtime and
    // compile the module for each test; the runner itself prints results only for people
    // (`--format` supports only `terse`), so no report names each test.
    command
        .envs(variables)
        .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUNNER", "wasm-bindgen-test-runner")
        .args(["test", "--target", wasm::TARGET, "--package", "edgelatch", "--test", "wasm"])
        .args(["--no-default-features", "--features", "js,reqwest,web"]);
    session.check(&format!("cargo test --target {}, in {runtime}", wasm::TARGET), &mut command)
}

/// Runs a command, whose words single spaces separate, as one test.
fn check(session: &Session<'_>, title: &str, line: &str) -> Result<Report> {
    session.check(title, &mut session.workspace.command(line))
}

/// The flags that select the published packages.
fn published() -> impl Iterator<Item = &'static str> {
    PUBLISHED.into_iter().flat_map(|(name, _)| ["--package", name])
}

/// Returns a Rust version without the patch release, which changes nothing here.
fn release(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}
