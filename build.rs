//! Turns `src/protocol/scripts/*.lua` into the scripts that are sent: the prelude in front, comments taken out, and the
//! SHA-1 by which Redis knows each, once plain and once with Upstash's key-locking line.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, error::Error, fs};

const DIR: &str = "src/protocol/scripts";
const PRELUDE: &str = "prelude.lua";
const KEY_LOCKING: &str = "#!lua flags=allow-key-locking\n";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={DIR}");
    let prelude = lean(Path::new(DIR).join(PRELUDE))?;
    let mut files: Vec<PathBuf> =
        fs::read_dir(DIR)?.map(|entry| Ok(entry?.path())).collect::<Result<_, std::io::Error>>()?;
    files.sort();

    let mut code = format!("pub(super) const KEY_LOCKING: &str = {KEY_LOCKING:?};\n");
    for file in files.into_iter().filter(|file| !file.ends_with(PRELUDE)) {
        let name = file
            .file_stem()
            .and_then(|stem| stem.to_str())
            .ok_or("a script's name is not UTF-8")?
            .to_owned();
        let source = prelude.clone() + &lean(file)?;
        let sha1 = sha1_smol::Sha1::from(&source).digest().to_string();
        let key_locking_sha1 =
            sha1_smol::Sha1::from(KEY_LOCKING.to_owned() + &source).digest().to_string();
        write!(
            code,
            "/// `{name}.lua`\npub static {}: Script = Script {{ name: {name:?}, source: {source:?}, \
             sha1: {sha1:?}, key_locking_sha1: {key_locking_sha1:?} }};\n",
            name.to_uppercase()
        )?;
    }
    fs::write(Path::new(&env::var("OUT_DIR")?).join("scripts.rs"), code)?;
    Ok(())
}

/// The script without comment lines and indentation.
fn lean(file: PathBuf) -> Result<String, std::io::Error> {
    let text = fs::read_to_string(file)?;
    let lines =
        text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("--"));
    Ok(lines.map(|line| line.to_owned() + "\n").collect())
}
