//! Programs that we start, and their end: nothing is left running, however a task ends.

use std::fmt;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;

/// How often a program is looked at while we wait for it.
const TICK: Duration = Duration::from_millis(40);
/// For how many ticks a program may clean up behind itself before it is killed: 10 s.
const GRACE_TICKS: u32 = 250;

static STOP: AtomicBool = AtomicBool::new(false);

/// The user or the machine asked us to stop.
#[derive(Debug)]
pub(crate) struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

/// From now on Ctrl-C, SIGTERM and SIGHUP end what is waited for with [`Interrupted`], so that
/// every `Drop` runs.
pub(crate) fn watch_signals() -> Result<()> {
    adopt_orphans();
    ctrlc::set_handler(|| STOP.store(true, Ordering::SeqCst)).context("cannot watch for signals")
}

/// Whether it is time to stop.
pub(crate) fn check_stop() -> Result<()> {
    if STOP.load(Ordering::SeqCst) { Err(Interrupted.into()) } else { Ok(()) }
}

/// Lets a moment pass.
pub(crate) fn tick() {
    thread::sleep(TICK);
}

/// A program and all that it starts, as one process group, ended when dropped.
pub(crate) struct Group {
    child: Child,
    name: String,
    status: Option<ExitStatus>,
}

impl Group {
    /// Starts a program in a group of its own.
    pub(crate) fn spawn(name: &str, command: &mut Command) -> Result<Self> {
        let child =
            command.process_group(0).spawn().with_context(|| format!("cannot start {name}"))?;
        Ok(Self { child, name: name.to_owned(), status: None })
    }

    /// The program itself; its output can be taken from here.
    pub(crate) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// The number of the program's process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it did.
    pub(crate) fn ended(&mut self) -> Result<Option<ExitStatus>> {
        if self.status.is_none() {
            self.status =
                self.child.try_wait().with_context(|| format!("cannot wait for {}", self.name))?;
        }
        Ok(self.status)
    }

    /// Waits for the end; `each_tick` is called meanwhile, and gives up by an error.
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

    /// Asks all of the group to end, and kills what does not.
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
        // The program itself first, through the standard library, which keeps account of it; then
        // what it left to us.
        if let Ok(Some(_)) = self.ended() {
            let group = Pid::from_raw(-self.pid().as_raw());
            while waitpid(group, Some(WaitPidFlag::WNOHANG)).is_ok_and(|s| s.pid().is_some()) {}
        }
        killpg(self.pid(), None).is_err()
    }

    fn pid(&self) -> Pid {
        // A process id is positive and fits: the system gave it to us.
        Pid::from_raw(i32::try_from(self.id()).unwrap_or(i32::MAX))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.end();
    }
}

/// Makes what a child leaves behind our own child, so that its end can be seen; in a container
/// nobody else may look.
#[cfg(target_os = "linux")]
fn adopt_orphans() {
    // Where the kernel refuses, ending takes the whole grace time and nothing else changes.
    let _ = nix::sys::prctl::set_child_subreaper(true);
}

#[cfg(not(target_os = "linux"))]
fn adopt_orphans() {}
