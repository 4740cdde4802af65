//! The process that replaces itself by the command of `run`.
//!
//! In a process of its own it can ask the system to end that process together with `edgelatch run`;
//! the setting survives the replacement. So the command does not outlive the lock when
//! `edgelatch run` is killed.

use std::io::ErrorKind;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::process::Pid;

use crate::args::LaunchArgs;
use crate::exit::{Exit, Failure};
use crate::platform;

/// Replaces this program by the command. Returns only if that fails.
pub(crate) fn launch(args: &LaunchArgs) -> Failure {
    match Pid::from_raw(args.parent).map(platform::end_with_parent) {
        Some(Ok(true)) => {}
        Some(Err(error)) => return error.into(),
        Some(Ok(false)) | None => {
            return Failure::new(Exit::Internal, "`edgelatch run` ended before the command began");
        }
    }
    let Some((program, words)) = args.command.split_first() else {
        return Failure::new(Exit::Usage, "a command is needed");
    };
    let error = Command::new(program).args(words).exec();
    let exit = match error.kind() {
        ErrorKind::NotFound => Exit::NotFound,
        _ => Exit::NotExecutable,
    };
    Failure::new(exit, format!("cannot run {program:?}: {error}"))
}
