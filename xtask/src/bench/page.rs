//! The pages that tell figures: the part of them between two marks is written by us, and by nobody else.

use std::fs;

use anyhow::{Context as _, Result};

use super::figures::short;
use super::table::{Results, Row, Table};
use crate::place::Place;

const BEGIN: &str = "<!-- cargo xtask bench writes from here on -->\n";
const END: &str = "<!-- to here -->\n";
/// What the first page says: in which table, in which row, and of what.
const CHOSEN: [(&str, &str, &str); 7] = [
    ("traffic", "acquire + release", "bytes up"),
    ("time", "acquire + release, the library", "µs of processor time"),
    ("time", "import until the first lock is held", "ms"),
    ("handoff", "1 waiter", "round trips, median"),
    ("handoff", "100 waiters, each a client", "round trips, median"),
    ("waiting", "100 waiters", "requests/s"),
    ("size", "gzip -9", "kB"),
];
/// By what the heads of columns begin with, after ours.
const PEERS: [&str; 3] = ["@upstash/lock", "redlock", "redis-semaphore"];

/// A page, and what is written into it.
type Page = (&'static str, fn(&Results) -> Result<String>);
const PAGES: [Page; 2] =
    [("docs/performance.md", |results| Ok(whole(results))), ("README.md", chosen)];

/// Writes the results into the pages.
pub(super) fn write(place: &Place, results: &Results) -> Result<()> {
    for (page, say) in PAGES {
        let file = place.root.join(page);
        let text = fs::read_to_string(&file).with_context(|| format!("cannot read {page}"))?;
        let text = with(&text, &say(results)?).with_context(|| format!("{page} has no marks"))?;
        fs::write(&file, text).with_context(|| format!("cannot write {page}"))?;
    }
    Ok(())
}

/// The page with other words between its marks.
fn with(page: &str, words: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}{words}{END}{after}"))
}

/// Every table.
fn whole(results: &Results) -> String {
    let machine = results.machine.iter().map(|(name, is)| format!("{name} {is}"));
    let mut text = format!("Measured on: {}.\n", machine.collect::<Vec<_>>().join(", "));
    for table in &results.tables {
        text += &format!("\n## {}\n\n{}.\n\n", table.title, capital(&table.how));
        let heads: Vec<&str> = table.columns.iter().map(String::as_str).collect();
        text += &head(&heads);
        for row in &table.rows {
            let cells: Vec<&f64> = row.cells.iter().collect();
            text += &line(row, &cells);
        }
    }
    text
}

/// A few rows beside each other.
fn chosen(results: &Results) -> Result<String> {
    let is = |name: &str| {
        let found = results.machine.iter().find(|(other, _)| other == name);
        found.map(|(_, is)| is.as_str()).with_context(|| format!("results without {name}"))
    };
    let mut text = format!(
        "Measured by `cargo xtask bench` on {} ({} cores) with Redis {} and Node {}: edgelatch's figure, then how many times that \
         the others\nhave, and in brackets theirs. [docs/performance.md](docs/performance.md) has all of it, and says how.\n\n",
        is("CPU")?,
        is("cores")?,
        is("Redis")?,
        is("Node")?,
    );
    text += &head(&["edgelatch", "@upstash/lock", "redlock (TCP)", "redis-semaphore (TCP)"]);
    for (id, what, unit) in CHOSEN {
        let table = results.tables.iter().find(|table| table.id == id);
        let table = table.with_context(|| format!("results without {id}"))?;
        let row = table.rows.iter().find(|row| row.what == what && row.unit == unit);
        let row = row.with_context(|| format!("{id} without {what}"))?;
        let cells: Option<Vec<&f64>> =
            columns(table).iter().map(|place| row.cells.get(*place)).collect();
        let cells = cells.with_context(|| format!("{id} lacks figures"))?;
        text +=
            &line(&Row { what: named(table, what), unit: unit.to_owned(), cells: vec![] }, &cells);
    }
    Ok(text)
}

/// Where ours is, and where the peers are.
fn columns(table: &Table) -> Vec<usize> {
    let place = |peer: &&str| table.columns.iter().position(|column| column.starts_with(peer));
    std::iter::once(0).chain(PEERS.iter().filter_map(place)).collect()
}

/// A row that stands outside of its table says what that is about.
fn named(table: &Table, what: &str) -> String {
    match table.id.as_str() {
        "handoff" => format!("release to next holder, {what}"),
        "waiting" => format!("{what} waiting"),
        "size" => format!("shipped, {what}"),
        _ => what.to_owned(),
    }
}

fn head(columns: &[&str]) -> String {
    format!("| | {} |\n|---|{}\n", columns.join(" | "), "---:|".repeat(columns.len()))
}

/// Ours as it is, the others in ratio to it.
fn line(row: &Row, cells: &[&f64]) -> String {
    let ours = cells.first().map_or(0.0, |ours| **ours);
    let cell = |(place, cell): (usize, &&f64)| {
        let figure = short(**cell);
        if place == 0 || ours <= 0.0 {
            figure
        } else {
            format!("×{} ({figure})", short(**cell / ours))
        }
    };
    let cells: Vec<String> = cells.iter().enumerate().map(cell).collect();
    format!("| {} ({}) | {} |\n", row.what, row.unit, cells.join(" | "))
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_keeps_what_stands_around_the_marks() {
        let page = format!("before\n{BEGIN}old\n{END}after\n");
        let expected = format!("before\n{BEGIN}new\n{END}after\n");
        assert_eq!(with(&page, "new\n"), Some(expected));
        assert_eq!(with("no marks", "new"), None);
    }

    #[test]
    fn a_line_has_ratios_first() {
        let row = Row { what: "a".to_owned(), unit: "ms".to_owned(), cells: vec![] };
        assert_eq!(line(&row, &[&2.0, &5.0]), "| a (ms) | 2 | ×2.50 (5) |\n");
        assert_eq!(line(&row, &[&0.0, &5.0]), "| a (ms) | 0 | 5 |\n");
    }

    /// Figures are not copied by hand: a page that says others than were measured is found here.
    #[test]
    fn the_pages_say_what_was_measured() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
        let read = |file: &str| fs::read_to_string(format!("{root}/{file}")).unwrap();
        let results = Results::from_json(&read("bench/results.json")).unwrap();
        for (page, say) in PAGES {
            let text = read(page);
            assert_eq!(with(&text, &say(&results).unwrap()).as_ref(), Some(&text), "{page}");
        }
    }
}
