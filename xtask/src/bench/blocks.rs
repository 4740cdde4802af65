//! Measures how long one call, and one portion of a pipeline, block Redis, and how much processor
//! time the gateway takes for the longest requests.

use std::process::Command;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::Bench;
use super::ask::ask;
use super::stand::Stand;
use super::table::Table;

/// The longest time for one call, for one portion, and of the gateway's processor for one request,
/// in milliseconds.
const BARS: [f64; 3] = [5.0, 20.0, 10.0];
/// The columns of the tables.
const COLUMNS: [&str; 2] = ["edgelatch", "the bar"];
/// Above the rates of the measurement, which are not its subject.
const RATES: [&str; 4] = ["--client-commands", "1000000000", "--client-requests", "1000000000"];

/// Measures all three with `tests/bench/blocks.rs`.
pub(super) fn measure(bench: &Bench<'_>) -> Result<Vec<Table>> {
    bench.tell("blocks of Redis, processor time of the gateway");
    let stand = Stand::start_with(bench, &RATES)?;
    let rounds = bench.effort.block_rounds;
    let mut cargo = command(bench);
    cargo
        .args(["--", &json!({ "rounds": rounds }).to_string()])
        .env("EDGELATCH_TEST_SCOPE_KEY", &stand.gateway.scope_key)
        .env("EDGELATCH_TEST_PROCESS", stand.gateway.id().to_string());
    let found = ask(bench.place, "blocks", stand.tell(&mut cargo))?;
    let [call, portion, request] = BARS;
    Ok(vec![
        table(
            ("blocks-scripts", "Redis' time for one call"),
            format!(
                "the longest call of each script, in every state of its object up to the limits, and with as many arguments as a \
                 call may have; the least of {rounds} runs, since other load only adds by `INFO commandstats`"
            ),
            list(&found, "scripts")?,
            call,
        )?,
        table(
            ("blocks-portions", "The longest wait of another client during a pipeline"),
            format!(
                "a pipeline of 40 of these calls, each on an object of its own; another client sends one `PING` after the other; the \
                 least of {rounds} runs, each with its longest wait"
            ),
            list(&found, "portions")?,
            portion,
        )?,
        table(
            ("gateway-processor", "The gateway's processor time for the longest requests"),
            format!(
                "the least of {rounds} runs, since other load only adds, by the process' own statistics"
            ),
            list(&found, "requests")?,
            request,
        )?,
    ])
}

/// Returns the command of the measurement.
pub(super) fn command(bench: &Bench<'_>) -> Command {
    let mut cargo = bench.place.command("cargo");
    cargo.args(["bench", "--quiet", "--package", "edgelatch-tests", "--bench", "blocks"]);
    cargo
}

fn list<'f>(found: &'f Value, name: &str) -> Result<&'f [Value]> {
    let list = found.get(name).and_then(Value::as_array).map(Vec::as_slice);
    list.with_context(|| format!("no {name} were measured"))
}

/// Creates a table of `[name, milliseconds]`.
fn table((id, title): (&str, &str), how: String, found: &[Value], bar: f64) -> Result<Table> {
    let mut table = Table::new(id, title, how, &COLUMNS);
    for row in found {
        let name = row.get(0).and_then(Value::as_str).context("a figure without a name")?;
        let ms = row.get(1).and_then(Value::as_f64).context("a figure without a time")?;
        table.row(name, "ms", vec![ms, bar]);
    }
    Ok(table)
}
