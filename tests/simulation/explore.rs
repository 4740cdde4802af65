//! Plays many schedules, on all cores.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use super::coverage::Coverage;
use super::export::Export;
use super::plan::{Kind, Limits, Plan};
use super::schedule::play;

/// The result of many schedules.
pub(crate) struct Explored {
    pub(crate) played: u64,
    pub(crate) coverage: Coverage,
    /// The failed schedule with the lowest seed, and the promise that it broke.
    pub(crate) failed: Option<(u64, String)>,
}

/// How many seeds a thread takes at a time.
const CHUNK: u64 = 256;

/// Plays the schedules of these seeds until one breaks a promise; with an export, plays and exports
/// all of them. Returns the failure with the lowest seed of those found.
pub(crate) fn explore(
    kind: Kind,
    limits: Limits,
    seed: u64,
    schedules: u64,
    export: Option<&Export>,
) -> Explored {
    let (next, played) = (AtomicU64::new(0), AtomicU64::new(0));
    let found: Mutex<Option<(u64, String)>> = Mutex::new(None);
    let work = || {
        let coverage = Coverage::default();
        loop {
            let begin = next.fetch_add(CHUNK, Ordering::Relaxed);
            if begin >= schedules || export.is_none() && found.lock().unwrap().is_some() {
                return coverage;
            }
            let mut histories = String::new();
            for number in begin..(begin + CHUNK).min(schedules) {
                let seed = seed.wrapping_add(number);
                let report = play(Plan::draw(seed, kind, &limits), false);
                coverage.add(&report.coverage);
                histories.push_str(&report.history);
                played.fetch_add(1, Ordering::Relaxed);
                if let Some(what) = report.broken {
                    let mut found = found.lock().unwrap();
                    if found.as_ref().is_none_or(|(other, _)| seed < *other) {
                        *found = Some((seed, what));
                    }
                    drop(found);
                    if export.is_none() {
                        return coverage;
                    }
                }
            }
            if let Some(export) = export {
                export.write(&histories);
            }
        }
    };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let coverage = Coverage::default();
    thread::scope(|scope| {
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        for thread in threads {
            coverage.add(&thread.join().unwrap());
        }
    });
    let failed = found.into_inner().unwrap();
    Explored { played: played.into_inner(), coverage, failed }
}
