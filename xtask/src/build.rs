//! Builds the products: the gateway, and the npm package with its WebAssembly.

mod module;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Map, Value, json};

use crate::inline;
use crate::place::{Place, copy_folder, emptied};
use crate::progress::{output_of, quiet, run};
use crate::stamp::{self, Digest};
pub(crate) use module::{builds_std, is_reproducible};

/// Selects the whole workspace, whichever part of it is built: cargo unifies the features of
/// dependencies over the selected packages, so another selection would build the dependencies
/// again. `tests` enables the features that any test needs.
pub(crate) const WORKSPACE: [&str; 1] = ["--workspace"];
/// The package with the integration tests, the only one that is built for release.
pub(crate) const TESTS: &str = "edgelatch-tests";
const GATEWAY: &str = "edgelatch-gateway";
/// Each loader passes the module itself.
const GLUE_FLAGS: &[&str] = &["--target", "web", "--no-typescript", "--omit-default-module-path"];
/// The changes to the glue.
const GLUE_CHANGES: &[(&str, &str)] = &[
    // No function of the module is called after one of them has thrown.
    ("wasm = instance.exports;", "wasm = guarded(instance.exports);"),
    // Created at first use: an import never fails in a test environment that has none of these.
    (
        "let cachedTextDecoder = new TextDecoder('utf-8', { ignoreBOM: true });\ncachedTextDecoder.decode();",
        "let cachedTextDecoder;",
    ),
    (
        "    return cachedTextDecoder.decode(bytes);",
        "    cachedTextDecoder ??= new TextDecoder('utf-8', { ignoreBOM: true });\n    return cachedTextDecoder.decode(bytes);",
    ),
    (
        "const cachedTextEncoder = new TextEncoder();",
        "let textEncoder;\nconst cachedTextEncoder = {\n    \
         encode: (text) => (textEncoder ??= new TextEncoder()).encode(text),\n    \
         encodeInto: (text, view) => (textEncoder ??= new TextEncoder()).encodeInto(text, view),\n};",
    ),
    // Accepts a module that another realm has compiled.
    (
        "module instanceof WebAssembly.Module",
        "Object.prototype.toString.call(module) === '[object WebAssembly.Module]'",
    ),
];
/// The WebAssembly features of all supported runtimes. Never all that wasm-opt knows: workerd
/// rejects such a module.
const WASM_FEATURES: &[&str] = &[
    "--enable-bulk-memory",
    "--enable-mutable-globals",
    "--enable-nontrapping-float-to-int",
    "--enable-sign-ext",
    "--enable-reference-types",
    "--enable-multivalue",
];
/// For fewer compressed bytes: code that is repeated instead of called compresses badly.
const WASM_PASSES: &[&str] = &[
    "-Oz",
    "--converge",
    "--low-memory-unused",
    "--skip-pass=local-cse",
    "--strip-producers",
    "--always-inline-max-function-size=2",
    "--one-caller-inline-max-function-size=0",
];
/// White space and syntax are minified; names stay and lines are short, so that stack traces are
/// readable: Node prints the line of an error.
const SCRIPT_FLAGS: &[&str] = &[
    "--minify-whitespace",
    "--minify-syntax",
    "--line-limit=120",
    "--sourcemap",
    "--charset=utf8",
    "--log-level=warning",
    "--log-override:duplicate-object-key=silent",
];
/// The entries of the npm package.
const ENTRIES: [&str; 4] = ["edge-light.js", "index.js", "slim.js", "workerd.js"];
/// The entries that `require` also finds.
const COMMON_JS: [&str; 2] = ["index.js", "slim.js"];
/// The scripts that the entries share, which are joined to `edgelatch.js`.
const SHARED: [&str; 8] = [
    "api.js",
    "decode.js",
    "errors.js",
    "options.js",
    "public.js",
    "start.js",
    "wasm/edgelatch.js",
    "wasm/web.js",
];
/// The scripts that stay separate files.
const APART: [&str; 3] =
    ["./wasm/edgelatch_bg.wasm", "./wasm/edgelatch_bg.wasm?module", "./wasm/inline.js"];
/// The declarations that have a copy for `require`.
const DECLARATIONS: [&str; 4] = ["errors", "index", "objects", "slim"];
const LICENCES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];

/// Builds the gateway for demos and tests, in the profile and with the features of the tests, so
/// that neither builds again what the other has built. Returns the program.
pub(crate) fn gateway(place: &Place) -> Result<PathBuf> {
    let mut command = place.command("cargo");
    command.arg("build").args(WORKSPACE).args(["--bin", GATEWAY]);
    run(place, "gateway: cargo build", &mut command)?;
    Ok(place.target.join("debug").join(GATEWAY))
}

/// Builds the gateway in the profile and with the features of the tests that a full run builds for
/// release, so that neither builds the dependencies again. Returns the program.
pub(crate) fn fast_gateway(place: &Place) -> Result<PathBuf> {
    let mut command = place.command("cargo");
    command.args(["build", "--release", "--package", TESTS, "--package", GATEWAY]);
    run(place, "gateway: cargo build --release", command.args(["--bin", GATEWAY]))?;
    Ok(place.target.join("release").join(GATEWAY))
}

/// Builds the gateway as it is published, to be measured. Returns the program.
pub(crate) fn published_gateway(place: &Place) -> Result<PathBuf> {
    let mut command = place.command("cargo");
    command.args(["build", "--release", "--package", GATEWAY]);
    run(place, "gateway: cargo build --release", &mut command)?;
    Ok(place.target.join("release").join(GATEWAY))
}

/// Builds the generated part of the npm package: `pkg/wasm`.
pub(crate) fn package(place: &Place) -> Result<()> {
    let module = module::build(place, "")?;
    let digest = Digest::new()
        .path(&module)?
        .path(&place.npm_folder().join("package-lock.json"))?
        .bytes(GLUE_FLAGS.concat().as_bytes())
        .bytes(WASM_FEATURES.concat().as_bytes())
        .bytes(WASM_PASSES.concat().as_bytes());
    let to = place.root.join("pkg/wasm");
    let stamp = place.folder("npm")?.join("wasm.stamp");
    if stamp::is_fresh(&stamp, &digest) && to.join("inline.js").exists() {
        return Ok(());
    }
    let raw = emptied(place.folder("npm")?.join("wasm"))?;
    let mut bindgen = place.command("wasm-bindgen");
    bindgen.args(GLUE_FLAGS).args(["--out-name", "edgelatch", "--out-dir"]);
    run(
        place,
        "npm package: wasm-bindgen, the glue to JavaScript",
        bindgen.arg(&raw).arg(&module),
    )?;

    copy_folder(&raw, &emptied(to.clone())?)?;
    let small = to.join("edgelatch_bg.wasm");
    let mut opt = place.command("wasm-opt");
    opt.args(WASM_PASSES).args(WASM_FEATURES);
    opt.arg(raw.join("edgelatch_bg.wasm")).arg("-o").arg(&small);
    run(place, "npm package: wasm-opt -Oz, fewer bytes", &mut opt)?;
    use_package_s_own(&to)?;
    shorten_names(&small, &to.join("edgelatch.js"))?;

    let bytes = fs::read(&small).context("wasm-opt wrote nothing")?;
    fs::write(to.join("inline.js"), inline::module(&bytes))?;
    stamp::set(&stamp, &digest)
}

/// Makes the glue import the package's own scripts: it imports copies from its own folders.
/// `errors.js` must be the package's, since a copy would define other classes; a script that only
/// the glue uses is put beside it.
fn use_package_s_own(wasm: &Path) -> Result<()> {
    let (glue, copies) = (wasm.join("edgelatch.js"), wasm.join("snippets"));
    let text = fs::read_to_string(&glue).context("wasm-bindgen wrote no glue")?;
    let mut lines = Vec::new();
    for line in text.lines() {
        let path = line.split(['"', '\'']).nth(1).filter(|_| line.starts_with("import "));
        let Some(path) = path else {
            lines.push(line.to_owned());
            continue;
        };
        let name = path.rsplit('/').next().unwrap_or(path);
        let own = if path.ends_with("/pkg/errors.js") {
            format!("../{name}")
        } else {
            fs::copy(wasm.join(path), wasm.join(name))
                .with_context(|| format!("wasm-bindgen copied no {path}"))?;
            format!("./{name}")
        };
        lines.push(line.replace(path, &own));
    }
    let mut text = lines.join("\n");
    for (from, to) in GLUE_CHANGES {
        ensure!(text.contains(from), "the glue of this wasm-bindgen has no `{from}`");
        text = text.replace(from, to);
    }
    fs::write(&glue, format!("import {{ guarded }} from '../errors.js';\n{text}"))?;
    fs::remove_dir_all(copies).context("wasm-bindgen copied nothing")
}

/// Packs the npm package for publication, and returns the path of the tarball.
pub(crate) fn tarball(place: &Place) -> Result<PathBuf> {
    package(place)?;
    let folder = place.folder("npm")?;
    let staged = emptied(folder.join("package"))?;
    copy_folder(&place.root.join("pkg"), &staged)?;
    for licence in LICENCES {
        fs::copy(place.root.join(licence), staged.join(licence))
            .with_context(|| format!("cannot read {licence}"))?;
    }
    join_scripts(place, &staged)?;
    name_repository(&staged.join("package.json"))?;
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

/// Adds the source repository to the manifest, once the owner has set it in Cargo.toml.
fn name_repository(manifest: &Path) -> Result<()> {
    const REPOSITORY: &str = env!("CARGO_PKG_REPOSITORY");
    if REPOSITORY.contains("OWNER") {
        return Ok(());
    }
    let mut fields: Map<String, Value> = serde_json::from_str(&fs::read_to_string(manifest)?)?;
    let git = json!({ "type": "git", "url": format!("git+{REPOSITORY}.git") });
    fields.insert("repository".into(), git);
    fields.insert("homepage".into(), REPOSITORY.into());
    fields.insert("bugs".into(), format!("{REPOSITORY}/issues").into());
    fs::write(manifest, format!("{:#}\n", Value::Object(fields)))
        .context("cannot write the manifest")
}

/// Installs the tarball into a folder below target, as in a user's project; returns the folder.
pub(crate) fn consumer(place: &Place, name: &str) -> Result<PathBuf> {
    let tarball = tarball(place)?;
    let folder = place.folder(name)?;
    let digest = Digest::new().path(&tarball)?;
    let stamp = folder.join(".installed");
    if stamp::is_fresh(&stamp, &digest) {
        return Ok(folder);
    }
    let manifest = json!({
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

/// Returns the version in the npm package's manifest.
pub(crate) fn npm_version(place: &Place) -> Result<String> {
    let file = place.root.join("pkg/package.json");
    let manifest: Value = serde_json::from_str(&fs::read_to_string(&file)?)?;
    manifest
        .get("version")
        .and_then(Value::as_str)
        .map(str::to_owned)
        .context("pkg/package.json has no version")
}

/// Replaces wasm-bindgen's hashes by numbers, on both sides: hashes do not compress, and numbers of
/// the same length do.
fn shorten_names(module: &Path, glue: &Path) -> Result<()> {
    let mut bytes = fs::read(module)?;
    let mut text = fs::read_to_string(glue)?;
    for (number, hash) in (0..).zip(hashes(&text)) {
        let short = format!("{number:0width$x}", width = hash.len());
        text = text.replace(&hash, &short);
        while let Some(at) = bytes.windows(hash.len()).position(|part| part == hash.as_bytes()) {
            bytes.splice(at..at + hash.len(), short.bytes());
        }
    }
    fs::write(module, bytes)?;
    fs::write(glue, text).context("cannot write the glue")
}

/// Returns the hashes of names such as `__wbg_abort_17cafbdd3728580a`, each once.
fn hashes(glue: &str) -> BTreeSet<String> {
    let words = glue.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let ends =
        words.filter(|word| word.starts_with("__wb")).filter_map(|word| word.rsplit('_').next());
    let is_hash = |end: &&str| {
        end.len() == 16
            && !end.starts_with("0000")
            && end.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    ends.filter(is_hash).map(str::to_owned).collect()
}

/// Joins the scripts that the entries share into one file, since a runtime takes time to find and
/// read each file, and adds the files for `require`.
fn join_scripts(place: &Place, folder: &Path) -> Result<()> {
    let bundle = |entries: &[&str], flags: &[&str]| {
        let mut esbuild = place.command("esbuild");
        esbuild.args(entries).arg("--bundle").args(SCRIPT_FLAGS).args(flags).current_dir(folder);
        esbuild.args(APART.map(|path| format!("--external:{path}")));
        output_of(esbuild.args(["--outdir=.", "--allow-overwrite"]))
    };
    // Bundled from the scripts that are not joined yet. For the platform `node`, so that `import`
    // finds the names in it.
    bundle(&COMMON_JS, &["--format=cjs", "--platform=node", "--out-extension:.js=.cjs"])?;
    for entry in COMMON_JS {
        let file = folder.join(entry).with_extension("cjs");
        let text = fs::read_to_string(&file)?.replace("./wasm/inline.js", "./wasm/inline.cjs");
        fs::write(file, text)?;
    }
    let inline = fs::read_to_string(folder.join("wasm/inline.js"))?;
    fs::write(folder.join("wasm/inline.cjs"), inline.replace("export const ", "exports."))?;
    for name in DECLARATIONS {
        let text = fs::read_to_string(folder.join(name).with_extension("d.ts"))?;
        fs::write(folder.join(format!("{name}.d.cts")), text.replace(".js\"", ".cjs\""))?;
    }

    bundle(&ENTRIES, &["--splitting", "--format=esm", "--chunk-names=edgelatch"])?;
    for part in SHARED {
        fs::remove_file(folder.join(part)).with_context(|| format!("there is no {part}"))?;
    }
    ensure!(folder.join("edgelatch.js").exists(), "esbuild joined nothing");
    Ok(())
}
