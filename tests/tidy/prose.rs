//! Wording that a machine can check. Two counts of each top-level folder may not rise: words
//! without a referent, and comments of more than 100 columns. When a change lowers a count, lower
//! its row to the count that `--no-capture` prints.

use std::collections::BTreeMap;

use super::files::{File, below, read};

/// Words and phrases that name no role, each cut in two so that this file does not contain them.
/// "The caller", "another client", "no waiter" or a type's name says more.
const VAGUE: [[&str; 2]; 6] = [
    ["who", "ever"],
    ["some", "body"],
    ["no", "body"],
    ["every", "body"],
    ["of ", "whom"],
    ["the same, ", "but"],
];

/// The pages that must not have a vague word at all.
const FRONT_PAGES: [&str; 3] = ["README.md", "gateway/README.md", "pkg/README.md"];

const COMMENT_COLUMNS: usize = 100;

/// The counts of a top-level folder, `.` for the root's own files.
#[derive(Clone, Copy, Default)]
struct Counts {
    vague_words: usize,
    wide_comments: usize,
}

const MOST: [(&str, Counts); 9] = [
    (".", Counts { vague_words: 1, wide_comments: 0 }),
    ("docs", Counts { vague_words: 2, wide_comments: 0 }),
    ("gateway", Counts { vague_words: 0, wide_comments: 0 }),
    ("pkg", Counts { vague_words: 0, wide_comments: 0 }),
    ("proto", Counts { vague_words: 0, wide_comments: 0 }),
    ("src", Counts { vague_words: 0, wide_comments: 0 }),
    ("tests", Counts { vague_words: 1, wide_comments: 0 }),
    ("www", Counts { vague_words: 13, wide_comments: 0 }),
    ("xtask", Counts { vague_words: 0, wide_comments: 0 }),
];

/// Whether `text` has a letter, a digit or an underscore at this side of a match: part of a longer
/// word or of an identifier then.
fn is_word(c: Option<char>) -> bool {
    c.is_some_and(|c| c.is_alphanumeric() || c == '_')
}

fn count(text: &str, word: &str) -> usize {
    let is_whole = |at: usize| {
        let (before, rest) = text.split_at(at);
        !is_word(before.chars().next_back()) && !is_word(rest[word.len()..].chars().next())
    };
    text.match_indices(word).filter(|(at, _)| is_whole(*at)).count()
}

fn vague_words(file: &File) -> usize {
    let text = file.text.to_lowercase();
    VAGUE.iter().map(|halves| count(&text, &halves.concat())).sum()
}

fn wide_comments(file: &File) -> usize {
    let is_source = file.has_ending(&["cjs", "js", "lua", "mjs", "rs", "ts"]);
    let is_wide = |line: &&str| {
        let begins =
            ["//", "--", "/*", "* "].iter().any(|mark| line.trim_start().starts_with(mark));
        begins && line.chars().count() > COMMENT_COLUMNS
    };
    if is_source { file.text.lines().filter(is_wide).count() } else { 0 }
}

fn counts() -> BTreeMap<String, Counts> {
    let mut counts: BTreeMap<String, Counts> = BTreeMap::new();
    for file in below("") {
        let folder = file.path.split_once('/').map_or(".", |(folder, _)| folder);
        let of_folder = counts.entry(folder.to_owned()).or_default();
        of_folder.vague_words += vague_words(&file);
        of_folder.wide_comments += wide_comments(&file);
    }
    counts
}

#[test]
fn vague_words_and_wide_comments_do_not_increase() {
    let mut rises = Vec::new();
    for (folder, now) in counts() {
        println!("{folder}: {} vague words, {} wide comments", now.vague_words, now.wide_comments);
        let row = MOST.iter().find(|(name, _)| *name == folder);
        let most = row.map_or_else(Counts::default, |(_, most)| *most);
        if now.vague_words > most.vague_words {
            rises.push(format!("{folder}: vague words {} > {}", now.vague_words, most.vague_words));
        }
        if now.wide_comments > most.wide_comments {
            let (now, most) = (now.wide_comments, most.wide_comments);
            rises.push(format!("{folder}: comments over 100 columns {now} > {most}"));
        }
    }
    assert!(rises.is_empty(), "{rises:#?}");
}

#[test]
fn the_front_pages_have_no_vague_word() {
    for path in FRONT_PAGES {
        let page = File { path: path.to_owned(), text: read(path) };
        assert_eq!(vague_words(&page), 0, "{path}");
    }
}

#[test]
fn a_vague_word_counts_whole_and_not_in_an_identifier() {
    let word = VAGUE[2].concat();
    let text = format!("{word} a_{word} {word}s {word}-else ({word})");
    assert_eq!(count(&text, &word), 3);
}
