//! The crate's part of `cargo xtask bench`: measures the figures that `throughput.mjs` measures for
//! npm packages.
//!
//! `native '{"tasks":4,"seconds":1}'` prints a line of JSON. The environment has the gateway's
//! address and token.

use std::convert::Infallible;
use std::env;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use edgelatch::host::TokioHost;
use edgelatch::transport::Reqwest;
use edgelatch::{AcquireOptions, Client, Gateway, Lock};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Longer than a measurement, so that nothing is renewed.
const LEASE: Duration = Duration::from_secs(60);

#[tokio::main]
async fn main() -> Outcome<()> {
    let asked = env::args().find(|argument| argument.starts_with('{')).ok_or("what is asked?")?;
    let asked: Value = serde_json::from_str(&asked)?;
    let figure = |key: &str| asked.get(key).and_then(Value::as_f64).ok_or("no such figure");
    let (tasks, seconds) = (figure("tasks")? as u64, figure("seconds")?);
    let (url, token) = (env::var("EDGELATCH_TEST_URL")?, env::var("EDGELATCH_TEST_TOKEN")?);

    let pairs = Arc::new(AtomicU64::new(0));
    let mut running = JoinSet::new();
    let client = Client::connect(Gateway::upstash(&url, &token)?);
    for task in 0..tasks {
        let name = format!("bench:native:{}:{task}", std::process::id());
        let (lock, pairs) = (client.lock(&name)?, Arc::clone(&pairs));
        running.spawn(async move {
            loop {
                pair(&lock).await?;
                pairs.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    // Connections are opened first.
    sleep(Duration::from_secs_f64(seconds)).await;
    let (before, start) = (pairs.load(Ordering::Relaxed), Instant::now());
    tokio::select! {
        () = sleep(Duration::from_secs_f64(seconds)) => {}
        Some(ended) = running.join_next() => {
            let never: Outcome<Infallible> = ended?;
            never?;
        }
    }
    let done = (pairs.load(Ordering::Relaxed) - before) as f64;
    println!("{}", json!({ "pairs": done / start.elapsed().as_secs_f64() }));
    Ok(())
}

async fn pair(lock: &Lock<Reqwest, TokioHost>) -> Outcome<()> {
    let lease = lock.try_acquire_with(AcquireOptions::new().lease(LEASE)).await?;
    lease.ok_or("the lock was not free")?.release().await?;
    Ok(())
}
