//! The environment of a measurement: a Redis with the project's gateway in front, both private, and
//! the programs that send requests.

use std::env;
use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, id};

use anyhow::{Context as _, Error, Result};
use serde_json::{Value, json};

use super::Bench;
use super::ask::ask;
use super::subject::Subject;
use crate::interop;
use crate::place::Place;
use crate::process::check_stop;
use crate::services::{Gateway, Part};

/// The number of ports that are tried.
const TRIES: u32 = 3;

/// A Redis on loopback and its gateway. Dropping it ends both.
pub(super) struct Stand<'b> {
    bench: &'b Bench<'b>,
    // Dropped in this order, so that the gateway does not report the end of its Redis.
    pub(super) gateway: Gateway,
    pub(super) redis: Redis,
}

impl<'b> Stand<'b> {
    /// Starts a new one, whose Redis knows no script.
    pub(super) fn start(bench: &'b Bench<'b>) -> Result<Self> {
        Self::start_with(bench, &[])
    }

    /// Starts a new one whose gateway has these options as well.
    pub(super) fn start_with(bench: &'b Bench<'b>, options: &[&str]) -> Result<Self> {
        let redis = Redis::start(bench.place)?;
        let arguments = [&["--redis", &redis.url], options].concat();
        let gateway = Gateway::start_with(bench.place, &bench.gateway, &arguments)?;
        Ok(Self { bench, gateway, redis })
    }

    /// Measures a subject with `tests/bench/measure.mjs`.
    pub(super) fn measure(&self, subject: &Subject, what: &str, options: &Value) -> Result<Value> {
        if subject.is_redisson() {
            return self.redisson(what, options);
        }
        let mut node = self.bench.place.node();
        // A flag of the engine disables its code cache, so a start takes half as long again.
        node.args((what != "start").then_some("--expose-gc"))
            .args(["--experimental-import-meta-resolve", "--no-warnings"])
            .args(["tests/bench/measure.mjs", subject.key, what, &options.to_string()])
            .env("EDGELATCH_TOOLS", self.bench.place.node_modules())
            .env("EDGELATCH_CONSUMER", &self.bench.consumer);
        ask(self.bench.place, &format!("{} {what}", subject.key), self.tell(&mut node))
    }

    /// Measures the crate with `tests/bench/native.rs`.
    pub(super) fn native(&self, options: &Value) -> Result<Value> {
        let mut cargo = self.bench.native();
        cargo.args(["--", &options.to_string()]);
        ask(self.bench.place, "native", self.tell(&mut cargo))
    }

    fn redisson(&self, what: &str, options: &Value) -> Result<Value> {
        let peer = &self.bench.peer;
        let mut options = options.clone();
        if let Some(options) = options.as_object_mut() {
            options.insert("redis".to_owned(), json!(self.redis.url));
            options.insert("what".to_owned(), json!(what));
        }
        let folders = interop::class_path(peer);
        let mut java = self.bench.place.command("java");
        java.args(self.bench.effort.java)
            .args(["-cp", &folders, "edgelatch.peer.Bench"])
            .arg(options.to_string());
        ask(self.bench.place, &format!("redisson {what}"), &mut java)
    }

    /// Adds to a command the address and the token of the gateway, and that of Redis.
    pub(super) fn tell<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        command
            .env("EDGELATCH_TEST_URL", &self.gateway.url)
            .env("EDGELATCH_TEST_TOKEN", &self.gateway.token)
            .env("EDGELATCH_TEST_REDIS", &self.redis.url)
    }
}

/// A redis-server on loopback with its own folder. Dropping it ends the server and removes the
/// folder.
pub(super) struct Redis {
    part: Option<Part>,
    folder: PathBuf,
    pub(super) port: u16,
    pub(super) url: String,
}

impl Redis {
    fn start(place: &Place) -> Result<Self> {
        on_free_port(|port| Self::start_on(place, port))
    }

    fn start_on(place: &Place, port: u16) -> Result<Self> {
        let folder = env::temp_dir().join(format!("edgelatch-bench-{}-{port}", id()));
        fs::create_dir_all(&folder).context("cannot make a folder for Redis")?;
        let mut redis = Self { part: None, folder, port, url: format!("redis://127.0.0.1:{port}") };
        let mut command = place.command("redis-server");
        command
            .args(["--bind", "127.0.0.1", "--port", &port.to_string()])
            .args(["--save", "", "--appendonly", "no", "--maxclients", "4000"])
            .current_dir(&redis.folder);
        let part = redis.part.insert(Part::start(place, "redis", &mut command)?);
        part.wait_for("Ready to accept ")?;
        Ok(redis)
    }

    /// Returns the folder, where programs that belong to this Redis may keep files.
    pub(super) fn folder(&self) -> &PathBuf {
        &self.folder
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        drop(self.part.take());
        // If it cannot be removed, an empty folder remains among the temporary files.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Starts a program on a free port; on another one if a different program was faster to use the
/// first.
pub(super) fn on_free_port<T>(start: impl Fn(u16) -> Result<T>) -> Result<T> {
    let free = || Ok::<_, Error>(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port());
    let mut started = start(free()?);
    for _ in 1..TRIES {
        if started.is_err() {
            check_stop()?;
            started = start(free()?);
        }
    }
    started
}
