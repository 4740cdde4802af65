//! Describes the environment of the figures: the machine, and the versions of the measured
//! programs.

use std::fs;
use std::thread::available_parallelism;

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::Bench;
use super::ask::said;
use crate::place::Place;

/// The packages whose versions are in the lock file of the tools.
const PACKAGES: [&str; 5] =
    ["@upstash/lock", "@upstash/redis", "redlock", "redis-semaphore", "ioredis"];
const UNKNOWN: &str = "unknown";

/// Returns names and values.
pub(super) fn describe(bench: &Bench<'_>) -> Result<Vec<(String, String)>> {
    let place = bench.place;
    let cores = available_parallelism().map_or_else(|_| UNKNOWN.to_owned(), |n| n.to_string());
    let mut machine = vec![
        ("CPU".to_owned(), field("/proc/cpuinfo", "model name")),
        ("cores".to_owned(), cores),
        ("memory".to_owned(), memory()),
        ("system".to_owned(), version(place, "uname", &["-sr"])),
        ("edgelatch".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
        ("Node".to_owned(), version(place, "node", &["--version"])),
        ("Rust".to_owned(), version(place, "rustc", &["--version"])),
        ("Redis".to_owned(), version(place, "redis-server", &["--version"])),
        ("webdis".to_owned(), version(place, "dpkg-query", &["-Wf", "${Version}", "webdis"])),
        ("Java".to_owned(), version(place, "javac", &["-version"])),
        ("Redisson".to_owned(), redisson(place)?),
    ];
    let lock = fs::read_to_string(place.npm_folder().join("package-lock.json"))?;
    let lock: Value = serde_json::from_str(&lock)?;
    for package in PACKAGES {
        let version = lock
            .get("packages")
            .and_then(|all| all.get(format!("node_modules/{package}")))
            .and_then(|one| one.get("version"))
            .and_then(Value::as_str);
        machine.push((package.to_owned(), version.unwrap_or(UNKNOWN).to_owned()));
    }
    Ok(machine)
}

/// Returns the version in a program's output, without its name and other words.
fn version(place: &Place, program: &str, arguments: &[&str]) -> String {
    let said = said(place, "version", place.command(program).args(arguments)).unwrap_or_default();
    let line = said.lines().next().unwrap_or_default();
    if program == "uname" {
        return line.to_owned();
    }
    let is_version =
        |word: &&str| word.trim_start_matches(['v', '=']).starts_with(|c: char| c.is_ascii_digit());
    let word = line.split([' ', '=']).find(is_version).unwrap_or(UNKNOWN);
    word.trim_start_matches('v').to_owned()
}

/// Returns the value of a line such as `model name : AMD EPYC`.
pub(super) fn field(file: &str, name: &str) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    let value = text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    });
    value.unwrap_or_else(|| UNKNOWN.to_owned())
}

fn memory() -> String {
    let kibibytes = field("/proc/meminfo", "MemTotal");
    let number = kibibytes.split_whitespace().next().and_then(|text| text.parse::<f64>().ok());
    number.map_or(kibibytes, |number| format!("{:.0} GB", number * 1024.0 / 1e9))
}

/// Returns the version of Redisson in the Java side's build.
fn redisson(place: &Place) -> Result<String> {
    let build = fs::read_to_string(place.root.join("tests/interop/java/pom.xml"))?;
    let (_, rest) = build
        .split_once("<artifactId>redisson</artifactId>")
        .and_then(|(_, rest)| rest.split_once("<version>"))
        .context("the Java side does not name Redisson")?;
    Ok(rest.split('<').next().unwrap_or(UNKNOWN).to_owned())
}
