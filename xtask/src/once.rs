//! `cargo xtask demo --once`: uses the lock once and checks the result, then runs a round of each
//! kind of object.

mod rounds;

use std::process::ExitCode;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

use crate::demo::Stack;
use crate::place::Place;
use crate::process::check_stop;
use crate::services::Gateway;

const WORKERS: u64 = 20;
/// Longer than the Worker waits for the lock.
const REQUEST_TIME: Duration = Duration::from_secs(90);

/// The Worker's report on one request's turn with the lock.
#[derive(Clone, PartialEq, Debug)]
struct Turn {
    holder: String,
    token: u64,
    waited_ms: u64,
    held_ms: u64,
    before: u64,
    after: u64,
}

/// Sends the requests, prints the result of each, and checks that the lock has excluded the others.
pub(crate) fn run(place: &Place) -> Result<ExitCode> {
    let stack = Stack::start(place, 0)?;
    let http = client();
    http.post(&format!("{}/api/reset", stack.worker.url))
        .send_empty()
        .context("the Worker did not reset the counter")?;
    let before = counter(&http, &stack.gateway)?;
    println!(
        "\n{WORKERS} requests at once, each adds 1 to a counter in Redis under the same lock:\n"
    );
    let mut turns = requests(&http, &stack.worker.url)?;
    let after = counter(&http, &stack.gateway)?;
    // The order of the holds is the order of the counter values that they read.
    turns.sort_by_key(|turn| turn.before);
    print(&turns);
    let mut problems = check(&turns, before, after);
    if problems.is_empty() {
        println!("\nCounter: {before} + {WORKERS} = {after}. Tokens only rose.");
    }

    println!("\nOne round of each kind, and what Redis itself saw of it:\n");
    problems.extend(rounds::all(&http, &stack.worker.url)?);
    drop(stack);
    if problems.is_empty() {
        println!("\nEvery promise was kept. Nothing is left running.");
        return Ok(ExitCode::SUCCESS);
    }
    for problem in problems {
        eprintln!("wrong: {problem}");
    }
    Ok(ExitCode::FAILURE)
}

/// Returns the violations of mutual exclusion and order.
fn check(turns: &[Turn], before: u64, after: u64) -> Vec<String> {
    let mut problems = Vec::new();
    if after != before + WORKERS {
        problems.push(format!("the counter went from {before} to {after}, not up by {WORKERS}"));
    }
    for (place, turn) in (before..).zip(turns) {
        if (turn.before, turn.after) != (place, place + 1) {
            problems.push(format!(
                "{} saw {} and wrote {}, in place of {place} and {}",
                turn.holder,
                turn.before,
                turn.after,
                place + 1
            ));
        }
    }
    for (earlier, later) in turns.iter().zip(turns.iter().skip(1)) {
        if earlier.token >= later.token {
            problems.push(format!(
                "{} held after {} and has the token {}, which is not above {}",
                later.holder, earlier.holder, later.token, earlier.token
            ));
        }
    }
    problems
}

fn requests(http: &ureq::Agent, url: &str) -> Result<Vec<Turn>> {
    at_once((1..=WORKERS).map(|id| {
        let (http, url) = (http.clone(), format!("{url}/api/once?id={id}"));
        move || turn(&http, &url)
    }))
}

/// Runs all tasks concurrently, and returns their results, or the first failure.
fn at_once<T: Send + 'static>(
    tasks: impl Iterator<Item = impl FnOnce() -> Result<T> + Send + 'static>,
) -> Result<Vec<T>> {
    let (sender, results) = mpsc::channel();
    for task in tasks {
        let sender = sender.clone();
        // After an interruption there is no receiver, and the result is not needed.
        thread::spawn(move || sender.send(task()));
    }
    drop(sender);
    let mut done = Vec::new();
    loop {
        check_stop()?;
        match results.recv_timeout(Duration::from_millis(100)) {
            Ok(result) => done.push(result?),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(done),
        }
    }
}

fn turn(http: &ureq::Agent, url: &str) -> Result<Turn> {
    let mut response = http.post(url).send_empty().context("the Worker did not answer")?;
    let status = response.status();
    let body: Value = response.body_mut().read_json().context("the Worker answered no JSON")?;
    ensure!(status.is_success(), "the Worker answered {status}: {body}");
    let number = |key: &str| {
        body.get(key)
            .and_then(Value::as_u64)
            .with_context(|| format!("no number `{key}` in {body}"))
    };
    Ok(Turn {
        holder: body.get("holder").and_then(Value::as_str).context("no holder")?.to_owned(),
        token: number("token")?,
        waited_ms: number("waitedMs")?,
        held_ms: number("heldMs")?,
        before: number("before")?,
        after: number("after")?,
    })
}

fn counter(http: &ureq::Agent, gateway: &Gateway) -> Result<u64> {
    let mut response = http
        .post(&gateway.url)
        .header("Authorization", format!("Bearer {}", gateway.token))
        .send_json(json!(["GET", "demo:counter"]))
        .context("the gateway did not answer")?;
    let body: Value = response.body_mut().read_json()?;
    match body.get("result") {
        Some(Value::Null) => Ok(0),
        Some(Value::String(text)) => text.parse().context("the counter is no number"),
        _ => bail!("the gateway answered {body}"),
    }
}

fn client() -> ureq::Agent {
    ureq::Agent::config_builder()
        .timeout_global(Some(REQUEST_TIME))
        .http_status_as_error(false)
        .build()
        .into()
}

fn print(turns: &[Turn]) {
    println!(
        "{:<12} {:>18} {:>9} {:>9}   counter",
        "holder", "fencing token", "wait ms", "hold ms"
    );
    for turn in turns {
        println!(
            "{:<12} {:>18} {:>9} {:>9}   {} -> {}",
            turn.holder, turn.token, turn.waited_ms, turn.held_ms, turn.before, turn.after
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(place: u64) -> Turn {
        Turn {
            holder: format!("worker-{place}"),
            token: 100 + place,
            waited_ms: 1,
            held_ms: 1,
            before: place,
            after: place + 1,
        }
    }

    fn turns() -> Vec<Turn> {
        (0..WORKERS).map(turn).collect()
    }

    #[test]
    fn turns_one_after_the_other_are_right() {
        assert_eq!(check(&turns(), 0, WORKERS), Vec::<String>::new());
    }

    #[test]
    fn a_lost_update_is_wrong() {
        let mut turns = turns();
        turns[5].before = 4;
        turns[5].after = 5;
        assert_eq!(check(&turns, 0, WORKERS).len(), 1);
        assert!(!check(&turns, 0, WORKERS - 1).is_empty());
    }

    #[test]
    fn a_token_that_does_not_rise_is_wrong() {
        let mut turns = turns();
        turns[7].token = turns[6].token;
        assert_eq!(check(&turns, 0, WORKERS).len(), 1);
    }

    #[test]
    fn a_missing_turn_is_wrong() {
        assert!(!check(&turns()[..10], 0, 10).is_empty());
    }
}
