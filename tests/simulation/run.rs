//! The command line: selects the schedules to play, and prints the results.

use std::path::PathBuf;
use std::process::ExitCode;

use libtest_mimic::{Failed, Trial};

use super::coverage::{CoverPoint, Coverage};
use super::explore::{Explored, explore};
use super::export::Export;
use super::faults::{Fault, Faults};
use super::plan::{Kind, Limits, Plan, SeededFault};
use super::schedule::play;
use super::seeded_faults;
use super::shrink::shrink;

/// The arguments of the command.
struct Arguments {
    limits: Limits,
    kinds: Vec<Kind>,
    seed: u64,
    /// For all kinds together.
    schedules: u64,
    minutes: Option<f64>,
    /// The file for the histories.
    export: Option<PathBuf>,
}

const USAGE: &str = "flags: --seed S  --schedules K  --minutes M  --clients N  --rounds R  --kind NAME  --faults NAME,NAME|none  \
                     --without RULE  --blind  --export FILE";

impl Arguments {
    fn read(mut args: impl Iterator<Item = String>) -> Option<Self> {
        let mut read = Self {
            limits: Limits::default(),
            kinds: Kind::ALL.into(),
            seed: 1,
            schedules: SCHEDULES,
            minutes: None,
            export: None,
        };
        while let Some(flag) = args.next() {
            if flag == "--blind" {
                read.limits.checks_history_only = true;
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
                "--without" => {
                    read.limits.seeded_fault =
                        Some(of_name(SeededFault::ALL, SeededFault::name, &value)?)
                }
                "--export" => {
                    read.limits.exports = true;
                    read.export = Some(value.into());
                }
                "--faults" => read.limits.faults = Some(faults(&value)?),
                _ => return None,
            }
        }
        Some(read)
    }
}

/// The member with this name.
fn of_name<T: Copy>(all: &[T], name_of: fn(T) -> &'static str, name: &str) -> Option<T> {
    all.iter().copied().find(|one| name_of(*one) == name)
}

fn faults(names: &str) -> Option<Faults> {
    let mut names = names.split(',').filter(|name| *name != "none");
    names
        .try_fold(Faults::NONE, |all, name| Some(all.with(of_name(Fault::ALL, Fault::name, name)?)))
}

/// How many schedules the tests play for all kinds together, unless `EDGELATCH_SCHEDULES` is set.
const SCHEDULES: u64 = 12_000;
/// How many schedules of each kind are enough to reach every event.
const UNTIL_COMPLETE: u64 = 4_000;

/// Runs the tests; with a flag from `USAGE`, explores schedules instead.
pub(crate) fn main() -> ExitCode {
    let mut flags = std::env::args().skip(1);
    let is_own = |flag: String| USAGE.split_whitespace().any(|word| word == flag);
    if flags.any(is_own) { run_command() } else { tests() }
}

/// Lists and runs the tests as any test binary does.
fn tests() -> ExitCode {
    let of_each = schedules().div_ceil(Kind::ALL.len() as u64);
    // Slow: a full run plays a million schedules of all kinds together, a quick one thousands.
    let keeps = Kind::ALL.iter().map(|kind| {
        let test = move || {
            let explored = explore(*kind, Limits::default(), 1, of_each, None);
            if let Some((seed, what)) = &explored.failed {
                print_failure(*kind, Limits::default(), *seed, what);
            }
            pass_if(explored.failed.is_none(), "a promise was broken")
        };
        Trial::test(format!("every_promise_is_kept::{}", kind.name()), test)
    });
    let complete = Trial::test("everything_comes_up", || {
        let coverage = Coverage::default();
        for kind in Kind::ALL {
            let explored = explore(*kind, Limits::default(), 1, UNTIL_COMPLETE, None);
            coverage.add(&explored.coverage);
        }
        print_coverage(&coverage);
        pass_if(is_complete(&coverage), "an event was never reached")
    });
    let is_found = seeded_faults::all().map(|seeded_fault| {
        let name = seeded_fault.title();
        Trial::test(name, move || pass_if(seeded_fault.is_found(), "the fault was not found"))
    });
    let trials = keeps.chain([complete]).chain(is_found).collect();
    libtest_mimic::run(&libtest_mimic::Arguments::from_args(), trials).exit_code()
}

fn pass_if(passed: bool, problem: &str) -> Result<(), Failed> {
    if passed { Ok(()) } else { Err(problem.into()) }
}

fn schedules() -> u64 {
    let text = std::env::var("EDGELATCH_SCHEDULES");
    text.map_or(SCHEDULES, |text| text.parse().unwrap())
}

/// `cargo xtask sim`: plays the schedules that the flags select.
fn run_command() -> ExitCode {
    let Some(arguments) = Arguments::read(std::env::args().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::FAILURE;
    };
    let export = arguments.export.as_ref().map(|file| Export::create(file).unwrap());
    let coverage = Coverage::default();
    let mut failed = 0;
    for kind in &arguments.kinds {
        let explored = run_kind(&arguments, *kind, export.as_ref());
        coverage.add(&explored.coverage);
        failed += u32::from(explored.failed.is_some());
    }
    print_coverage(&coverage);
    // An export with a deliberate fault is for another checker, which has to find it.
    let is_for_others = export.is_some() && arguments.limits.seeded_fault.is_some();
    if failed == 0 || is_for_others { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run_kind(arguments: &Arguments, kind: Kind, export: Option<&Export>) -> Explored {
    let Arguments { limits, kinds, seed, schedules, minutes, .. } = arguments;
    #[expect(
        clippy::disallowed_methods,
        reason = "how fast it is, is said to people and decides nothing"
    )]
    let now = std::time::Instant::now;
    let begun = now();
    let seconds = || begun.elapsed().as_secs_f64();
    let share = schedules.div_ceil(kinds.len() as u64);
    let mut explored = explore(kind, *limits, *seed, share, export);
    while minutes.is_some_and(|minutes| seconds() < minutes * 60.0 / kinds.len() as f64)
        && explored.failed.is_none()
    {
        let more = explore(kind, *limits, seed.wrapping_add(explored.played), share, export);
        more.coverage.add(&explored.coverage);
        explored = Explored { played: explored.played + more.played, ..more };
    }
    let (played, requests) = (explored.played, explored.coverage.of(CoverPoint::Requests));
    let word = if explored.failed.is_none() { "ok" } else { "FAILED" };
    println!(
        "{} ... {word}: {played} schedules, {:.0} a minute, {:.1} requests in each",
        kind.name(),
        played as f64 / seconds() * 60.0,
        requests as f64 / played as f64,
    );
    if let Some((seed, what)) = &explored.failed {
        print_failure(kind, *limits, *seed, what);
    }
    explored
}

/// Prints the seed, the smallest schedule that breaks the same promise, and its history.
fn print_failure(kind: Kind, limits: Limits, seed: u64, what: &str) {
    println!("{what}\n  {}", Plan::draw(seed, kind, &limits).command());
    if limits.exports && limits.seeded_fault.is_some() {
        return;
    }
    let smallest = shrink(kind, limits, seed, what);
    println!("the smallest that was found:\n  {}", smallest.command());
    println!("{smallest:?}");
    play(smallest, true).trace.iter().for_each(|line| println!("{line}"));
}

fn print_coverage(coverage: &Coverage) {
    println!("what came up:");
    for point in CoverPoint::ALL {
        println!("{:>12}  {}", coverage.of(*point), point.name());
    }
}

/// Whether every event occurred: an event that never occurs is not tested.
fn is_complete(coverage: &Coverage) -> bool {
    let missing: Vec<_> =
        CoverPoint::ALL.iter().filter(|point| coverage.of(**point) == 0).collect();
    for point in &missing {
        println!("FAILED: no {}", point.name());
    }
    missing.is_empty()
}
