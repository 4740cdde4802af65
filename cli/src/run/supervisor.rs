//! The decisions about a running command, as a state machine without I/O.

use edgelatch::error::LossReason;

use crate::signals::Signal;

/// Decides which signals the command gets.
#[derive(Debug)]
pub(super) struct Supervisor {
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The lease is held.
    Running,
    /// The lease is lost, and the command may still clean up.
    Ending(LossReason),
    /// The command was killed.
    Killed(LossReason),
}

/// A signal to send to the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// A signal that the program has received.
    Forward(Signal),
    /// SIGTERM, and SIGCONT for a command that is stopped.
    Terminate,
    /// SIGKILL.
    Kill,
}

impl Supervisor {
    pub(super) const fn new() -> Self {
        Self { phase: Phase::Running }
    }

    /// Handles the loss of the lease: the command has to end.
    pub(super) const fn on_lost(&mut self, reason: LossReason) -> Option<Action> {
        if !matches!(self.phase, Phase::Running) {
            return None;
        }
        self.phase = Phase::Ending(reason);
        Some(Action::Terminate)
    }

    /// Handles a signal to the program. The command decides what it does about a signal, unless it
    /// has to end: then it is not given more time.
    pub(super) const fn on_signal(&mut self, signal: Signal) -> Option<Action> {
        match self.phase {
            Phase::Running => Some(Action::Forward(signal)),
            Phase::Ending(reason) if signal.is_end() => self.kill(reason),
            Phase::Ending(_) | Phase::Killed(_) => None,
        }
    }

    /// Handles the end of the grace time.
    pub(super) const fn on_grace_over(&mut self) -> Option<Action> {
        match self.phase {
            Phase::Ending(reason) => self.kill(reason),
            Phase::Running | Phase::Killed(_) => None,
        }
    }

    /// Whether the command has the grace time to end.
    pub(super) const fn is_ending(&self) -> bool {
        matches!(self.phase, Phase::Ending(_))
    }

    /// Returns the reason of the loss.
    pub(super) const fn loss(&self) -> Option<LossReason> {
        match self.phase {
            Phase::Running => None,
            Phase::Ending(reason) | Phase::Killed(reason) => Some(reason),
        }
    }

    const fn kill(&mut self, reason: LossReason) -> Option<Action> {
        self.phase = Phase::Killed(reason);
        Some(Action::Kill)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOST: LossReason = LossReason::Expired;

    #[test]
    fn signals_are_forwarded_while_the_lease_is_held() {
        let mut supervisor = Supervisor::new();
        for signal in [Signal::Interrupt, Signal::Interrupt, Signal::User1, Signal::Terminate] {
            assert_eq!(supervisor.on_signal(signal), Some(Action::Forward(signal)));
        }
        assert_eq!(supervisor.loss(), None);
    }

    #[test]
    fn a_loss_terminates_the_command_and_the_end_of_its_grace_time_kills_it() {
        let mut supervisor = Supervisor::new();
        assert_eq!(supervisor.on_grace_over(), None);
        assert_eq!(supervisor.on_lost(LOST), Some(Action::Terminate));
        assert!(supervisor.is_ending());
        assert_eq!(supervisor.on_lost(LOST), None);
        assert_eq!(supervisor.on_grace_over(), Some(Action::Kill));
        assert!(!supervisor.is_ending());
        assert_eq!(supervisor.on_grace_over(), None);
        assert_eq!(supervisor.loss(), Some(LOST));
    }

    #[test]
    fn a_signal_during_the_grace_time_kills_the_command() {
        let mut supervisor = Supervisor::new();
        supervisor.on_lost(LOST);
        assert_eq!(supervisor.on_signal(Signal::User2), None);
        assert_eq!(supervisor.on_signal(Signal::Interrupt), Some(Action::Kill));
        assert_eq!(supervisor.on_signal(Signal::Interrupt), None);
    }
}
