//! The exit codes, and the failures that lead to them. `cli/README.md` documents each code.

use std::error::Error as _;
use std::io;
use std::process::ExitCode;

use edgelatch::Error;
use edgelatch::error::{AcquireError, InvalidOption, Refusal, RefusalKind, RequestError};

use crate::clock;
use crate::signals::Signal;

/// The exit codes of the program itself.
///
/// They are those of `sysexits.h` where it has one, and below 126, where shells begin. A command
/// under a lock may use the same codes; the message on stderr tells the difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Wrong arguments, or no gateway in the environment.
    Usage = 64,
    /// There is no semaphore of this name.
    NotSetUp = 66,
    /// The gateway could not be reached, or gave no usable reply.
    Unreachable = 69,
    /// An error of this program or of the operating system.
    Internal = 70,
    /// The semaphore or the latch exists already.
    Exists = 73,
    /// Another client holds the lock, too few permits are available, or the latch is closed.
    Busy = 75,
    /// The gateway or Redis refused the request.
    Refused = 76,
    /// The gateway does not accept the token.
    Unauthorized = 77,
    /// The lease was lost before the command had ended.
    Lost = 79,
    /// The command exists but cannot be executed.
    NotExecutable = 126,
    /// There is no such command.
    NotFound = 127,
}

impl Exit {
    pub(crate) const fn code(self) -> u8 {
        self as u8
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}

/// The exit code of a program whose output no process reads any more: 128 and SIGPIPE.
const BROKEN_PIPE: u8 = 141;

/// The reason why the program ends with a code of its own.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: u8,
    /// The message for stderr; empty for none. Contains no token.
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { code: exit.code(), message: message.into() }
    }

    /// Creates the failure of an operation that a signal has ended.
    pub(crate) fn signalled(signal: Signal, message: impl Into<String>) -> Self {
        Self { code: signal.exit_code(), message: message.into() }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            // As a program that handles no signals ends, such as one in front of `head`.
            return Self { code: BROKEN_PIPE, message: String::new() };
        }
        Self::new(Exit::Internal, error.to_string())
    }
}

impl From<InvalidOption> for Failure {
    fn from(error: InvalidOption) -> Self {
        Self::new(Exit::Usage, error.message())
    }
}

impl From<Error<AcquireError>> for Failure {
    fn from(error: Error<AcquireError>) -> Self {
        let exit = acquire_exit(&error.kind);
        let held = match &error.kind {
            AcquireError::Unknown { held_at_most, .. } => {
                format!("; it ends within {}", clock::short(*held_at_most))
            }
            _ => String::new(),
        };
        Self::new(exit, with_cause(&error) + &held)
    }
}

impl From<Error<RequestError>> for Failure {
    fn from(error: Error<RequestError>) -> Self {
        Self::new(request_exit(&error.kind), with_cause(&error))
    }
}

fn acquire_exit(error: &AcquireError) -> Exit {
    match error {
        AcquireError::InvalidOption(_) => Exit::Usage,
        AcquireError::Busy { .. } => Exit::Busy,
        AcquireError::NotSetUp => Exit::NotSetUp,
        AcquireError::Refused(refusal) => refusal_exit(refusal),
        AcquireError::Unreachable(_) | AcquireError::Unknown { .. } | AcquireError::TooSlow => {
            Exit::Unreachable
        }
        AcquireError::NotReplicated { .. } | AcquireError::TokenRegressed { .. } => Exit::Refused,
        _ => Exit::Internal,
    }
}

fn request_exit(error: &RequestError) -> Exit {
    match error {
        RequestError::InvalidOption(_) => Exit::Usage,
        RequestError::Lost(_) => Exit::Lost,
        RequestError::Refused(refusal) => refusal_exit(refusal),
        RequestError::NotExecuted(_) | RequestError::Unreachable(_) => Exit::Unreachable,
        _ => Exit::Internal,
    }
}

fn refusal_exit(refusal: &Refusal) -> Exit {
    match refusal.kind() {
        RefusalKind::Unauthorized => Exit::Unauthorized,
        RefusalKind::NotAGateway => Exit::Unreachable,
        _ => Exit::Refused,
    }
}

/// The message of an error, with the system's own reason if there is one.
pub(crate) fn with_cause<K: std::fmt::Debug + std::fmt::Display>(error: &Error<K>) -> String {
    let mut cause = error.source();
    while let Some(deeper) = cause.and_then(|cause| cause.source()) {
        cause = Some(deeper);
    }
    cause.map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_of_the_program_is_below_those_of_signals() {
        let all = [
            Exit::Usage,
            Exit::NotSetUp,
            Exit::Unreachable,
            Exit::Internal,
            Exit::Exists,
            Exit::Busy,
            Exit::Refused,
            Exit::Unauthorized,
            Exit::Lost,
            Exit::NotExecutable,
            Exit::NotFound,
        ];
        let page = include_str!("../README.md");
        for exit in all {
            assert!((64..128).contains(&exit.code()), "{exit:?}");
            assert!(page.contains(&format!("\n| {} |", exit.code())), "{exit:?} is not documented");
        }
    }

    #[test]
    fn a_lock_that_another_client_holds_is_not_an_unreachable_gateway() {
        let busy = AcquireError::Busy { remaining: None };
        assert_eq!(acquire_exit(&busy), Exit::Busy);
        assert_eq!(acquire_exit(&AcquireError::NotSetUp), Exit::NotSetUp);
        assert_eq!(acquire_exit(&AcquireError::TooSlow), Exit::Unreachable);
    }
}
