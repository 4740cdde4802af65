//! Measures how many locks can be acquired and released per second.

use anyhow::Result;
use serde_json::json;

use super::Bench;
use super::ask::number;
use super::figures::median;
use super::stand::Stand;
use super::subject::{EDGELATCH, REDLOCK, SEMAPHORE, UPSTASH, labels};
use super::table::Table;

/// Measures uncontended pairs per second: of the npm packages and of the crate.
pub(super) fn measure(bench: &Bench<'_>) -> Result<Table> {
    let stand = Stand::start(bench)?;
    let packages = [EDGELATCH, UPSTASH, REDLOCK, SEMAPHORE];
    let (turns, seconds) = (bench.effort.turns, bench.effort.throughput_seconds);
    let how = format!(
        "median of {turns} turns of {seconds} s; each task has its own lock, and all tasks share one client; \
         Redis and the gateway run on the same machine"
    );
    let mut columns = labels(&packages);
    columns.insert(1, "edgelatch (Rust)");
    let title = "Throughput: acquire + release of free locks";
    let mut table = Table::new("throughput", title, how, &columns);
    for &tasks in bench.effort.tasks {
        bench.tell(&format!("throughput, {tasks} at a time"));
        let options = json!({ "tasks": tasks, "seconds": seconds });
        let mut found: Vec<Vec<f64>> = columns.iter().map(|_| Vec::new()).collect();
        for _ in 0..turns {
            let mut now = Vec::new();
            for package in &packages {
                now.push(number(&stand.measure(package, "throughput", &options)?, "pairs")?);
            }
            now.insert(1, number(&stand.native(&options)?, "pairs")?);
            found.iter_mut().zip(now).for_each(|(found, now)| found.push(now));
        }
        let what = if tasks == 1 { "1 task".to_owned() } else { format!("{tasks} tasks") };
        table.row(&what, "pairs/s", found.iter().map(|found| median(found)).collect());
    }
    Ok(table)
}
