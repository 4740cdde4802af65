//! Each room has its words. One that needs another room's word has a line in the wrong place.

use super::files::{File, below};

/// A room, and what its code never says.
const NEVER: [(&str, &[&str]); 6] = [
    ("src/protocol", &["deadline", "retry", "sleep", "wait"]),
    ("src/machine", &["fetch", "header", "headers", "http", "json", "url"]),
    ("src/transport", &["lease", "lock", "owner", "script"]),
    ("src/host", &["lease", "lock", "request", "script"]),
    ("src/client", &["argv", "evalsha", "http", "json", "pexpire", "status"]),
    ("src/js", &["argv", "evalsha", "hashtag", "jitter", "pexpire"]),
];

/// Words that we have another one for; the last is where it is another's word.
const ELSEWHERE: [(&str, &str, &[&str]); 3] = [
    (
        "watchdog",
        "renewal",
        &["Java", "Redisson", "peer_watchdog", "peerWatchdogMs", "lockWatchdogTimeout"],
    ),
    ("mutex", "lock", &["std::sync", "Mutex"]),
    ("ttl", "remaining", &[]),
];

/// The words of a line: `leaseTime` and `lease_time` are two each.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for c in line.chars() {
        if !c.is_ascii_alphanumeric() || c.is_ascii_uppercase() {
            words.push(String::new());
        }
        if c.is_ascii_alphanumeric() {
            words.last_mut().unwrap().push(c.to_ascii_lowercase());
        }
    }
    words
}

fn rust_files(folder: &str) -> Vec<File> {
    below(folder).into_iter().filter(|file| file.has_ending(&["rs"])).collect()
}

#[test]
fn a_room_keeps_to_its_words() {
    for (room, never) in NEVER {
        for file in rust_files(room) {
            for line in file.code() {
                // A header of HTTP, which is what it is called.
                let words = words(&line.replace("retry_after", ""));
                for word in never {
                    assert!(!words.iter().any(|said| said == word), "{}: {line}", file.path);
                }
            }
        }
    }
}

#[test]
fn one_idea_has_one_word() {
    for file in rust_files("src") {
        for line in file.text.lines() {
            let words = words(line);
            for (word, better, theirs) in ELSEWHERE {
                let ours = !theirs.iter().any(|context| line.contains(context));
                let said = words.iter().any(|said| said == word);
                assert!(!(said && ours), "{}: say {better}: {line}", file.path);
            }
        }
    }
}
