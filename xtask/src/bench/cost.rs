//! Measures the processor time and memory of each library.

use anyhow::Result;
use serde_json::json;

use super::Bench;
use super::ask::{number, numbers};
use super::figures::median;
use super::stand::Stand;
use super::subject::{PACKAGES, labels};
use super::table::Table;

const KILO: f64 = 1_000.0;

/// Measures processor time, and the time until the first lock is held.
pub(super) fn time(bench: &Bench<'_>) -> Result<Table> {
    bench.tell("processor time, start");
    let stand = Stand::start(bench)?;
    let (rounds, pairs) = bench.effort.processor;
    let starts = bench.effort.starts;
    let how = format!(
        "median of {rounds} turns of {pairs} pairs, and of {starts} starts in Node, in turns; the library's share is the \
         difference to the same requests sent by fetch or ioredis alone"
    );
    let title = "Processor time per acquire + release, and start-up time";
    let mut table = Table::new("time", title, how, &labels(&PACKAGES));

    let [mut library, mut whole] = [Vec::new(), Vec::new()];
    for subject in &PACKAGES {
        let found = stand.measure(subject, "cpu", &json!({ "rounds": rounds, "pairs": pairs }))?;
        library.push(median(&numbers(&found, "library")?));
        whole.push(median(&numbers(&found, "whole")?));
    }
    table.row("acquire + release, the library", "µs of processor time", library);
    table.row("acquire + release, all", "µs of processor time", whole);

    let mut times: Vec<[Vec<f64>; 2]> = PACKAGES.iter().map(|_| Default::default()).collect();
    for _ in 0..starts {
        for (subject, [ready, first]) in PACKAGES.iter().zip(&mut times) {
            let found = stand.measure(subject, "start", &json!({}))?;
            ready.push(number(&found, "ready")?);
            first.push(number(&found, "first")?);
        }
    }
    let each = |place: usize| {
        times.iter().map(|times| times.get(place).map_or(f64::NAN, |ms| median(ms))).collect()
    };
    table.row("import until a call can be made", "ms", each(0));
    table.row("import until the first lock is held", "ms", each(1));
    Ok(table)
}

/// Measures memory per held lease and per waiter.
pub(super) fn memory(bench: &Bench<'_>) -> Result<Table> {
    bench.tell("memory");
    let stand = Stand::start(bench)?;
    let how = "measured once, after a garbage collection: the JavaScript heap, external memory and WebAssembly memory; \
               one client, with leases of different locks, or waiters of one lock; polling libraries poll once a minute here";
    let mut table = Table::new("memory", "Memory in Node", how.to_owned(), &labels(&PACKAGES));
    for (what, label) in [("held", "a held lease"), ("waiting", "a waiter")] {
        for &count in bench.effort.counts {
            let options = json!({ "count": count, "what": what });
            let cells = PACKAGES.iter().map(|package| {
                Ok(number(&stand.measure(package, "memory", &options)?, "bytes")? / KILO)
            });
            let cells = cells.collect::<Result<_>>()?;
            table.row(&format!("{label}, of {count}"), "kB", cells);
        }
    }
    Ok(table)
}
