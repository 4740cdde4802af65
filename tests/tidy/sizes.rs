//! A file has at most 400 lines, and a function fewer than 70.

use super::files::{File, below};

const FILE_MAX: usize = 400;
const FUNCTION_MAX: usize = 70;

fn sources() -> Vec<File> {
    let endings = ["go", "js", "lua", "mjs", "rs", "ts"];
    below("").into_iter().filter(|file| file.has_ending(&endings)).collect()
}

#[test]
fn no_file_is_too_long() {
    for file in sources() {
        let length = file.text.lines().count();
        assert!(length <= FILE_MAX, "{}: {length} lines", file.path);
    }
}

#[test]
fn no_function_is_too_long() {
    for file in sources() {
        let lines: Vec<&str> = file.text.lines().collect();
        for (place, line) in lines.iter().enumerate().filter(|(_, line)| begins_a_function(line)) {
            let indent = line.len() - line.trim_start().len();
            let ends = |line: &&str| {
                let bare = line.trim_start();
                line.len() - bare.len() == indent && (bare.starts_with('}') || bare == "end")
            };
            let Some(length) = lines[place + 1..].iter().position(ends) else {
                continue;
            };
            assert!(length < FUNCTION_MAX, "{}:{}: {length} lines", file.path, place + 1);
        }
    }
}

/// Whether a function's block begins in this line. The formatters of all our languages put the
/// signature, or its end, and the opening brace into one line.
fn begins_a_function(line: &str) -> bool {
    let bare = line.trim_start();
    let is_comment = bare.starts_with("//") || bare.starts_with("--") || bare.starts_with('*');
    // A whole function in one line is short enough.
    let is_whole = bare.ends_with('}') || bare.ends_with(" end") || bare.ends_with(';');
    let words = ["fn ", "func ", "func(", "function ", "function(", "=> {"];
    !is_comment && !is_whole && words.iter().any(|word| bare.contains(word))
}
