//! Formats the time of a start for the page about environments.

use anyhow::{Context as _, Result};

use super::figures::short;
use super::table::Results;

/// The rows of the table `time`, measured in Node.
const READY: &str = "import until a call can be made";
const FIRST: &str = "import until the first lock is held";

/// Returns one sentence about published results.
pub(crate) fn start_of_package(results: &str) -> Result<String> {
    let results = Results::from_json(results)?;
    let is = |name: &str| {
        let found = results.machine.iter().find(|(other, _)| other == name);
        found.map(|(_, value)| value.as_str()).with_context(|| format!("results without {name}"))
    };
    let table = results.tables.iter().find(|table| table.id == "time");
    let table = table.context("results without the table of times")?;
    // The first column is edgelatch's.
    let ms = |what: &str| {
        let row = table.rows.iter().find(|row| row.what == what);
        let figure = row.and_then(|row| row.cells.first()).copied().map(short);
        figure.with_context(|| format!("results without: {what}"))
    };
    Ok(format!(
        "In Node {} on {} ({} cores), import and the first `connect()` take {} ms, and until the first lock is held {} ms pass\n\
         (`cargo xtask bench`).",
        is("Node")?,
        is("CPU")?,
        is("cores")?,
        ms(READY)?,
        ms(FIRST)?,
    ))
}
