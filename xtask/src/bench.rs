//! `cargo xtask bench`: ours beside others', in one run.

use std::env;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, id};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

use crate::build;
use crate::place::Place;
use crate::process::{Group, check_stop, tick};
use crate::progress::{Stopwatch, logged, read, tail};
use crate::setup::{self, Purpose};
use crate::stack::{Gateway, Part, START_TIME};

/// Each is measured so often, in turns, so that a slow moment of the machine does not hit one alone.
const ROUNDS: u32 = 3;
/// What the gateways are asked to run: about as much as taking a lock.
const SCRIPT: &str =
    "redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2]) return redis.call('pttl', KEYS[1])";

/// In milliseconds; the script answers with it, as the key is fresh.
const LEASE: &str = "30000";

/// Measures the npm package beside `@upstash/lock`, then the gateway beside webdis.
pub(crate) fn run(place: &Place) -> Result<()> {
    setup::ensure(place, Purpose::Bench.needs())?;
    let consumer = build::consumer(place, "consumer")?;
    let program = build::gateway(place)?;
    package(place, &program, &consumer)?;
    gateways(place, &program)
}

fn package(place: &Place, program: &Path, consumer: &Path) -> Result<()> {
    println!("\nThe npm package beside @upstash/redis and @upstash/lock, on one gateway\n");
    let gateway = Gateway::start(place, program)?;
    let mut command = place.node();
    command
        .args(["--expose-gc", "tests/bench/run.mjs"])
        .env("EDGELATCH_TEST_URL", &gateway.url)
        .env("EDGELATCH_TEST_TOKEN", &gateway.token)
        .env("EDGELATCH_TOOLS", place.node_modules())
        .env("EDGELATCH_CONSUMER", consumer);
    in_foreground(&mut command)
}

fn gateways(place: &Place, program: &Path) -> Result<()> {
    println!("\nThe gateway beside webdis, on one redis-server (wrk: 1 thread, 32 connections)\n");
    let redis = Redis::start(place)?;
    let address = format!("unix:{}", redis.socket);
    let gateway = Gateway::start_with(place, program, &["--redis", &address])?;
    let webdis = Webdis::start(place, &redis)?;
    let sha = load_script(&gateway)?;

    let ours = Load {
        name: "edgelatch",
        url: gateway.url.clone(),
        body: json!(["EVALSHA", sha, "1", "bench:key", "value", LEASE]).to_string(),
        authorization: format!("Bearer {}", gateway.token),
    };
    let theirs = Load {
        name: "webdis",
        url: webdis.url.clone(),
        body: format!("EVALSHA/{sha}/1/bench:key/value/{LEASE}"),
        authorization: "none".to_owned(),
    };
    for gateway in [&ours, &theirs] {
        gateway.check()?;
    }
    for _ in 0..ROUNDS {
        for gateway in [&ours, &theirs] {
            gateway.run(place)?;
        }
    }
    drop(webdis);
    drop(gateway);
    drop(redis);
    Ok(())
}

/// One request, to be sent over and over.
struct Load {
    name: &'static str,
    url: String,
    body: String,
    authorization: String,
}

impl Load {
    /// Fails if the answer is not the script's.
    fn check(&self) -> Result<()> {
        let mut response = ureq::post(&self.url)
            .header("Authorization", &self.authorization)
            .send(&self.body)
            .with_context(|| format!("{} did not answer", self.name))?;
        let answer = response.body_mut().read_to_string()?;
        ensure!(answer.contains(LEASE), "{} answered {answer}", self.name);
        Ok(())
    }

    /// Prints what the gateway bears.
    fn run(&self, place: &Place) -> Result<()> {
        let log = place.log("wrk")?;
        let mut command = place.command("wrk");
        command
            .args(["--threads", "1", "--connections", "32", "--duration", "6s"])
            .args(["--script", "tests/bench/load.lua", &self.url])
            .env("LOAD_NAME", self.name)
            .env("LOAD_BODY", &self.body)
            .env("LOAD_AUTHORIZATION", &self.authorization);
        let status = logged(&mut command, &log)?;
        ensure!(status.success(), "wrk ended with {status}\n{}", tail(&log));
        // The rest is wrk's own summary.
        println!("{}", read(&log).lines().next_back().unwrap_or_default());
        Ok(())
    }
}

fn load_script(gateway: &Gateway) -> Result<String> {
    let mut response = ureq::post(&gateway.url)
        .header("Authorization", format!("Bearer {}", gateway.token))
        .send_json(json!(["SCRIPT", "LOAD", SCRIPT]))
        .context("the gateway did not load the script")?;
    let body: Value = response.body_mut().read_json()?;
    body.get("result").and_then(Value::as_str).map(str::to_owned).context("no digest")
}

fn in_foreground(command: &mut Command) -> Result<()> {
    let status = Group::spawn("the measurement", command)?.wait(|| {})?;
    ensure!(status.success(), "the measurement ended with {status}");
    Ok(())
}

/// A redis-server on a socket in a folder of its own, both gone when dropped.
struct Redis {
    part: Option<Part>,
    folder: PathBuf,
    socket: String,
}

impl Redis {
    fn start(place: &Place) -> Result<Self> {
        // Not below target: the name of a socket has to be short.
        let folder = env::temp_dir().join(format!("edgelatch-bench-{}", id()));
        fs::create_dir_all(&folder).context("cannot make a folder for Redis")?;
        let socket = folder.join("redis.sock").to_string_lossy().into_owned();
        let mut redis = Self { part: None, folder, socket };
        let mut command = place.command("redis-server");
        command
            .args(["--port", "0", "--save", "", "--appendonly", "no"])
            .args(["--unixsocket", &redis.socket, "--unixsocketperm", "700"])
            .current_dir(&redis.folder);
        redis
            .part
            .insert(Part::start(place, "redis", &mut command)?)
            .wait_for("connections at ")?;
        Ok(redis)
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        drop(self.part.take());
        // What cannot be removed is an empty folder among temporary files.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The gateway to compare with, ended when dropped.
struct Webdis {
    part: Part,
    url: String,
}

impl Webdis {
    fn start(place: &Place, redis: &Redis) -> Result<Self> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let file = redis.folder.join("webdis.json");
        let configuration = json!({
            // A path here is a socket's.
            "redis_host": redis.socket,
            "redis_port": 0,
            "http_host": "127.0.0.1",
            "http_port": port,
            // As many as the machine of these figures has cores, which is also its packaged default.
            "threads": 2,
            "pool_size": 20,
            "daemonize": false,
            "database": 0,
            "verbosity": 0,
            "logfile": redis.folder.join("webdis.log"),
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
