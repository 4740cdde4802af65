//! Stops one of the programs that the tests have started, for some seconds, again and again. A busy
//! machine does so rarely; here a test that needs an event in time fails soon.

use std::fs;
use std::hash::{BuildHasher as _, RandomState};
use std::iter;
use std::ops::RangeInclusive;
use std::process;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::progress::{print, with_prefix};

/// How long a program is stopped, in seconds: longer than the default of 5 s for an attempt, and
/// shorter than every lease that a test expects to keep.
const STALL: RangeInclusive<u64> = 1..=7;
/// The pause between two of them, in seconds.
const PAUSE: RangeInclusive<u64> = 1..=3;

/// The programs that build what is tested: no test waits for them.
const BUILDERS: [&str; 3] = ["cargo", "cargo-nextest", "rustc"];

/// A process as the kernel describes it.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Process {
    id: i32,
    parent: i32,
    /// The first characters of the program's name.
    name: String,
    /// Whether it has not ended, and nothing has stopped it, as some tests do.
    is_running: bool,
}

/// Does `work` while a thread stops programs. No program stays stopped.
///
/// # Errors
/// That of `work`, or that the kernel does not list its processes in `/proc`.
pub(crate) fn during<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    processes()?;
    thread::scope(|scope| {
        let (end, ended) = channel();
        scope.spawn(move || with_prefix("stalls", || stall_until(&ended)));
        let result = work();
        drop::<Sender<()>>(end);
        result
    })
}

/// Stops programs until the sender is dropped.
fn stall_until(ended: &Receiver<()>) {
    let own = process::id().cast_signed();
    let random = RandomState::new();
    let mut numbers = (0_u64..).map(|turn| random.hash_one(turn));
    let mut draw = |range: RangeInclusive<u64>| {
        let size = range.end() - range.start() + 1;
        range.start() + numbers.next().unwrap_or_default() % size
    };
    while !is_over(ended, draw(PAUSE)) {
        let all = processes().unwrap_or_default();
        let is_candidate = |one: &&Process| one.is_running && !BUILDERS.contains(&&*one.name);
        let candidates: Vec<_> = descendants(&all, own).filter(is_candidate).collect();
        let Some(last) = candidates.len().checked_sub(1) else { continue };
        let Some(chosen) = candidates.get(draw(0..=last as u64) as usize) else { continue };
        if stall(chosen, draw(STALL), ended) {
            return;
        }
    }
}

/// Stops a program for this number of seconds, or until the sender is dropped, and returns whether
/// it was.
fn stall(program: &Process, seconds: u64, ended: &Receiver<()>) -> bool {
    let id = Pid::from_raw(program.id);
    // It may have ended by itself.
    if kill(id, Signal::SIGSTOP).is_err() {
        return false;
    }
    print(&format!("{} ({id}) stops for {seconds} s", program.name));
    let over = is_over(ended, seconds);
    let _ = kill(id, Signal::SIGCONT);
    over
}

/// Waits for this number of seconds, or until the sender is dropped, and returns whether it was.
fn is_over(ended: &Receiver<()>, seconds: u64) -> bool {
    ended.recv_timeout(Duration::from_secs(seconds)) != Err(RecvTimeoutError::Timeout)
}

/// Returns all processes of the machine.
fn processes() -> Result<Vec<Process>> {
    let mut all = Vec::new();
    for entry in fs::read_dir("/proc").context("this system does not list processes in /proc")? {
        // Other entries have no such file, and a process may end meanwhile.
        if let Ok(stat) = fs::read_to_string(entry?.path().join("stat")) {
            all.extend(Process::parse(&stat));
        }
    }
    Ok(all)
}

/// Returns the processes that a process has started, and those that these have started.
fn descendants(all: &[Process], of: i32) -> impl Iterator<Item = &Process> {
    let parent_of = move |id| all.iter().find(|one| one.id == id).map(|one| one.parent);
    let is_descendant = move |one: &&Process| {
        iter::successors(Some(one.parent), |id| parent_of(*id)).any(|ancestor| ancestor == of)
    };
    all.iter().filter(is_descendant)
}

impl Process {
    /// Reads `/proc/ID/stat` as proc(5) defines it: the name stands in parentheses, and may contain
    /// any character.
    fn parse(stat: &str) -> Option<Self> {
        let (id, rest) = stat.split_once(" (")?;
        let (name, rest) = rest.rsplit_once(") ")?;
        let mut fields = rest.split(' ');
        let is_running = !matches!(fields.next()?, "T" | "t" | "Z" | "X");
        let (id, parent) = (id.parse().ok()?, fields.next()?.parse().ok()?);
        Some(Self { id, parent, name: name.to_owned(), is_running })
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    fn process(id: i32, parent: i32) -> Process {
        Process { id, parent, name: "x".to_owned(), is_running: true }
    }

    #[test]
    fn a_name_with_parentheses_and_spaces_is_read() {
        let stat = "52 (Web) Content (1) T 7 52 52 0 -1 4194560";
        let name = "Web) Content (1".to_owned();
        let read = Process { id: 52, parent: 7, name, is_running: false };
        assert_eq!(Process::parse(stat), Some(read));
        assert_eq!(Process::parse("no process"), None);
    }

    #[test]
    fn descendants_are_found_at_every_depth() {
        let all = [process(1, 0), process(2, 1), process(3, 2), process(4, 3), process(5, 1)];
        let ids: Vec<i32> = descendants(&all, 2).map(|one| one.id).collect();
        assert_eq!(ids, [3, 4]);
    }

    #[test]
    fn a_program_is_stopped_until_the_end_and_no_longer() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let id = child.id().cast_signed();
        let find = || {
            let all = processes().unwrap();
            descendants(&all, process::id().cast_signed()).find(|one| one.id == id).cloned()
        };
        let program = find().unwrap();
        assert!(program.is_running);
        let (end, ended) = channel();
        let stalling = thread::spawn(move || stall(&program, u64::from(u32::MAX), &ended));
        while find().is_some_and(|program| program.is_running) {
            thread::yield_now();
        }
        drop::<Sender<()>>(end);
        assert!(stalling.join().unwrap());
        // It reads the end of its input, which a stopped program would not.
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success());
    }
}
