//! The command: which schedules are played, and what is said of them.

use std::process::ExitCode;

use super::explore::{Explored, explore};
use super::faults::{Fault, Faults};
use super::plan::{Kind, Limits, Plan, Tooth};
use super::schedule::play;
use super::seen::{Seen, Sight};
use super::shrink::shrink;
use super::teeth;

/// What the command names.
struct Arguments {
    limits: Limits,
    kinds: Vec<Kind>,
    seed: u64,
    /// Of all kinds together.
    schedules: u64,
    minutes: Option<f64>,
    /// Whether all is played that a change has to pass: the teeth too, and nothing may be missing among what was seen.
    checks: bool,
}

const USAGE: &str = "flags: --seed S  --schedules K  --minutes M  --clients N  --rounds R  --kind NAME  --faults NAME,NAME|none  \
                     --without RULE  --check  --blind";

impl Arguments {
    fn read(mut args: impl Iterator<Item = String>) -> Option<Self> {
        let mut read = Self {
            limits: Limits::default(),
            kinds: Kind::ALL.into(),
            seed: 1,
            schedules: 12_000,
            minutes: None,
            checks: false,
        };
        while let Some(flag) = args.next() {
            if flag == "--check" || flag == "--blind" {
                read.checks |= flag == "--check";
                read.limits.is_blind |= flag == "--blind";
                continue;
            }
            let value = args.next()?;
            match flag.as_str() {
                "--seed" => read.seed = value.parse().ok()?,
                "--schedules" => read.schedules = value.parse().ok()?,
                "--minutes" => read.minutes = Some(value.parse().ok()?),
                "--clients" => read.limits.clients = Some(value.parse().ok()?),
                "--rounds" => read.limits.rounds = Some(value.parse().ok()?),
                "--kind" => read.kinds = [of_name(Kind::ALL, Kind::name, &value)?].into(),
                "--without" => read.limits.tooth = Some(of_name(Tooth::ALL, Tooth::name, &value)?),
                "--faults" => read.limits.faults = Some(faults(&value)?),
                _ => return None,
            }
        }
        Some(read)
    }
}

/// The one of this name.
fn of_name<T: Copy>(all: &[T], name_of: fn(T) -> &'static str, name: &str) -> Option<T> {
    all.iter().copied().find(|one| name_of(*one) == name)
}

fn faults(names: &str) -> Option<Faults> {
    let mut names = names.split(',').filter(|name| *name != "none");
    names
        .try_fold(Faults::NONE, |all, name| Some(all.with(of_name(Fault::ALL, Fault::name, name)?)))
}

pub(crate) fn main() -> ExitCode {
    let Some(arguments) = Arguments::read(std::env::args().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::FAILURE;
    };
    let (mut passed, mut failed) = (0, 0);
    let mut count = |good: bool| if good { passed += 1 } else { failed += 1 };
    let seen = Seen::default();
    for kind in &arguments.kinds {
        let explored = plays(&arguments, *kind);
        seen.add(&explored.seen);
        count(explored.failed.is_none());
    }
    tell_seen(&seen);
    if arguments.checks {
        count(nothing_is_missing(&seen));
        for good in teeth::bite() {
            count(good);
        }
    }
    let word = if failed == 0 { "ok" } else { "FAILED" };
    println!("test result: {word}. {passed} passed; {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn plays(arguments: &Arguments, kind: Kind) -> Explored {
    let Arguments { limits, kinds, seed, schedules, minutes, .. } = arguments;
    #[expect(
        clippy::disallowed_methods,
        reason = "how fast it is, is said to people and decides nothing"
    )]
    let now = std::time::Instant::now;
    let begun = now();
    let seconds = || begun.elapsed().as_secs_f64();
    let share = schedules.div_ceil(kinds.len() as u64);
    let mut explored = explore(kind, *limits, *seed, share);
    while minutes.is_some_and(|minutes| seconds() < minutes * 60.0 / kinds.len() as f64)
        && explored.failed.is_none()
    {
        let more = explore(kind, *limits, seed.wrapping_add(explored.played), share);
        more.seen.add(&explored.seen);
        explored = Explored { played: explored.played + more.played, ..more };
    }
    let (played, requests) = (explored.played, explored.seen.of(Sight::Requests));
    let word = if explored.failed.is_none() { "ok" } else { "FAILED" };
    println!(
        "{} ... {word}: {played} schedules, {:.0} a minute, {:.1} requests in each",
        kind.name(),
        played as f64 / seconds() * 60.0,
        requests as f64 / played as f64,
    );
    if let Some((seed, what)) = &explored.failed {
        tell_failure(kind, *limits, *seed, what);
    }
    explored
}

/// The seed, the smallest schedule that breaks the same promise, and its history.
fn tell_failure(kind: Kind, limits: Limits, seed: u64, what: &str) {
    println!("{what}\n  {}", Plan::draw(seed, kind, &limits).command());
    let smallest = shrink(kind, limits, seed, what);
    println!("the smallest that was found:\n  {}", smallest.command());
    println!("{smallest:?}");
    play(smallest, true).story.iter().for_each(|line| println!("{line}"));
}

fn tell_seen(seen: &Seen) {
    println!("what came up:");
    for sight in Sight::ALL {
        println!("{:>12}  {}", seen.of(*sight), sight.name());
    }
}

/// What never came up was not tried.
fn nothing_is_missing(seen: &Seen) -> bool {
    let missing: Vec<_> = Sight::ALL.iter().filter(|sight| seen.of(**sight) == 0).collect();
    for sight in &missing {
        println!("FAILED: no {}", sight.name());
    }
    missing.is_empty()
}
