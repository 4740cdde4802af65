//! The processes that get signals.

use std::fmt;
use std::str::FromStr;

use rustix::process::{
    Pid, Signal, kill_process, kill_process_group, test_kill_process, test_kill_process_group,
};

/// The receiver of the signals to a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Receiver {
    /// The process group of this id.
    Group(Pid),
    /// The process of this id alone.
    Process(Pid),
}

impl Receiver {
    /// Sends a signal. It fails only if all receivers have ended.
    pub(super) fn send(self, signal: Signal) {
        let _ = match self {
            Self::Group(id) => kill_process_group(id, signal),
            Self::Process(id) => kill_process(id, signal),
        };
    }

    /// Asks to end: SIGTERM, and SIGCONT for processes that are stopped.
    pub(super) fn terminate(self) {
        self.send(Signal::TERM);
        self.send(Signal::CONT);
    }

    /// Whether there is a receiver. A process counts until its parent has read its status.
    pub(super) fn exists(self) -> bool {
        match self {
            Self::Group(id) => test_kill_process_group(id).is_ok(),
            Self::Process(id) => test_kill_process(id).is_ok(),
        }
    }
}

/// The form in which one process of this program passes it to another: as for `kill`, the id of a
/// group is negative.
impl fmt::Display for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Group(id) => write!(f, "-{}", id.as_raw_nonzero()),
            Self::Process(id) => write!(f, "{}", id.as_raw_nonzero()),
        }
    }
}

impl FromStr for Receiver {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number: i32 = text.parse().map_err(|_| "expected a number".to_owned())?;
        let id = number.checked_abs().and_then(Pid::from_raw).ok_or("expected a process id")?;
        Ok(if number < 0 { Self::Group(id) } else { Self::Process(id) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receiver_is_passed_as_a_number() {
        let id = Pid::from_raw(42).unwrap();
        for (receiver, text) in [(Receiver::Group(id), "-42"), (Receiver::Process(id), "42")] {
            assert_eq!(receiver.to_string(), text);
            assert_eq!(text.parse(), Ok(receiver));
        }
        for bad in ["0", "", "x", "-2147483648"] {
            assert!(bad.parse::<Receiver>().is_err(), "{bad}");
        }
    }
}
