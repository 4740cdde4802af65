//! Measures the requests while waiters wait and nothing happens.

use std::thread;

use anyhow::{Result, anyhow};
use serde_json::{Value, json};

use super::Bench;
use super::ask::number;
use super::stand::Stand;
use super::subject::{SEMAPHORE, Subject, WAITERS, labels};
use super::table::Table;

/// The subject that is measured alone: it sends so many requests that it would slow down others.
const ALONE: &str = SEMAPHORE.key;

/// Measures requests, and commands in Redis, per second of waiting.
pub(super) fn measure(bench: &Bench<'_>) -> Result<Table> {
    let seconds = bench.effort.waiting_seconds;
    let how = format!(
        "over the first {seconds} s of a wait; each waiter has its own client; each library has its own Redis, which \
         also counts the commands inside scripts"
    );
    let title = "Requests while waiting, per second";
    let mut table = Table::new("waiting", title, how, &labels(&WAITERS));
    let mut commands = Vec::new();
    for &waiters in bench.effort.waiters {
        bench.tell(&format!("waiting, {waiters}"));
        let found = all(bench, &json!({ "waiters": waiters, "seconds": seconds }))?;
        let rate = |key| found.iter().map(move |one| Ok(number(one, key)? / f64::from(seconds)));
        let what = if waiters == 1 { "1 waiter".to_owned() } else { format!("{waiters} waiters") };
        table.row(&what, "requests/s", rate("requests").collect::<Result<_>>()?);
        commands.push((what, rate("commands").collect::<Result<_>>()?));
    }
    for (what, cells) in commands {
        table.row(&what, "commands in Redis/s", cells);
    }
    Ok(table)
}

/// Returns the figures of each subject, in the order of the table.
fn all(bench: &Bench<'_>, options: &Value) -> Result<Vec<Value>> {
    let (alone, others): (Vec<_>, Vec<_>) =
        WAITERS.iter().enumerate().partition(|(_, subject)| subject.key == ALONE);
    let mut found = side_by_side(bench, &others, options)?;
    found.extend(side_by_side(bench, &alone, options)?);
    found.sort_by_key(|(place, _)| *place);
    Ok(found.into_iter().map(|(_, found)| found).collect())
}

/// Measures each subject at the same time, on its own stand.
fn side_by_side(
    bench: &Bench<'_>,
    group: &[(usize, &Subject)],
    options: &Value,
) -> Result<Vec<(usize, Value)>> {
    let stands: Vec<Stand<'_>> =
        group.iter().map(|_| Stand::start(bench)).collect::<Result<_>>()?;
    thread::scope(|scope| {
        let running: Vec<_> = group
            .iter()
            .zip(stands)
            .map(|((place, subject), stand)| {
                let measure = move || stand.measure(subject, "waiting", options);
                (place, scope.spawn(measure))
            })
            .collect();
        let ended = running.into_iter().map(|(place, thread)| {
            Ok((*place, thread.join().map_err(|_| anyhow!("a measurement broke off"))??))
        });
        ended.collect()
    })
}
