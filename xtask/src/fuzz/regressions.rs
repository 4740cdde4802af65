//! Findings of a fuzzer: saved as text beside the targets, where the tests replay them.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::workspace::Workspace;

/// The words with which libFuzzer and the project's own fuzzer report the path of a finding.
const REPORTED: &str = "Test unit written to ";
/// The number of bytes in one line.
const LINE: usize = 32;

/// Keeps the input of a failure in the folder that the tests replay; returns the input, and the
/// command that repeats the failure.
pub(super) fn save_failure(workspace: &Workspace, target: &str, log: &str) -> Result<String> {
    let reported = log.lines().rev().find_map(|line| line.split_once(REPORTED));
    let path = Path::new(reported.context("it left no input behind")?.1.trim());
    let bytes = fs::read(path).context("it left no input behind")?;
    // Named by its hash; a few digits distinguish the inputs.
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.get(name.len().saturating_sub(12)..).unwrap_or(&name);
    let saved = format!("tests/fuzz/regressions/{target}/{name}.hex");
    let file = workspace.root.join(&saved);
    fs::create_dir_all(file.parent().unwrap_or(&file)).context("cannot save the input")?;
    let lines: Vec<String> = bytes.chunks(LINE).map(digits).collect();
    fs::write(file, lines.join("\n") + "\n").context("cannot save the input")?;
    Ok(format!(
        "{target} failed on {} bytes:\n    as text: \"{}\"\n    in hexadecimal digits: {}\n    saved in: {saved}\n    again: cargo xtask fuzz {target} --input {saved}",
        bytes.len(),
        bytes.escape_ascii(),
        digits(&bytes),
    ))
}

fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Writes the bytes that a file contains in hexadecimal digits; a file with another ending is
/// copied.
pub(super) fn unpack(file: &Path, to: &Path) -> Result<()> {
    let held = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let is_text = file.extension().is_some_and(|ending| ending == "hex");
    let bytes = if is_text { bytes(&held).context("no hexadecimal digits")? } else { held };
    fs::write(to, bytes).with_context(|| format!("cannot write {}", to.display()))
}

fn bytes(text: &[u8]) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let byte = |pair: &[u8]| match pair {
        [_, _] => u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok(),
        _ => None,
    };
    digits.chunks(2).map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_saved_input_is_read_again() {
        let input: Vec<u8> = (0..=255).collect();
        assert_eq!(bytes(digits(&input).as_bytes()), Some(input));
        assert_eq!(bytes(b"00 ff\n"), Some(vec![0, 255]));
        assert_eq!(bytes(b"0"), None);
        assert_eq!(bytes(b"xy"), None);
    }
}
