//! The cost part of `cargo xtask bench`: how long one call of each script and one portion of a
//! pipeline block Redis, and how much processor time the gateway takes for the longest requests.
//!
//! `blocks '{"rounds":5}'` prints a line of JSON: lists of `[name, milliseconds]`. The environment
//! names the gateway whose processor time is measured: address, tokens and process id.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a measurement ends at the first surprise"
)]

#[path = "../../gateway/tests/cost/requests.rs"]
mod requests;

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use redis::Value;
use requests::{Credentials, Shape};
use serde_json::json;
use test_support::costed_calls::{in_every_world, with_most_arguments};
use test_support::full_objects::{NAME, World};
use test_support::redis::{Redis, TOKEN};
use test_support::work::EditableCall;
use tokio::time::Instant;

/// The number of commands of a pipeline: several portions.
const PIPELINE: usize = 40;

#[tokio::main]
async fn main() {
    let asked = env::args().find(|argument| argument.starts_with('{')).unwrap();
    let asked: serde_json::Value = serde_json::from_str(&asked).unwrap();
    let rounds = usize::try_from(asked["rounds"].as_u64().unwrap()).unwrap();
    let mut calls = Calls::default();
    for _ in 0..rounds {
        let redis = Redis::start().await;
        calls.measure(&redis).await;
    }
    let scripts = calls.longest();
    let mut portions = Vec::new();
    for (script, call) in calls.worst() {
        portions.push(json!([script, portion(&call, rounds).await]));
    }
    let gateway = MeasuredGateway::from_env();
    let requests: Vec<_> =
        requests::shapes().iter().map(|shape| gateway.processor_time(shape, rounds)).collect();
    println!("{}", json!({ "scripts": scripts, "portions": portions, "requests": requests }));
}

/// The least of some figures: other load on the machine only adds to it.
fn least(figures: &[f64]) -> f64 {
    figures.iter().copied().fold(f64::INFINITY, f64::min)
}

/// A call, where it was made, and its times in milliseconds.
struct Measured {
    call: EditableCall,
    /// `None` for the calls with the most arguments.
    world: Option<World>,
    times: Vec<f64>,
}

/// All measured calls, in the order in which they are made in each round.
#[derive(Default)]
struct Calls(Vec<Measured>);

impl Calls {
    async fn measure(&mut self, redis: &Redis) {
        let mut next = 0;
        let mut add = |call: &EditableCall, world, ms| {
            if next == self.0.len() {
                self.0.push(Measured { call: call.clone(), world, times: Vec::new() });
            }
            self.0[next].times.push(ms);
            next += 1;
        };
        in_every_world(redis, async |here, call, world| {
            let (ms, _) = time(here, call).await;
            add(call, Some(world), ms);
        })
        .await;
        with_most_arguments(redis, async |redis, call| {
            let (ms, reply) = time(redis, call).await;
            add(call, None, ms);
            reply
        })
        .await;
    }

    /// The longest call of each script; each call has the least of its rounds.
    fn longest(&self) -> Vec<serde_json::Value> {
        let mut longest: BTreeMap<String, f64> = BTreeMap::new();
        for Measured { call, world, times } in &self.0 {
            let most = if world.is_none() { ", most arguments" } else { "" };
            let entry = longest.entry(format!("{}{most}", call.script.name)).or_default();
            *entry = entry.max(least(times));
        }
        longest.into_iter().map(|(name, ms)| json!([name, ms])).collect()
    }

    /// The longest call of each script that is made in a world, which a pipeline can repeat.
    fn worst(&self) -> BTreeMap<&'static str, (EditableCall, World)> {
        let mut worst: BTreeMap<&str, (f64, (EditableCall, World))> = BTreeMap::new();
        for Measured { call, world, times } in &self.0 {
            let (Some(world), ms) = (world, least(times)) else { continue };
            if worst.get(call.script.name).is_none_or(|(most, _)| ms > *most) {
                worst.insert(call.script.name, (ms, (call.clone(), *world)));
            }
        }
        worst.into_iter().map(|(name, (_, call))| (name, call)).collect()
    }
}

/// Runs a call; returns the milliseconds that Redis took for it, and the texts of its reply.
async fn time(redis: &Redis, call: &EditableCall) -> (f64, Vec<String>) {
    redis.query::<String>(&["CONFIG", "RESETSTAT"]).await;
    // An error is a refusal, which takes time too.
    let reply: redis::RedisResult<Vec<String>> = redis.send(call.command()).await;
    let statistics: String = redis.query(&["INFO", "commandstats"]).await;
    let line = statistics.lines().find_map(|line| line.strip_prefix("cmdstat_eval:")).unwrap();
    let micros = line.split(',').find_map(|field| field.strip_prefix("usec=")).unwrap();
    (micros.parse::<f64>().unwrap() / 1e3, reply.unwrap_or_default())
}

/// The longest time in milliseconds for which another client waits while a pipeline of this call
/// runs, each on an object of its own; the least of some rounds.
async fn portion((call, world): &(EditableCall, World), rounds: usize) -> f64 {
    let redis = Redis::start().await;
    redis.query::<String>(&["SCRIPT", "LOAD", &call.source]).await;
    let mut waits = Vec::new();
    for _ in 0..rounds {
        redis.query::<String>(&["FLUSHALL"]).await;
        world.fill(&redis).await;
        let originals: Vec<String> = redis.query(&["KEYS", "*"]).await;
        for number in 0..PIPELINE {
            for key in &originals {
                redis.query::<Value>(&["COPY", key, &renamed(key, number)]).await;
            }
        }
        let call = if call.args[1].is_empty() {
            call.clone()
        } else {
            call.clone().not_after(redis.now_ms().await + 60_000)
        };
        let commands: Vec<_> = (0..PIPELINE).map(|number| command(&call, number)).collect();
        let body = json!(commands).to_string();
        let probe = Probe::start(&redis);
        let address = redis.address();
        let status = tokio::task::spawn_blocking(move || post(address, "/pipeline", &body));
        assert_eq!(status.await.unwrap(), 200);
        waits.push(probe.end());
    }
    least(&waits)
}

fn renamed(text: &str, number: usize) -> String {
    if text == NAME {
        return format!("{NAME}{number}");
    }
    text.replace(&format!("{{{NAME}}}"), &format!("{{{NAME}{number}}}"))
}

fn command(call: &EditableCall, number: usize) -> Vec<String> {
    let head = ["EVALSHA".to_owned(), call.script.sha1(false).to_owned()];
    let count = call.keys.len().to_string();
    let words = call.keys.iter().chain(&call.args).map(|word| renamed(word, number));
    head.into_iter().chain([count]).chain(words).collect()
}

/// Sends a request with the full token on a connection of its own; returns the status.
fn post(gateway: std::net::SocketAddr, path: &str, body: &str) -> u16 {
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: gateway\r\nConnection: close\r\nAuthorization: Bearer {TOKEN}\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    send(TcpStream::connect(gateway).unwrap(), (head + body).as_bytes())
}

fn send(mut connection: TcpStream, request: &[u8]) -> u16 {
    connection.write_all(request).unwrap();
    let mut response = Vec::new();
    connection.read_to_end(&mut response).unwrap();
    str::from_utf8(&response[9..12]).unwrap().parse().unwrap()
}

/// A second client of Redis, which sends one `PING` after the other.
struct Probe {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<f64>,
}

impl Probe {
    fn start(redis: &Redis) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, socket) =
            (Arc::clone(&stop), redis.gateway().redis_socket().unwrap().to_owned());
        let mut connection = UnixStream::connect(socket).unwrap();
        let thread = thread::spawn(move || {
            let (mut longest, mut reply) = (0.0_f64, [0; 7]);
            while !stopped.load(Ordering::Relaxed) {
                let sent = Instant::now();
                connection.write_all(b"PING\r\n").unwrap();
                connection.read_exact(&mut reply).unwrap();
                longest = longest.max(sent.elapsed().as_secs_f64() * 1e3);
            }
            longest
        });
        Self { stop, thread }
    }

    /// Returns the longest time in milliseconds that one reply took.
    fn end(self) -> f64 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// The gateway whose processor time is measured, a process of its own.
struct MeasuredGateway {
    address: String,
    process: String,
    credentials: Credentials,
}

impl MeasuredGateway {
    fn from_env() -> Self {
        let variable = |name: &str| env::var(format!("EDGELATCH_TEST_{name}")).unwrap();
        let url = variable("URL");
        let address = url.trim_start_matches("http://").trim_end_matches('/').to_owned();
        let credentials = Credentials::new(&variable("TOKEN"), &variable("SCOPE_KEY"));
        Self { address, process: variable("PROCESS"), credentials }
    }

    /// The gateway's processor time for the longest request of this shape: its description, and
    /// milliseconds. The least of some rounds.
    fn processor_time(&self, shape: &Shape, rounds: usize) -> serde_json::Value {
        let request = shape.request(shape.size);
        let bytes = request.bytes(&self.credentials);
        let mut times = Vec::new();
        for _ in 0..rounds {
            let before = self.used();
            let status = send(TcpStream::connect(&self.address).unwrap(), &bytes);
            assert_eq!(status, shape.status, "{}", shape.name);
            times.push(self.used() - before);
        }
        let name = format!(
            "{}: {:.2} MB, {} words in {} commands",
            shape.name,
            request.body.len() as f64 / 1e6,
            request.words,
            request.commands
        );
        json!([name, least(&times)])
    }

    /// The processor time that the process has used so far, in milliseconds.
    fn used(&self) -> f64 {
        let threads = fs::read_dir(format!("/proc/{}/task", self.process)).unwrap();
        let nanos = threads.map(|thread| {
            let file = thread.unwrap().path().join("schedstat");
            let text = fs::read_to_string(file).unwrap_or_default();
            text.split(' ').next().and_then(|number| number.parse::<f64>().ok()).unwrap_or(0.0)
        });
        nanos.sum::<f64>() / 1e6
    }
}
