//! Wording that a machine can check. Three counts of each top-level folder may not rise: words
//! without a referent, sentences in comments that begin with a relative clause, and comments of
//! more than 100 columns. When a change lowers a count, lower its row to the count that
//! `--no-capture` prints.

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

/// Beginnings of sentences without a named subject, in comments. "The reply", "the caller" or a
/// type's name says more. A question begins in the same way: ask none in a comment.
const HEADLESS: [&str; 7] =
    ["What", "Who", "Whatever", "Those who", "Those that", "One who", "One that"];

/// The pages that must not have a vague word at all.
const FRONT_PAGES: [&str; 3] = ["README.md", "gateway/README.md", "pkg/README.md"];

const COMMENT_COLUMNS: usize = 100;

/// The counts of a top-level folder, `.` for the root's own files.
#[derive(Clone, Copy, Default)]
struct Counts {
    vague_words: usize,
    headless_sentences: usize,
    wide_comments: usize,
}

impl Counts {
    fn each(self) -> [(&'static str, usize); 3] {
        [
            ("vague words", self.vague_words),
            ("headless sentences", self.headless_sentences),
            ("comments over 100 columns", self.wide_comments),
        ]
    }
}

/// The folders with counts above 0.
const MOST: [(&str, Counts); 1] = [
    // A sentence of a licence.
    (".", Counts { vague_words: 1, headless_sentences: 0, wide_comments: 0 }),
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

/// The lines of a source file that are comments, with their marks.
fn comments(file: &File) -> impl Iterator<Item = &str> {
    let is_source = file.has_ending(&["cjs", "go", "js", "lua", "mjs", "rs", "ts"]);
    let marks = ["//", "--", "/*", "* "];
    let is_comment = move |line: &&str| {
        is_source && marks.iter().any(|mark| line.trim_start().starts_with(mark))
    };
    file.text.lines().filter(is_comment)
}

fn headless_sentences(file: &File) -> usize {
    let is_headless = |sentence: &str| {
        let mut rests = HEADLESS.iter().filter_map(|words| sentence.strip_prefix(words));
        rests.any(|rest| rest.starts_with(' '))
    };
    let of_line = |line: &str| {
        let text = line.trim_start_matches(['/', '!', '-', '*', ' ']).to_owned();
        text.split(". ").filter(|sentence| is_headless(sentence)).count()
    };
    comments(file).map(of_line).sum()
}

fn wide_comments(file: &File) -> usize {
    comments(file).filter(|line| line.chars().count() > COMMENT_COLUMNS).count()
}

fn counts() -> BTreeMap<String, Counts> {
    let mut counts: BTreeMap<String, Counts> = BTreeMap::new();
    for file in below("") {
        let folder = file.path.split_once('/').map_or(".", |(folder, _)| folder);
        let of_folder = counts.entry(folder.to_owned()).or_default();
        of_folder.vague_words += vague_words(&file);
        of_folder.headless_sentences += headless_sentences(&file);
        of_folder.wide_comments += wide_comments(&file);
    }
    counts
}

#[test]
fn counts_of_wording_do_not_increase() {
    let mut rises = Vec::new();
    for (folder, now) in counts() {
        println!("{folder}: {:?}", now.each());
        let row = MOST.iter().find(|(name, _)| *name == folder);
        let most = row.map_or_else(Counts::default, |(_, most)| *most);
        for ((name, now), (_, most)) in now.each().into_iter().zip(most.each()) {
            if now > most {
                rises.push(format!("{folder}: {name} {now} > {most}"));
            }
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

#[test]
fn a_headless_sentence_counts_at_the_start_of_a_comment_and_after_a_sentence() {
    let words = HEADLESS[0];
    let text =
        format!("/// {words} is here. {words} is there, {words}.\nlet a = 1; // {words} is\n");
    let file = File { path: "a.rs".to_owned(), text };
    assert_eq!(headless_sentences(&file), 2);
}
