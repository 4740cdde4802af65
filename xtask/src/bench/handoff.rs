//! Measures the time from a release to the next holder.

use anyhow::Result;
use serde_json::json;

use super::Bench;
use super::ask::{number, numbers};
use super::figures::{median, percentile};
use super::stand::Stand;
use super::subject::{WAITERS, labels};
use super::table::Table;

/// The figures of one subject with one crowd, in all turns.
#[derive(Default)]
struct Seen {
    ms: Vec<f64>,
    round_trips: Vec<f64>,
    requests: f64,
}

/// Returns three tables: hand-offs in round trips, in milliseconds, and in requests.
pub(super) fn measure(bench: &Bench<'_>) -> Result<[Table; 3]> {
    let stand = Stand::start(bench)?;
    let effort = &bench.effort;
    let [mut ratios, mut times, mut requests] = tables(bench);
    for &(waiters, apart) in effort.crowds {
        bench.tell(&format!("hand-off, {}", crowd(waiters, apart)));
        let options = json!({
            "waiters": waiters,
            "apart": apart,
            "handoffs": effort.handoffs,
            "seconds": effort.handoff_seconds,
        });
        let mut seen: Vec<Seen> = WAITERS.iter().map(|_| Seen::default()).collect();
        for _ in 0..effort.handoff_turns {
            for (subject, seen) in WAITERS.iter().zip(&mut seen) {
                let found = stand.measure(subject, "handoff", &options)?;
                seen.ms.extend(numbers(&found, "ms")?);
                seen.round_trips.extend(numbers(&found, "roundTrips")?);
                seen.requests += number(&found, "requests")?;
            }
        }
        let each = |figure: &dyn Fn(&Seen) -> f64| seen.iter().map(figure).collect();
        let (crowd, trip) = (crowd(waiters, apart), |seen: &Seen| median(&seen.round_trips));
        let late = |seen: &Seen| percentile(&seen.ms, 0.99);
        ratios.row(&crowd, "round trips, median", each(&|seen| median(&seen.ms) / trip(seen)));
        ratios.row(&crowd, "round trips, p99", each(&|seen| late(seen) / trip(seen)));
        times.row(&crowd, "ms, median", each(&|seen| median(&seen.ms)));
        times.row(&crowd, "ms, p99", each(&late));
        times.row(&crowd, "ms of a round trip", each(&trip));
        requests.row(&crowd, "requests", each(&|seen| seen.requests / seen.ms.len() as f64));
    }
    Ok([ratios, times, requests])
}

fn tables(bench: &Bench<'_>) -> [Table; 3] {
    let labels = labels(&WAITERS);
    let effort = &bench.effort;
    let how = format!(
        "from the call of release until the next holder runs; holds of 20 to 40 ms; {} turns of up to {} hand-offs or {} s; \
         HTTP through edgelatch-gateway, TCP directly to Redis, with round trips measured in the same way",
        effort.handoff_turns, effort.handoffs, effort.handoff_seconds
    );
    let requests = "all requests divided by the number of hand-offs: the release, the requests of the next holder, wasted retries of \
                    other waiters, and the former holder's return to the waiters (a try; with streams also the subscription, and a retry \
                    once it is confirmed)";
    [
        Table::new("handoff", "Hand-off in round trips of the same run", how.clone(), &labels),
        Table::new("handoff-ms", "Hand-off in milliseconds", how, &labels),
        Table::new("handoff-requests", "Requests per hand-off", requests.to_owned(), &labels),
    ]
}

fn crowd(waiters: u32, apart: bool) -> String {
    match (waiters, apart) {
        (1, _) => "1 waiter".to_owned(),
        (_, false) => format!("{waiters} waiters of one client"),
        (_, true) => format!("{waiters} waiters, each a client"),
    }
}
