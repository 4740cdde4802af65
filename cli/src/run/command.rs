//! The process of the command.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use rustix::process::{Pid, Signal as Number, getpgrp, getpid};
use rustix::termios::tcgetpgrp;
use tokio::process::{self, Child};

use super::receiver::Receiver;
use super::supervisor::Action;
use crate::args::LaunchArgs;
use crate::platform;

/// A running command.
pub(super) struct Command {
    child: Child,
    receiver: Receiver,
}

/// Whether this program is in the foreground of a terminal.
///
/// Then the command stays in the group of this program: it can read from the terminal, keys reach
/// it, and the shell stops and continues both. Otherwise it has a group of its own.
fn is_in_foreground() -> bool {
    let terminal = File::open("/dev/tty").ok();
    terminal.and_then(|terminal| tcgetpgrp(terminal).ok()) == Some(getpgrp())
}

impl Command {
    /// Starts a command with these variables in its environment.
    ///
    /// The process begins as this program, which replaces itself by the command: see
    /// [`launch`](mod@super::launch).
    pub(super) fn start(words: &[OsString], variables: [(&str, OsString); 3]) -> io::Result<Self> {
        let is_in_foreground = is_in_foreground();
        let parent = getpid().as_raw_nonzero().to_string();
        let mut command = process::Command::new(platform::own_program()?);
        command.arg0("edgelatch").args([LaunchArgs::WORD, &parent, "--"]).args(words);
        command.envs(variables);
        if !is_in_foreground {
            command.process_group(0);
        }
        let child = command.spawn()?;
        let id = child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?));
        let id = id.ok_or_else(|| io::Error::other("the command has no process id"))?;
        let receiver = if is_in_foreground { Receiver::Process } else { Receiver::Group }(id);
        Ok(Self { child, receiver })
    }

    /// The processes that get the signals to the command.
    pub(super) const fn receiver(&self) -> Receiver {
        self.receiver
    }

    /// Waits for the end of the command. Dropping the future loses nothing.
    pub(super) async fn ended(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Carries out an action.
    pub(super) fn perform(&self, action: Option<Action>) {
        match action {
            None => {}
            // The terminal has sent it to the command too.
            Some(Action::Forward(signal)) if self.is_alone() && signal.is_key() => {}
            // Until the end of the command was awaited, its id belongs to no other process.
            Some(_) if self.is_alone() && self.child.id().is_none() => {}
            Some(Action::Forward(signal)) => self.receiver.send(signal.number()),
            Some(Action::Terminate) => self.receiver.terminate(),
            Some(Action::Kill) => self.receiver.send(Number::KILL),
        }
    }

    /// Whether signals reach only the command itself.
    const fn is_alone(&self) -> bool {
        matches!(self.receiver, Receiver::Process(_))
    }

    /// Whether the group of the command still has processes after the command has ended.
    pub(super) fn has_descendants(&self) -> bool {
        !self.is_alone() && self.receiver.exists()
    }
}

/// Returns the exit code for the status of a command, as shells report it.
pub(super) fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_those_of_shells() {
        assert_eq!(exit_code(ExitStatus::from_raw(3 << 8)), 3);
        assert_eq!(exit_code(ExitStatus::from_raw(9)), 137);
    }
}
