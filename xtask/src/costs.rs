//! Writes the costs of the npm package into `docs/environments.md`: the sizes that
//! `cargo xtask size --record` has recorded, and the time of a start that `cargo xtask bench` has
//! measured.

use std::fs;

use anyhow::{Context as _, Result};

use crate::bench;
use crate::place::Place;
use crate::size::{self, Weight};

const PAGE: &str = "docs/environments.md";
const BEGIN: &str = "<!-- cargo xtask size --record and cargo xtask bench write from here on -->\n";
const END: &str = "<!-- to here -->\n";

/// The keys of the recorded sizes, and their names in the table.
const ROWS: [(&str, &str); 6] = [
    ("entry index.js", "`index.js`, with the module as text"),
    ("entry index.cjs", "`index.cjs`, with the module as text"),
    ("entry workerd.js", "`workerd.js`, with the module"),
    ("entry edge-light.js", "`edge-light.js`, with the module"),
    ("entry slim.js", "`slim.js`, and the module that the program brings"),
    (size::TARBALL, "the tarball, as npm downloads it"),
];

const SMALL: &str = "Weighed as released: the module's standard library is built for size.";
const PLAIN: &str = "Weighed with the standard library as rustup distributes it. A release builds the standard library for size, so its module is smaller.";

/// Writes the costs into the page.
pub(crate) fn write(place: &Place) -> Result<()> {
    let read = |path: &str| {
        fs::read_to_string(place.root.join(path)).with_context(|| format!("cannot read {path}"))
    };
    let words = words(&read(size::RECORDED)?, &read(bench::RECORDED)?)?;
    let page = with(&read(PAGE)?, &words).with_context(|| format!("{PAGE} has no marks"))?;
    fs::write(place.root.join(PAGE), page).with_context(|| format!("cannot write {PAGE}"))
}

/// Returns the page with `words` between its marks.
fn with(page: &str, words: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}{words}{END}{after}"))
}

/// Returns the table of sizes and the sentence about times.
fn words(sizes: &str, results: &str) -> Result<String> {
    let sizes = size::recorded(sizes)?;
    let mut text =
        "| a runtime loads | raw, kB | gzip -9, kB | brotli, kB |\n|---|---:|---:|---:|\n"
            .to_owned();
    for (key, label) in ROWS {
        let Weight { raw, gzip, brotli } =
            sizes.weights.get(key).with_context(|| format!("no recorded size of {key}"))?;
        text += &format!("| {label} | {} | {} | {} |\n", kilo(*raw), kilo(*gzip), kilo(*brotli));
    }
    let library = if sizes.is_small { SMALL } else { PLAIN };
    text += &format!("\n{library}\n\n{}\n", bench::start_of_package(results)?);
    Ok(text)
}

/// Formats kilobytes as `12.3`, or a dash for no size.
fn kilo(bytes: i64) -> String {
    if bytes == 0 { "–".to_owned() } else { format!("{:.1}", bytes as f64 / 1_000.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_keeps_its_text_around_the_marks() {
        let page = format!("before\n{END}{BEGIN}old\n{END}after\n");
        let expected = format!("before\n{END}{BEGIN}new\n{END}after\n");
        assert_eq!(with(&page, "new\n"), Some(expected));
        assert_eq!(with("no marks", "new"), None);
    }

    #[test]
    fn a_size_is_in_kilobytes_or_a_dash() {
        assert_eq!(kilo(34_072), "34.1");
        assert_eq!(kilo(0), "–");
    }

    /// Compares the page with the recorded figures, so that no figure is copied by hand.
    #[test]
    fn the_page_has_the_recorded_costs() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
        let read = |file: &str| fs::read_to_string(format!("{root}/{file}")).unwrap();
        let words = words(&read(size::RECORDED), &read(bench::RECORDED)).unwrap();
        let page = read(PAGE);
        assert_eq!(with(&page, &words).as_ref(), Some(&page));
    }
}
