//! Writes the measured figures into the pages, between two marks. Everything else on a page stays.

use std::fs;

use anyhow::{Context as _, Result};

use super::figures::short;
use super::table::{Results, Row};
use crate::place::Place;

const BEGIN: &str = "<!-- cargo xtask bench writes from here on -->\n";
const END: &str = "<!-- to here -->\n";
/// A row of the README's table. The smallest figure of each measure is the best.
struct Measure {
    /// The source in the results: the table, its row, and the unit.
    table: &'static str,
    row: &'static str,
    unit: &'static str,
    /// The column with edgelatch's figure.
    ours: &'static str,
    /// The row's name in the README.
    name: &'static str,
}

const MEASURES: [Measure; 8] = [
    Measure {
        table: "traffic",
        row: "acquire + release",
        unit: "bytes up",
        ours: "edgelatch",
        name: "acquire + release: bytes sent",
    },
    Measure {
        table: "time",
        row: "acquire + release, the library",
        unit: "µs of processor time",
        ours: "edgelatch",
        name: "acquire + release: processor time of the library, µs",
    },
    Measure {
        table: "time",
        row: "import until the first lock is held",
        unit: "ms",
        ours: "edgelatch",
        name: "from import to the first lock held, ms",
    },
    Measure {
        table: "handoff-ms",
        row: "1 waiter",
        unit: "ms, median",
        ours: "edgelatch, stream",
        name: "from release to the next holder, 1 waiter, ms",
    },
    Measure {
        table: "handoff-ms",
        row: "100 waiters, each a client",
        unit: "ms, median",
        ours: "edgelatch, stream",
        name: "from release to the next holder, 100 waiting clients, ms",
    },
    Measure {
        table: "waiting",
        row: "100 waiters",
        unit: "requests/s",
        ours: "edgelatch, stream",
        name: "100 waiting clients: requests per second",
    },
    Measure {
        table: "size",
        row: "gzip -9",
        unit: "kB",
        ours: "edgelatch, for Workers",
        name: "size in a Worker, kB (gzip)",
    },
    Measure {
        table: "size",
        row: "gzip -9",
        unit: "kB",
        ours: "edgelatch, one file",
        name: "size elsewhere, kB (gzip)",
    },
];

/// The beginnings of the columns of the other libraries.
const PEERS: [&str; 3] = ["@upstash/lock", "redlock", "redis-semaphore"];

/// A page, and the function that returns the text between its marks.
type Page = (&'static str, fn(&Results) -> Result<String>);
const PAGES: [Page; 2] =
    [("docs/performance.md", |results| Ok(whole(results))), ("README.md", chosen)];

/// Writes the results into all pages.
pub(super) fn write(place: &Place, results: &Results) -> Result<()> {
    for (page, say) in PAGES {
        let file = place.root.join(page);
        let text = fs::read_to_string(&file).with_context(|| format!("cannot read {page}"))?;
        let text = with(&text, &say(results)?).with_context(|| format!("{page} has no marks"))?;
        fs::write(&file, text).with_context(|| format!("cannot write {page}"))?;
    }
    Ok(())
}

/// Returns the page with `words` between its marks, or `None` if it has no marks.
fn with(page: &str, words: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}{words}{END}{after}"))
}

/// Returns all tables, for docs/performance.md.
fn whole(results: &Results) -> String {
    let machine = results.machine.iter().map(|(name, is)| format!("{name} {is}"));
    let mut text = format!("Measured on: {}.\n", machine.collect::<Vec<_>>().join(", "));
    for table in &results.tables {
        text += &format!("\n## {}\n\n{}.\n\n", table.title, capital(&table.how));
        let heads: Vec<&str> = table.columns.iter().map(String::as_str).collect();
        text += &head(&heads);
        text.extend(table.rows.iter().map(line));
    }
    text
}

/// Returns the README's table.
fn chosen(results: &Results) -> Result<String> {
    let is = |name: &str| {
        let found = results.machine.iter().find(|(other, _)| other == name);
        found.map(|(_, is)| is.as_str()).with_context(|| format!("results without {name}"))
    };
    let mut text = format!(
        "Measured by `cargo xtask bench` with everything on one machine ({}, {} cores), Redis {} and Node {}. Less is better, and the \
         best\nfigure of a row is bold. Libraries marked TCP cannot run in Workers or pages. \
         [docs/performance.md](docs/performance.md) has all figures.\n\n",
        is("CPU")?,
        is("cores")?,
        is("Redis")?,
        is("Node")?,
    );
    text += &head(&["edgelatch", "@upstash/lock", "redlock (TCP)", "redis-semaphore (TCP)"]);
    for measure in &MEASURES {
        text += &best_in_bold(measure.name, &measure.cells(results)?);
    }
    Ok(text)
}

impl Measure {
    /// Returns edgelatch's figure, then those of the other libraries.
    fn cells(&self, results: &Results) -> Result<Vec<f64>> {
        let &Self { table: id, row: what, unit, ours, .. } = self;
        let table = results.tables.iter().find(|table| table.id == id);
        let table = table.with_context(|| format!("results without {id}"))?;
        let row = table.rows.iter().find(|row| row.what == what && row.unit == unit);
        let row = row.with_context(|| format!("{id} without {what}"))?;
        let cell = |column: &str| {
            let place = table.columns.iter().position(|name| name.starts_with(column));
            let cell = place.and_then(|place| row.cells.get(place)).copied();
            cell.with_context(|| format!("{id} lacks {column}"))
        };
        std::iter::once(ours).chain(PEERS).map(cell).collect()
    }
}

/// Formats a row of absolute figures, with the smallest in bold.
fn best_in_bold(name: &str, cells: &[f64]) -> String {
    let least = cells.iter().copied().fold(f64::INFINITY, f64::min);
    let cell = |cell: &f64| {
        if *cell <= least { format!("**{}**", short(*cell)) } else { short(*cell) }
    };
    let cells: Vec<String> = cells.iter().map(cell).collect();
    format!("| {name} | {} |\n", cells.join(" | "))
}

fn head(columns: &[&str]) -> String {
    format!("| | {} |\n|---|{}\n", columns.join(" | "), "---:|".repeat(columns.len()))
}

/// Formats a row of docs/performance.md.
fn line(row: &Row) -> String {
    let cells: Vec<String> = row.cells.iter().map(|cell| short(*cell)).collect();
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
    fn a_row_has_its_unit_and_absolute_figures() {
        let row = Row { what: "a".to_owned(), unit: "ms".to_owned(), cells: vec![2.0, 5.0] };
        assert_eq!(line(&row), "| a (ms) | 2 | 5 |\n");
    }

    #[test]
    fn the_smallest_figure_of_a_row_is_bold() {
        assert_eq!(best_in_bold("a, ms", &[2.0, 5.0]), "| a, ms | **2** | 5 |\n");
        assert_eq!(best_in_bold("a, ms", &[5.0, 2.0, 2.0]), "| a, ms | 5 | **2** | **2** |\n");
    }

    #[test]
    fn a_measure_without_a_figure_is_an_error() {
        let results = Results { machine: vec![], tables: vec![] };
        for measure in &MEASURES {
            assert!(measure.cells(&results).is_err(), "{}", measure.name);
        }
    }

    /// Compares the pages with the recorded results, so that no figure is copied by hand.
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
