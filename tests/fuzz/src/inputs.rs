//! Known inputs: valid ones, and those of earlier findings.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::Target;

impl Target {
    /// The fuzzer's initial inputs: valid ones, and those of earlier findings.
    pub fn known_inputs(&self) -> Vec<Vec<u8>> {
        let found = self.regressions().into_iter().map(|file| read(&file));
        (self.seeds)().into_iter().chain(found).collect()
    }

    /// Writes them as files into a folder.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn write_seeds(&self, folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder)?;
        let mut inputs = self.known_inputs().into_iter().enumerate();
        inputs
            .try_for_each(|(number, input)| fs::write(folder.join(format!("seed-{number}")), input))
    }

    /// The inputs of earlier findings, in hexadecimal digits: `cargo xtask fuzz` writes these
    /// files.
    fn regressions(&self) -> Vec<PathBuf> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("regressions").join(self.name);
        let entries = fs::read_dir(folder).into_iter().flatten();
        let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
    }
}

/// The bytes of a file of hexadecimal digits, which may have several lines.
fn read(file: &Path) -> Vec<u8> {
    let text =
        fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Option<Vec<u8>> = digits.chunks(2).map(byte).collect();
    bytes
        .filter(|_| digits.len().is_multiple_of(2))
        .unwrap_or_else(|| panic!("{}: no hexadecimal digits", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{TARGETS, target};

    #[test]
    fn known_inputs_pass_every_target() {
        for target in &TARGETS {
            let known = target.known_inputs();
            assert!(!known.is_empty(), "{} begins with nothing", target.name);
            known.iter().for_each(|input| (target.run)(input));
        }
    }

    // Slow: ten targets get every prefix of each of their first 50 known inputs.
    #[test]
    fn truncated_inputs_pass_every_target() {
        for target in &TARGETS {
            let known = target.known_inputs();
            let inputs = known.iter().take(50).filter(|input| input.len() < 1000);
            inputs.for_each(|input| (0..input.len()).for_each(|end| (target.run)(&input[..end])));
        }
    }

    #[test]
    fn each_regression_input_is_in_the_folder_of_its_target() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("regressions");
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            assert!(name == "ffi_bytes" || target(&name).is_some(), "{name}");
        }
    }
}
