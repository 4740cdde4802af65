//! Counts the requests and bytes of each call.

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::Bench;
use super::ask::number;
use super::stand::Stand;
use super::subject::{PACKAGES, labels};
use super::table::Table;

/// The calls, and their names in the tables.
const CALLS: [(&str, &str); 4] = [
    ("acquire", "acquire"),
    ("contended", "acquire, refused"),
    ("renew", "renew"),
    ("release", "release"),
];
const UNITS: [(&str, &str); 3] =
    [("requests", "requests"), ("up", "bytes up"), ("down", "bytes down")];

/// Measures requests and bytes of each call, on a Redis that knows the scripts; and of the first
/// calls.
pub(super) fn measure(bench: &Bench<'_>) -> Result<Table> {
    bench.tell("traffic");
    let mut found = Vec::new();
    for subject in &PACKAGES {
        // Each on its own Redis, which does not know the scripts yet.
        let stand = Stand::start(bench)?;
        found.push(stand.measure(subject, "traffic", &json!({}))?);
    }
    let how = "counted once, headers included; over TCP each command counts as a request";
    let mut table = Table::new("traffic", "Traffic per call", how.to_owned(), &labels(&PACKAGES));
    for (unit, label) in UNITS {
        for (call, what) in CALLS {
            table.row(what, label, cells(&found, |one| figure(one, "later", call, unit))?);
        }
        table.row("acquire + release", label, cells(&found, |one| pair(one, "later", unit))?);
        table.row("acquire + release, the first", label, {
            cells(&found, |one| pair(one, "first", unit))?
        });
    }
    Ok(table)
}

fn cells(found: &[Value], figure: impl Fn(&Value) -> Result<f64>) -> Result<Vec<f64>> {
    found.iter().map(figure).collect()
}

fn pair(one: &Value, when: &str, unit: &str) -> Result<f64> {
    Ok(figure(one, when, "acquire", unit)? + figure(one, when, "release", unit)?)
}

fn figure(one: &Value, when: &str, call: &str, unit: &str) -> Result<f64> {
    let call = one.get(when).and_then(|calls| calls.get(call)).context("a call is missing")?;
    number(call, unit)
}
