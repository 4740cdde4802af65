//! Runs one measurement in a separate process, which prints its figures in its last line.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::place::Place;
use crate::progress::{kept, read, tail};

/// The longest time of a measurement; one that takes longer has failed, and is ended.
const AT_MOST: Duration = Duration::from_secs(300);

/// Runs the program and returns its figures. Its output is kept in a log with this title.
pub(super) fn ask(place: &Place, title: &str, command: &mut Command) -> Result<Value> {
    let text = said(place, title, command)?;
    let found = text.lines().rev().find(|line| line.starts_with('{'));
    let found = found.with_context(|| format!("{title} told no figures:\n{text}"))?;
    serde_json::from_str(found).with_context(|| format!("{title} told no figures: {found}"))
}

/// Runs the program and returns its output.
pub(super) fn said(place: &Place, title: &str, command: &mut Command) -> Result<String> {
    let log = place.log(&format!("bench {title}"))?;
    let status = kept(title, command, &log, |elapsed| {
        ensure!(elapsed < AT_MOST, "{title} did not end\n{}", tail(&log));
        Ok(())
    })?;
    ensure!(status.success(), "{title} ended with {status}\n{}", tail(&log));
    Ok(read(&log))
}

/// Returns the figure with this name.
pub(super) fn number(value: &Value, key: &str) -> Result<f64> {
    value.get(key).and_then(Value::as_f64).with_context(|| format!("no {key} in {value}"))
}

/// Returns the figures with this name.
pub(super) fn numbers(value: &Value, key: &str) -> Result<Vec<f64>> {
    let list = value.get(key).and_then(Value::as_array);
    let list = list.with_context(|| format!("no {key} in {value}"))?;
    Ok(list.iter().filter_map(Value::as_f64).collect())
}
