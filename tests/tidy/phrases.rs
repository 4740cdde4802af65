//! Sentences of earlier versions of this repository that were rewritten must not come back.

use super::files::{File, below};

/// The old sentences in lower case, each cut in two so that this file does not contain it.
const REPLACED: [[&str; 2]; 16] = [
    ["so far clocks may be apart of which ", "one takes over"],
    ["what a try that a message has ", "caused counts for"],
    ["who has a request joins the ", "batch that is open"],
    ["who has not been told that it ", "hears has to ask once"],
    ["one who asks in vain, and the ", "one who does not"],
    ["for how long something may be ", "held of which"],
    ["for how long something may be ", "held, instead of"],
    ["every request may be ", "sent twice, and"],
    ["every request may safely ", "be sent twice"],
    ["holder learns of a ", "loss in time"],
    ["does the last ", "four lines"],
    ["comes back without its data must not vote ", "while an old lease may stand"],
    ["re-entry is ", "asked for"],
    ["but it was not done, and ", "will not be"],
    ["but it was not done, and ", "never will be"],
    ["thinks of those who ", "are silent"],
];

/// The text in lower case, with each run of line breaks, indents and comment marks made one space,
/// so that a wrapped sentence is found.
fn unwrapped(file: &File) -> String {
    let marks = |c: char| c.is_whitespace() || ['/', '!', '*', '#', '-'].contains(&c);
    let lines = file.text.lines().map(|line| line.trim_start_matches(marks).trim_end());
    lines.collect::<Vec<_>>().join(" ").to_lowercase()
}

#[test]
fn a_replaced_sentence_does_not_come_back() {
    let replaced = REPLACED.map(|halves| halves.concat());
    for file in below("") {
        let text = unwrapped(&file);
        for sentence in &replaced {
            assert!(!text.contains(sentence.as_str()), "{}: {sentence}", file.path);
        }
    }
}

#[test]
fn a_sentence_is_found_across_lines_and_comment_marks() {
    let [first, second] = REPLACED[2];
    let text = format!("//! {}\n    //! {second}\n", first.trim_end());
    let file = File { path: String::new(), text };
    assert!(unwrapped(&file).contains(&REPLACED[2].concat()));
}
