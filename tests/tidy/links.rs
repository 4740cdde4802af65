//! The links between the pages lead to files, and their anchors to headings.

use std::path::{Component, Path, PathBuf};

use super::files::{File, below, root};

/// The page's lines outside of blocks of code.
fn prose(page: &File) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    page.text.lines().filter(move |line| {
        let is_mark = line.trim_start().starts_with("```");
        is_code ^= is_mark;
        !is_code && !is_mark
    })
}

/// The targets of the page's links, except addresses and Rust paths.
fn targets(page: &File) -> Vec<&str> {
    let after = prose(page).flat_map(|line| line.split("](").skip(1));
    let targets = after.filter_map(|rest| Some(rest.split_once(')')?.0));
    targets.filter(|target| !target.contains("::") && !target.contains("://")).collect()
}

/// The anchor of a heading, as GitHub makes it.
fn anchor(heading: &str) -> String {
    let kept = heading.to_lowercase();
    let kept = kept.trim().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn has_anchor(page: &File, wanted: &str) -> bool {
    let headings = prose(page).filter(|line| line.starts_with('#'));
    headings.map(|line| anchor(line.trim_start_matches('#'))).any(|anchor| anchor == wanted)
}

/// The path of a link's target from the root, which a link must not leave.
fn from_root(page: &File, link: &str) -> String {
    let mut path = PathBuf::new();
    let folder = Path::new(&page.path).parent().unwrap();
    for component in folder.join(link).components() {
        match component {
            Component::ParentDir => assert!(path.pop(), "{}: {link}", page.path),
            other => path.push(other),
        }
    }
    path.to_str().unwrap().to_owned()
}

#[test]
fn every_link_of_a_page_leads_to_a_file_and_a_heading() {
    let pages: Vec<File> = below("").into_iter().filter(|file| file.has_ending(&["md"])).collect();
    let mut links = 0;
    for page in &pages {
        for target in targets(page) {
            links += 1;
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let path = if file.is_empty() { page.path.clone() } else { from_root(page, file) };
            assert!(root().join(&path).exists(), "{}: {target}", page.path);
            if heading.is_empty() {
                continue;
            }
            let found = pages.iter().find(|other| other.path == path);
            let has = found.is_some_and(|other| has_anchor(other, heading));
            assert!(has, "{}: no heading {target}", page.path);
        }
    }
    assert!(links > 100, "{links}");
}

#[test]
fn an_anchor_is_lower_case_without_punctuation() {
    assert_eq!(anchor(" What can go wrong, and what's next?"), "what-can-go-wrong-and-whats-next");
}
