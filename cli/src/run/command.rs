//! The process of the command.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use rustix::process::{
    Pid, Signal as Number, getpgrp, getpid, kill_process, kill_process_group,
    test_kill_process_group,
};
use rustix::termios::tcgetpgrp;
use tokio::process::{self, Child};

use super::supervisor::Action;
use crate::args::LaunchArgs;
use crate::platform;

/// A running command.
pub(super) struct Command {
    child: Child,
    id: Pid,
    group: Group,
}

/// The process group of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Group {
    /// A group of its own, which gets every signal.
    Own,
    /// The group of this program, in the foreground of a terminal. So the command can read from
    /// the terminal, keys reach it, and the shell stops and continues both.
    Foreground,
}

impl Group {
    fn choose() -> Self {
        let terminal = File::open("/dev/tty").ok();
        let foreground = terminal.and_then(|terminal| tcgetpgrp(terminal).ok());
        if foreground == Some(getpgrp()) { Self::Foreground } else { Self::Own }
    }
}

impl Command {
    /// Starts a command with these variables in its environment.
    ///
    /// The process begins as this program, which replaces itself by the command: see
    /// [`launch`](super::launch).
    pub(super) fn start(words: &[OsString], variables: [(&str, OsString); 3]) -> io::Result<Self> {
        let group = Group::choose();
        let parent = getpid().as_raw_nonzero().to_string();
        let mut command = process::Command::new(platform::own_program()?);
        command.arg0("edgelatch").args([LaunchArgs::WORD, &parent, "--"]).args(words);
        command.envs(variables);
        if group == Group::Own {
            command.process_group(0);
        }
        let child = command.spawn()?;
        let id = child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?));
        let id = id.ok_or_else(|| io::Error::other("the command has no process id"))?;
        Ok(Self { child, id, group })
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
            Some(Action::Forward(signal)) if self.group == Group::Foreground && signal.is_key() => {
            }
            Some(Action::Forward(signal)) => self.send(signal.number()),
            Some(Action::Terminate) => {
                self.send(Number::TERM);
                self.send(Number::CONT);
            }
            Some(Action::Kill) => self.send(Number::KILL),
        }
    }

    /// Whether the group of the command still has processes after the command has ended.
    pub(super) fn has_descendants(&self) -> bool {
        self.group == Group::Own && test_kill_process_group(self.id).is_ok()
    }

    /// Sends a signal. It fails only if all receivers have ended.
    fn send(&self, signal: Number) {
        let _ = match self.group {
            Group::Own => kill_process_group(self.id, signal),
            // Until the end of the command was awaited, its id belongs to no other process.
            Group::Foreground if self.child.id().is_some() => kill_process(self.id, signal),
            Group::Foreground => Ok(()),
        };
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
