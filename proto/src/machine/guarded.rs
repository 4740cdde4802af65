//! Guarded writes and scripts of the caller: the lock that protects a key, and their replies.

use alloc::string::String;

use crate::error::{EvalError, FailureKind, GuardError, InvalidOption, LossReason, RequestError};
use crate::protocol::reply::{Code, Reply};

/// Reads the reply to a guarded write. `is_unsure`: an attempt before the one with the reply may
/// have been executed.
///
/// # Errors
/// [`GuardError`] unless the write was executed.
pub fn write_result(reply: &Reply, is_unsure: bool) -> Result<(), GuardError> {
    match reply.code {
        Code::Done | Code::AlreadyYours => Ok(()),
        // An earlier attempt without a reply may have executed the write, before the event that
        // made this attempt stale.
        Code::No | Code::TooOld | Code::TokenAhead if is_unsure => {
            Err(GuardError::Request(no_answer()))
        }
        Code::No => Err(GuardError::Stale { newest: token(reply) }),
        Code::TooOld => Err(GuardError::TooOld { oldest: token(reply) }),
        Code::TokenAhead => Err(GuardError::TokenAhead),
        Code::Late => Err(GuardError::Request(RequestError::NotExecuted(FailureKind::TimedOut))),
        _ => Err(GuardError::Request(no_answer())),
    }
}

/// Checks that the lock of a lease is the one that protects a guarded key. `redacts`: the error
/// leaves out the names.
///
/// # Errors
/// [`InvalidOption`] about the lease.
pub fn check_protecting_lock(
    protecting: &str,
    of_lease: &str,
    redacts: bool,
) -> Result<(), InvalidOption> {
    if protecting == of_lease {
        return Ok(());
    }
    let accepted = if redacts {
        "a lease of the lock that protects this key".into()
    } else {
        ["a lease of lock \"", protecting, "\", which protects this key, not of \"", of_lease, "\""]
            .concat()
    };
    Err(InvalidOption::new("lease", accepted))
}

/// Reads the reply to a query of a guard: the newest token that it has seen, if it remembers one.
pub fn newest_token(reply: &Reply) -> Option<u64> {
    (reply.code == Code::Done).then(|| token(reply))
}

/// Reads the reply to a script of the caller: its result as JSON.
///
/// # Errors
/// [`EvalError`]; with [`RequestError::Lost`] the hold is gone.
pub(crate) fn script_result(reply: Reply) -> Result<String, EvalError> {
    match reply.code {
        Code::Done => Ok(reply.value),
        Code::ScriptFailed => Err(EvalError::ScriptFailed(reply.value)),
        Code::Lost => Err(RequestError::Lost(LossReason::Gone).into()),
        _ => Err(no_answer().into()),
    }
}

fn token(reply: &Reply) -> u64 {
    reply.value.parse().unwrap_or(0)
}

const fn no_answer() -> RequestError {
    RequestError::Unreachable(FailureKind::NO_ANSWER)
}
