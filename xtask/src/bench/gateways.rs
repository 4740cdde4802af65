//! Compares the project's gateway with webdis, on one Redis.

use std::fs;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

use super::Bench;
use super::ask::{ask, number};
use super::figures::median;
use super::machine;
use super::stand::{Redis, Stand, on_free_port};
use super::table::Table;
use crate::place::Place;
use crate::process::{check_stop, tick};
use crate::progress::Stopwatch;
use crate::services::{Gateway, Part, START_TIME};

/// The script that the gateways run: about the work of acquiring a lock.
const SCRIPT: &str = "redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2]) \
                      return redis.call('pttl', KEYS[1]) > 0 and ARGV[2]";
/// The lease in milliseconds, which the script returns.
const LEASE: &str = "30000";
const CONNECTIONS: u32 = 32;
/// The figures of each gateway, and their units.
const FIGURES: [(&str, &str, &str); 4] = [
    ("perSecond", "requests", "requests/s"),
    ("p50", "latency, median", "ms"),
    ("p99", "latency, p99", "ms"),
    ("memory", "memory after the load", "MB"),
];

/// Puts the same load on both gateways, in turns.
pub(super) fn measure(bench: &Bench<'_>) -> Result<Table> {
    bench.tell("gateways");
    let stand = Stand::start(bench)?;
    let webdis = Webdis::start(bench.place, &stand.redis)?;
    let loads = loads(&stand.gateway, &webdis)?;
    let (turns, seconds) = (bench.effort.turns, bench.effort.load_seconds);
    let mut found: Vec<Vec<Value>> = loads.iter().map(|_| Vec::new()).collect();
    for _ in 0..turns {
        for (load, found) in loads.iter().zip(&mut found) {
            found.push(load.run(bench, seconds)?);
        }
    }
    let how = format!(
        "median of {turns} turns of {seconds} s; wrk with {CONNECTIONS} connections runs a script that acquires a lock, on the \
         same machine as the gateway and Redis"
    );
    let columns = loads.each_ref().map(|load| load.name);
    let mut table = Table::new("gateways", "A gateway under load", how, &columns);
    for (key, what, unit) in FIGURES {
        let cells = found.iter().map(|found| {
            let figures: Result<Vec<f64>> = found.iter().map(|one| number(one, key)).collect();
            Ok(median(&figures?))
        });
        table.row(what, unit, cells.collect::<Result<_>>()?);
    }
    Ok(table)
}

fn loads(gateway: &Gateway, webdis: &Webdis) -> Result<[Load; 2]> {
    let sha = load_script(gateway)?;
    let ours = Load {
        name: "edgelatch-gateway",
        url: gateway.url.clone(),
        body: json!(["EVALSHA", sha, "1", "bench:key", "value", LEASE]).to_string(),
        authorization: format!("Bearer {}", gateway.token),
        process: gateway.id(),
    };
    let theirs = Load {
        name: "webdis",
        url: webdis.url.clone(),
        body: format!("EVALSHA/{sha}/1/bench:key/value/{LEASE}"),
        authorization: "none".to_owned(),
        process: webdis.part.id(),
    };
    ours.check()?;
    theirs.check()?;
    Ok([ours, theirs])
}

/// A request that is sent repeatedly.
struct Load {
    name: &'static str,
    url: String,
    body: String,
    authorization: String,
    process: u32,
}

impl Load {
    /// Fails if the response is not the script's result.
    fn check(&self) -> Result<()> {
        let mut response = ureq::post(&self.url)
            .header("Authorization", &self.authorization)
            .send(&self.body)
            .with_context(|| format!("{} did not answer", self.name))?;
        let answer = response.body_mut().read_to_string()?;
        ensure!(answer.contains(LEASE), "{} answered {answer}", self.name);
        Ok(())
    }

    /// Measures a gateway under load.
    fn run(&self, bench: &Bench<'_>, seconds: u32) -> Result<Value> {
        let mut wrk = bench.place.command("wrk");
        wrk.args(["--threads", "1", "--connections", &CONNECTIONS.to_string()])
            .args(["--duration", &format!("{seconds}s")])
            .args(["--script", "tests/bench/load.lua", &self.url])
            .env("LOAD_BODY", &self.body)
            .env("LOAD_AUTHORIZATION", &self.authorization);
        let mut found = ask(bench.place, &format!("wrk {}", self.name), &mut wrk)?;
        ensure!(number(&found, "errors")? == 0.0, "{}: {found}", self.name);
        let memory = memory(self.process)?;
        if let Some(found) = found.as_object_mut() {
            found.insert("memory".to_owned(), json!(memory));
        }
        Ok(found)
    }
}

/// Returns a process' resident memory, in megabytes.
fn memory(process: u32) -> Result<f64> {
    let resident = machine::field(&format!("/proc/{process}/status"), "VmRSS");
    let kibibytes = resident.split_whitespace().next().and_then(|text| text.parse::<f64>().ok());
    kibibytes.map(|number| number * 1024.0 / 1e6).context("the system does not tell memory")
}

fn load_script(gateway: &Gateway) -> Result<String> {
    let mut response = ureq::post(&gateway.url)
        .header("Authorization", format!("Bearer {}", gateway.token))
        .send_json(json!(["SCRIPT", "LOAD", SCRIPT]))
        .context("the gateway did not load the script")?;
    let body: Value = response.body_mut().read_json()?;
    body.get("result").and_then(Value::as_str).map(str::to_owned).context("no digest")
}

/// The gateway for comparison. Dropping it ends the gateway.
struct Webdis {
    part: Part,
    url: String,
}

impl Webdis {
    fn start(place: &Place, redis: &Redis) -> Result<Self> {
        on_free_port(|port| Self::start_on(place, redis, port))
    }

    fn start_on(place: &Place, redis: &Redis, port: u16) -> Result<Self> {
        let file = redis.folder().join("webdis.json");
        let configuration = json!({
            "redis_host": "127.0.0.1",
            "redis_port": redis.port,
            "http_host": "127.0.0.1",
            "http_port": port,
            // One for each core, as in the project's gateway.
            "threads": std::thread::available_parallelism()?.get(),
            "pool_size": 20,
            "daemonize": false,
            "database": 0,
            "verbosity": 0,
            "logfile": redis.folder().join("webdis.log"),
        });
        fs::write(&file, configuration.to_string())?;
        let part = Part::start(place, "webdis", place.command("webdis").arg(&file))?;
        let mut webdis = Self { part, url: format!("http://127.0.0.1:{port}/") };
        webdis.wait()?;
        Ok(webdis)
    }

    fn wait(&mut self) -> Result<()> {
        let watch = Stopwatch::start();
        while watch.elapsed() < START_TIME {
            check_stop()?;
            self.part.check()?;
            if ureq::get(format!("{}PING", self.url)).call().is_ok() {
                return Ok(());
            }
            tick();
        }
        bail!("webdis did not start to serve within {} s", START_TIME.as_secs())
    }
}
