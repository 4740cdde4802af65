//! Dependencies between the modules of the core (`proto/src`) and of the client (`src`) point down
//! only: the core cannot import the client, since that is another crate.

use super::files::{File, below, read};

/// Each module, and the modules that it may import.
const ALLOWED_IMPORTS: [(&str, &str); 15] = [
    ("time", ""),
    ("error", ""),
    ("name", "error"),
    ("timing", "error"),
    ("protocol", "error name protocol time timing"),
    ("machine", "error machine name protocol time timing"),
    ("engine", "engine error machine name protocol time timing"),
    ("web", ""),
    ("awaited", ""),
    ("transport", "awaited error protocol transport web"),
    ("host", "awaited host time web"),
    ("client", "client engine error host machine name protocol time timing transport"),
    ("blocking", "blocking client error host machine name protocol timing transport"),
    ("testing", "client error host name protocol transport"),
    ("js", "engine error js machine name protocol time timing transport web"),
];

/// The folders of the two crates.
const CRATES: [&str; 2] = ["proto/src/", "src/"];

/// The top-level module that a file belongs to.
fn module(file: &File) -> &str {
    let inside = CRATES.iter().find_map(|folder| file.path.strip_prefix(folder)).unwrap();
    inside.split('/').next().unwrap().trim_end_matches(".rs")
}

/// The modules that a line names.
fn imported(line: &str) -> impl Iterator<Item = &str> {
    let rests = ["crate::", "edgelatch_proto::"].map(|root| line.split(root).skip(1));
    rests.into_iter().flatten().map(|rest| {
        rest.split(|c: char| !c.is_ascii_lowercase() && c != '_').next().unwrap_or_default()
    })
}

fn rust_files() -> Vec<File> {
    let all = CRATES.into_iter().flat_map(|folder| below(folder.trim_end_matches('/')));
    all.filter(|file| file.has_ending(&["rs"])).collect()
}

#[test]
fn a_module_imports_only_the_modules_below_it() {
    for file in rust_files() {
        let module = module(&file);
        if module == "lib" {
            continue;
        }
        let (_, allowed) = ALLOWED_IMPORTS
            .iter()
            .find(|(name, _)| *name == module)
            .unwrap_or_else(|| panic!("{module}?"));
        for line in file.code() {
            for name in imported(line) {
                let is_allowed = allowed.split_whitespace().any(|other| other == name);
                assert!(is_allowed, "{}: `{name}` in {line}", file.path);
            }
        }
    }
}

#[test]
fn a_transport_imports_only_requests_and_responses() {
    for file in rust_files().iter().filter(|file| module(file) == "transport") {
        for line in file.code().filter(|line| line.contains("edgelatch_proto::")) {
            assert_eq!(
                line.trim(),
                "pub use edgelatch_proto::protocol::gateway::{Request, Response};",
                "{}",
                file.path
            );
        }
    }
}

/// Without `std` there is no clock, no I/O and no thread; the compiler checks each use.
#[test]
fn the_core_is_compiled_without_std() {
    let root = read("proto/src/lib.rs");
    assert!(root.lines().any(|line| line == "#![no_std]"));
    for file in below("proto/src") {
        assert!(file.code().all(|line| !line.contains("extern crate std")), "{}", file.path);
    }
}

#[test]
fn only_module_declarations_have_a_cfg() {
    for file in rust_files().iter().filter(|file| module(file) != "lib") {
        let may_choose = ["src/host/mod.rs", "src/transport/mod.rs", "src/client/mod.rs"]
            .contains(&file.path.as_str());
        let lines: Vec<&str> = file.code().collect();
        for (place, line) in lines.iter().enumerate().filter(|(_, line)| line.contains("cfg(")) {
            assert!(may_choose && line.starts_with("#[cfg("), "{}: {line}", file.path);
            let next = lines[place + 1..].iter().find(|line| !line.starts_with("#[")).unwrap();
            let is_module =
                ["mod ", "pub use ", "pub(crate) use "].iter().any(|word| next.starts_with(word));
            assert!(is_module, "{}: {next}", file.path);
        }
    }
}

#[test]
fn no_static_has_mutable_state() {
    let cells = ["Mutex", "RwLock", "Atomic", "Cell", "OnceLock", "LazyLock", "Once<"];
    for file in rust_files() {
        for line in file.code().map(str::trim_start) {
            let line = line.trim_start_matches("pub ").trim_start_matches("pub(crate) ");
            let is_static = line.starts_with("static ");
            let changes = line.starts_with("static mut ") || line.contains("thread_local!");
            let may_change = is_static && cells.iter().any(|cell| line.contains(cell));
            assert!(!changes && !may_change, "{}: {line}", file.path);
        }
    }
}

#[test]
fn every_script_is_a_file_with_a_header() {
    for file in rust_files() {
        assert!(file.code().all(|line| !line.contains("redis.call")), "{}", file.path);
    }
    for file in below("proto/src").iter().filter(|file| file.has_ending(&["lua"])) {
        let name = file.path.rsplit('/').next().unwrap();
        let required: &[&str] = match name {
            "prelude.lua" => &["-- ARGV", "-- Reply"],
            // A common beginning of several scripts; each of them describes its own arguments.
            _ if file.path.contains("/parts/") => &["-- "],
            _ => &["-- KEYS", "-- ARGV", "-- Reply", "-- May be sent twice"],
        };
        let header: Vec<&str> =
            file.text.lines().take_while(|line| line.starts_with("--")).collect();
        for word in required {
            let is_there = header.iter().any(|line| line.starts_with(word));
            assert!(is_there, "{}: its header has no line `{word}`", file.path);
        }
    }
}

#[test]
fn only_the_key_module_builds_keys() {
    for file in rust_files().iter().filter(|file| file.path != "proto/src/protocol/key.rs") {
        for line in file.code() {
            // Code may compare a name with a reserved prefix, and may not build a key of it.
            let builds = line.contains("\"redisson_") || line.contains("\"el:");
            assert!(!builds || line.contains("starts_with("), "{}: {line}", file.path);
        }
    }
    assert!(read("proto/src/protocol/key.rs").contains("redisson_lock__channel"));
}
