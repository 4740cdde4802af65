//! Functions of Linux alone: the end of a process with its parent, and the list of the signals that
//! the process ignores.

use std::fs;
use std::io;

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

/// The program's own file, which stays readable when the file is replaced during a long wait.
pub(crate) fn own_program() -> io::Result<std::path::PathBuf> {
    Ok("/proc/self/exe".into())
}

/// Makes the system kill this process when its parent ends. Returns whether the parent still has
/// this id.
pub(crate) fn end_with_parent(parent: Pid) -> io::Result<bool> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    Ok(getppid() == Some(parent))
}

/// Whether the process was started with this signal ignored, as by `nohup`.
pub(crate) fn is_ignored(signal: Signal) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).unwrap_or(0);
    let bit = u32::try_from(signal.as_raw() - 1).unwrap_or(0);
    ignored.checked_shr(bit).unwrap_or(0) & 1 == 1
}
