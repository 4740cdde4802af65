//! The arrows between the rooms of `src/` point down only.

use super::files::{File, below, read};

/// Each room, and which others it may name. `*` stands for the whole room itself.
const ARROWS: [(&str, &[&str]); 12] = [
    ("time", &["host"]),
    ("error", &[]),
    ("name", &["error"]),
    ("timing", &["error"]),
    ("protocol", &["error", "name", "protocol", "time", "timing"]),
    ("machine", &["error", "machine", "name", "protocol", "time", "timing"]),
    ("web", &[]),
    ("transport", &["error", "protocol", "transport", "web"]),
    ("host", &["host", "time", "web"]),
    (
        "client",
        &["client", "error", "host", "machine", "name", "protocol", "time", "timing", "transport"],
    ),
    (
        "blocking",
        &[
            "blocking",
            "client",
            "error",
            "host",
            "machine",
            "name",
            "protocol",
            "timing",
            "transport",
        ],
    ),
    (
        "js",
        &[
            "client",
            "error",
            "host",
            "js",
            "machine",
            "name",
            "protocol",
            "time",
            "timing",
            "transport",
            "web",
        ],
    ),
];

/// Rooms without a clock, I/O or randomness: `core` and `alloc` only.
const PURE: [&str; 6] = ["error", "machine", "name", "protocol", "time", "timing"];

fn room(file: &File) -> &str {
    let inside = file.path.strip_prefix("src/").unwrap();
    inside.split('/').next().unwrap().trim_end_matches(".rs")
}

/// The rooms that a line names.
fn named(line: &str) -> impl Iterator<Item = &str> {
    line.split("crate::").skip(1).map(|rest| {
        rest.split(|c: char| !c.is_ascii_lowercase() && c != '_').next().unwrap_or_default()
    })
}

fn rust_files() -> Vec<File> {
    below("src").into_iter().filter(|file| file.has_ending(&["rs"])).collect()
}

#[test]
fn a_room_names_only_the_rooms_below_it() {
    for file in rust_files() {
        let room = room(&file);
        if room == "lib" {
            continue;
        }
        let (_, allowed) =
            ARROWS.iter().find(|(name, _)| *name == room).unwrap_or_else(|| panic!("{room}?"));
        for line in file.code() {
            for named in named(line) {
                assert!(allowed.contains(&named), "{}: `{named}` in {line}", file.path);
            }
        }
    }
}

#[test]
fn a_transport_knows_requests_and_responses_only() {
    for file in rust_files().iter().filter(|file| room(file) == "transport") {
        for line in file.code().filter(|line| line.contains("crate::protocol")) {
            assert_eq!(
                line.trim(),
                "use crate::protocol::gateway::{Request, Response};",
                "{}",
                file.path
            );
        }
    }
}

#[test]
fn a_pure_room_has_no_operating_system() {
    for file in rust_files().iter().filter(|file| PURE.contains(&room(file))) {
        for line in file.code() {
            let says = |word| line.match_indices(word).any(|(at, _)| !line[..at].ends_with('_'));
            assert!(!says("std::"), "{}: {line}", file.path);
        }
    }
}

#[test]
fn targets_are_told_apart_at_doors_only() {
    for file in rust_files().iter().filter(|file| file.path != "src/lib.rs") {
        let is_door = ["src/host/mod.rs", "src/transport/mod.rs", "src/client/mod.rs"]
            .contains(&file.path.as_str());
        let lines: Vec<&str> = file.code().collect();
        for (place, line) in lines.iter().enumerate().filter(|(_, line)| line.contains("cfg(")) {
            assert!(is_door && line.starts_with("#[cfg("), "{}: {line}", file.path);
            let next = lines[place + 1..].iter().find(|line| !line.starts_with("#[")).unwrap();
            let is_module =
                ["mod ", "pub use ", "pub(crate) use "].iter().any(|word| next.starts_with(word));
            assert!(is_module, "{}: {next}", file.path);
        }
    }
}

#[test]
fn nothing_that_changes_lives_outside_of_a_value() {
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
fn a_script_is_a_file_of_its_own() {
    for file in rust_files() {
        assert!(file.code().all(|line| !line.contains("redis.call")), "{}", file.path);
    }
    for file in below("src").iter().filter(|file| file.has_ending(&["lua"])) {
        let name = file.path.rsplit('/').next().unwrap();
        let says: &[&str] = match name {
            "prelude.lua" => &["-- ARGV", "-- Reply"],
            // What several scripts begin with says what it is for; what it is given is theirs.
            _ if file.path.contains("/parts/") => &["-- "],
            _ => &["-- KEYS", "-- ARGV", "-- Reply", "-- May be sent twice"],
        };
        let header: Vec<&str> =
            file.text.lines().take_while(|line| line.starts_with("--")).collect();
        for word in says {
            let said = header.iter().any(|line| line.starts_with(word));
            assert!(said, "{}: its header does not say `{word}`", file.path);
        }
    }
}

#[test]
fn only_the_key_room_spells_a_key() {
    for file in rust_files().iter().filter(|file| file.path != "src/protocol/key.rs") {
        for line in file.code() {
            // A name may be compared with what is taken; nothing may be built of it.
            let spells = line.contains("\"redisson_") || line.contains("\"el:");
            assert!(!spells || line.contains("starts_with("), "{}: {line}", file.path);
        }
    }
    assert!(read("src/protocol/key.rs").contains("redisson_lock__channel"));
}
