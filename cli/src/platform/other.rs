//! The counterpart of `linux.rs` on other systems, where a process does not end with its parent.

use std::env;
use std::io;
use std::path::PathBuf;

use rustix::process::{Pid, Signal, getppid};

/// The program's own file.
pub(crate) fn own_program() -> io::Result<PathBuf> {
    env::current_exe()
}

/// Returns whether the parent still has this id.
pub(crate) fn end_with_parent(parent: Pid) -> io::Result<bool> {
    Ok(getppid() == Some(parent))
}

/// Whether the process was started with this signal ignored. Not known here.
pub(crate) const fn is_ignored(_: Signal) -> bool {
    false
}
