//! What the project ships: the gateway, and the npm package with its WebAssembly.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::place::{Place, copy_folder, emptied};
use crate::progress::{quiet, run};
use crate::setup::wasm;
use crate::stamp::{self, Digest};

/// What every target of ours can do. Never all that wasm-opt knows: workerd refuses such a module.
const WASM_FEATURES: &[&str] = &[
    "--enable-bulk-memory",
    "--enable-mutable-globals",
    "--enable-nontrapping-float-to-int",
    "--enable-sign-ext",
    "--enable-reference-types",
    "--enable-multivalue",
];
const LICENCES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];

/// Builds the gateway and answers where its program is.
pub(crate) fn gateway(place: &Place) -> Result<PathBuf> {
    let mut command = place.command("cargo");
    command.args(["build", "--release", "--package", "edgelatch-gateway"]);
    run(place, "gateway: cargo build --release", &mut command)?;
    Ok(place.target.join("release/edgelatch-gateway"))
}

/// Builds what is generated of the npm package: `pkg/wasm`.
pub(crate) fn package(place: &Place) -> Result<()> {
    let module = module(place)?;
    let digest = Digest::new()
        .path(&module)?
        .path(&place.npm_folder().join("package-lock.json"))?
        .bytes(WASM_FEATURES.concat().as_bytes());
    let to = place.root.join("pkg/wasm");
    let stamp = place.folder("npm")?.join("wasm.stamp");
    if stamp::is_fresh(&stamp, &digest) && to.join("inline.js").exists() {
        return Ok(());
    }
    let raw = emptied(place.folder("npm")?.join("wasm"))?;
    let mut bindgen = place.command("wasm-bindgen");
    bindgen.args(["--target", "web", "--no-typescript", "--out-name", "edgelatch", "--out-dir"]);
    run(
        place,
        "npm package: wasm-bindgen, the glue to JavaScript",
        bindgen.arg(&raw).arg(&module),
    )?;

    copy_folder(&raw, &emptied(to.clone())?)?;
    let small = to.join("edgelatch_bg.wasm");
    let mut opt = place.command("wasm-opt");
    opt.arg("-Oz").args(WASM_FEATURES).arg(raw.join("edgelatch_bg.wasm")).arg("-o").arg(&small);
    run(place, "npm package: wasm-opt -Oz, fewer bytes", &mut opt)?;

    let inline = STANDARD.encode(fs::read(&small).context("wasm-opt wrote nothing")?);
    fs::write(to.join("inline.js"), format!("export default \"{inline}\";\n"))?;
    stamp::set(&stamp, &digest)
}

/// Packs the npm package as it would be published, and answers where the tarball is.
pub(crate) fn tarball(place: &Place) -> Result<PathBuf> {
    package(place)?;
    let folder = place.folder("npm")?;
    let staged = emptied(folder.join("package"))?;
    copy_folder(&place.root.join("pkg"), &staged)?;
    for licence in LICENCES {
        fs::copy(place.root.join(licence), staged.join(licence))
            .with_context(|| format!("cannot read {licence}"))?;
    }
    let tarball = folder.join(format!("edgelatch-{}.tgz", npm_version(place)?));
    let digest = Digest::new().path(&staged)?;
    let stamp = folder.join("package.stamp");
    if !(stamp::is_fresh(&stamp, &digest) && tarball.exists()) {
        let mut pack = place.command("npm");
        pack.args(["pack", "--ignore-scripts", "--pack-destination"]).arg(&folder);
        run(place, "npm package: npm pack", pack.current_dir(&staged))?;
        stamp::set(&stamp, &digest)?;
    }
    ensure!(tarball.exists(), "npm pack did not write {}", tarball.display());
    Ok(tarball)
}

/// Installs the tarball into a folder below target, as a user would into a project; answers the folder.
pub(crate) fn consumer(place: &Place, name: &str) -> Result<PathBuf> {
    let tarball = tarball(place)?;
    let folder = place.folder(name)?;
    let digest = Digest::new().path(&tarball)?;
    let stamp = folder.join(".installed");
    if stamp::is_fresh(&stamp, &digest) {
        return Ok(folder);
    }
    let manifest = serde_json::json!({
        "name": "edgelatch-consumer",
        "private": true,
        "type": "module",
        "dependencies": { "edgelatch": format!("file:{}", tarball.display()) },
    });
    fs::write(folder.join("package.json"), format!("{manifest:#}\n"))?;
    emptied(folder.join("node_modules"))?;
    let mut install = place.command("npm");
    install.args(["install", "--offline", "--no-audit", "--no-fund", "--no-package-lock"]);
    quiet(place, &format!("npm install of the tarball in {name}"), install.current_dir(&folder))?;
    stamp::set(&stamp, &digest)?;
    Ok(folder)
}

/// The version that the npm package says it has.
pub(crate) fn npm_version(place: &Place) -> Result<String> {
    let file = place.root.join("pkg/package.json");
    let manifest: Value = serde_json::from_str(&fs::read_to_string(&file)?)?;
    manifest
        .get("version")
        .and_then(Value::as_str)
        .map(str::to_owned)
        .context("pkg/package.json has no version")
}

fn module(place: &Place) -> Result<PathBuf> {
    let compiler = wasm::compiler(place).context("no compiler for the wasm target")?;
    let mut command = place.command("cargo");
    compiler.apply(&mut command);
    command
        .args(["build", "--profile", "npm", "--lib", "--package", "edgelatch"])
        .args(["--target", wasm::TARGET, "--no-default-features", "--features", "js"])
        .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS", remapped(place));
    run(place, "npm package: cargo build to WebAssembly", &mut command)?;
    Ok(place.target.join(wasm::TARGET).join("npm/edgelatch.wasm"))
}

/// Panic messages name source files; not by where they lie on the machine that built them.
fn remapped(place: &Place) -> String {
    let home = env::var_os("HOME").map(|home| Path::new(&home).join(".cargo"));
    let cargo_home = env::var_os("CARGO_HOME").map(PathBuf::from).or(home);
    let mut flags = vec![format!("--remap-path-prefix={}=edgelatch", place.root.display())];
    flags.extend(cargo_home.map(|home| format!("--remap-path-prefix={}=cargo", home.display())));
    flags.join(" ")
}
