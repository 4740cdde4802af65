//! Builds the products: the gateway, and the npm package with its WebAssembly.

mod module;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::fingerprint::Fingerprint;
use crate::process::forward;
use crate::progress::{quiet, run};
use crate::setup;
use crate::workspace::{Workspace, copy_folder, empty_folder};
pub(crate) use module::is_reproducible;
use module::{MODULES, Module, StandardLibrary};

/// The published crates, and the folder of each; the rest of the workspace is internal.
pub(crate) const PUBLISHED: [(&str, &str); 5] = [
    ("edgelatch", "."),
    ("edgelatch-cli", "cli"),
    ("edgelatch-gateway", "gateway"),
    ("edgelatch-proto", "proto"),
    ("edgelatch-testing", "testing"),
];
/// The package with the integration tests, the only one that is built for release.
pub(crate) const TESTS: &str = "edgelatch-tests";
const GATEWAY: &str = "edgelatch-gateway";

/// Each loader passes the module itself.
const GLUE: &str = "wasm-bindgen --target web --no-typescript --omit-default-module-path";
/// The WebAssembly features of all supported runtimes. Never all that wasm-opt knows: workerd
/// rejects such a module.
const WASM_FEATURES: &str = "--enable-bulk-memory --enable-mutable-globals \
    --enable-nontrapping-float-to-int --enable-sign-ext --enable-reference-types \
    --enable-multivalue";
/// For fewer compressed bytes: code that is repeated instead of called compresses badly.
const OPTIMIZER: &str = "wasm-opt -Oz --converge --low-memory-unused --skip-pass=local-cse \
    --skip-pass=simplify-locals --strip-producers --always-inline-max-function-size=2 \
    --one-caller-inline-max-function-size=0";

/// Builds the gateway for demos and tests, in the profile and with the features of the tests, so
/// that neither builds again what the other has built: cargo unifies the features of dependencies
/// over the selected packages, so both select the workspace. Returns the program.
pub(crate) fn gateway(workspace: &Workspace) -> Result<PathBuf> {
    let mut command = workspace.command("cargo build --workspace --bin edgelatch-gateway");
    run(workspace, "gateway: cargo build", &mut command)?;
    Ok(workspace.target.join("debug").join(GATEWAY))
}

/// Builds the gateway in the profile and with the features of the tests that a full run builds for
/// release, so that neither builds the dependencies again. Returns the program.
pub(crate) fn fast_gateway(workspace: &Workspace) -> Result<PathBuf> {
    let mut command = workspace.command("cargo build --release --bin edgelatch-gateway");
    command.args(["--package", TESTS, "--package", GATEWAY]);
    run(workspace, "gateway: cargo build --release", &mut command)?;
    Ok(workspace.target.join("release").join(GATEWAY))
}

/// Builds the generated part of the npm package: `pkg/wasm`.
pub(crate) fn package(workspace: &Workspace) -> Result<()> {
    workspace.exclusively(|| generate_published(workspace))
}

fn generate_published(workspace: &Workspace) -> Result<()> {
    let std = StandardLibrary::available(workspace);
    generate(workspace, std, &workspace.folder("npm")?, &workspace.root.join("pkg/wasm"))
}

/// Builds the modules with their glue into the folder `to`. `folder` has the files of earlier
/// steps.
fn generate(workspace: &Workspace, std: StandardLibrary, folder: &Path, to: &Path) -> Result<()> {
    let mut fingerprint = Fingerprint::new()
        .path(&workspace.root.join("xtask/tools/package-lock.json"))?
        .path(&workspace.root.join("xtask/scripts/glue.mjs"))?
        .path(&workspace.root.join("xtask/scripts/encode.mjs"))?
        .bytes(GLUE.as_bytes())
        .bytes(WASM_FEATURES.as_bytes())
        .bytes(OPTIMIZER.as_bytes());
    let mut built = Vec::new();
    for module in MODULES {
        let file = module.build(workspace, std, &std.folder(workspace)?)?;
        fingerprint = fingerprint.path(&file)?;
        built.push((module, file));
    }
    fingerprint.once(&folder.join("wasm.fingerprint"), &to.join("inline.js"), || {
        empty_folder(to.to_owned())?;
        built.iter().try_for_each(|(module, file)| add_glue(workspace, module, file, folder, to))
    })
}

/// Adds the glue of a built module to the folder `to`, and makes the module smaller.
fn add_glue(
    workspace: &Workspace,
    Module { name, .. }: &Module,
    built: &Path,
    folder: &Path,
    to: &Path,
) -> Result<()> {
    let raw = empty_folder(folder.join("wasm"))?;
    let mut bindgen = workspace.command(GLUE);
    bindgen.args(["--out-name", name, "--out-dir"]).arg(&raw).arg(built);
    let about = format!("npm package: wasm-bindgen, the glue of {name} to JavaScript");
    run(workspace, &about, &mut bindgen)?;

    copy_folder(&raw, to)?;
    let file = format!("{name}_bg.wasm");
    let mut opt = workspace.command(OPTIMIZER);
    opt.args(WASM_FEATURES.split(' ')).arg(raw.join(&file)).arg("-o").arg(to.join(&file));
    run(workspace, &format!("npm package: wasm-opt -Oz, fewer bytes of {name}"), &mut opt)?;
    let mut glue = workspace.command("node xtask/scripts/glue.mjs");
    quiet(workspace, "glue", glue.arg(to).arg(name))
}

/// Packs the npm package for publication, and returns the path of the tarball.
pub(crate) fn tarball(workspace: &Workspace) -> Result<PathBuf> {
    workspace.exclusively(|| pack_published(workspace))
}

fn pack_published(workspace: &Workspace) -> Result<PathBuf> {
    generate_published(workspace)?;
    pack(workspace, &workspace.folder("npm")?, &workspace.root.join("pkg/wasm"))
}

/// Makes the package for JSR from the files of the npm package, and returns its folder.
pub(crate) fn jsr(workspace: &Workspace) -> Result<PathBuf> {
    workspace.exclusively(|| {
        pack_published(workspace)?;
        let npm = workspace.folder("npm")?;
        let folder = empty_folder(npm.join("jsr"))?;
        let mut make = workspace.command("node xtask/scripts/jsr.mjs");
        quiet(workspace, "package for JSR", make.arg(npm.join("package")).arg(&folder))?;
        Ok(folder)
    })
}

/// Packs the npm package as a machine without the source of the standard library does, and returns
/// the path of the tarball.
pub(crate) fn plain_tarball(workspace: &Workspace) -> Result<PathBuf> {
    workspace.exclusively(|| {
        let folder = workspace.folder("npm-plain")?;
        let wasm = folder.join("generated");
        generate(workspace, StandardLibrary::Distributed, &folder, &wasm)?;
        pack(workspace, &folder, &wasm)
    })
}

/// Packs `pkg` with the generated files of `wasm`, in `folder`.
fn pack(workspace: &Workspace, folder: &Path, wasm: &Path) -> Result<PathBuf> {
    let staged = empty_folder(folder.join("package"))?;
    let mut stage = workspace.command("node xtask/scripts/stage.mjs pkg");
    stage.arg(wasm).arg(&staged);
    quiet(workspace, "staging", stage.arg(env!("CARGO_PKG_REPOSITORY")))?;
    let tarball = folder.join(format!("edgelatch-{}.tgz", npm_version(workspace)?));
    Fingerprint::new().path(&staged)?.once(
        &folder.join("package.fingerprint"),
        &tarball,
        || {
            let mut pack = workspace.command("npm pack --ignore-scripts --pack-destination");
            run(workspace, "npm package: npm pack", pack.arg(folder).current_dir(&staged))
        },
    )?;
    ensure!(tarball.exists(), "npm pack did not write {}", tarball.display());
    Ok(tarball)
}

/// Installs the tarball into a folder below target, as in a user's project; returns the folder.
pub(crate) fn consumer(workspace: &Workspace, name: &str) -> Result<PathBuf> {
    workspace.exclusively(|| {
        let tarball = pack_published(workspace)?;
        let folder = workspace.folder(name)?;
        let modules = folder.join("node_modules");
        Fingerprint::new()
            .path(&tarball)?
            .once(&folder.join(".installed"), &modules, || install(workspace, &tarball, &folder))?;
        Ok(folder)
    })
}

/// Makes a project in a folder, and installs the tarball in it.
fn install(workspace: &Workspace, tarball: &Path, folder: &Path) -> Result<()> {
    let manifest = json!({
        "name": "edgelatch-consumer",
        "private": true,
        "type": "module",
        "dependencies": { "edgelatch": format!("file:{}", tarball.display()) },
    });
    fs::write(folder.join("package.json"), format!("{manifest:#}\n"))?;
    empty_folder(folder.join("node_modules"))?;
    let mut install =
        workspace.command("npm install --offline --no-audit --no-fund --no-package-lock");
    quiet(workspace, "npm install of the tarball", install.current_dir(folder))
}

/// Returns the version in the npm package's manifest.
pub(crate) fn npm_version(workspace: &Workspace) -> Result<String> {
    let manifest = fs::read(workspace.root.join("pkg/package.json"))?;
    let manifest: Value = serde_json::from_slice(&manifest)?;
    let version = manifest.get("version").and_then(Value::as_str).map(str::to_owned);
    version.context("pkg/package.json has no version")
}

/// `cargo xtask size`: prints the size of each published file, and its change.
pub(crate) fn print_sizes(workspace: &Workspace, record: bool) -> Result<ExitCode> {
    setup::ensure(workspace, setup::BUILD)?;
    let is_small = StandardLibrary::available(workspace) == StandardLibrary::ForSize;
    ensure!(is_small || !record, "the sizes of a plain build are not those of a release");
    let folder = consumer(workspace, "consumer")?.join("node_modules/edgelatch");
    let mut node = workspace.command("node xtask/scripts/weigh.mjs");
    node.arg(folder).arg(tarball(workspace)?);
    node.args(record.then_some("--record"));
    node.envs(is_small.then_some(("EDGELATCH_SMALL_STD", "1")));
    forward("the scale", &mut node)
}
