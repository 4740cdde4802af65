//! Builds the scripts from `src/protocol/scripts/*.lua`: puts the prelude and the parts named in a
//! first line such as `-- with once, mint` in front, removes comments, and computes the SHA-1 of
//! each, once plain and once with Upstash's key-locking line.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, error::Error, fs};

const DIR: &str = "src/protocol/scripts";
const PRELUDE: &str = "prelude.lua";
/// The parts and scripts that compute keys which the caller cannot declare.
const COMPUTE_KEYS: [&str; 3] = ["readers_ttl", "sweep", "fair_rw_query"];
/// The scripts that the npm package does not call: the linker drops a text of their own.
const NOT_IN_NPM: [&str; 1] = ["fair_queue"];
const KEY_LOCKING: &str = "#!lua flags=allow-key-locking\n";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={DIR}");
    let mut code = format!("pub(super) const KEY_LOCKING: &str = {KEY_LOCKING:?};\n");
    let (mut all_text, mut digests) = (String::new(), String::new());
    let parts = texts(&Path::new(DIR).join("parts"))?;
    let prelude = (PRELUDE.to_owned(), lean(&fs::read_to_string(Path::new(DIR).join(PRELUDE))?));
    // The common beginnings of scripts are stored once.
    for (name, text) in parts.iter().chain([&prelude]) {
        writeln!(code, "static {}: &str = {};", constant(name), append(&mut all_text, text))?;
    }

    let mut names = Vec::new();
    for (file, text) in scripts()? {
        let begins: Vec<_> = named_parts(&text)
            .map(|part| parts.iter().find(|(name, _)| name.strip_suffix(".lua") == Some(part)))
            .map(|part| part.ok_or_else(|| format!("{file}: no such part")))
            .collect::<Result<_, _>>()?;
        let begins: Vec<_> = [&prelude].into_iter().chain(begins).collect();
        let own = lean(&text);
        let whole: String = begins.iter().map(|(_, text)| text.as_str()).chain([&*own]).collect();
        let sha1 = sha1_smol::Sha1::from(&whole).digest();
        // With key locking, Redis has to know all keys before the script runs.
        let name = file.trim_end_matches(".lua");
        let computes_keys =
            named_parts(&text).chain([name]).any(|part| COMPUTE_KEYS.contains(&part));
        let first_line = if computes_keys { "" } else { KEY_LOCKING };
        let key_locking_sha1 = sha1_smol::Sha1::from(first_line.to_owned() + &whole).digest();
        let begins: String =
            begins.iter().map(|(name, _)| format!("&{}, ", constant(name))).collect();
        let own = if NOT_IN_NPM.contains(&name) {
            format!("{own:?}")
        } else {
            append(&mut all_text, &own)
        };
        let number = names.len();
        let (plain, locking) = (2 * number, 2 * number + 1);
        writeln!(
            code,
            "/// `{file}`\npub static {}: Script = Script {{ name: {name:?}, number: {number}, begins: &[{begins}], own: {own}, \
             sha1: digest({plain}), key_locking_sha1: digest({locking}), computes_keys: {computes_keys} }};",
            constant(&file)
        )?;
        write!(digests, "{sha1}{key_locking_sha1}")?;
        names.push(format!("&{}", constant(&file)));
    }
    let digests_at = all_text.len();
    writeln!(code, "const DIGESTS_AT: usize = {digests_at};")?;
    writeln!(code, "static ALL_TEXT: &str = {:?};", all_text + &digests)?;
    let (count, all) = (names.len(), names.join(", "));
    writeln!(code, "/// All of them.\npub static ALL: [&Script; {count}] = [{all}];")?;
    fs::write(Path::new(&env::var("OUT_DIR")?).join("scripts.rs"), code)?;
    Ok(())
}

/// Reads the scripts, and returns their names and texts unchanged.
fn scripts() -> Result<Vec<(String, String)>, Box<dyn Error>> {
    let mut scripts = Vec::new();
    for entry in fs::read_dir(DIR)? {
        let (path, name) = named(entry?)?;
        if path.is_file() && name != PRELUDE {
            scripts.push((name, fs::read_to_string(path)?));
        }
    }
    scripts.sort();
    Ok(scripts)
}

/// Reads the files in a folder, and returns their names and texts as they are sent.
fn texts(folder: &Path) -> Result<Vec<(String, String)>, Box<dyn Error>> {
    let mut texts = Vec::new();
    for entry in fs::read_dir(folder)? {
        let (path, name) = named(entry?)?;
        texts.push((name, lean(&fs::read_to_string(path)?)));
    }
    texts.sort();
    Ok(texts)
}

fn named(entry: fs::DirEntry) -> Result<(PathBuf, String), Box<dyn Error>> {
    let name = entry.file_name().into_string().map_err(|_| "a script's name is not UTF-8")?;
    Ok((entry.path(), name))
}

/// Appends a text to the text of all scripts, and returns the expression of its place.
fn append(all_text: &mut String, text: &str) -> String {
    let place = all_text.len();
    *all_text += text;
    format!("part({place}, {})", text.len())
}

/// Returns a file's name as the name of a constant.
fn constant(file: &str) -> String {
    file.trim_end_matches(".lua").to_uppercase()
}

/// Returns the parts that a script's first line names.
fn named_parts(text: &str) -> impl Iterator<Item = &str> {
    let first = text.lines().next().and_then(|line| line.strip_prefix("-- with "));
    first.into_iter().flat_map(|names| names.split(", "))
}

/// Removes comment lines and indentation.
fn lean(text: &str) -> String {
    let lines =
        text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("--"));
    lines.map(|line| line.to_owned() + "\n").collect()
}
