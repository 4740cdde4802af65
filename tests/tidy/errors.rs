//! The codes of errors in JavaScript: the same in the code, the types and the documentation.

use std::collections::BTreeSet;

use super::files::read;

/// The codes that the package's classes have.
fn codes() -> BTreeSet<String> {
    let text = read("pkg/errors.js");
    let classes = text.lines().filter_map(|line| line.trim().strip_prefix("errorClass(\""));
    let codes: BTreeSet<String> =
        classes.filter_map(|rest| Some(rest.split('"').nth(2)?.to_owned())).collect();
    assert!(codes.len() > 10, "{codes:?}");
    codes
}

/// The words in back quotes in the first column of a page's tables.
fn rows(page: &str) -> BTreeSet<String> {
    let text = read(page);
    let cells = text.lines().filter_map(|line| line.strip_prefix("| `"));
    cells.filter_map(|cell| Some(cell.split_once('`')?.0.to_owned())).collect()
}

#[test]
fn every_code_is_explained_and_no_other() {
    let codes = codes();
    let types = read("pkg/errors.d.ts");
    for code in &codes {
        assert!(types.contains(&format!("readonly code: \"{code}\"")), "errors.d.ts: {code}");
    }
    let (page, readme) = (rows("docs/errors.md"), rows("pkg/README.md"));
    let missing = |rows: &BTreeSet<String>| codes.difference(rows).cloned().collect::<Vec<_>>();
    assert_eq!(missing(&page), Vec::<String>::new(), "docs/errors.md");
    assert_eq!(missing(&readme), Vec::<String>::new(), "pkg/README.md");

    // The other rows of the page are the reasons of `GatewayRefusedError`.
    let reasons: BTreeSet<String> = page.difference(&codes).cloned().collect();
    let (_, refused) = types.split_once("class GatewayRefusedError").unwrap();
    let (refused, _) = refused.split_once("\n}").unwrap();
    let typed = refused.lines().filter_map(|line| line.trim().strip_prefix("| \""));
    let typed: BTreeSet<String> =
        typed.filter_map(|rest| Some(rest.split('"').next()?.to_owned())).collect();
    assert_eq!(reasons, typed);
}
