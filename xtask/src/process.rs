//! Starts programs and ends them: no program is left running, however a task ends.

use std::fmt;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;

/// The interval of checks while a program is awaited.
const TICK: Duration = Duration::from_millis(40);
/// The number of ticks before a program that was asked to end is killed: 10 s.
const GRACE_TICKS: u32 = 250;

static STOP: AtomicBool = AtomicBool::new(false);

/// The user or the machine has requested the end of this program.
#[derive(Debug)]
pub(crate) struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

/// Makes Ctrl-C, SIGTERM and SIGHUP end every wait with [`Interrupted`], so that every `Drop` runs.
pub(crate) fn watch_signals() -> Result<()> {
    adopt_orphans();
    ctrlc::set_handler(|| STOP.store(true, Ordering::SeqCst)).context("cannot watch for signals")
}

/// Fails if this program has to end.
pub(crate) fn check_stop() -> Result<()> {
    if STOP.load(Ordering::SeqCst) { Err(Interrupted.into()) } else { Ok(()) }
}

/// Waits for one tick.
pub(crate) fn tick() {
    thread::sleep(TICK);
}

/// A program and all programs that it starts, as one process group. Dropping it ends them.
pub(crate) struct ProcessGroup {
    child: Child,
    status: Option<ExitStatus>,
}

impl ProcessGroup {
    /// Starts a program in a group of its own.
    pub(crate) fn spawn(name: &str, command: &mut Command) -> Result<Self> {
        let child =
            command.process_group(0).spawn().with_context(|| format!("cannot start {name}"))?;
        Ok(Self { child, status: None })
    }

    /// Returns the exit status, if the program has ended.
    pub(crate) fn ended(&mut self) -> Result<Option<ExitStatus>> {
        if self.status.is_none() {
            self.status = self.child.try_wait().context("cannot wait for a program")?;
        }
        Ok(self.status)
    }

    /// Waits for the end of the program; calls `each_tick` meanwhile, and returns its error.
    pub(crate) fn wait(&mut self, mut each_tick: impl FnMut() -> Result<()>) -> Result<ExitStatus> {
        loop {
            check_stop()?;
            if let Some(status) = self.ended()? {
                return Ok(status);
            }
            each_tick()?;
            tick();
        }
    }

    /// Asks all processes of the group to end, and kills those that do not.
    pub(crate) fn end(&mut self) {
        for signal in [Signal::SIGTERM, Signal::SIGKILL] {
            if killpg(self.pid(), signal).is_err() {
                return;
            }
            for _ in 0..GRACE_TICKS {
                if self.is_empty() {
                    return;
                }
                tick();
            }
        }
    }

    fn is_empty(&mut self) -> bool {
        // The program itself first, through the standard library, which records its status; then
        // the processes that it has left behind.
        if let Ok(Some(_)) = self.ended() {
            let group = Pid::from_raw(-self.pid().as_raw());
            while waitpid(group, Some(WaitPidFlag::WNOHANG)).is_ok_and(|s| s.pid().is_some()) {}
        }
        killpg(self.pid(), None).is_err()
    }

    fn pid(&self) -> Pid {
        // A process id from the system is positive and fits.
        Pid::from_raw(i32::try_from(self.child.id()).unwrap_or(i32::MAX))
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.end();
    }
}

/// Runs a program that prints to the terminal; returns the exit code for this program.
pub(crate) fn forward(name: &str, command: &mut Command) -> Result<ExitCode> {
    Ok(exit_code(ProcessGroup::spawn(name, command)?.wait(|| Ok(()))?.success()))
}

/// Returns the exit code of a task.
pub(crate) fn exit_code(succeeded: bool) -> ExitCode {
    if succeeded { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Makes this program the parent of orphaned processes, so that it sees their end; in a container
/// no other process may.
#[cfg(target_os = "linux")]
fn adopt_orphans() {
    // If the kernel refuses, ending a group takes the whole grace time, and nothing else changes.
    let _ = nix::sys::prctl::set_child_subreaper(true);
}

#[cfg(not(target_os = "linux"))]
fn adopt_orphans() {}
